//! MCP over the network: our tools at `/mcp`, and the servers whose tools agents use.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, any_service};
use clawsmith::app::access::{CallPlace, CallerWish, Permission};
use clawsmith::app::mcp::protocol::{
    ClientApprovals, Clients, ConnectionView, HttpSessions, LoginWish, Parts, Served, ServerReport,
    http_server,
};
use clawsmith::app::mcp::{AccessWish, AnsweringClient, ListedTools, NewServer, ServerView};
use clawsmith::store::{McpGrant, McpOverrides, McpRequest, McpServer, McpSubject, McpTool, McpToolState};
use clawsmith::{AccessRequestId, Digest, KeyId, ServerName, UserId};
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use crate::admit::Who;
use crate::api::{Body, Json, Path, Query, Visit};
use crate::error::ApiError;
use crate::listing::ListQuery;
use crate::{Gateway, Inner};

/// The MCP server at `/mcp`. It does not keep the gateway.
pub(crate) fn server(gateway: &Gateway) -> MethodRouter<Gateway> {
    let clients = NetworkClients { gateway: Arc::downgrade(&gateway.0) };
    let (server, open) = http_server(Arc::new(clients), gateway.0.hosts.clone(), gateway.ending().clone());
    any_service(server).layer(from_fn_with_state((McpSessions::default(), open), admit_client))
}

/// The most MCP sessions of one key; a new one replaces the oldest.
const MOST_SESSIONS: usize = 64;

/// A session that nobody used for so long is forgotten: its client begins another. So are those of a revoked key, which
/// nobody can use.
const IDLE: Duration = Duration::from_secs(3600);

/// The key that an MCP client shows, and the user that it acts for if that is another than the key's.
type Client = (KeyId, Option<UserId>);

/// The sessions of MCP clients by the client that began each, the oldest first. A session is nobody else's, even if its id is
/// known.
#[derive(Clone, Default)]
struct McpSessions(Arc<Mutex<HashMap<Client, VecDeque<McpSession>>>>);

struct McpSession {
    id: String,
    used: Instant,
}

impl McpSessions {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Client, VecDeque<McpSession>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a session that begins; returns the sessions that it forgets, which are to be ended.
    fn begin(&self, client: &Client, session: &str, now: Instant) -> Vec<String> {
        let mut forgotten = Vec::new();
        let mut all = self.lock();
        all.retain(|_, own| {
            own.retain(|known| {
                let is_kept = now.duration_since(known.used) < IDLE;
                if !is_kept {
                    forgotten.push(known.id.clone());
                }
                is_kept
            });
            !own.is_empty()
        });
        let own = all.entry(client.clone()).or_default();
        own.retain(|known| known.id != session);
        own.push_back(McpSession { id: session.to_owned(), used: now });
        if own.len() > MOST_SESSIONS {
            forgotten.extend(own.pop_front().map(|oldest| oldest.id));
        }
        forgotten
    }

    /// Notes that a session is used; `false` where it is not the key's.
    fn is_own(&self, client: &Client, session: &str, now: Instant) -> bool {
        let mut all = self.lock();
        let own = all.get_mut(client).into_iter().flatten();
        let mut found = own.filter(|known| known.id == session && now.duration_since(known.used) < IDLE);
        found.next().map(|known| known.used = now).is_some()
    }
}

/// Admits a request to `/mcp` whose key may call tools and owns the session.
async fn admit_client(
    State((sessions, open)): State<(McpSessions, HttpSessions)>,
    who: Who,
    request: Request,
    next: Next,
) -> Response {
    if let Err(error) = who.may(Permission::CallTools) {
        return error.into_response();
    }
    let named = |headers: &HeaderMap| Some(headers.get("mcp-session-id")?.to_str().ok()?.to_owned());
    let client = (who.0.key, who.0.acts_for().cloned());
    let session = named(request.headers());
    if session.as_ref().is_some_and(|session| !sessions.is_own(&client, session, Instant::now())) {
        return ApiError::not_found("you have no such MCP session; start a new one".to_owned())
            .into_response();
    }
    let response = next.run(request).await;
    if let (None, Some(begun)) = (session, named(response.headers())) {
        let forgotten = sessions.begin(&client, &begun, Instant::now());
        if !forgotten.is_empty() {
            // The new session does not wait for the end of others.
            tokio::spawn(async move {
                for id in forgotten {
                    open.end(&id).await;
                }
            });
        }
    }
    response
}

