//! Jobs: accepted once, begun at least once, finished once.

use std::collections::{HashMap, HashSet};

use claw_core::JobId;
use claw_core::store::{Job, JobState, NewJob};

use super::super::{Operation, Reply, Right, Step};
use super::{Model, Seen};

/// The recorded steps of one job.
#[derive(Default)]
struct Said<'a> {
    accepted: Vec<(&'a Step, &'a NewJob)>,
    /// The attempts leased to players.
    claimed: Vec<u32>,
    finished: Vec<(&'a Step, Right)>,
    failed: Vec<(&'a Step, Right)>,
    parked: Vec<(&'a Step, Right)>,
    /// The cancels that ended it at once, or were passed to its worker.
    ended: usize,
    told: usize,
}

impl Model<'_> {
    pub(super) fn check_jobs(&self, seen: &Seen, findings: &mut Vec<String>) {
        let said = self.said_of_jobs();
        for id in self.job_ids() {
            let mut found = |what: String| findings.push(format!("job {id}: {what}"));
            let nothing = Said::default();
            let said = said.get(&id).unwrap_or(&nothing);
            said.check_claims(&mut found);
            if let Some(job) = seen.jobs.get(&id) {
                said.check_cancels(job, self.may_be_cancelled(id), &mut found);
                said.check_parks(job, &mut found);
            }
            match seen.jobs.get(&id) {
                Some(job) => said.check_present(job, &mut found),
                None => said.check_absent(&mut found),
            }
        }
        self.check_attempts(seen, findings);
        check_sessions(seen, findings);
    }

    /// After everything was drained: nothing is left to do.
    pub fn check_drained(&self, seen: &Seen) -> Vec<String> {
        let left = seen.jobs.values().filter(|job| !job.state.is_over());
        left.map(|job| format!("job {}: is {} when all is done", job.new.id, job.state.name())).collect()
    }

    fn said_of_jobs(&self) -> HashMap<JobId, Said<'_>> {
        let mut said: HashMap<JobId, Said> = HashMap::new();
        for step in &self.steps {
            match (&step.operation, step.happened()) {
                (Operation::Enqueue { job }, _) => {
                    said.entry(job.id).or_default().accepted.push((step, job));
                }
                (Operation::Claim { .. }, Some(Reply::Claimed { right: Some(right) })) => {
                    said.entry(right.job).or_default().claimed.push(right.attempt);
                }
                (Operation::FinishJob { right } | Operation::FinishRun { right, .. }, _) => {
                    said.entry(right.job).or_default().finished.push((step, *right));
                }
                (Operation::FailJob { right, .. }, _) => {
                    said.entry(right.job).or_default().failed.push((step, *right));
                }
                (Operation::Park { right, .. }, _) => {
                    said.entry(right.job).or_default().parked.push((step, *right));
                }
                (Operation::Cancel { .. }, Some(Reply::Cancelled { ended, told })) => {
                    ended.iter().for_each(|job| said.entry(*job).or_default().ended += 1);
                    told.iter().for_each(|job| said.entry(*job).or_default().told += 1);
                }
                _ => {}
            }
        }
        said
    }

    /// Returns whether a cancel of this job may have happened.
    fn may_be_cancelled(&self, id: JobId) -> bool {
        let cancels = |step: &Step| matches!(step.operation, Operation::Cancel { job } if job == id);
        self.steps.iter().any(|step| cancels(step) && step.may_have_happened())
    }

    /// Checks that each attempt of a job belongs to a claim: an acknowledged one, or one whose player died.
    fn check_attempts(&self, seen: &Seen, findings: &mut Vec<String>) {
        let claims = self.steps.iter().filter(|step| matches!(step.operation, Operation::Claim { .. }));
        let (mut told, mut unclear) = (0, 0);
        for step in claims {
            told += usize::from(matches!(step.happened(), Some(Reply::Claimed { right: Some(_) })));
            unclear += usize::from(step.is_unclear());
        }
        let begun: usize = seen.jobs.values().map(|job| job.attempts as usize).sum();
        if begun < told || begun > told + unclear {
            findings
                .push(format!("jobs were begun {begun} times; {told} were told, {unclear} may have been"));
        }
    }
}

