//! Changes of files that can be undone: a visitor's own, an administrator's all of the tenant.

use axum::http::StatusCode;
use claw_core::UndoId;
use clawsmith::app::access::{Permission, Visitor};
use clawsmith::app::undo::{ChangeState, UndoLog, Undone, change_kind};
use clawsmith::store::{Undo as Change, UndoFilter};
use clawsmith::{AgentId, CallId, JobId, SessionKey, ToolName, UnixMillis, UserId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::api::{Body, Json, Path, Query, Visit};
use crate::error::ApiError;

/// How many changes are read at a time, and the most that are looked at for one page.
const READ: usize = 200;
const MOST_LOOKED_AT: usize = 5_000;
/// The most changes of one answer.
const PAGE: usize = 100;
/// The most lines of a diff.
const DIFF: usize = 400;

/// Filter of changes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ChangesQuery {
    session_key: Option<SessionKey>,
    agent_id: Option<AgentId>,
    /// The `next` of the page before.
    cursor: Option<String>,
    /// The most changes; 100 at most.
    limit: Option<usize>,
}

/// Changes, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Changes {
    changes: Vec<ChangeView>,
    /// The `cursor` of the next page; `null` on the last. A page can be short, or empty, before the last.
    next: Option<String>,
}

/// A change of a file, or of the files that a command changed.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangeView {
    id: UndoId,
    /// `created`, `changed`, `removed`, `command` or `undoing`.
    change: &'static str,
    /// The file, or the command; scrubbed.
    shown: String,
    tool: ToolName,
    agent_id: AgentId,
    user_id: Option<UserId>,
    session_key: SessionKey,
    call_id: CallId,
    run_id: Option<JobId>,
    at: UnixMillis,
    /// The time it was undone; `null` if it was not.
    undone: Option<UnixMillis>,
}

/// A change with its state and its diff.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangeShown {
    change: ChangeView,
    /// `in place`, `undone`, `already reverted`, `changed since` or `not accessible`.
    state: &'static str,
    /// The first lines of the diff, scrubbed.
    diff: String,
}

/// The options of undoing a change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApplyRequest {
    /// Also restore files that somebody changed since.
    #[serde(default)]
    force: bool,
}

/// Files that were put back.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Applied {
    /// The call under which the undoing is recorded; it can be undone itself.
    call_id: CallId,
    /// Number of files.
    files: usize,
}

fn is_seen(visitor: &Visitor, of_all: Permission, change: &Change) -> bool {
    visitor.sees(of_all, &change.new.agent, change.new.user.as_ref())
}

fn shown(log: &UndoLog, change: &Change) -> ChangeView {
    let new = change.new.clone();
    ChangeView {
        change: change_kind(&new),
        shown: log.scrubber().text(&new.shown),
        id: new.id,
        tool: new.tool,
        agent_id: new.agent,
        user_id: new.user,
        session_key: new.session,
        call_id: new.call,
        run_id: new.run,
        at: new.at,
        undone: change.undone,
    }
}

/// The change of an id that the visitor sees: their own or, with the permission `of_all`, that of anyone.
async fn found(visit: &Visit, of_all: Permission, id: UndoId) -> Result<Change, ApiError> {
    let unknown = || ApiError::not_found(format!("there is no change `{id}`"));
    let found = visit.app().store().undo(&visit.visitor().tenant, id).await;
    let found = found.map_err(clawsmith::app::Error::from)?;
    found.filter(|change| is_seen(visit.visitor(), of_all, change)).ok_or_else(unknown)
}

pub(crate) async fn list(
    visit: Visit,
    Query(wanted): Query<ChangesQuery>,
) -> Result<Json<Changes>, ApiError> {
    let log = visit.app().undo().await?;
    let before = wanted.cursor.as_deref().map(cursor).transpose()?;
    let mut filter = UndoFilter { session: wanted.session_key, before, ..UndoFilter::default() };
    let limit = wanted.limit.unwrap_or(PAGE).clamp(1, PAGE);
    let is_wanted = |change: &Change| wanted.agent_id.as_ref().is_none_or(|agent| *agent == change.new.agent);
    let (mut changes, mut looked_at) = (Vec::new(), 0);
    let next = 'pages: loop {
        let found = log.changes(&filter, READ).await?;
        for change in &found {
            filter.before = Some((change.new.at, change.new.id));
            if is_seen(visit.visitor(), Permission::ReadTenantLedger, change) && is_wanted(change) {
                changes.push(shown(&log, change));
                if changes.len() == limit {
                    break 'pages filter.before;
                }
            }
        }
        looked_at += found.len();
        match (found.len() < READ, looked_at >= MOST_LOOKED_AT) {
            (true, _) => break None,
            (false, true) => break filter.before,
            (false, false) => {}
        }
    };
    Ok(Json(Changes { changes, next: next.map(|(at, id)| format!("{}:{id}", at.0)) }))
}

fn cursor(text: &str) -> Result<(UnixMillis, UndoId), ApiError> {
    let read =
        text.split_once(':').and_then(|(at, id)| Some((UnixMillis(at.parse().ok()?), id.parse().ok()?)));
    read.ok_or_else(|| ApiError::invalid("the cursor is not the `next` of a page"))
}

pub(crate) async fn show(visit: Visit, Path(id): Path<UndoId>) -> Result<Json<ChangeShown>, ApiError> {
    let log = visit.app().undo().await?;
    let change = found(&visit, Permission::ReadTenantLedger, id).await?;
    let state: ChangeState = log.state(&change, true).await;
    let diff = log.diff(&change.new, DIFF).await?;
    Ok(Json(ChangeShown { change: shown(&log, &change), state: state.name(), diff }))
}

pub(crate) async fn apply(
    visit: Visit,
    Path(id): Path<UndoId>,
    Body(asked): Body<ApplyRequest>,
) -> Result<Json<Applied>, ApiError> {
    let log = visit.app().undo().await?;
    let change = found(&visit, Permission::UndoForTenant, id).await?;
    match log.apply(vec![change], asked.force, &visit.visitor().signature()).await? {
        Undone::Done { call, restored } => Ok(Json(Applied { call_id: call, files: restored.len() })),
        Undone::Changed(steps) => {
            let files = steps.iter().filter_map(|step| step.changes.first());
            let files: Vec<String> = files.map(|change| log.scrubber().text(&change.new.shown)).collect();
            let what = "somebody changed these files since; nothing was undone";
            Err(ApiError::new(StatusCode::CONFLICT, "changed_since", what)
                .hint("look at them, and send `\"force\": true` to put them back all the same")
                .details(json!({ "files": files })))
        }
    }
}
