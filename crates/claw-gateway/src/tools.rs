//! Tools: those of an agent, and calls of them.

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use clawsmith::app::access::{CallPlace, CallerWish};
use clawsmith::store::Outcome;
use clawsmith::{
    ApprovalId, Arguments, Asking, CallError, CallId, Caller, Digest, Effects, ErrorKind, Offer, PeerKind,
    Rehearsal, Reply, Request, SessionKey, ToolName, UnixMillis,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::{Body, Json, Output, Query, Replied, Visit};
use crate::error::ApiError;
use crate::offers::OfferKey;
use crate::openapi::{Operation, Schemas};

/// The agent whose tools are listed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Whose {
    agent_id: Option<String>,
}

/// A call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Invoke {
    /// The tool, by its name or an alias.
    tool: String,
    /// The arguments, as in the tool's `parameters`.
    #[serde(default)]
    args: Value,
    /// Added to the arguments as `action`, if they have none.
    action: Option<String>,
    /// The calling agent; by default `default`.
    agent_id: Option<String>,
    /// A session of your own; by default one for all calls.
    session_key: Option<String>,
    /// The id of an earlier call of the same tool: a pending approval is joined, and a call that ran returns its recorded
    /// outcome. With another tool it is another call.
    call_id: Option<CallId>,
    /// The channel of the message that the call is made for, such as `telegram`; takes the scope `users:act`. Never `cli`.
    channel: Option<String>,
    /// The chat within the channel, of at most 64 bytes; takes the scope `users:act`.
    chat_id: Option<String>,
    /// `direct` for one person, `group` for several; a group needs a `chatId`. Takes the scope `users:act`.
    peer_kind: Option<PeerKind>,
    /// Return what the call would do and whether it may, without running it.
    #[serde(default)]
    dry_run: bool,
}

/// The tools of an agent, by name.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Tools {
    tools: Vec<ToolCard>,
}

/// A tool.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ToolCard {
    name: ToolName,
    description: String,
    group: String,
    /// The most that a call may do.
    effects: Effects,
    /// JSON Schema of the arguments.
    parameters: Value,
}

/// A call that ran: with `result` if it succeeded, with `error` if it failed, with `recorded` if it had run
/// before.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Called {
    /// The tool worked.
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<bool>,
    /// The id that means this call when the request is sent again.
    call_id: Option<CallId>,
    /// The id of the call in the ledger, and of its changes of files.
    ledger_call_id: Option<CallId>,
    tool: String,
    session_key: Option<SessionKey>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<CallResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<CallFault>,
    /// The outcome of the call when it ran before; `unknown` if the program died during the call, or another node runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<Outcome>,
    /// Duration in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    took_ms: Option<u64>,
}

/// The result of a call.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CallResult {
    /// The text that a model reads.
    output: String,
    /// The result for programs, if the tool has one.
    details: Option<Value>,
    /// Repairs of the arguments.
    notes: Vec<String>,
}

/// The error of a call.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CallFault {
    kind: String,
    message: String,
    /// The setting by which an operator would allow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    setting: Option<String>,
    details: Option<Value>,
}

/// A call that waits for an approval. Nothing has happened.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallWaiting {
    call_id: CallId,
    tool: String,
    session_key: SessionKey,
    approval_id: ApprovalId,
    expires: UnixMillis,
    hint: &'static str,
}

/// The answers to a call.
pub(crate) struct Invoked;

impl Output for Invoked {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let ran = schemas.shown::<Called>();
        let rehearsed = schemas.shown::<Rehearsal>();
        let either = json!({ "anyOf": [ran, rehearsed] });
        operation.header(
            "Idempotency-Key",
            "Requests with the same key and content of the same user and agent are one call.",
        );
        operation.reply(
            StatusCode::OK,
            "The result of the call, or with `dryRun` what it would do.",
            Some(either),
        );
        let waiting = schemas.shown::<CallWaiting>();
        operation.reply(StatusCode::ACCEPTED, "The call waits for an approval.", Some(waiting));
    }
}

pub(crate) async fn list(visit: Visit, Query(whose): Query<Whose>) -> Result<Json<Tools>, ApiError> {
    let wish = CallerWish { agent: whose.agent_id.as_deref(), session: None };
    let caller = visit.gateway.app().caller_of(visit.visitor(), &wish).await?;
    let offer = visit.sessions().deployment().executor.offer(caller).await;
    let specs = offer.specs(|meta, why| tracing::warn!(tool = %meta.name, %why, "a tool cannot be made"));
    let card = |spec: &clawsmith::Spec| {
        let meta = offer.meta(spec.name.as_str())?;
        Some(ToolCard {
            name: meta.name.clone(),
            description: spec.description.to_string(),
            group: meta.group.name().into_owned(),
            effects: meta.effects,
            parameters: json!(spec.parameters),
        })
    };
    Ok(Json(Tools { tools: specs.iter().filter_map(card).collect() }))
}

