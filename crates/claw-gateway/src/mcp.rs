//! MCP over the network: our tools at `/mcp`, and the servers whose tools agents use.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use clawsmith::app::access::{CallerWish, Permission};
use clawsmith::app::mcp::protocol::{Clients, HttpServer, LoginWish, Parts, Served, http_server};
use clawsmith::app::mcp::{AccessWish, NewServer, ServerView};

use clawsmith::store::{McpGrant, McpServer, McpSubject, McpTool, McpToolState};
use clawsmith::{AccessRequestId, Digest, KeyId, ServerName};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::error::ApiError;
use crate::guard::Who;
use crate::{Gateway, Inner};

/// The MCP server at `/mcp`. It does not keep the gateway.
pub(crate) fn server(gateway: &Gateway) -> HttpServer {
    let clients = NetworkClients { gateway: Arc::downgrade(&gateway.0) };
    http_server(Arc::new(clients), gateway.0.hosts.clone(), gateway.ending().clone())
}

/// The most MCP sessions of one key; the oldest gives way to a new one.
const MOST_SESSIONS: usize = 64;

/// The sessions of MCP clients by the key that began each. A session is nobody else's, even if its id is known.
#[derive(Clone, Default)]
pub(crate) struct McpSessions(Arc<Mutex<HashMap<KeyId, VecDeque<String>>>>);

impl McpSessions {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<KeyId, VecDeque<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, key: KeyId, session: &str) {
        let mut all = self.lock();
        let own = all.entry(key).or_default();
        if !own.iter().any(|known| known == session) {
            own.push_back(session.to_owned());
        }
        if own.len() > MOST_SESSIONS {
            own.pop_front();
        }
    }

    fn is_own(&self, key: KeyId, session: &str) -> bool {
        self.lock().get(&key).is_some_and(|own| own.iter().any(|known| known == session))
    }
}

/// Lets a request to `/mcp` through whose key may call tools and whose session is its own.
pub(crate) async fn admit_client(
    State(sessions): State<McpSessions>,
    who: Who,
    request: Request,
    next: Next,
) -> Response {
    if let Err(error) = who.may(Permission::CallTools) {
        return error.into_response();
    }
    let named = |headers: &HeaderMap| Some(headers.get("mcp-session-id")?.to_str().ok()?.to_owned());
    let (key, session) = (who.0.key, named(request.headers()));
    if session.as_ref().is_some_and(|session| !sessions.is_own(key, session)) {
        return ApiError::not_found("there is no such MCP session of yours; begin another".to_owned())
            .into_response();
    }
    let response = next.run(request).await;
    if let (None, Some(begun)) = (session, named(response.headers())) {
        sessions.begin(key, &begun);
    }
    response
}

/// Clients that come with a key: each acts as the caller that its key gives.
struct NetworkClients {
    gateway: Weak<Inner>,
}

#[async_trait]
impl Clients for NetworkClients {
    async fn served(&self, parts: Option<&Parts>) -> Result<Served, String> {
        let gateway = self.gateway.upgrade().map(Gateway).ok_or("the gateway ends")?;
        let parts = parts.ok_or("the request has no head")?;
        let who = parts.extensions.get::<Who>().ok_or("the request has no key")?;
        let told = |error: clawsmith::app::Error| error.message().to_owned();
        who.0.may(Permission::CallTools).map_err(told)?;
        let agent = agent_in(parts.uri.query());
        let session = who.0.session_named(agent.as_deref(), "mcp").map_err(told)?;
        let wish = CallerWish { agent: agent.as_deref(), session: Some(&session) };
        let caller = gateway.app().caller_of(&who.0, &wish).await.map_err(told)?;
        Ok(Served { executor: gateway.sessions().deployment().executor.clone(), caller })
    }

    fn changes(&self) -> Vec<watch::Receiver<u64>> {
        self.gateway.upgrade().map(|inner| inner.app.tool_changes()).unwrap_or_default()
    }
}

/// The agent that `?agent=NAME` names.
fn agent_in(query: Option<&str>) -> Option<String> {
    let agent = query?.split('&').find_map(|pair| pair.strip_prefix("agent="))?;
    Some(agent.to_owned()).filter(|agent| !agent.is_empty())
}

/// A server to be added; values of variables and headers are write-only.
#[derive(Deserialize)]
pub(crate) struct Wanted {
    #[serde(flatten)]
    server: McpServer,
    #[serde(default)]
    values: BTreeMap<String, SecretString>,
}

/// The definitions to accept: the tool's name and the digest of the definition that was seen.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Accepted {
    tools: BTreeMap<String, Digest>,
}

