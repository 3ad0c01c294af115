//! Sessions and runs of the visitor.

use claw_core::MessageId;
use clawsmith::app::CancelledRuns;
use clawsmith::app::access::{CHANNEL, Permission, Visitor};
use clawsmith::store::{
    CancelRequest, Circle, Conversation, ConversationPage, Job, JobFilter, JobState, Message, MessagePage,
    Role,
};
use clawsmith::{AgentId, JobId, SessionKey, UnixMillis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::{Body, Json, Path, Query, Visit};
use crate::error::ApiError;

/// The most entries of one page.
const PAGE: usize = 100;
/// The number of runs read at a time, and how often for one page, where many of them are not the visitor's.
const READ: usize = 200;
const MOST_READ: usize = 10;

/// A page of sessions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SessionsQuery {
    /// The agent; by default `default`.
    agent_id: Option<AgentId>,
    /// The `next` of the page before.
    cursor: Option<String>,
    /// The most entries; 100 at most.
    limit: Option<usize>,
}

/// A page of messages.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessagesQuery {
    /// The `next` of the page before.
    cursor: Option<String>,
    /// The most entries; 100 at most.
    limit: Option<usize>,
}

/// A page of runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RunsQuery {
    /// Only runs of this session.
    session_key: Option<String>,
    /// Only runs in this state.
    state: Option<JobState>,
    /// The `next` of the page before.
    cursor: Option<JobId>,
    /// The most entries; 100 at most.
    limit: Option<usize>,
}

/// Sessions, the latest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SessionList {
    sessions: Vec<SessionCard>,
    /// The `cursor` of the next page; `null` on the last.
    next: Option<String>,
}

/// A session.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionCard {
    session_key: SessionKey,
    agent_id: AgentId,
    /// The name that a person gave it.
    title: Option<String>,
    started: UnixMillis,
    last: UnixMillis,
    messages: u64,
    /// Number of runs that wait.
    waiting: u64,
    /// True if a run is in progress.
    running: bool,
}

/// Messages, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Messages {
    messages: Vec<MessageView>,
    /// The `cursor` of the page before these; `null` on the first.
    next: Option<String>,
}

/// A message.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageView {
    /// The message's id.
    pub id: MessageId,
    /// The message's number in the session.
    pub seq: u64,
    /// The role of the speaker.
    pub role: Role,
    /// Its parts: text, images, calls and results; scrubbed.
    pub content: Value,
    /// The run that it is part of.
    pub run_id: JobId,
    /// Time of the message.
    pub at: UnixMillis,
}

/// Runs, the latest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Runs {
    runs: Vec<RunView>,
    /// The `cursor` of the next page; `null` on the last.
    next: Option<JobId>,
}

/// A run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunView {
    id: JobId,
    state: JobState,
    session_key: Option<SessionKey>,
    /// The agent that answers.
    agent_id: Option<String>,
    /// The user whose message it answers.
    user_id: Option<String>,
    accepted: UnixMillis,
    /// The number of attempts.
    tries: u32,
    /// The last error.
    error: Option<String>,
    /// The request to stop it.
    cancel: Option<CancelRequest>,
    /// The run that started this one.
    parent: Option<JobId>,
    /// The first run of the tree.
    root: JobId,
}

fn page(limit: Option<usize>) -> usize {
    limit.unwrap_or(PAGE).clamp(1, PAGE)
}

pub(crate) async fn list(
    visit: Visit,
    Query(wanted): Query<SessionsQuery>,
) -> Result<Json<SessionList>, ApiError> {
    let agent = match wanted.agent_id {
        Some(agent) => agent,
        None => agent("default")?,
    };
    let after = wanted.cursor.as_deref().map(cursor).transpose()?;
    let limit = page(wanted.limit);
    let circle = circle(visit.visitor(), agent)?;
    let asked = ConversationPage { since: None, after, limit };
    let found = visit.app().store().conversations(&visit.visitor().tenant, &circle, &asked).await;
    let found = found.map_err(clawsmith::app::Error::from)?;
    let last = found.last().filter(|_| found.len() == limit);
    let next = last.map(|last| format!("{}:{}", last.last.0, last.session));
    let own = found.iter().filter(|one| one.party.channel == CHANNEL).map(shown);
    Ok(Json(SessionList { sessions: own.collect(), next }))
}

pub(crate) async fn messages(
    visit: Visit,
    Path(session): Path<String>,
    Query(wanted): Query<MessagesQuery>,
) -> Result<Json<Messages>, ApiError> {
    said(&visit, &session, wanted.cursor.as_deref(), wanted.limit).await.map(Json)
}

