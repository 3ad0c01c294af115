//! The calls that have begun and their outcomes, in bounded memory.

use std::collections::BTreeMap;
use std::mem;

use claw_core::CallId;
use claw_core::store::Outcome;

/// The outcomes of calls by id. Ids sort by time, so forgotten calls are always older than kept ones.
#[derive(Debug)]
pub(crate) struct Calls {
    fates: BTreeMap<CallId, Outcome>,
    most: usize,
    forgotten: Option<CallId>,
}

/// The known state of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// The call has not begun.
    Fresh,
    /// The call has begun; its outcome is unknown until its end is recorded.
    Begun(Outcome),
    /// The call is as old as a forgotten one, so it may have begun.
    Forgotten,
}

impl Calls {
    /// Remembers at least the `most` latest ids.
    pub(crate) fn new(most: usize) -> Self {
        Self { fates: BTreeMap::new(), most, forgotten: None }
    }

    pub(crate) fn known(&self, call: CallId) -> Known {
        match self.fates.get(&call) {
            Some(outcome) => Known::Begun(*outcome),
            None if self.forgotten.is_some_and(|last| call <= last) => Known::Forgotten,
            None => Known::Fresh,
        }
    }

    /// Records the end of a call, and returns its previous outcome; `None` if it has not begun.
    pub(crate) fn end(&mut self, call: CallId, outcome: Outcome) -> Option<Outcome> {
        match self.fates.get_mut(&call) {
            Some(fate) => Some(mem::replace(fate, outcome)),
            None => (self.known(call) == Known::Forgotten).then_some(Outcome::Unknown),
        }
    }

    pub(crate) fn record(&mut self, call: CallId, outcome: Outcome) {
        self.fates.insert(call, outcome);
        if self.fates.len() > self.most
            && let Some((oldest, _)) = self.fates.pop_first()
        {
            self.forgotten = self.forgotten.max(Some(oldest));
        }
    }
}

#[cfg(test)]
mod tests;