/// A login that is to be begun.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct LoginAsked {
    redirect_uri: String,
    #[serde(default)]
    scopes: Vec<String>,
}

/// The end of a login.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct LoginEnded {
    callback_url: String,
}

/// A request for access.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asked {
    server: ServerName,
    /// The agent that is to get access; the key's user where none is given.
    agent: Option<String>,
    tools: Option<Vec<String>>,
    reason: String,
}

/// An answer to one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reviewed {
    approve: bool,
    note: Option<String>,
}

/// The subject of a grant that is taken away.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Whose {
    subject: McpSubject,
}

fn named(name: &str) -> Result<ServerName, ApiError> {
    ServerName::new(name).map_err(|error| ApiError::invalid(error.to_string()))
}

/// A server as it is shown: each tool with its state and the digests to accept it by.
fn shown(view: &ServerView) -> Value {
    let tools: Vec<Value> = view.tools.iter().map(tool).collect();
    json!({ "server": view.server, "tools": tools, "grants": view.grants })
}

fn tool(tool: &McpTool) -> Value {
    json!({
        "name": tool.name,
        "state": tool.state(),
        "accepted": tool.accepted,
        "proposed": tool.proposed,
        "digest": tool.proposed.as_ref().map(Digest::of),
    })
}

pub(crate) async fn list(State(gateway): State<Gateway>, who: Who) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ManageMcp)?;
    let servers = gateway.app().of_tenant(&who.0.tenant).mcp_servers().await?;
    Ok(Json(json!({ "servers": servers.iter().map(shown).collect::<Vec<_>>() })))
}

pub(crate) async fn get(
    State(gateway): State<Gateway>,
    who: Who,
    Path(name): Path<String>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ManageMcp)?;
    let view = gateway.app().of_tenant(&who.0.tenant).mcp_server(&named(&name)?).await?;
    Ok(Json(shown(&view)))
}

pub(crate) async fn add(
    State(gateway): State<Gateway>,
    who: Who,
    wanted: Result<Json<Wanted>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    let Json(Wanted { server, values }) = wanted?;
    gateway.app().may_define_server(&who.0, &server).await?;
    let new = NewServer { server, values: values.into_iter().collect() };
    let (view, report) = gateway.app().of_tenant(&who.0.tenant).add_mcp_server(new).await?;
    let (protocol, server) = report.map(|report| (report.protocol, report.server)).unwrap_or_default();
    Ok(Json(json!({ "added": shown(&view), "protocol": protocol, "serverInfo": server })))
}

pub(crate) async fn remove(
    State(gateway): State<Gateway>,
    who: Who,
    Path(name): Path<String>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ManageMcp)?;
    gateway.app().of_tenant(&who.0.tenant).remove_mcp_server(&named(&name)?).await?;
    Ok(Json(json!({ "removed": name })))
}

pub(crate) async fn test(
    State(gateway): State<Gateway>,
    who: Who,
    Path(name): Path<String>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ManageMcp)?;
    let report =
        gateway.app().of_tenant(&who.0.tenant).probe_mcp_server(&named(&name)?, who.0.user.as_ref()).await?;
    Ok(Json(json!({ "report": report })))
}

pub(crate) async fn begin_login(
    State(gateway): State<Gateway>,
    who: Who,
    Path(name): Path<String>,
    asked: Result<Json<LoginAsked>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    let name = named(&name)?;
    let user = gateway.app().may_log_in(&who.0, &name).await?;
    let Json(LoginAsked { redirect_uri, scopes }) = asked?;
    let wish = LoginWish { user, redirect: redirect_uri, scopes, client_secret: None };
    let url = gateway.app().of_tenant(&who.0.tenant).begin_mcp_login(&name, wish).await?;
    Ok(Json(json!({ "authorizationUrl": url })))
}

pub(crate) async fn finish_login(
    State(gateway): State<Gateway>,
    who: Who,
    Path(name): Path<String>,
    ended: Result<Json<LoginEnded>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    let name = named(&name)?;
    let user = gateway.app().may_log_in(&who.0, &name).await?;
    let Json(LoginEnded { callback_url }) = ended?;
    let app = gateway.app().of_tenant(&who.0.tenant);
    let report = app.finish_mcp_login(&name, user.as_ref(), &callback_url).await?;
    Ok(Json(json!({ "report": report })))
}

pub(crate) async fn end_login(
    State(gateway): State<Gateway>,
    who: Who,
    Path(name): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let name = named(&name)?;
    let user = gateway.app().may_log_in(&who.0, &name).await?;
    let ended = gateway.app().of_tenant(&who.0.tenant).end_mcp_login(&name, user.as_ref()).await?;
    Ok(Json(json!({ "ended": ended })))
}