/// Clients with a key: each acts as the caller of its key.
struct NetworkClients {
    gateway: Weak<Inner>,
}

#[async_trait]
impl Clients for NetworkClients {
    async fn served(&self, parts: Option<&Parts>) -> Result<Served, String> {
        let gateway = self.gateway.upgrade().map(Gateway).ok_or("the gateway is shutting down")?;
        let parts = parts.ok_or("the request has no head")?;
        let who = parts.extensions.get::<Who>().ok_or("the request has no key")?;
        let told = |error: clawsmith::app::Error| error.message().to_owned();
        who.0.may(Permission::CallTools).map_err(told)?;
        let agent = agent_in(parts.uri.query());
        let session = who.0.session_named(agent.as_deref(), &CallPlace::default(), "mcp").map_err(told)?;
        let wish = CallerWish { agent: agent.as_deref(), session: Some(&session) };
        let caller = gateway.app().caller_of(&who.0, &wish).await.map_err(told)?;
        let approvals = who.0.may(Permission::AnswerApprovals).is_ok().then(|| {
            let (app, by) = (gateway.app().of_tenant(&who.0.tenant), who.0.signature());
            Arc::new(AnsweringClient { app, by }) as Arc<dyn ClientApprovals>
        });
        Ok(Served { executor: gateway.sessions().deployment().executor, caller, approvals })
    }

    fn changes(&self) -> Vec<watch::Receiver<u64>> {
        let Some(gateway) = self.gateway.upgrade().map(Gateway) else { return Vec::new() };
        let mut changes = gateway.app().tool_changes();
        changes.push(gateway.sessions().deployment().executor.policy_changes());
        changes
    }
}

/// The agent that `?agent=NAME` names.
fn agent_in(query: Option<&str>) -> Option<String> {
    let agent = query?.split('&').find_map(|pair| pair.strip_prefix("agent="))?;
    Some(agent.to_owned()).filter(|agent| !agent.is_empty())
}

/// A server to be added; values of variables and headers are write-only.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Wanted {
    #[serde(flatten)]
    server: McpServer,
    /// Values of variables and headers, by their names. Values are stored encrypted and never shown.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    values: BTreeMap<String, SecretString>,
}

/// The definitions to accept: the tool's name and the digest of the definition seen.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Accepted {
    tools: BTreeMap<String, Digest>,
}

/// A login to begin.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct LoginAsked {
    /// The address that the browser is sent to at the end.
    redirect_uri: String,
    /// Scopes to request, besides those that the server asks for itself.
    #[serde(default)]
    scopes: Vec<String>,
}

/// A begun login.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LoginBegun {
    /// The address that the person opens in a browser.
    authorization_url: String,
}

/// The end of a login.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct LoginEnded {
    /// The address that the browser was sent to.
    callback_url: String,
}

/// The result of removing a login; `false` if there was none.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LoginForgotten {
    ended: bool,
}

/// A request for access.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asked {
    server: ServerName,
    /// The agent to get access; by default the key's user.
    agent: Option<String>,
    tools: Option<Vec<String>>,
    reason: String,
}

/// An answer to a request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reviewed {
    approve: bool,
    note: Option<String>,
}

/// The subject of a grant to revoke.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Whose {
    subject: McpSubject,
}