/// Returns a page of the messages of one of the visitor's sessions, the latest first.
pub(crate) async fn said(
    visit: &Visit,
    session: &str,
    cursor: Option<&str>,
    limit: Option<usize>,
) -> Result<Messages, ApiError> {
    visit.may(Permission::ReadSessions)?;
    let (session, circle) = own(visit.visitor(), session)?;
    let before = match cursor {
        None => u64::MAX >> 1,
        Some(cursor) => cursor
            .parse()
            .ok()
            .filter(|before| *before <= u64::MAX >> 1)
            .ok_or_else(|| ApiError::invalid("the cursor is not the `next` of a page"))?,
    };
    let app = visit.gateway.app();
    let store = app.store();
    let page = MessagePage { before, limit: page(limit) };
    let said = store.said_in(&visit.visitor().tenant, &circle, &session, page).await;
    let said = said.map_err(clawsmith::app::Error::from)?.ok_or_else(|| no_session(&session))?;
    let next = said.first().map(|first| first.seq).filter(|seq| *seq > 1).map(|seq| seq.to_string());
    // What a model wants to call is kept as it is said, since it is run so.
    let scrubber = visit.sessions().deployment().executor.scrubbers().for_tenant(&visit.visitor().tenant);
    let mut messages: Vec<MessageView> = said.iter().map(message).collect();
    for message in &mut messages {
        message.content = scrubber.json(&message.content);
    }
    Ok(Messages { messages, next })
}

/// The title that a session gets.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Title {
    title: String,
}

/// A session that was removed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionRemoved {
    session_key: SessionKey,
    removed: bool,
}

pub(crate) async fn get(visit: Visit, Path(session): Path<String>) -> Result<Json<SessionCard>, ApiError> {
    let (session, circle) = own(visit.visitor(), &session)?;
    one(&visit, &circle, &session).await
}

pub(crate) async fn rename(
    visit: Visit,
    Path(session): Path<String>,
    Body(Title { title }): Body<Title>,
) -> Result<Json<SessionCard>, ApiError> {
    let (session, circle) = own(visit.visitor(), &session)?;
    visit.app().rename_session_of(&visit.visitor().tenant, &circle, &session, &title).await?;
    one(&visit, &circle, &session).await
}

pub(crate) async fn fork(visit: Visit, Path(session): Path<String>) -> Result<Json<SessionCard>, ApiError> {
    let (session, circle) = own(visit.visitor(), &session)?;
    let to = visit.app().fork_session_of(&visit.visitor().tenant, &circle, &session).await?;
    one(&visit, &circle, &to).await
}

pub(crate) async fn remove(
    visit: Visit,
    Path(session): Path<String>,
) -> Result<Json<SessionRemoved>, ApiError> {
    let (session, circle) = own(visit.visitor(), &session)?;
    visit.app().remove_session_of(&visit.visitor().tenant, &circle, &session).await?;
    Ok(Json(SessionRemoved { session_key: session, removed: true }))
}

/// Returns one of the visitor's sessions.
async fn one(visit: &Visit, circle: &Circle, session: &SessionKey) -> Result<Json<SessionCard>, ApiError> {
    let found = visit.app().store().conversation(&visit.visitor().tenant, circle, session).await;
    let found = found.map_err(clawsmith::app::Error::from)?;
    Ok(Json(shown(&found.ok_or_else(|| no_session(session))?)))
}

pub(crate) async fn runs(visit: Visit, Query(wanted): Query<RunsQuery>) -> Result<Json<Runs>, ApiError> {
    let (visitor, limit) = (visit.visitor(), page(wanted.limit));
    let session = match &wanted.session_key {
        Some(key) if visitor.has(Permission::ReadTenantRuns) => {
            Some(SessionKey::new(key).map_err(|_| not_yours(key))?)
        }
        Some(key) => Some(own(visitor, key)?.0),
        None => None,
    };
    let states = wanted.state.into_iter().collect();
    let mut filter = JobFilter { session, states, after: wanted.cursor, limit: READ, ..JobFilter::default() };
    let mut runs = Vec::new();
    for _ in 0..MOST_READ {
        let found = visit.app().runs(&filter).await?;
        for job in &found {
            filter.after = Some(job.new.id);
            if is_seen(visitor, Permission::ReadTenantRuns, job) {
                runs.push(run_shown(job));
                if runs.len() == limit {
                    return Ok(Json(Runs { runs, next: filter.after }));
                }
            }
        }
        if found.len() < READ {
            return Ok(Json(Runs { runs, next: None }));
        }
    }
    // The rest is on the next page, which begins where this one stopped looking.
    Ok(Json(Runs { runs, next: filter.after }))
}

pub(crate) async fn run(visit: Visit, Path(id): Path<JobId>) -> Result<Json<RunView>, ApiError> {
    Ok(Json(run_shown(&seen_run(&visit, Permission::ReadTenantRuns, id).await?)))
}

pub(crate) async fn cancel(visit: Visit, Path(id): Path<JobId>) -> Result<Json<CancelledRuns>, ApiError> {
    let found = seen_run(&visit, Permission::StopTenantRuns, id).await?;
    Ok(Json(visit.app().cancel_run(found.new.id, &visit.visitor().signature()).await?))
}

