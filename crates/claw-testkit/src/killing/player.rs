//! A worker that performs random operations and reports each.

use claw_core::port::UnixMillis;
use claw_core::store::{
    Answer, ApprovalState, Cancel, Claim, Failure, Finish, NewJob, NewMessage, Outcome, Parking, Record,
    Role, RunEvent, SessionEventBody, StoreError, Worker,
};
use claw_core::{ApprovalId, CallId, SessionKey};
use serde_json::json;

use super::{EXPIRY, Operation, Played, Random, Reply, Right, Step, World};
use crate::fixture::{self, NOW};

/// A time later than any that players use.
const END: UnixMillis = UnixMillis(1_000_000);

/// A worker on a store.
#[derive(Debug)]
pub struct Player<'a, S> {
    store: &'a S,
    world: &'a World,
    worker: Worker,
    random: Random,
    rights: Vec<Right>,
    approvals: Vec<(CallId, ApprovalId)>,
    begun: Vec<CallId>,
}

impl<'a, S: Played> Player<'a, S> {
    /// A player that has done nothing yet.
    pub fn new(store: &'a S, world: &'a World, worker: Worker, random: Random) -> Self {
        let (rights, approvals, begun) = (Vec::new(), Vec::new(), Vec::new());
        Self { store, world, worker, random, rights, approvals, begun }
    }

    /// Picks the next operation.
    pub async fn pick(&mut self) -> Operation {
        match self.random.below(20) {
            0 | 1 => {
                let job = self.random.pick(&self.world.jobs).expect("there are jobs").clone();
                Operation::Enqueue { job }
            }
            2..=4 => {
                let message = self.random.pick(&self.world.messages).expect("there are messages").clone();
                let session = Some(message.session.clone());
                let job = NewJob { session, ..self.world.job(&mut self.random) };
                Operation::AcceptMessage { message, job }
            }
            5..=11 => self.pick_work(),
            12 => Operation::Reclaim { now: self.time() },
            13 => {
                let session = self.random.pick(&self.world.sessions).expect("there are sessions").clone();
                Operation::LogEvent { session, note: self.random.id() }
            }
            14 if self.random.one_in(2) => Operation::Refuse { call: self.random.id() },
            14 => {
                let job = self.random.pick(&self.world.jobs).expect("there are jobs").id;
                if self.random.one_in(2) { Operation::Wake { job } } else { Operation::Cancel { job } }
            }
            15 => self.pick_answer().await,
            _ => self.pick_call(),
        }
    }

    fn pick_work(&mut self) -> Operation {
        let now = self.time();
        let until = UnixMillis(now.0 + 1 + self.random.below(300) as i64);
        let Some(right) = self.random.pick(&self.rights).copied().filter(|_| !self.random.one_in(3)) else {
            return Operation::Claim { now, until };
        };
        // Mostly a right is used once; now and then it is tried after it was lost.
        if !self.random.one_in(4) {
            self.rights.retain(|held| *held != right);
        }
        match self.random.below(10) {
            0 => {
                self.rights.push(right);
                Operation::Extend { right, until }
            }
            1 => Operation::FailJob { right, retry: Some(now) },
            2 if self.random.one_in(2) => Operation::FailJob { right, retry: None },
            3 => Operation::FinishJob { right },
            6 => Operation::Park { right, until },
            4 | 5 => {
                self.rights.push(right);
                let session = self.random.pick(&self.world.sessions).expect("there are sessions").clone();
                let count = self.random.below(4);
                Operation::SayInRun { right, said: self.say(session, count) }
            }
            _ => {
                let session = self.random.pick(&self.world.sessions).expect("there are sessions").clone();
                let count = self.random.below(4);
                Operation::FinishRun { right, said: self.say(session, count) }
            }
        }
    }

    fn say(&mut self, session: SessionKey, count: usize) -> Vec<NewMessage> {
        let mut next = || self.world.message(self.random.id(), session.clone(), Role::Assistant);
        (0..count).map(|_| next()).collect()
    }

