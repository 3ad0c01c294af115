//! Records, approvals, rules, jobs, messages and processes with plain contents, for tests that care about one
//! field of them.

use std::time::Duration;

use claw_core::port::{Order, Owner, Search, UnixMillis, Walk};
use claw_core::store::{
    AccessRole, AgentKind, AgentSetup, ApiKey, EntryEvent, KeyLimits, KeyScope, NewApproval, NewJob, NewKey,
    NewMessage, NewProcess, NewRule, Outcome, Record, Role, RuleScope, User, Worker,
};
use claw_core::tool::{Caller, Digest, Effect, Effects};
use claw_core::{
    AgentId, ApprovalId, BootId, CallId, JobId, KeyId, MessageId, NodeId, ProcessId, RuleId, SessionKey,
    TenantId, ToolName, UserId,
};
use serde_json::{Map, Value, json};

/// 2026-01-01T00:00:00Z.
pub const NOW: UnixMillis = UnixMillis(1_767_225_600_000);

/// An image: one transparent pixel.
pub const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xfc\xff\xff?\x03\0\x08\xfc\x02\xfe\xa7\x9a\xa0\xa0\0\0\0\0IEND\xaeB`\x82";

/// The main tenant, in session `cli:me`.
pub fn owner() -> Owner {
    Owner { tenant: TenantId::main(), session: session("cli:me") }
}

/// Returns a caller in session `cli:me` and workspace `/w`.
pub fn caller() -> Caller {
    Caller::new(agent(), session("cli:me"), "/w")
}

/// A walk through all files below a path that are neither hidden nor ignored.
pub fn walk(path: &str, limit: usize) -> Walk {
    Walk {
        path: path.to_owned(),
        depth: None,
        globs: Vec::new(),
        types: Vec::new(),
        hidden: false,
        ignored: false,
        directories: false,
        order: Order::Path,
        limit,
    }
}

/// A search of those files for a regular expression, without lines around its hits.
pub fn search(path: &str, pattern: &str, limit: usize) -> Search {
    Search {
        within: walk(path, 0),
        pattern: pattern.to_owned(),
        literal: false,
        case: None,
        word: false,
        multiline: false,
        before: 0,
        after: 0,
        limit,
    }
}

/// A tenant.
pub fn tenant(name: &str) -> TenantId {
    TenantId::new(name).expect("a tenant id")
}

/// A session.
pub fn session(key: &str) -> SessionKey {
    SessionKey::new(key).expect("a session key")
}

/// Returns the digest of a text.
pub fn digest(text: &str) -> Digest {
    Digest::of_bytes(text.as_bytes())
}

/// Returns the intent of a call of `exec`, of [`owner`], with the command `what`.
pub fn intent(call: CallId, what: &str, approval: Option<ApprovalId>) -> Record {
    let effects = Effects::of(&[Effect::Execute]);
    let args = json!({ "command": what });
    record(call, EntryEvent::Intent { digest: digest(what), effects, args, approval })
}

/// The end of such a call.
pub fn outcome(call: CallId, outcome: Outcome) -> Record {
    let error = (outcome == Outcome::Failed).then(|| "exit code 1".to_owned());
    record(call, EntryEvent::Outcome { outcome, micros: 1_500, bytes: 12, error, changes: None })
}

/// The refusal of such a call.
pub fn refused(call: CallId) -> Record {
    let (step, reason) = ("authorise".to_owned(), "denied by `exec`".to_owned());
    record(call, EntryEvent::Refused { step, reason, args: None })
}

/// Returns the approval request for such a call.
pub fn question(call: CallId, what: &str) -> NewApproval {
    let Owner { tenant, session } = owner();
    NewApproval {
        tenant,
        session,
        agent: agent(),
        user: None,
        call,
        run: None,
        digest: digest(what),
        tool: ToolName::literal("exec"),
        effects: Effects::of(&[Effect::Execute]),
        summary: what.to_owned(),
        reason: "commands are asked".to_owned(),
        asked: NOW,
        expires: NOW.plus(Duration::from_secs(300)),
        remember: None,
        directories: Vec::new(),
        input: None,
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
        lineage: None,
    }
}

/// Such a job of a session.
pub fn job_of(key: &str) -> NewJob {
    NewJob { session: Some(session(key)), ..job() }
}

/// Returns such a job of a session, started by another one.
pub fn child_of(parent: &NewJob, key: &str) -> NewJob {
    NewJob { tenant: parent.tenant.clone(), lineage: Some(parent.child()), ..job_of(key) }
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

/// Returns a user of the main tenant, with the role operator.
pub fn user(id: &str) -> User {
    User {
        tenant: TenantId::main(),
        id: UserId::new(id).expect("a user id"),
        name: id.to_owned(),
        role: AccessRole::Operator,
        created: NOW,
        disabled: false,
    }
}

/// Returns the stored form of a key of the main tenant without a user, that never expires and may call tools.
pub fn key_of(key: &ApiKey) -> NewKey {
    NewKey {
        id: KeyId::new(),
        hash: key.hash(),
        tenant: TenantId::main(),
        user: None,
        label: "a program".to_owned(),
        scopes: [KeyScope::CallTools].into_iter().collect(),
        created: NOW,
        expires: None,
        limits: KeyLimits::default(),
    }
}

/// An open agent of this name that is like all others.
pub fn agent_setup(name: &str) -> AgentSetup {
    AgentSetup {
        name: name.to_owned(),
        kind: AgentKind::Open,
        provider: None,
        model: None,
        policy: Value::Null,
        other_config: Map::new(),
    }
}

/// The members of a JSON object.
pub fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("expected an object, got {other}"),
    }
}

/// A worker on this node, started now.
pub fn worker(node: &str) -> Worker {
    Worker { node: NodeId::new(node).expect("a node id"), boot: BootId::new() }
}

/// A rule that lets [`agent`] run `git status` in session `cli:me`.
pub fn rule() -> NewRule {
    NewRule {
        id: RuleId::new(),
        tenant: TenantId::main(),
        scope: RuleScope::Session { agent: agent(), session: session("cli:me") },
        tool: ToolName::literal("exec"),
        rule: json!({ "program": "/usr/bin/git", "arguments": ["status"] }),
        text: "`git status`".to_owned(),
        by: "ann".to_owned(),
        approval: None,
        created: NOW,
        expires: None,
    }
}

/// Returns a background process of this worker, in session `cli:me`.
pub fn process(worker: &Worker) -> NewProcess {
    NewProcess {
        id: ProcessId::new(),
        tenant: TenantId::main(),
        session: session("cli:me"),
        agent: agent(),
        user: None,
        worker: worker.clone(),
        command: "sleep 60".to_owned(),
        directory: "/srv".to_owned(),
        pid: 4_711,
        started: NOW,
    }
}

fn record(call: CallId, event: EntryEvent) -> Record {
    let Owner { tenant, session } = owner();
    Record {
        at: NOW,
        tenant,
        session,
        agent: agent(),
        user: None,
        call,
        tool: "exec".to_owned(),
        context: None,
        event,
    }
}

/// The agent of all of them.
pub fn agent() -> AgentId {
    AgentId::new("tester").expect("an agent id")
}