pub(crate) async fn pin(
    State(gateway): State<Gateway>,
    who: Who,
    Path(name): Path<String>,
    accepted: Result<Json<Accepted>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ManageMcp)?;
    let Json(accepted) = accepted?;
    let app = gateway.app().of_tenant(&who.0.tenant);
    let view = app.mcp_server(&named(&name)?).await?;
    let is_seen = |tool: &&McpTool| {
        matches!(tool.state(), McpToolState::Changed | McpToolState::New)
            && accepted.tools.get(&tool.name) == tool.proposed.as_ref().map(Digest::of).as_ref()
    };
    let seen: Vec<McpTool> = view.tools.iter().filter(is_seen).cloned().collect();
    let others = app.accept_mcp_tools(&seen).await?;
    let done = |tool: &&McpTool| !others.contains(&tool.name);
    let names: Vec<&str> = seen.iter().filter(done).map(|tool| tool.name.as_str()).collect();
    let left: Vec<&String> = accepted.tools.keys().filter(|name| !names.contains(&name.as_str())).collect();
    Ok(Json(json!({ "accepted": names, "notAccepted": left })))
}

pub(crate) async fn grant(
    State(gateway): State<Gateway>,
    who: Who,
    Path(name): Path<String>,
    grant: Result<Json<Value>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ManageMcp)?;
    let Json(mut body) = grant?;
    let mut values = Value::Null;
    if let Some(body) = body.as_object_mut() {
        body.insert("server".to_owned(), named(&name)?.to_string().into());
        values = body.remove("values").unwrap_or_default();
    }
    let wrong = |error: serde_json::Error| ApiError::invalid(format!("the values: {error}"));
    let values: Option<BTreeMap<String, SecretString>> = serde_json::from_value(values).map_err(wrong)?;
    let grant: McpGrant =
        serde_json::from_value(body).map_err(|error| ApiError::invalid(format!("the grant: {error}")))?;
    let values = values.unwrap_or_default().into_iter().collect();
    gateway.app().of_tenant(&who.0.tenant).grant_mcp(&grant, values).await?;
    Ok(Json(json!({ "grant": grant })))
}

pub(crate) async fn revoke(
    State(gateway): State<Gateway>,
    who: Who,
    Path(name): Path<String>,
    whose: Result<Json<Whose>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ManageMcp)?;
    let Json(Whose { subject }) = whose?;
    gateway.app().of_tenant(&who.0.tenant).revoke_mcp(&named(&name)?, &subject).await?;
    Ok(Json(json!({ "revoked": subject })))
}

pub(crate) async fn requests(State(gateway): State<Gateway>, who: Who) -> Result<Json<Value>, ApiError> {
    who.may(Permission::RequestMcp)?;
    let mut requests = gateway.app().of_tenant(&who.0.tenant).mcp_requests().await?;
    // An administrator sees all requests, others their own.
    if who.0.may(Permission::ManageMcp).is_err() {
        requests.retain(|request| Some(&request.user) == who.0.user.as_ref());
    }
    Ok(Json(json!({ "requests": requests })))
}

pub(crate) async fn request(
    State(gateway): State<Gateway>,
    who: Who,
    asked: Result<Json<Asked>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::RequestMcp)?;
    let Json(Asked { server, agent, tools, reason }) = asked?;
    let Some(user) = who.0.user.clone() else {
        return Err(ApiError::invalid("this key belongs to no user, so there is nobody to ask for"));
    };
    let subject = match agent {
        Some(agent) => format!("agent:{agent}").parse().map_err(ApiError::invalid)?,
        None => McpSubject::User(user.clone()),
    };
    let wish = AccessWish { server, user, subject, tools, reason };
    let request = gateway.app().of_tenant(&who.0.tenant).request_mcp(wish).await?;
    Ok(Json(json!({ "request": request })))
}

pub(crate) async fn review(
    State(gateway): State<Gateway>,
    who: Who,
    Path(id): Path<String>,
    reviewed: Result<Json<Reviewed>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ManageMcp)?;
    let Json(Reviewed { approve, note }) = reviewed?;
    let id: AccessRequestId =
        id.parse().map_err(|_| ApiError::not_found("there is no such request".to_owned()))?;
    let by = clawsmith::UserId::new(who.0.name()).map_err(|error| ApiError::invalid(error.to_string()))?;
    let app = gateway.app().of_tenant(&who.0.tenant);
    let request = app.review_mcp_request(id, (approve, by), note).await?;
    Ok(Json(json!({ "request": request })))
}
