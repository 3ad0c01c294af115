//! Sessions: numbered without gaps, a message with its event and its job, a run completely or not at all.

use std::collections::{HashMap, HashSet};

use claw_core::store::{
    Accepted, JobState, Message, NewMessage, Role, RunEvent, SessionEvent, SessionEventBody,
};
use claw_core::{JobId, MessageId};

use super::super::{Operation, Reply, Right, Step};
use super::{Model, Seen};

impl Model<'_> {
    pub(super) fn check_talk(&self, seen: &Seen, findings: &mut Vec<String>) {
        let stored: HashMap<MessageId, &Message> =
            seen.messages.values().flatten().map(|message| (message.new.id, message)).collect();
        check_numbers(seen, stored.len(), findings);
        self.check_messages(seen, &stored, findings);
        self.check_runs(seen, &stored, findings);
        self.check_events(seen, findings);
        check_notes(seen, findings);
        let is_note = |message: &&Message| message.new.role == Role::System;
        let notes = stored.values().copied().filter(is_note).map(|message| message.new.id);
        let known = self.said().chain(notes).collect::<HashSet<_>>();
        for id in stored.keys().filter(|id| !known.contains(*id)) {
            findings.push(format!("message {id}: nobody said it"));
        }
    }

    /// Returns the ids of all messages that players tried to write.
    fn said(&self) -> impl Iterator<Item = MessageId> {
        self.steps.iter().flat_map(|step| match &step.operation {
            Operation::AcceptMessage { message, .. } => vec![message.id],
            Operation::SayInRun { said, .. } | Operation::FinishRun { said, .. } => {
                said.iter().map(|message| message.id).collect()
            }
            _ => Vec::new(),
        })
    }

    fn check_messages(&self, seen: &Seen, stored: &HashMap<MessageId, &Message>, findings: &mut Vec<String>) {
        for new in &self.world.messages {
            let mut found = |what: String| findings.push(format!("message {}: {what}", new.id));
            let mut jobs = HashSet::new();
            let mut answers: Vec<Accepted> = Vec::new();
            for step in &self.steps {
                let Operation::AcceptMessage { message, job } = &step.operation else { continue };
                if message.id != new.id {
                    continue;
                }
                jobs.insert(job.id);
                if let Some(Reply::Accepted { seq, job }) = step.happened() {
                    answers.push(Accepted { seq: *seq, job: *job });
                }
            }
            let present: Vec<&JobId> = jobs.iter().filter(|job| seen.jobs.contains_key(*job)).collect();
            let Some(message) = stored.get(&new.id) else {
                if !answers.is_empty() {
                    found("was accepted and is not there".to_owned());
                }
                if !present.is_empty() {
                    found(format!("is not there, and its job is: {present:?}"));
                }
                continue;
            };
            if message.new != *new {
                found(format!("is not what was sent: {:?}", message.new));
            }
            let [job] = present[..] else {
                found(format!("has {} jobs, not one: {present:?}", present.len()));
                continue;
            };
            let expected = Accepted { seq: message.seq, job: *job };
            if answers.iter().any(|answer| *answer != expected) {
                found(format!("is stored as {expected:?} and was answered {answers:?}"));
            }
        }
    }

    fn check_runs(&self, seen: &Seen, stored: &HashMap<MessageId, &Message>, findings: &mut Vec<String>) {
        for step in &self.steps {
            let (right, said, ends) = match &step.operation {
                Operation::SayInRun { right, said } => (right, said, false),
                Operation::FinishRun { right, said } => (right, said, true),
                _ => continue,
            };
            let mut found = |what: String| {
                findings.push(format!("run of job {} in attempt {}: {what}", right.job, right.attempt));
            };
            let places = check_said(stored, step, said, &mut found);
            let ended = seen
                .jobs
                .get(&right.job)
                .is_some_and(|job| (job.state, job.attempts) == (JobState::Done, right.attempt));
            if ends && !places.is_empty() && !ended {
                found("what it said is there and its job is not done".to_owned());
            }
        }
        for job in seen.jobs.values().filter(|job| job.state == JobState::Done) {
            let is_end = |right: &Right| (right.job, right.attempt) == (job.new.id, job.attempts);
            // One of these ended it; each could have, if what it said is there or it said nothing.
            let could_have = |step: &&Step| match &step.operation {
                Operation::FinishJob { right } => is_end(right),
                Operation::FinishRun { right, said } => {
                    is_end(right) && said.iter().all(|message| stored.contains_key(&message.id))
                }
                _ => false,
            };
            if !self.steps.iter().filter(|step| step.may_have_happened()).any(|step| could_have(&step)) {
                findings.push(format!("job {}: is done, and what its run said is not there", job.new.id));
            }
        }
    }

    fn check_events(&self, seen: &Seen, findings: &mut Vec<String>) {
        let mut notes = HashMap::new();
        for (session, events) in &seen.events {
            // Events of the kind `message` are looked at with the messages.
            for event in events {
                let SessionEventBody::Run { run, state: RunEvent::Woken } = &event.what else { continue };
                if notes.insert(*run, (session, event.seq)).is_some() {
                    findings.push(format!("event {run}: is there twice"));
                }
            }
        }
        for step in &self.steps {
            let Operation::LogEvent { session, note } = &step.operation else { continue };
            let place = notes.remove(note);
            if let Some(Reply::Places { seqs }) = step.happened()
                && place.is_none_or(|(at, seq)| at != session || seqs[..] != [seq])
            {
                findings.push(format!("event {note}: told {seqs:?} of {session}, found {place:?}"));
            }
        }
        for (note, _) in notes {
            findings.push(format!("event {note}: nobody logged it"));
        }
    }
}