/// A grant of the server that the path names.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Granted {
    subject: McpSubject,
    /// The only tools that may be used; by default all.
    tool_allow: Option<Vec<String>>,
    /// Tools that may not be used.
    #[serde(default)]
    tool_deny: Vec<String>,
    /// Settings of the agent's own connection.
    #[serde(default)]
    config_overrides: McpOverrides,
    /// False makes the grant refuse; by default true.
    enabled: Option<bool>,
    /// Values of the agent's own variables or headers; they are never shown.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    values: BTreeMap<String, SecretString>,
}

/// Servers, by name.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Servers {
    servers: Vec<ServerShown>,
    /// The `cursor` of the next page; `null` on the last.
    next: Option<String>,
}

/// A server with its tools and grants.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServerShown {
    server: McpServer,
    tools: Vec<ServerTool>,
    grants: Vec<McpGrant>,
    /// The connections of this gateway to the server: one for all agents, and one for each agent or user with values or
    /// a login of their own. None before the first call.
    connections: Vec<ConnectionView>,
}

/// A tool of a server, with its state and the digest to accept it by.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServerTool {
    name: String,
    state: McpToolState,
    /// The definition that was accepted.
    accepted: Option<Value>,
    /// The definition that waits to be accepted.
    proposed: Option<Value>,
    /// The digest of that definition.
    digest: Option<Digest>,
}

/// A server that was added.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServerAdded {
    added: ServerShown,
    /// The protocol version that both sides speak; none before the first login.
    protocol: Option<String>,
    server_info: Option<String>,
}

/// A server that was removed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServerRemoved {
    removed: ServerName,
}

/// A server as it introduced itself.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ServerTested {
    report: ServerReport,
}

/// The accepted definitions, and those that have changed since.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pinned {
    accepted: Vec<String>,
    not_accepted: Vec<String>,
}

/// A grant.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GrantShown {
    grant: McpGrant,
}

/// A grant that was revoked.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GrantRevoked {
    revoked: McpSubject,
}

/// Requests for access, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AccessRequests {
    requests: Vec<McpRequest>,
    /// The `cursor` of the next page; `null` on the last.
    next: Option<String>,
}

/// A request for access.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AccessRequestShown {
    request: McpRequest,
}

fn shown(view: ServerView) -> ServerShown {
    let tools = view.tools.into_iter().map(|tool| ServerTool {
        state: tool.state(),
        digest: tool.proposed.as_ref().map(Digest::of),
        name: tool.name,
        accepted: tool.accepted,
        proposed: tool.proposed,
    });
    ServerShown {
        tools: tools.collect(),
        server: view.server,
        grants: view.grants,
        connections: view.connections,
    }
}

pub(crate) async fn list(visit: Visit, Query(wanted): Query<ListQuery>) -> Result<Json<Servers>, ApiError> {
    let name = |view: &ServerView| view.server.name.to_string();
    let (servers, next) = wanted.page(visit.app().mcp_servers().await?, name, name);
    Ok(Json(Servers { servers: servers.into_iter().map(shown).collect(), next }))
}

pub(crate) async fn get(visit: Visit, Path(name): Path<ServerName>) -> Result<Json<ServerShown>, ApiError> {
    Ok(Json(shown(visit.app().mcp_server(&name).await?)))
}

pub(crate) async fn add(visit: Visit, Body(wanted): Body<Wanted>) -> Result<Json<ServerAdded>, ApiError> {
    let Wanted { server, values } = wanted;
    visit.gateway.app().may_define_server(visit.visitor(), &server).await?;
    let new = NewServer { server, values: values.into_iter().collect() };
    let (view, report) = visit.app().add_mcp_server(new).await?;
    let (protocol, server_info) = report.map(|report| (report.protocol, report.server)).unzip();
    Ok(Json(ServerAdded { added: shown(view), protocol, server_info: server_info.flatten() }))
}

pub(crate) async fn remove(
    visit: Visit,
    Path(name): Path<ServerName>,
) -> Result<Json<ServerRemoved>, ApiError> {
    visit.app().remove_mcp_server(&name).await?;
    Ok(Json(ServerRemoved { removed: name }))
}

