//! Records, questions, jobs and messages with plain contents, for tests that care about one field of them.

use std::time::Duration;

use claw_core::port::{Owner, UnixMillis};
use claw_core::store::{EntryEvent, NewApproval, NewJob, NewMessage, Outcome, Record, Role, Worker};
use claw_core::tool::{Caller, Digest, Effect, Effects};
use claw_core::{
    AgentId, ApprovalId, BootId, CallId, JobId, MessageId, NodeId, SessionKey, TenantId, ToolName,
};
use serde_json::json;

/// 2026-01-01T00:00:00Z.
pub const NOW: UnixMillis = UnixMillis(1_767_225_600_000);

/// The main tenant, in session `cli:me`.
pub fn owner() -> Owner {
    Owner { tenant: TenantId::main(), session: session("cli:me") }
}

/// Who calls, in session `cli:me` and workspace `/w`.
pub fn caller() -> Caller {
    Caller::new(agent(), session("cli:me"), "/w")
}

/// A tenant.
pub fn tenant(name: &str) -> TenantId {
    TenantId::new(name).expect("a tenant id")
}

/// A session.
pub fn session(key: &str) -> SessionKey {
    SessionKey::new(key).expect("a session key")
}

/// A digest that stands for this text.
pub fn digest(text: &str) -> Digest {
    Digest::of_bytes(text.as_bytes())
}

/// The intent of a call of `exec`, of [`owner`], that would do what `what` says.
pub fn intent(call: CallId, what: &str, approval: Option<ApprovalId>) -> Record {
    let effects = Effects::of(&[Effect::Execute]);
    let args = json!({ "command": what });
    record(call, EntryEvent::Intent { digest: digest(what), effects, args, approval })
}

/// The end of such a call.
pub fn outcome(call: CallId, outcome: Outcome) -> Record {
    let error = (outcome == Outcome::Failed).then(|| "exit code 1".to_owned());
    record(call, EntryEvent::Outcome { outcome, micros: 1_500, bytes: 12, error })
}

/// The refusal of such a call.
pub fn refused(call: CallId) -> Record {
    let (step, reason) = ("authorise".to_owned(), "denied by `exec`".to_owned());
    record(call, EntryEvent::Refused { step, reason })
}

/// The question whether such a call may do what `what` says.
pub fn question(call: CallId, what: &str) -> NewApproval {
    let Owner { tenant, session } = owner();
    NewApproval {
        tenant,
        session,
        agent: agent(),
        user: None,
        call,
        digest: digest(what),
        tool: ToolName::literal("exec"),
        effects: Effects::of(&[Effect::Execute]),
        summary: what.to_owned(),
        reason: "commands are asked".to_owned(),
        asked: NOW,
        expires: NOW.plus(Duration::from_secs(300)),
    }
}

/// A job of the main tenant in lane `main`, of no session, visible since [`NOW`].
pub fn job() -> NewJob {
    NewJob {
        id: JobId::new(),
        tenant: TenantId::main(),
        lane: "main".into(),
        session: None,
        priority: 0,
        payload: json!({ "do": "this" }),
        accepted: NOW,
        visible: NOW,
        max_attempts: 3,
    }
}

/// Such a job of a session.
pub fn job_of(key: &str) -> NewJob {
    NewJob { session: Some(session(key)), ..job() }
}

/// A person's message in a session of the main tenant.
pub fn message(key: &str, text: &str) -> NewMessage {
    NewMessage {
        id: MessageId::new(),
        tenant: TenantId::main(),
        session: session(key),
        role: Role::User,
        content: json!([{ "type": "text", "text": text }]),
        at: NOW,
    }
}

/// A worker on this node, started now.
pub fn worker(node: &str) -> Worker {
    Worker { node: NodeId::new(node).expect("a node id"), boot: BootId::new() }
}

fn record(call: CallId, event: EntryEvent) -> Record {
    let Owner { tenant, session } = owner();
    Record { at: NOW, tenant, session, agent: agent(), user: None, call, tool: "exec".to_owned(), event }
}

fn agent() -> AgentId {
    AgentId::new("tester").expect("an agent id")
}
