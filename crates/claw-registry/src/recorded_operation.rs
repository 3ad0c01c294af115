//! Operations of people that are recorded like calls: an intent before, an outcome after.
//!
//! An operation is not a tool and takes no other step of the road; only this module writes its ledger
//! entries.

use std::future::Future;
use std::time::Instant;

use claw_core::port::Clock;
use claw_core::store::{CallStore, EntryEvent, Outcome, Record, StoreError};
use claw_core::tool::{Digest, Effects, ToolError};
use claw_core::{AgentId, CallId, SessionKey, TenantId, UserId};
use serde_json::Value;

use crate::scrub::CallScrubber;

/// An operation before it is performed.
#[derive(Debug, Clone)]
pub struct Operation {
    /// The tenant whose data it changes.
    pub tenant: TenantId,
    /// The session that it belongs to.
    pub session: SessionKey,
    /// The agent whose work it concerns.
    pub agent: AgentId,
    /// The user that the agent worked for.
    pub user: Option<UserId>,
    /// The id under which it is recorded.
    pub call: CallId,
    /// The name in the ledger's `tool` column.
    pub name: &'static str,
    /// The effects it may have.
    pub effects: Effects,
    /// The arguments, without secrets.
    pub args: Value,
}

/// Records operations in the ledger.
#[derive(Clone, Copy)]
pub struct Recorder<'a, S: ?Sized> {
    /// The store that holds the ledger.
    pub store: &'a S,
    /// Scrubs the errors that are recorded.
    pub scrubber: &'a CallScrubber,
    /// The time.
    pub clock: &'a dyn Clock,
}

impl<S: CallStore + ?Sized> Recorder<'_, S> {
    /// Records the intent, performs the operation and records its outcome. If the intent cannot be recorded,
    /// nothing is performed.
    pub async fn perform<T>(
        &self,
        operation: Operation,
        work: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<Result<T, ToolError>, StoreError> {
        let args = operation.args.clone();
        let (digest, effects) = (Digest::of(&args), operation.effects);
        let intent = EntryEvent::Intent { digest, effects, args, approval: None };
        self.store.begin_call(self.record(&operation, intent)).await?;
        let began = Instant::now();
        let done = work.await;
        let outcome = EntryEvent::Outcome {
            outcome: if done.is_ok() { Outcome::Done } else { Outcome::Failed },
            micros: u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX),
            bytes: 0,
            error: done.as_ref().err().map(|error| self.scrubber.text(&error.message)),
            changes: None,
        };
        self.store.finish_call(self.record(&operation, outcome)).await?;
        Ok(done)
    }

    fn record(&self, operation: &Operation, event: EntryEvent) -> Record {
        let Operation { tenant, session, agent, user, call, name, .. } = operation.clone();
        Record {
            at: self.clock.now(),
            tenant,
            session,
            agent,
            user,
            call,
            tool: name.to_owned(),
            context: None,
            event,
        }
    }
}