pub(crate) async fn test(visit: Visit, Path(name): Path<ServerName>) -> Result<Json<ServerTested>, ApiError> {
    let report = visit.app().probe_mcp_server(&name, visit.visitor().user.as_ref()).await?;
    Ok(Json(ServerTested { report }))
}

pub(crate) async fn begin_login(
    visit: Visit,
    Path(name): Path<ServerName>,
    Body(asked): Body<LoginAsked>,
) -> Result<Json<LoginBegun>, ApiError> {
    let user = visit.gateway.app().may_log_in(visit.visitor(), &name).await?;
    let LoginAsked { redirect_uri, scopes } = asked;
    let wish = LoginWish { user, redirect: redirect_uri, scopes, client_secret: None };
    Ok(Json(LoginBegun { authorization_url: visit.app().begin_mcp_login(&name, wish).await? }))
}

pub(crate) async fn finish_login(
    visit: Visit,
    Path(name): Path<ServerName>,
    Body(ended): Body<LoginEnded>,
) -> Result<Json<ServerTested>, ApiError> {
    let user = visit.gateway.app().may_log_in(visit.visitor(), &name).await?;
    let listed = ListedTools::of(visit.visitor());
    let report = visit.app().finish_mcp_login(&name, user.as_ref(), &ended.callback_url, listed).await?;
    Ok(Json(ServerTested { report }))
}

pub(crate) async fn end_login(
    visit: Visit,
    Path(name): Path<ServerName>,
) -> Result<Json<LoginForgotten>, ApiError> {
    let user = visit.gateway.app().may_log_in(visit.visitor(), &name).await?;
    Ok(Json(LoginForgotten { ended: visit.app().end_mcp_login(&name, user.as_ref()).await? }))
}

pub(crate) async fn pin(
    visit: Visit,
    Path(name): Path<ServerName>,
    Body(accepted): Body<Accepted>,
) -> Result<Json<Pinned>, ApiError> {
    let app = visit.app();
    let view = app.mcp_server(&name).await?;
    let is_seen = |tool: &&McpTool| {
        matches!(tool.state(), McpToolState::Changed | McpToolState::New)
            && accepted.tools.get(&tool.name) == tool.proposed.as_ref().map(Digest::of).as_ref()
    };
    let seen: Vec<McpTool> = view.tools.iter().filter(is_seen).cloned().collect();
    let others = app.accept_mcp_tools(&seen).await?;
    let names = seen.into_iter().map(|tool| tool.name).filter(|name| !others.contains(name));
    let names: Vec<String> = names.collect();
    let left = accepted.tools.into_keys().filter(|name| !names.contains(name)).collect();
    Ok(Json(Pinned { accepted: names, not_accepted: left }))
}

pub(crate) async fn grant(
    visit: Visit,
    Path(server): Path<ServerName>,
    Body(granted): Body<Granted>,
) -> Result<Json<GrantShown>, ApiError> {
    let Granted { subject, tool_allow, tool_deny, config_overrides, enabled, values } = granted;
    if !config_overrides.env.is_empty() {
        // Another value of one variable can lead a program's other values elsewhere: whoever may define it may do so.
        let defined = visit.app().mcp_server(&server).await?.server;
        visit.gateway.app().may_define_server(visit.visitor(), &defined).await?;
    }
    let enabled = enabled.unwrap_or(true);
    let grant = McpGrant { server, subject, tool_allow, tool_deny, config_overrides, enabled };
    visit.app().grant_mcp(&grant, values.into_iter().collect()).await?;
    Ok(Json(GrantShown { grant }))
}

pub(crate) async fn revoke(
    visit: Visit,
    Path(name): Path<ServerName>,
    Query(whose): Query<Whose>,
) -> Result<Json<GrantRevoked>, ApiError> {
    visit.app().revoke_mcp(&name, &whose.subject).await?;
    Ok(Json(GrantRevoked { revoked: whose.subject }))
}

