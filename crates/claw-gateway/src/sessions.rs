//! Sessions and runs of whoever has the key.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use clawsmith::app::access::{CHANNEL, Permission, Visitor};
use clawsmith::store::{Circle, Conversation, ConversationPage, Job, JobFilter, Message};
use clawsmith::{AgentId, SessionKey, UnixMillis};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Gateway;
use crate::error::ApiError;
use crate::guard::Who;

/// The most entries of one page.
const PAGE: usize = 100;

/// A page of a list.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Page {
    agent_id: Option<String>,
    session_key: Option<String>,
    /// The `next` of the page before.
    cursor: Option<String>,
    limit: Option<usize>,
}

impl Page {
    fn limit(&self) -> usize {
        self.limit.unwrap_or(PAGE).clamp(1, PAGE)
    }
}

pub(crate) async fn list(
    State(gateway): State<Gateway>,
    who: Who,
    page: Result<Query<Page>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ReadSessions)?;
    let Query(page) = page?;
    let agent = agent(page.agent_id.as_deref().unwrap_or("default"))?;
    let after = page.cursor.as_deref().map(cursor).transpose()?;
    let asked = ConversationPage { since: None, after, limit: page.limit() };
    let circle = circle(&who.0, agent)?;
    let found = gateway.app().store().conversations(&who.0.tenant, &circle, &asked).await;
    let found = found.map_err(clawsmith::app::Error::from)?;
    let last = found.last().filter(|_| found.len() == page.limit());
    let next = last.map(|last| format!("{}:{}", last.last.0, last.session));
    let own = found.iter().filter(|one| one.party.channel == CHANNEL).map(shown);
    Ok(Json(json!({ "sessions": own.collect::<Vec<Value>>(), "next": next })))
}

pub(crate) async fn messages(
    State(gateway): State<Gateway>,
    who: Who,
    Path(session): Path<String>,
    page: Result<Query<Page>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    let Query(page) = page?;
    said(&gateway, &who, &session, page.cursor.as_deref(), page.limit).await.map(Json)
}

/// A page of the messages of one of the visitor's sessions, the latest first.
pub(crate) async fn said(
    gateway: &Gateway,
    who: &Who,
    session: &str,
    cursor: Option<&str>,
    limit: Option<usize>,
) -> Result<Value, ApiError> {
    who.may(Permission::ReadSessions)?;
    let (session, circle) = own(&who.0, session)?;
    let before = match cursor {
        None => u64::MAX >> 1,
        Some(cursor) => cursor.parse().map_err(|_| ApiError::invalid("the cursor does not read"))?,
    };
    let (store, limit) = (gateway.app().store(), limit.unwrap_or(PAGE).clamp(1, PAGE));
    let said = store.said_in((&who.0.tenant, &circle), &session, before, limit).await;
    let said = said.map_err(clawsmith::app::Error::from)?.ok_or_else(|| no_session(&session))?;
    let next = said.first().map(|first| first.seq).filter(|seq| *seq > 1).map(|seq| seq.to_string());
    let messages: Vec<Value> = said.iter().map(message).collect();
    Ok(json!({ "messages": messages, "next": next }))
}

/// The title that a session gets.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Title {
    title: String,
}

pub(crate) async fn rename(
    State(gateway): State<Gateway>,
    who: Who,
    Path(session): Path<String>,
    body: Result<Json<Title>, JsonRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::WriteSessions)?;
    let (session, circle) = own(&who.0, &session)?;
    let Json(Title { title }) = body?;
    gateway.app().rename_session_of((&who.0.tenant, &circle), &session, &title).await?;
    one(&gateway, &who, &circle, &session).await
}

pub(crate) async fn fork(
    State(gateway): State<Gateway>,
    who: Who,
    Path(session): Path<String>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::WriteSessions)?;
    let (session, circle) = own(&who.0, &session)?;
    let to = gateway.app().fork_session_of((&who.0.tenant, &circle), &session).await?;
    one(&gateway, &who, &circle, &to).await
}

pub(crate) async fn remove(
    State(gateway): State<Gateway>,
    who: Who,
    Path(session): Path<String>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::WriteSessions)?;
    let (session, circle) = own(&who.0, &session)?;
    gateway.app().remove_session_of((&who.0.tenant, &circle), &session).await?;
    Ok(Json(json!({ "sessionKey": session, "removed": true })))
}

/// One of the visitor's sessions.
async fn one(
    gateway: &Gateway,
    who: &Who,
    circle: &Circle,
    session: &SessionKey,
) -> Result<Json<Value>, ApiError> {
    let found = gateway.app().store().conversation(&who.0.tenant, circle, session).await;
    let found = found.map_err(clawsmith::app::Error::from)?.ok_or_else(|| no_session(session))?;
    Ok(Json(shown(&found)))
}