    async fn pick_answer(&mut self) -> Operation {
        let pending = self.store.pending(&self.world.tenant, NOW).await.unwrap_or_default();
        match self.random.pick(&pending) {
            Some(approval) => self.answer(approval.id),
            None => self.pick_call(),
        }
    }

    fn pick_call(&mut self) -> Operation {
        if let Some(call) = self.random.pick(&self.begun).copied().filter(|_| self.random.one_in(2)) {
            self.begun.retain(|begun| *begun != call);
            return Operation::FinishCall { call };
        }
        let call = *self.random.pick(&self.world.calls).expect("there are calls");
        if !self.world.is_asked(call) {
            return Operation::BeginCall { call, approval: None, at: NOW };
        }
        let Some((_, approval)) = self.approvals.iter().find(|(asked, _)| *asked == call).copied() else {
            return Operation::Request { question: self.world.question(call, NOW) };
        };
        if self.random.one_in(2) {
            Operation::BeginCall { call, approval: Some(approval), at: self.time_of_asking() }
        } else if self.random.one_in(3) {
            self.answer(approval)
        } else {
            Operation::Request { question: self.world.question(call, self.time_of_asking()) }
        }
    }

    fn answer(&mut self, approval: ApprovalId) -> Operation {
        Operation::Answer { approval, approve: !self.random.one_in(4), at: self.time_of_asking() }
    }

    /// Returns a time mostly before the expiry of approvals, and sometimes after.
    fn time_of_asking(&mut self) -> UnixMillis {
        if self.random.one_in(8) { EXPIRY } else { NOW }
    }

    /// Any time. Clocks need not agree for the promise to hold; work would only be done more often.
    fn time(&mut self) -> UnixMillis {
        UnixMillis(self.random.below(500) as i64)
    }

    /// Performs the operation, and returns the store's reply.
    pub async fn perform(&mut self, operation: &Operation) -> Reply {
        let reply = match self.ask(operation).await {
            Ok(reply) => reply,
            Err(StoreError::Database { why, transient, .. }) => Reply::Error { why, transient },
            Err(error @ (StoreError::Io { .. } | StoreError::Damaged { .. })) => {
                Reply::Error { why: error.to_string(), transient: false }
            }
            Err(refusal) => Reply::Refused { why: refusal.to_string() },
        };
        match (operation, &reply) {
            (_, Reply::Claimed { right: Some(right) }) => self.rights.push(*right),
            (Operation::Request { question }, Reply::Asked { approval, .. }) => {
                self.approvals.retain(|(call, _)| *call != question.call);
                self.approvals.push((question.call, *approval));
            }
            (Operation::BeginCall { call, .. }, Reply::Done) => self.begun.push(*call),
            _ => {}
        }
        reply
    }