/// Returns whether a run is in one of the visitor's own sessions or, with the permission `of_all`, of an agent that the key may
/// be used with.
fn is_seen(visitor: &Visitor, of_all: Permission, job: &Job) -> bool {
    let agent = || job.new.payload["agent"].as_str().and_then(|agent| AgentId::new(agent).ok());
    is_own(visitor, job)
        || visitor.has(of_all)
            && match agent() {
                Some(agent) => visitor.may_use(&agent).is_ok(),
                None => visitor.is_for_all_agents().is_ok(),
            }
}

fn is_own(visitor: &Visitor, job: &Job) -> bool {
    job.new.session.as_ref().is_some_and(|session| own(visitor, session.as_str()).is_ok())
}

/// Returns a run that the visitor sees. For any other, not even its existence is revealed.
async fn seen_run(visit: &Visit, of_all: Permission, id: JobId) -> Result<Job, ApiError> {
    run_if(visit, id, |job| is_seen(visit.visitor(), of_all, job)).await
}

/// Returns a run of one of the visitor's own sessions. For any other, not even its existence is revealed.
pub(crate) async fn own_run(visit: &Visit, id: JobId) -> Result<Job, ApiError> {
    run_if(visit, id, |job| is_own(visit.visitor(), job)).await
}

async fn run_if(visit: &Visit, id: JobId, is_shown: impl Fn(&Job) -> bool) -> Result<Job, ApiError> {
    let found = visit.app().store().job(&visit.visitor().tenant, id).await;
    let found = found.map_err(clawsmith::app::Error::from)?;
    found.filter(is_shown).ok_or_else(|| ApiError::not_found(format!("there is no run `{id}`")))
}

/// A session that is the visitor's own, and the circle that it is in.
pub(crate) fn own(visitor: &Visitor, session: &str) -> Result<(SessionKey, Circle), ApiError> {
    let agent = agent_in(session)?;
    let session = visitor.own_session(&agent, session).map_err(|_| not_yours(session))?;
    Ok((session, circle(visitor, agent)?))
}

/// The agent that a session's key names.
pub(crate) fn agent_in(session: &str) -> Result<AgentId, ApiError> {
    let name = session.strip_prefix("agent:").and_then(|rest| rest.split(':').next());
    name.and_then(|name| AgentId::new(name).ok()).ok_or_else(|| not_yours(session))
}

fn not_yours(session: &str) -> ApiError {
    ApiError::not_found(format!("there is no session `{}` of yours", shortened(session)))
}

/// Returns an existing session of the visitor's own.
pub(crate) async fn there(visit: &Visit, session: &str) -> Result<SessionKey, ApiError> {
    let (session, circle) = own(visit.visitor(), session)?;
    let found = visit.gateway.app().store().conversation(&visit.visitor().tenant, &circle, &session).await;
    found.map_err(clawsmith::app::Error::from)?.ok_or_else(|| no_session(&session))?;
    Ok(session)
}

fn circle(visitor: &Visitor, agent: AgentId) -> Result<Circle, ApiError> {
    visitor.may_use(&agent)?;
    let user = visitor
        .user
        .clone()
        .ok_or_else(|| ApiError::invalid("this key belongs to no user, so it has no sessions"))?;
    Ok(Circle::User { agent, user })
}

fn agent(name: &str) -> Result<AgentId, ApiError> {
    AgentId::new(name).map_err(|error| ApiError::invalid(format!("`agentId`: {error}")))
}

fn cursor(text: &str) -> Result<(UnixMillis, SessionKey), ApiError> {
    let unreadable = || ApiError::invalid("the cursor is invalid");
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

fn shown(one: &Conversation) -> SessionCard {
    SessionCard {
        session_key: one.session.clone(),
        agent_id: one.party.agent.clone(),
        title: one.title.clone(),
        started: one.started,
        last: one.last,
        messages: one.messages,
        waiting: one.waiting,
        running: one.running,
    }
}

fn message(message: &Message) -> MessageView {
    MessageView {
        id: message.new.id,
        seq: message.seq,
        role: message.new.role,
        content: message.new.content.clone(),
        run_id: message.run,
        at: message.new.at,
    }
}

fn run_shown(job: &Job) -> RunView {
    let text = |field: &str| job.new.payload[field].as_str().map(ToOwned::to_owned);
    RunView {
        agent_id: text("agent"),
        user_id: text("user"),
        id: job.new.id,
        state: job.state,
        session_key: job.new.session.clone(),
        accepted: job.new.accepted,
        tries: job.tries(),
        error: job.error.clone(),
        cancel: job.cancel.clone(),
        parent: job.new.lineage.map(|lineage| lineage.parent),
        root: job.new.root(),
    }
}