pub(crate) async fn runs(
    State(gateway): State<Gateway>,
    who: Who,
    page: Result<Query<Page>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ReadSessions)?;
    let Query(page) = page?;
    let session = page.session_key.as_deref().ok_or_else(|| ApiError::invalid("`sessionKey` is missing"))?;
    let (session, _) = own(&who.0, session)?;
    let after = page.cursor.as_deref().map(str::parse).transpose();
    let after = after.map_err(|_| ApiError::invalid("the cursor does not read"))?;
    let filter = JobFilter { session: Some(session), after, limit: page.limit(), ..JobFilter::default() };
    let found = gateway.app().of_tenant(&who.0.tenant).runs(&filter).await?;
    let next = found.last().filter(|_| found.len() == page.limit()).map(|last| last.new.id);
    Ok(Json(json!({ "runs": found.iter().map(run_shown).collect::<Vec<Value>>(), "next": next })))
}

pub(crate) async fn run(
    State(gateway): State<Gateway>,
    who: Who,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ReadSessions)?;
    Ok(Json(run_shown(&own_run(&gateway, &who.0, &id).await?)))
}

pub(crate) async fn cancel(
    State(gateway): State<Gateway>,
    who: Who,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    who.may(Permission::WriteSessions)?;
    let found = own_run(&gateway, &who.0, &id).await?;
    let app = gateway.app().of_tenant(&who.0.tenant);
    let cancelled = app.cancel_run(found.new.id, &who.0.name()).await?;
    Ok(Json(json!(cancelled)))
}

/// A run of a session of the visitor's own. Of another's nothing is told, not even that it is there.
async fn own_run(gateway: &Gateway, visitor: &Visitor, id: &str) -> Result<Job, ApiError> {
    let unknown = || ApiError::not_found(format!("there is no run `{}`", shortened(id)));
    let id = id.parse().map_err(|_| unknown())?;
    let found = gateway.app().store().job(&visitor.tenant, id).await.map_err(clawsmith::app::Error::from)?;
    let is_own =
        |job: &Job| job.new.session.as_ref().is_some_and(|session| own(visitor, session.as_str()).is_ok());
    found.filter(is_own).ok_or_else(unknown)
}

/// A session that is the visitor's own, and the circle that it is in.
pub(crate) fn own(visitor: &Visitor, session: &str) -> Result<(SessionKey, Circle), ApiError> {
    let unknown = || ApiError::not_found(format!("there is no session `{}` of yours", shortened(session)));
    let name = session.strip_prefix("agent:").and_then(|rest| rest.split(':').next()).ok_or_else(unknown)?;
    let agent = AgentId::new(name).map_err(|_| unknown())?;
    let session = visitor.own_session(&agent, session).map_err(|_| unknown())?;
    Ok((session, circle(visitor, agent)?))
}

/// A session of the visitor's own that there is.
pub(crate) async fn there(gateway: &Gateway, who: &Who, session: &str) -> Result<SessionKey, ApiError> {
    let (session, circle) = own(&who.0, session)?;
    let found = gateway.app().store().conversation(&who.0.tenant, &circle, &session).await;
    found.map_err(clawsmith::app::Error::from)?.ok_or_else(|| no_session(&session))?;
    Ok(session)
}

fn circle(visitor: &Visitor, agent: AgentId) -> Result<Circle, ApiError> {
    let user = visitor
        .user
        .clone()
        .ok_or_else(|| ApiError::invalid("this key belongs to no user, who would have sessions"))?;
    Ok(Circle::User { agent, user })
}

fn agent(name: &str) -> Result<AgentId, ApiError> {
    AgentId::new(name).map_err(|error| ApiError::invalid(format!("`agentId`: {error}")))
}

fn cursor(text: &str) -> Result<(UnixMillis, SessionKey), ApiError> {
    let unreadable = || ApiError::invalid("the cursor does not read");
    let (at, session) = text.split_once(':').ok_or_else(unreadable)?;
    let at = at.parse().map_err(|_| unreadable())?;
    Ok((UnixMillis(at), SessionKey::new(session).map_err(|_| unreadable())?))
}

fn no_session(session: &SessionKey) -> ApiError {
    ApiError::not_found(format!("there is no session `{session}` of yours"))
}

fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}

fn shown(one: &Conversation) -> Value {
    json!({
        "sessionKey": one.session,
        "agentId": one.party.agent,
        "title": one.title,
        "started": one.started,
        "last": one.last,
        "messages": one.messages,
        "waiting": one.waiting,
        "running": one.running,
    })
}

fn message(message: &Message) -> Value {
    json!({
        "id": message.new.id,
        "seq": message.seq,
        "role": message.new.role,
        "content": message.new.content,
        "runId": message.run,
        "at": message.new.at,
    })
}

fn run_shown(job: &Job) -> Value {
    json!({
        "id": job.new.id,
        "state": job.state,
        "sessionKey": job.new.session,
        "accepted": job.new.accepted,
        "tries": job.tries(),
        "error": job.error,
        "cancel": job.cancel,
        "parent": job.new.lineage.map(|lineage| lineage.parent),
        "root": job.new.root(),
    })
}
