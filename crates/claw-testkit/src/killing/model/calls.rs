//! Calls and approvals: begun once, answered once, used once, and used exactly by the call that began.

use std::collections::{HashMap, HashSet};

use claw_core::store::{Approval, ApprovalState, EntryEvent, NewApproval};
use claw_core::{ApprovalId, CallId};

use super::super::{EXPIRY, Operation, Reply, Step};
use super::{Model, Seen};

/// The three kinds of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Refused,
    Intent,
    Outcome,
}

impl Model<'_> {
    pub(super) fn check_calls(&self, seen: &Seen, findings: &mut Vec<String>) {
        check_chains(seen, findings);
        self.check_entries(seen, findings);
        self.check_questions(seen, findings);
        self.check_answers(seen, findings);
        self.check_times(seen, findings);
    }

    fn check_entries(&self, seen: &Seen, findings: &mut Vec<String>) {
        let mut written: HashMap<(CallId, Kind), usize> = HashMap::new();
        for entry in &seen.entries {
            let kind = match entry.record.event {
                EntryEvent::Refused { .. } => Kind::Refused,
                EntryEvent::Intent { .. } => Kind::Intent,
                EntryEvent::Outcome { .. } => Kind::Outcome,
            };
            *written.entry((entry.record.call, kind)).or_default() += 1;
        }
        let mut said: HashMap<(CallId, Kind), Vec<&Step>> = HashMap::new();
        for step in &self.steps {
            let key = match step.operation {
                Operation::Refuse { call } => (call, Kind::Refused),
                Operation::BeginCall { call, .. } => (call, Kind::Intent),
                Operation::FinishCall { call } => (call, Kind::Outcome),
                _ => continue,
            };
            said.entry(key).or_default().push(step);
        }
        for key in written.keys().filter(|key| !said.contains_key(*key)) {
            findings.push(format!("call {}: {:?} was written by nobody", key.0, key.1));
        }
        for ((call, kind), steps) in said {
            let count = written.get(&(call, kind)).copied().unwrap_or_default();
            let told = steps.iter().filter(|step| step.happened().is_some()).count();
            let possible = steps.iter().filter(|step| step.may_have_happened()).count();
            if told > 1 || count > 1 || count < told || count > possible {
                findings.push(format!(
                    "call {call}: {kind:?} is there {count} times; {told} told, {possible} possible"
                ));
            }
        }
    }

    /// Checks that a call has one approval, however often it asks.
    fn check_questions(&self, seen: &Seen, findings: &mut Vec<String>) {
        let mut ids: HashMap<CallId, HashSet<ApprovalId>> = HashMap::new();
        for approval in seen.approvals.values() {
            ids.entry(approval.request.call).or_default().insert(approval.id);
        }
        for step in &self.steps {
            let Operation::Request { question } = &step.operation else { continue };
            let Some(Reply::Asked { approval, .. }) = step.happened() else { continue };
            ids.entry(question.call).or_default().insert(*approval);
            // Asked again, it keeps the time at which it was asked first.
            let is_same = |found: &Approval| {
                found.request == NewApproval { asked: found.request.asked, ..question.clone() }
            };
            if !seen.approvals.get(approval).is_some_and(is_same) {
                findings.push(format!("approval {approval}: was asked and is not there as it was"));
            }
        }
        for (call, ids) in ids.iter().filter(|(_, ids)| ids.len() > 1) {
            findings.push(format!("call {call}: asked more than once: {ids:?}"));
        }
    }

    fn check_answers(&self, seen: &Seen, findings: &mut Vec<String>) {
        let used: Vec<ApprovalId> = seen
            .entries
            .iter()
            .filter_map(|entry| match entry.record.event {
                EntryEvent::Intent { approval, .. } => approval,
                _ => None,
            })
            .collect();
        for (id, approval) in &seen.approvals {
            let mut found = |what: String| findings.push(format!("approval {id}: {what}"));
            let uses = used.iter().filter(|used| *used == id).count();
            if uses != usize::from(approval.state == ApprovalState::Used) {
                found(format!("is {} and covers {uses} calls", approval.state));
            }
            let answers = self.steps.iter().filter_map(|step| match step.operation {
                Operation::Answer { approval, approve, .. } if approval == *id => Some((step, approve)),
                _ => None,
            });
            let answers: Vec<_> = answers.filter(|(step, _)| step.may_have_happened()).collect();
            let told: Vec<_> = answers.iter().filter(|(step, _)| step.happened().is_some()).collect();
            if told.len() > 1 {
                found(format!("was answered {} times", told.len()));
            }
            // A yes may have lapsed since; a no stays.
            let yes = matches!(
                approval.state,
                ApprovalState::Approved | ApprovalState::Used | ApprovalState::Expired
            );
            if let Some((_, approve)) = told.first()
                && (yes != *approve || approval.state == ApprovalState::Pending)
            {
                found(format!("was answered {approve} and is {}", approval.state));
            }
            let explained = match approval.state {
                ApprovalState::Pending => true,
                ApprovalState::Approved | ApprovalState::Used => answers.iter().any(|(_, approve)| *approve),
                ApprovalState::Denied => answers.iter().any(|(_, approve)| !approve),
                ApprovalState::Expired => self.late(approval).next().is_some(),
                ApprovalState::Cancelled => false,
            };
            if !explained {
                found(format!("is {} and nobody said so", approval.state));
            }
        }
        let told = self.steps.iter().filter_map(|step| match (&step.operation, step.happened()) {
            (Operation::BeginCall { approval: Some(id), .. }, Some(_)) => Some(id),
            _ => None,
        });
        for id in told.filter(|id| !used.contains(id)) {
            findings.push(format!("approval {id}: a call began with it and does not name it"));
        }
    }

    /// Checks that an operation after the expiry has no effect, and that a reply of expiry is final.
    fn check_times(&self, seen: &Seen, findings: &mut Vec<String>) {
        for (id, approval) in &seen.approvals {
            for step in self.late(approval) {
                let expired = match &step.reply {
                    Some(Reply::Asked { state, .. }) => *state == ApprovalState::Expired,
                    Some(Reply::Refused { why }) => why.contains("is expired"),
                    _ => false,
                };
                if expired && approval.state != ApprovalState::Expired {
                    findings.push(format!("approval {id}: was said to be expired and is {}", approval.state));
                }
                let counted = !matches!(step.operation, Operation::Request { .. });
                if counted && step.happened().is_some() {
                    findings.push(format!("approval {id}: its time was over: {step:?}"));
                }
            }
        }
    }

    /// Returns the operations on an approval after its expiry.
    fn late<'a>(&'a self, approval: &'a Approval) -> impl Iterator<Item = &'a Step> {
        self.steps.iter().filter(|step| match &step.operation {
            Operation::Answer { approval: id, at, .. } => *id == approval.id && *at >= EXPIRY,
            Operation::BeginCall { approval: id, at, .. } => *id == Some(approval.id) && *at >= EXPIRY,
            Operation::Request { question } => {
                question.call == approval.request.call && question.asked >= EXPIRY
            }
            _ => false,
        })
    }
}

/// The entries of each node are numbered from 1 without gaps.
fn check_chains(seen: &Seen, findings: &mut Vec<String>) {
    let mut chains: HashMap<_, Vec<u64>> = HashMap::new();
    for entry in &seen.entries {
        chains.entry(&entry.node).or_default().push(entry.seq);
    }
    for (node, mut numbers) in chains {
        numbers.sort();
        if numbers.iter().zip(1..).any(|(seq, expected)| *seq != expected) {
            findings.push(format!("chain of {node}: numbered {numbers:?}"));
        }
    }
}
