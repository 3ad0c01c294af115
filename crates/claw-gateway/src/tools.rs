//! Tools: which ones an agent has, and calls of them.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use clawsmith::app::access::{CallerWish, Permission};
use clawsmith::{Arguments, Asking, CallError, CallId, Caller, Digest, Reply, Request};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Gateway;
use crate::error::ApiError;
use crate::guard::Who;

/// The agent whose tools are listed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Whose {
    agent_id: Option<String>,
}

/// A call.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Invoke {
    /// The tool, by its name or an alias.
    tool: String,
    #[serde(default)]
    args: Value,
    /// Put into the arguments as `action`, where they have none.
    action: Option<String>,
    agent_id: Option<String>,
    session_key: Option<String>,
    /// The id of a call that was made before: an approval that it waits for is attached to, and a call that ran gives its
    /// recorded outcome.
    call_id: Option<CallId>,
    channel: Option<String>,
    chat_id: Option<String>,
    peer_kind: Option<String>,
    /// Say what the call would do and whether it may, and do nothing.
    #[serde(default)]
    dry_run: bool,
}

pub(crate) async fn list(
    State(gateway): State<Gateway>,
    who: Who,
    whose: Result<Query<Whose>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ReadTools)?;
    let Query(whose) = whose?;
    let wish = CallerWish { agent: whose.agent_id.as_deref(), session: None };
    let caller = gateway.app().caller_of(&who.0, &wish).await?;
    let offer = gateway.sessions().deployment().executor.offer(caller).await;
    let specs = offer.specs(|meta, why| tracing::warn!(tool = %meta.name, %why, "a tool cannot be made"));
    let tools: Vec<Value> = specs
        .iter()
        .filter_map(|spec| {
            let meta = offer.meta(spec.name.as_str())?;
            Some(json!({
                "name": meta.name,
                "description": spec.description,
                "group": meta.group.name(),
                "effects": meta.effects,
                "parameters": spec.parameters,
            }))
        })
        .collect();
    Ok(Json(json!({ "tools": tools })))
}

pub(crate) async fn invoke(
    State(gateway): State<Gateway>,
    who: Who,
    headers: HeaderMap,
    body: Result<Json<Invoke>, JsonRejection>,
) -> Result<Response, ApiError> {
    who.may(Permission::CallTools)?;
    let Json(invoke) = body?;
    let claims = [&invoke.channel, &invoke.chat_id, &invoke.peer_kind];
    if claims.into_iter().any(Option::is_some) {
        return Err(claimed(&invoke));
    }
    // Calls that name no session share one, so that rates are counted and approvals found again.
    let shared =
        invoke.session_key.is_none().then(|| who.0.session_named(invoke.agent_id.as_deref(), "tools"));
    let shared = shared.transpose()?;
    let session = invoke.session_key.as_deref().or(shared.as_deref());
    let wish = CallerWish { agent: invoke.agent_id.as_deref(), session };
    let caller = gateway.app().caller_of(&who.0, &wish).await?;
    let call = call_id(&invoke, &headers, &caller)?;
    let deployment = gateway.sessions().deployment();
    if invoke.dry_run {
        let offer = deployment.executor.offer(caller).await;
        let request = Request::new(invoke.tool.clone(), arguments(invoke)?);
        let rehearsal = deployment.executor.rehearse(&offer, request).await;
        return Ok(Json(rehearsal.map_err(|refusal| ApiError::from(&refusal))?).into_response());
    }
    if call.is_given {
        let fate =
            deployment.store.fate(&caller.tenant, call.id).await.map_err(clawsmith::app::Error::from)?;
        if let Some(outcome) = fate {
            let body = json!({
                "callId": call.shown, "tool": invoke.tool, "sessionKey": caller.session, "recorded": outcome,
            });
            return Ok(Json(body).into_response());
        }
    }
    let session = caller.session.clone();
    let offer = deployment.executor.offer(caller).await;
    let mut request = Request::new(invoke.tool.clone(), Value::Null);
    request.args = Arguments::Json(arguments(invoke)?);
    request.call = call.id;
    request.asking = Asking::Unwatched;
    let reply = deployment.executor.execute(&offer, request).await;
    answered(&reply, call.shown, session.as_str())
}

/// A call's id as the client knows it and as it is recorded.
struct Named {
    /// The id that the client sends to mean this call.
    shown: CallId,
    /// Made of it and of whose it is: nobody can name a call of somebody else's.
    id: CallId,
    is_given: bool,
}

/// The id of the call: as given, made of the `Idempotency-Key` and the request, or a new one.
fn call_id(invoke: &Invoke, headers: &HeaderMap, caller: &Caller) -> Result<Named, ApiError> {
    let (shown, is_given) = match (invoke.call_id, headers.get("idempotency-key")) {
        (Some(id), _) => (id, true),
        (None, None) => (CallId::new(), false),
        (None, Some(key)) if key.is_empty() || key.len() > 255 => {
            return Err(ApiError::invalid("an `Idempotency-Key` has 1 to 255 characters"));
        }
        // The same key with another request is another call.
        (None, Some(key)) => {
            (hashed(&json!([key.as_bytes(), invoke.tool, invoke.args, invoke.action])), true)
        }
    };
    let whose = json!([caller.tenant, caller.user, caller.agent, caller.session, shown]);
    Ok(Named { shown, id: hashed(&whose), is_given })
}

fn hashed(value: &Value) -> CallId {
    let digest = Digest::of(value);
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

/// Channel, chat and kind of peer are what a message came by; a program over the network has none of them.
fn claimed(invoke: &Invoke) -> ApiError {
    let what = match invoke.channel.as_deref() {
        Some("cli") => "the channel `cli` belongs to the terminal of this machine and cannot be claimed",
        _ => "`channel`, `chatId` and `peerKind` cannot be claimed with an API key",
    };
    ApiError::new(StatusCode::FORBIDDEN, "forbidden", what).hint("leave them out")
}

/// A reply as a program reads it.
fn answered(reply: &Reply, call: CallId, session: &str) -> Result<Response, ApiError> {
    let tool = &reply.tool;
    let took = u64::try_from(reply.took.as_millis()).unwrap_or(u64::MAX);
    match &reply.outcome {
        Ok(output) => {
            let result =
                json!({ "output": output.model_text(), "details": output.details, "notes": reply.notes });
            let body = json!({
                "ok": true, "callId": call, "tool": tool, "sessionKey": session, "result": result, "tookMs": took,
            });
            Ok(Json(body).into_response())
        }
        Err(CallError::Failed(error)) => {
            let error = json!({ "kind": error.kind, "message": error.for_model(), "details": error.details });
            let body = json!({
                "ok": false, "callId": call, "tool": tool, "sessionKey": session, "error": error, "tookMs": took,
            });
            Ok(Json(body).into_response())
        }
        Err(CallError::Waiting(waiting)) => {
            let body = json!({
                "callId": call,
                "tool": tool,
                "sessionKey": session,
                "approvalId": waiting.approval,
                "expires": waiting.expires,
                "hint": "nothing has happened yet: once the approval is given, send the same request with this `callId`",
            });
            Ok((StatusCode::ACCEPTED, Json(body)).into_response())
        }
        Err(CallError::Refused(refusal)) => {
            let error = ApiError::from(refusal);
            Err(match &refusal.details {
                Some(_) => error,
                None => error.details(json!({ "callId": call, "step": refusal.step.name() })),
            })
        }
    }
}