pub(crate) async fn requests(
    visit: Visit,
    Query(wanted): Query<ListQuery>,
) -> Result<Json<AccessRequests>, ApiError> {
    let mut requests = visit.app().mcp_requests().await?;
    // An administrator sees all requests, others their own.
    if visit.may(Permission::ManageMcp).is_err() {
        requests.retain(|request| Some(&request.user) == visit.visitor().user.as_ref());
    }
    let texts = |request: &McpRequest| {
        format!("{} {} {} {}", request.id, request.server, request.user, request.reason)
    };
    // Ids begin with their time: the order is that of the requests.
    let (requests, next) = wanted.page(requests, |request| request.id.to_string(), texts);
    Ok(Json(AccessRequests { requests, next }))
}

pub(crate) async fn request(
    visit: Visit,
    Body(asked): Body<Asked>,
) -> Result<Json<AccessRequestShown>, ApiError> {
    let Asked { server, agent, tools, reason } = asked;
    let Some(user) = visit.visitor().user.clone() else {
        return Err(ApiError::invalid(
            "this key belongs to no user, so there is nobody to request access for",
        ));
    };
    let subject = match agent {
        Some(agent) => format!("agent:{agent}").parse().map_err(ApiError::invalid)?,
        None => McpSubject::User(user.clone()),
    };
    let wish = AccessWish { server, user, subject, tools, reason };
    Ok(Json(AccessRequestShown { request: visit.app().request_mcp(wish).await? }))
}

pub(crate) async fn review(
    visit: Visit,
    Path(id): Path<AccessRequestId>,
    Body(reviewed): Body<Reviewed>,
) -> Result<Json<AccessRequestShown>, ApiError> {
    let Reviewed { approve, note } = reviewed;
    let by = UserId::new(visit.visitor().name()).map_err(|error| ApiError::invalid(error.to_string()))?;
    Ok(Json(AccessRequestShown { request: visit.app().review_mcp_request(id, approve, by, note).await? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_that_nobody_uses_are_forgotten_and_those_in_use_are_not() {
        let (sessions, began) = (McpSessions::default(), Instant::now());
        let (ann, ben): (&Client, &Client) = (&(KeyId::new(), None), &(KeyId::new(), None));
        sessions.begin(ann, "a", began);
        sessions.begin(ben, "b", began);
        assert!(sessions.is_own(ann, "a", began) && !sessions.is_own(ben, "a", began));
        let of_another = (ann.0, Some(UserId::new("cleo").unwrap()));
        assert!(!sessions.is_own(&of_another, "a", began), "the key acts for another user");
        let later = began + IDLE - Duration::from_secs(1);
        assert!(sessions.is_own(ben, "b", later));
        let last = began + IDLE;
        assert!(!sessions.is_own(ann, "a", last), "idle for an hour");
        sessions.begin(ben, "c", last);
        assert_eq!(sessions.lock().len(), 1, "nothing is kept of a key without sessions");
        assert!(sessions.is_own(ben, "b", last) && sessions.is_own(ben, "c", last));
        for number in 0..MOST_SESSIONS {
            sessions.begin(ben, &number.to_string(), last);
        }
        assert!(!sessions.is_own(ben, "b", last), "the oldest gives way");
        assert_eq!(sessions.lock()[ben].len(), MOST_SESSIONS);
    }

    #[test]
    fn a_key_that_begins_ever_more_sessions_leaves_none_open_unseen() {
        let (sessions, began) = (McpSessions::default(), Instant::now());
        let (ann, ben): (&Client, &Client) = (&(KeyId::new(), None), &(KeyId::new(), None));
        assert!(sessions.begin(ben, "b", began).is_empty());
        let now = began + Duration::from_secs(1);
        for number in 0..MOST_SESSIONS {
            assert!(sessions.begin(ann, &number.to_string(), now).is_empty());
        }
        assert_eq!(sessions.begin(ann, "more", now), ["0"], "its oldest is to be ended");
        assert_eq!(sessions.begin(ann, "later", began + IDLE), ["b", "1"], "and those that nobody used");
    }
}