/// Checks that messages written together are stored completely or not at all; returns their numbers.
fn check_said(
    stored: &HashMap<MessageId, &Message>,
    step: &Step,
    said: &[NewMessage],
    found: &mut impl FnMut(String),
) -> Vec<u64> {
    let places: Vec<u64> =
        said.iter().filter_map(|new| stored.get(&new.id)).map(|message| message.seq).collect();
    if !places.is_empty() && places.len() != said.len() {
        found(format!("{} of {} messages are there", places.len(), said.len()));
    }
    if places.windows(2).any(|pair| pair[1] != pair[0] + 1) {
        found(format!("others speak in between: {places:?}"));
    }
    if said.iter().any(|new| stored.get(&new.id).is_some_and(|message| message.new != *new)) {
        found("is not what was said".to_owned());
    }
    if !places.is_empty() && !step.may_have_happened() {
        found("was refused, and what it said is there".to_owned());
    }
    if let Some(Reply::Places { seqs }) = step.happened()
        && *seqs != places
    {
        found(format!("was told {seqs:?} and is at {places:?}"));
    }
    places
}

/// Checks that each cancelled run of a session has one system message in it, and no other run has any.
fn check_notes(seen: &Seen, findings: &mut Vec<String>) {
    let system = seen.messages.values().flatten().filter(|message| message.new.role == Role::System);
    let mut notes: HashMap<JobId, usize> = HashMap::new();
    system.for_each(|message| *notes.entry(message.run).or_default() += 1);
    for job in seen.jobs.values() {
        let many = notes.remove(&job.new.id).unwrap_or_default();
        let expected = usize::from(job.state == JobState::Cancelled && job.new.session.is_some());
        if many != expected {
            findings.push(format!("job {}: has {many} notes of its cancel, not {expected}", job.new.id));
        }
    }
    if !notes.is_empty() {
        findings.push(format!("notes of no job: {notes:?}"));
    }
}

/// Checks numbers without gaps, unique ids, and one event for each message, in the same order.
fn check_numbers(seen: &Seen, distinct: usize, findings: &mut Vec<String>) {
    let total: usize = seen.messages.values().map(Vec::len).sum();
    if total != distinct {
        findings.push(format!("{total} messages have {distinct} ids"));
    }
    for (session, messages) in &seen.messages {
        let mut found = |what: String| findings.push(format!("session {session}: {what}"));
        let numbers: Vec<u64> = messages.iter().map(|message| message.seq).collect();
        if numbers.iter().zip(1..).any(|(seq, expected)| *seq != expected) {
            found(format!("messages are numbered {numbers:?}"));
        }
        let events = &seen.events[session];
        let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
        if numbers.iter().zip(1..).any(|(seq, expected)| *seq != expected) {
            found(format!("events are numbered {numbers:?}"));
        }
        let message = |event: &SessionEvent| match event.what {
            SessionEventBody::Message { id, .. } => Some(id),
            _ => None,
        };
        let told: Vec<MessageId> = events.iter().filter_map(message).collect();
        let said: Vec<MessageId> = messages.iter().map(|message| message.new.id).collect();
        if told != said {
            found(format!("events tell of {told:?}, messages are {said:?}"));
        }
    }
}
