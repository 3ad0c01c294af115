//! The approvals, kept in memory.
//!
//! The table knows how an approval moves from state to state, but not who waits for it or how long.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use claw_core::port::UnixMillis;
use claw_core::store::{
    Answer, Approval, ApprovalState, Bells, EntryEvent, NewApproval, Record, StoreError, Topic,
};
use claw_core::{ApprovalId, TenantId};
use serde_json::{Map, Value};

/// A table of approvals, and a bell that rings when one changes.
#[derive(Debug)]
pub(crate) struct ApprovalTable {
    // Ids sort by time, so the first row is the oldest.
    rows: Mutex<BTreeMap<ApprovalId, Approval>>,
    /// Values that were given and not taken yet.
    values: Mutex<BTreeMap<ApprovalId, Map<String, Value>>>,
    most: usize,
    pub(crate) bells: Bells,
}

impl ApprovalTable {
    /// Creates a table that keeps about `most` rows: the oldest that are over or expired make room; a pending
    /// or unused one is never dropped.
    pub(crate) fn new(most: usize) -> Self {
        Self { rows: Mutex::default(), values: Mutex::default(), most, bells: Bells::default() }
    }

    pub(crate) fn request(&self, new: NewApproval) -> Approval {
        let mut rows = self.rows();
        let mut found = None;
        for row in rows.values_mut().filter(|row| is_of_call(row, &new)) {
            self.lapse(row, new.asked);
            if row.request.digest == new.digest {
                found = (row.state != ApprovalState::Cancelled).then(|| row.clone());
            } else if !is_over(row.state) {
                row.state = ApprovalState::Cancelled;
                self.ring();
            }
        }
        if let Some(found) = found {
            return found;
        }
        self.make_room(&mut rows, new.asked);
        let id = ApprovalId::new();
        let row =
            Approval { id, request: new, state: ApprovalState::Pending, answered_by: None, reason: None };
        rows.insert(id, row.clone());
        self.ring();
        row
    }

    pub(crate) fn get(&self, tenant: &TenantId, id: ApprovalId) -> Option<Approval> {
        self.rows().get(&id).filter(|row| row.request.tenant == *tenant).cloned()
    }

    pub(crate) fn pending(&self, tenant: &TenantId, now: UnixMillis) -> Vec<Approval> {
        let waits = |row: &&Approval| row.state == ApprovalState::Pending && row.request.expires > now;
        let rows = self.rows();
        rows.values().filter(waits).filter(|row| row.request.tenant == *tenant).cloned().collect()
    }

    pub(crate) fn answer(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        answer: Answer,
    ) -> Result<Approval, StoreError> {
        self.forget_values(tenant, answer.at);
        self.change(tenant, id, |row| {
            self.lapse(row, answer.at);
            if row.state != ApprovalState::Pending {
                return Err(wrong_state(row));
            }
            row.state = if answer.approve { ApprovalState::Approved } else { ApprovalState::Denied };
            row.answered_by = Some(answer.by);
            row.reason = answer.reason;
            if let Some(values) = answer.values {
                self.values().insert(id, values);
            }
            Ok(())
        })
    }

    /// Expires answered requests for input whose values nobody took in time, and forgets the values.
    fn forget_values(&self, tenant: &TenantId, now: UnixMillis) {
        let (mut rows, mut values) = (self.rows(), self.values());
        values.retain(|id, _| {
            let Some(row) = rows.get_mut(id) else { return false };
            let is_late = row.request.tenant == *tenant && row.request.expires <= now;
            if is_late && row.state == ApprovalState::Approved {
                row.state = ApprovalState::Expired;
            }
            !is_late
        });
    }

    pub(crate) fn take_values(&self, tenant: &TenantId, id: ApprovalId) -> Option<Map<String, Value>> {
        let mut rows = self.rows();
        let row = rows.get_mut(&id).filter(|row| row.request.tenant == *tenant)?;
        if row.state != ApprovalState::Approved || row.request.input.is_none() {
            return None;
        }
        row.state = ApprovalState::Used;
        self.ring();
        Some(self.values().remove(&id).unwrap_or_default())
    }