pub(crate) async fn invoke(
    visit: Visit,
    headers: HeaderMap,
    Body(invoke): Body<Invoke>,
) -> Result<Replied<Invoked>, ApiError> {
    let offer = offer(&visit, &invoke).await?;
    let caller = offer.caller();
    let call = call_id(&invoke, &headers, &offer)?;
    let deployment = visit.sessions().deployment();
    if invoke.dry_run {
        let request = Request::new(invoke.tool.clone(), arguments(invoke)?);
        let rehearsal = deployment.executor.rehearse(&offer, request).await;
        let rehearsal = rehearsal.map_err(|refusal| ApiError::from(&refusal))?;
        return Ok(Json(rehearsal).into_response().into());
    }
    // Taken before the ledger is asked: what has begun and has no outcome then is not run by this process.
    let under_way = match call.is_given {
        true => Some(
            visit.gateway.0.calls.begin(&caller.tenant, call.id).ok_or_else(|| in_progress(call.shown))?,
        ),
        false => None,
    };
    if call.is_given {
        let fate = deployment.store.fate(&caller.tenant, call.id).await;
        if let Some(outcome) = fate.map_err(clawsmith::app::Error::from)? {
            let recorded = Called {
                call_id: Some(call.shown),
                ledger_call_id: Some(call.id),
                tool: invoke.tool,
                session_key: Some(caller.session.clone()),
                recorded: Some(outcome),
                ..Called::default()
            };
            return Ok(Json(recorded).into_response().into());
        }
    }
    let session = caller.session.clone();
    let mut request = Request::new(invoke.tool.clone(), Value::Null);
    request.args = Arguments::Json(arguments(invoke)?);
    request.call = call.id;
    request.asking = Asking::Unwatched;
    let running = visit.gateway.0.calls.run(deployment.executor.clone(), offer, request, under_way);
    let reply = running.await.ok_or_else(|| {
        tracing::error!(call = %call.id, "a call panicked outside of its tool");
        let what = format!("the call `{}` ended without a reply", call.shown);
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", what)
            .hint("`/v1/ledger` shows whether it ran")
    })?;
    answered(reply, call.shown, session).map(Replied::from)
}

/// The error for a request that is sent again while its call runs.
fn in_progress(call: CallId) -> ApiError {
    let what = format!("the call `{call}` is still running; it is not started a second time");
    ApiError::new(StatusCode::CONFLICT, "call_in_progress", what)
        .retry_after(Duration::from_secs(1))
        .hint("send the same request again to get its outcome")
}

/// The tools that the visitor may call as this agent, in this session.
async fn offer(visit: &Visit, invoke: &Invoke) -> Result<Offer, ApiError> {
    let (visitor, executor) = (&visit.who.0, visit.sessions().deployment().executor);
    let (agent, session) = (invoke.agent_id.as_deref(), invoke.session_key.as_deref());
    let (channel, chat, peer) = (invoke.channel.as_deref(), invoke.chat_id.as_deref(), invoke.peer_kind);
    let place = CallPlace { channel, chat, peer: peer.unwrap_or_default() };
    // Calls that name no session share one, so that rates are counted and approvals found again.
    let shared = || session.is_none().then(|| visitor.session_named(agent, &place, "tools")).transpose();
    if channel.is_some() || chat.is_some() || peer.is_some() {
        // Before a session is derived from the names.
        visitor.may_name(&place)?;
        let shared = shared()?;
        let wish = CallerWish { agent, session: session.or(shared.as_deref()) };
        let caller = visit.gateway.app().caller_at(visitor, &wish, &place).await?;
        return Ok(executor.offer(caller).await);
    }
    let (offers, owned) = (&visit.gateway.0.offers, |name: Option<&str>| name.map(str::to_owned));
    let user = visitor.acts_for().cloned();
    let key = OfferKey { key: visitor.key, user, agent: owned(agent), session: owned(session) };
    if let Some(offer) = offers.current(&key, visitor, &executor).await {
        return Ok(offer);
    }
    let shared = shared()?;
    let wish = CallerWish { agent, session: session.or(shared.as_deref()) };
    let caller = visit.gateway.app().caller_of(visitor, &wish).await?;
    let offer = executor.offer(caller).await;
    offers.keep(key, visitor, &offer);
    Ok(offer)
}

/// The bytes of an id that are the time at which it was made.
const TIME_BYTES: usize = 6;