    async fn ask(&self, operation: &Operation) -> Result<Reply, StoreError> {
        let (store, world) = (self.store, self.world);
        Ok(match operation.clone() {
            Operation::Enqueue { job } => done(store.enqueue(job).await?),
            Operation::Claim { now, until } => {
                let (worker, lanes) = (self.worker.clone(), vec![world.lane.clone()]);
                let claimed = store.claim(Claim { worker, lanes, now, until }).await?;
                Reply::Claimed { right: claimed.map(|(_, lease)| Right::from(&lease)) }
            }
            Operation::Extend { right, until } => {
                store.extend(&right.of(&self.worker), until).await?;
                Reply::Done
            }
            Operation::FinishJob { right } => done(store.finish_job(&right.of(&self.worker)).await?),
            Operation::FailJob { right, retry } => {
                let failure = Failure { error: "exit code 1".to_owned(), retry };
                Reply::Failed { state: store.fail_job(&right.of(&self.worker), failure).await? }
            }
            Operation::Reclaim { now } => {
                store.reclaim(&self.worker, now).await?;
                Reply::Done
            }
            Operation::Park { right, until } => {
                let parking = Parking { approvals: Vec::new(), at: NOW, until };
                Reply::Failed { state: store.park(&right.of(&self.worker), parking).await? }
            }
            Operation::Wake { job } => {
                store.wake(&world.tenant, job).await?;
                Reply::Done
            }
            Operation::Cancel { job } => {
                let cancel = Cancel { at: NOW, by: "ann".to_owned(), note: json!("cancelled") };
                let cancelled = store.cancel(&world.tenant, job, cancel).await?;
                Reply::Cancelled { ended: cancelled.ended, told: cancelled.told }
            }
            Operation::AcceptMessage { message, job } => {
                let accepted = store.accept_message(message, job).await?;
                Reply::Accepted { seq: accepted.seq, job: accepted.job }
            }
            Operation::SayInRun { right, said } => {
                Reply::Places { seqs: store.say_in_run(&right.of(&self.worker), said).await? }
            }
            Operation::FinishRun { right, said } => {
                let finished = store.finish_run(&right.of(&self.worker), Finish::done(said)).await?;
                Reply::Places { seqs: finished.places }
            }
            Operation::LogEvent { session, note } => {
                let event = SessionEventBody::Run { run: note, state: RunEvent::Woken };
                let seq = store.log_event(&world.tenant, &session, UnixMillis(7), event).await?;
                Reply::Places { seqs: vec![seq] }
            }
            Operation::Request { question } => {
                let approval = store.request(question).await?;
                Reply::Asked { approval: approval.id, state: approval.state }
            }
            Operation::Answer { approval, approve, at } => {
                let answer = Answer { approve, by: "ann".to_owned(), at, reason: None, values: None };
                let answered = store.answer(&world.tenant, approval, answer).await?;
                Reply::Asked { approval: answered.id, state: answered.state }
            }
            Operation::BeginCall { call, approval, at } => {
                let intent = Record { at, ..self.record(fixture::intent(call, "ls", approval)) };
                done(store.begin_call(intent).await?)
            }
            Operation::FinishCall { call } => {
                done(store.finish_call(self.record(fixture::outcome(call, Outcome::Done))).await?)
            }
            Operation::Refuse { call } => done(store.refuse(self.record(fixture::refused(call))).await?),
        })
    }

    fn record(&self, record: Record) -> Record {
        Record { tenant: self.world.tenant.clone(), ..record }
    }

    /// Performs so many operations; `say` is called before and after each.
    pub async fn play(&mut self, operations: usize, mut say: impl FnMut(&Operation, Option<&Reply>)) {
        for _ in 0..operations {
            let operation = self.pick().await;
            say(&operation, None);
            let reply = self.perform(&operation).await;
            say(&operation, Some(&reply));
        }
    }

    /// Does all remaining work, after everyone else is gone, and requests every approval again.
    pub async fn drain(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        self.step(&mut steps, Operation::Reclaim { now: END }).await;
        let claim = Operation::Claim { now: END, until: UnixMillis(END.0 + 1) };
        while let Reply::Claimed { right: Some(right) } = self.step(&mut steps, claim.clone()).await {
            let session = self.world.sessions[0].clone();
            let said = self.say(session, 1);
            self.step(&mut steps, Operation::FinishRun { right, said }).await;
        }
        for call in self.world.calls.iter().filter(|call| self.world.is_asked(**call)) {
            let question = self.world.question(*call, NOW);
            let asked = self.step(&mut steps, Operation::Request { question }).await;
            if let Reply::Asked { approval, state: ApprovalState::Approved } = asked {
                let begin = Operation::BeginCall { call: *call, approval: Some(approval), at: NOW };
                self.step(&mut steps, begin).await;
            }
        }
        steps
    }

    async fn step(&mut self, steps: &mut Vec<Step>, operation: Operation) -> Reply {
        let reply = self.perform(&operation).await;
        steps.push(Step { operation, reply: Some(reply.clone()) });
        reply
    }
}

fn done((): ()) -> Reply {
    Reply::Done
}