    pub(crate) fn close(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        state: ApprovalState,
    ) -> Result<Approval, StoreError> {
        self.change(tenant, id, |row| match (row.state, state) {
            (ApprovalState::Pending, ApprovalState::Expired | ApprovalState::Cancelled)
            | (ApprovalState::Approved, ApprovalState::Cancelled) => {
                row.state = state;
                Ok(())
            }
            (_, ApprovalState::Expired | ApprovalState::Cancelled) => Ok(()),
            _ => Err(wrong_state(row)),
        })
    }

    /// Writes an intent with `write` and marks the approval that it names used: both or neither.
    ///
    /// The table is locked meanwhile, so that no approval covers two calls.
    pub(crate) fn spend<T>(
        &self,
        intent: &Record,
        write: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let EntryEvent::Intent { approval: Some(id), digest, .. } = &intent.event else {
            return write();
        };
        let mut rows = self.rows();
        let row = rows.get_mut(id).ok_or_else(|| missing(*id))?;
        if !is_of_intent(row, intent) || row.request.digest != *digest {
            return Err(missing(*id));
        }
        self.lapse(row, intent.at);
        if row.state != ApprovalState::Approved {
            return Err(wrong_state(row));
        }
        let written = write()?;
        row.state = ApprovalState::Used;
        self.ring();
        Ok(written)
    }

    fn change(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        change: impl FnOnce(&mut Approval) -> Result<(), StoreError>,
    ) -> Result<Approval, StoreError> {
        let mut rows = self.rows();
        let row = rows.get_mut(&id).filter(|row| row.request.tenant == *tenant).ok_or_else(|| missing(id))?;
        change(row)?;
        self.ring();
        Ok(row.clone())
    }

    /// Drops the oldest rows that nobody can use any more, as far as there are too many.
    fn make_room(&self, rows: &mut BTreeMap<ApprovalId, Approval>, now: UnixMillis) {
        let excess = (rows.len() + 1).saturating_sub(self.most);
        if excess > 0 {
            let useless = rows.iter().filter(|(_, row)| is_over(row.state) || row.request.expires <= now);
            let useless: Vec<_> = useless.map(|(id, _)| *id).take(excess).collect();
            for id in useless {
                rows.remove(&id);
                self.values().remove(&id);
            }
        }
    }

    /// Expires a row whose time is over.
    fn lapse(&self, row: &mut Approval, now: UnixMillis) {
        if !is_over(row.state) && row.request.expires <= now {
            row.state = ApprovalState::Expired;
            self.ring();
        }
    }

    fn ring(&self) {
        self.bells.ring(Topic::Approvals);
    }

    fn values(&self) -> MutexGuard<'_, BTreeMap<ApprovalId, Map<String, Value>>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rows(&self) -> MutexGuard<'_, BTreeMap<ApprovalId, Approval>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_of_call(row: &Approval, new: &NewApproval) -> bool {
    let asked = &row.request;
    (asked.call, &asked.tenant, &asked.session, &asked.agent)
        == (new.call, &new.tenant, &new.session, &new.agent)
}

fn is_of_intent(row: &Approval, intent: &Record) -> bool {
    let (asked, by) = (&row.request, intent);
    (asked.call, &asked.tenant, &asked.session, &asked.agent) == (by.call, &by.tenant, &by.session, &by.agent)
}

fn is_over(state: ApprovalState) -> bool {
    !matches!(state, ApprovalState::Pending | ApprovalState::Approved)
}

fn wrong_state(row: &Approval) -> StoreError {
    StoreError::ApprovalState { id: row.id, state: row.state.name() }
}

fn missing(id: ApprovalId) -> StoreError {
    StoreError::ApprovalState { id, state: "missing" }
}

#[cfg(test)]
mod tests;