/// A call's id as the client knows it and as it is recorded.
struct CallIds {
    /// The id that the client sends to mean this call.
    shown: CallId,
    /// The id derived from the shown id, its owner and its tool: nobody can name another owner's call.
    id: CallId,
    is_given: bool,
}

/// Returns the id of the call: the given one, one derived from the `Idempotency-Key` and the request, or a
/// new one.
fn call_id(invoke: &Invoke, headers: &HeaderMap, offer: &Offer) -> Result<CallIds, ApiError> {
    let (shown, is_given) = match (invoke.call_id, headers.get("idempotency-key")) {
        (Some(id), _) => (id, true),
        (None, None) => (CallId::new(), false),
        (None, Some(key)) if key.is_empty() || key.len() > 255 => {
            return Err(ApiError::invalid("an `Idempotency-Key` must have 1 to 255 characters"));
        }
        // The same key with another request is another call.
        (None, Some(key)) => {
            (hashed(&json!([key.as_bytes(), invoke.tool, invoke.args, invoke.action])), true)
        }
    };
    let tool = offer.meta(&invoke.tool).map_or(invoke.tool.as_str(), |meta| meta.name.as_str());
    Ok(CallIds { shown, id: owned_id(offer.caller(), tool, shown), is_given })
}

/// Returns the id under which a call of this caller and tool is recorded, so that the outcome of one tool is never taken for
/// that of another. It keeps the time that the shown id begins with, since stores sort calls by it; the rest is a digest. Each
/// field has its length before it, so that no two callers make the same bytes.
fn owned_id(caller: &Caller, tool: &str, shown: CallId) -> CallId {
    let user = caller.user.as_ref().map_or("", |user| user.as_str());
    let names = [caller.tenant.as_str(), user, caller.agent.as_str(), caller.session.as_str(), tool];
    let mut bytes = Vec::with_capacity(256);
    for name in names {
        bytes.extend_from_slice(&name.len().to_le_bytes());
        bytes.extend_from_slice(name.as_bytes());
    }
    bytes.extend_from_slice(shown.as_bytes());
    let mut id = *short_id(Digest::of_bytes(&bytes)).as_bytes();
    id[..TIME_BYTES].copy_from_slice(&shown.as_bytes()[..TIME_BYTES]);
    CallId::from_bytes(id)
}

fn hashed(value: &Value) -> CallId {
    short_id(Digest::of(value))
}

fn short_id(digest: Digest) -> CallId {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.as_bytes()[..16]);
    CallId::from_bytes(bytes)
}

fn arguments(invoke: Invoke) -> Result<Value, ApiError> {
    let mut args = if invoke.args.is_null() { json!({}) } else { invoke.args };
    if let Some(action) = invoke.action {
        let Some(object) = args.as_object_mut() else {
            return Err(ApiError::invalid("`action` needs `args` to be an object"));
        };
        object.entry("action").or_insert_with(|| action.into());
    }
    Ok(args)
}

/// A reply as a program reads it.
fn answered(reply: Reply, call: CallId, session: SessionKey) -> Result<Response, ApiError> {
    let Reply { call: recorded, tool, outcome, notes, took, .. } = reply;
    let called = |ok: bool, tool: String, session: SessionKey| Called {
        ok: Some(ok),
        call_id: Some(call),
        ledger_call_id: Some(recorded),
        tool,
        session_key: Some(session),
        took_ms: Some(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
        ..Called::default()
    };
    match outcome {
        Ok(mut output) => {
            let result = CallResult { details: output.details.take(), output: output.model_text(), notes };
            Ok(Json(Called { result: Some(result), ..called(true, tool, session) }).into_response())
        }
        Err(CallError::Failed(error)) => {
            let fault = CallFault {
                kind: kind_name(error.kind),
                message: error.for_model(),
                setting: error.setting.clone(),
                details: error.details.map(|details| *details),
            };
            Ok(Json(Called { error: Some(fault), ..called(false, tool, session) }).into_response())
        }
        Err(CallError::Waiting(waiting)) => {
            let waiting = CallWaiting {
                call_id: call,
                tool,
                session_key: session,
                approval_id: waiting.approval,
                expires: waiting.expires,
                hint: "nothing has happened yet: once the call is approved, send the same request with this \
                       `callId`",
            };
            Ok((StatusCode::ACCEPTED, Json(waiting)).into_response())
        }
        Err(CallError::Refused(refusal)) => {
            let error = ApiError::from(&refusal);
            Err(match &refusal.details {
                Some(_) => error,
                None => {
                    let step = refusal.step.name();
                    error.details(json!({ "callId": call, "ledgerCallId": recorded, "step": step }))
                }
            })
        }
    }
}

/// Returns the name of an error kind.
fn kind_name(kind: ErrorKind) -> String {
    json!(kind).as_str().unwrap_or_default().to_owned()
}