impl Said<'_> {
    fn check_claims(&self, found: &mut impl FnMut(String)) {
        let distinct: HashSet<_> = self.claimed.iter().collect();
        if distinct.len() < self.claimed.len() {
            found(format!("an attempt was given twice: {:?}", self.claimed));
        }
        let ended = |ends: &[(&Step, Right)]| {
            let told = ends.iter().filter(|(step, _)| step.happened().is_some());
            told.map(|(_, right)| right.attempt).collect::<Vec<_>>()
        };
        let (finished, mut failed) = (ended(&self.finished), ended(&self.failed));
        failed.extend(ended(&self.parked));
        if finished.len() > 1 {
            found(format!("finished {} times, in attempts {finished:?}", finished.len()));
        }
        let mut ends: Vec<_> = finished.iter().chain(&failed).collect();
        ends.sort();
        if ends.windows(2).any(|pair| pair[0] == pair[1]) {
            found(format!("an attempt ended twice: finished {finished:?}, failed or parked {failed:?}"));
        }
        let dead = self.failed.iter().filter(|(step, _)| is_dead(step)).map(|(_, right)| right.attempt);
        for end in finished.into_iter().chain(dead) {
            let later = self.claimed.iter().chain(&failed).find(|attempt| **attempt > end);
            if let Some(later) = later {
                found(format!("ended for good in attempt {end} and begun again as {later}"));
            }
        }
    }

    fn check_present(&self, job: &Job, found: &mut impl FnMut(String)) {
        // A retry moves `visible`; the rest stays as it was accepted.
        let same = |new: &NewJob| NewJob { visible: job.new.visible, ..new.clone() } == job.new;
        if self.accepted.iter().any(|(_, new)| !same(new)) {
            found(format!("is not what was accepted: {:?}", job.new));
        }
        if job.tries() > job.new.max_attempts.into() {
            found(format!("tried {} times of {}", job.tries(), job.new.max_attempts));
        }
        if self.claimed.iter().any(|attempt| *attempt > job.attempts) {
            found(format!("{:?} were claimed and {} is stored", self.claimed, job.attempts));
        }
        if (job.state == JobState::Leased) != job.lease.is_some() {
            found(format!("is {} with lease {:?}", job.state.name(), job.lease));
        }
        let finished = self.finished.iter().find(|(step, _)| step.happened().is_some());
        if let Some((_, right)) = finished
            && (job.state, job.attempts) != (JobState::Done, right.attempt)
        {
            let state = job.state.name();
            found(format!("finished in attempt {} and now {state} in {}", right.attempt, job.attempts));
        }
        if job.state == JobState::Done && !self.finished.iter().any(|(step, _)| step.may_have_happened()) {
            found("is done and nobody finished it".to_owned());
        }
        if self.failed.iter().any(|(step, _)| is_dead(step)) && job.state != JobState::Dead {
            found(format!("died and is {}", job.state.name()));
        }
        let given_up = |(step, _): &(&Step, Right)| {
            step.may_have_happened() && matches!(step.operation, Operation::FailJob { retry: None, .. })
        };
        if job.state == JobState::Dead
            && job.tries() < job.new.max_attempts.into()
            && !self.failed.iter().any(given_up)
        {
            found(format!("is dead after {} of {} tries", job.tries(), job.new.max_attempts));
        }
    }

    fn check_parks(&self, job: &Job, found: &mut impl FnMut(String)) {
        let told = self.parked.iter().filter(|(step, _)| step.happened().is_some()).count();
        let unclear = self.parked.iter().filter(|(step, _)| step.is_unclear()).count();
        let parks = job.parks as usize;
        if parks < told || parks > told + unclear {
            found(format!("was parked {parks} times; {told} were told, {unclear} may have been"));
        }
    }

    fn check_cancels(&self, job: &Job, may_be: bool, found: &mut impl FnMut(String)) {
        let state = job.state.name();
        if self.ended > 1 {
            found(format!("was cancelled {} times", self.ended));
        }
        if self.ended > 0 && job.state != JobState::Cancelled {
            found(format!("was cancelled and is {state}"));
        }
        if self.told > 0 && job.cancel.is_none() {
            found(format!("has no cancel request, and {} were told of one", self.told));
        }
        if (job.state == JobState::Cancelled || job.cancel.is_some()) && !may_be {
            found(format!("is {state} with {:?}, and nobody cancelled it", job.cancel));
        }
    }

    fn check_absent(&self, found: &mut impl FnMut(String)) {
        if self.accepted.iter().any(|(step, _)| step.happened().is_some()) {
            found("was accepted and is not there".to_owned());
        }
        if !self.claimed.is_empty() {
            found("was claimed and is not there".to_owned());
        }
    }
}

fn is_dead(step: &Step) -> bool {
    matches!(step.happened(), Some(Reply::Failed { state: JobState::Dead }))
}

fn check_sessions(seen: &Seen, findings: &mut Vec<String>) {
    let mut busy = HashSet::new();
    for job in seen.jobs.values().filter(|job| job.state == JobState::Leased) {
        if let Some(session) = &job.new.session
            && !busy.insert(session)
        {
            findings.push(format!("session {session}: two jobs are leased at once"));
        }
    }
}
