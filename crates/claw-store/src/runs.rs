//! Runs: the parts that both dialects share.

use claw_core::port::{Owner, UnixMillis};
use claw_core::store::{
    Announce, Cancel, CancelRequest, Cancelled, JobFilter, JobState, Lineage, NewMessage, Role, RunEvent,
    SessionEventBody, StoreError,
};
use claw_core::{JobId, MessageId, SessionKey, TenantId};
use sqlx::{Database, Encode, QueryBuilder, Type};

use crate::row;

pub(crate) const CANCEL: &str = "could not cancel the run";
pub(crate) const PARK: &str = "could not park the run";
pub(crate) const ANNOUNCE: &str = "could not notify the parent run";

/// Builds the query for jobs of a tenant, the last accepted first. `id` converts an id to the database's
/// type.
pub(crate) fn list<DB: Database, I>(
    select: &str,
    tenant: &TenantId,
    filter: &JobFilter,
    id: impl Fn(&JobId) -> I,
) -> QueryBuilder<DB>
where
    I: for<'t> Encode<'t, DB> + Type<DB>,
    for<'t> &'t str: Encode<'t, DB> + Type<DB>,
    for<'t> i64: Encode<'t, DB> + Type<DB>,
{
    let JobFilter { session, root, states, after, limit } = filter;
    let mut asked = QueryBuilder::new(select);
    asked.push(" FROM jobs WHERE tenant = ").push_bind(tenant.as_str());
    if let Some(session) = session {
        asked.push(" AND session = ").push_bind(session.as_str());
    }
    if let Some(root) = root {
        asked.push(" AND root = ").push_bind(id(root));
    }
    if let Some(first) = states.first() {
        asked.push(" AND state IN (").push_bind(first.name());
        for state in &states[1..] {
            asked.push(", ").push_bind(state.name());
        }
        asked.push(")");
    }
    if let Some(after) = after {
        asked.push(" AND position < (SELECT last.position FROM jobs AS last WHERE last.tenant = ");
        asked.push_bind(tenant.as_str()).push(" AND last.id = ").push_bind(id(after)).push(")");
    }
    asked.push(" ORDER BY position DESC LIMIT ").push_bind(row::number(*limit));
    asked
}

/// The lineage of a job from its columns; `None` for a root.
pub(crate) fn lineage(parent: Option<JobId>, root: JobId, depth: u16) -> Option<Lineage> {
    parent.map(|parent| Lineage { parent, root, depth })
}

/// The cancel request of a job from its columns.
pub(crate) fn cancel_request(
    at: Option<i64>,
    by: Option<String>,
) -> Result<Option<CancelRequest>, StoreError> {
    match (at, by) {
        (None, _) => Ok(None),
        (Some(_), None) => Err(row::damaged("a cancel request", "it does not name who made it")),
        (Some(at), Some(by)) => Ok(Some(CancelRequest { at: UnixMillis(at), by })),
    }
}

/// A job of a tree that is to be cancelled.
pub(crate) struct Member {
    pub(crate) id: JobId,
    pub(crate) state: JobState,
    pub(crate) session: Option<SessionKey>,
}

/// Groups the jobs of a tree by the effect of a cancel on each.
pub(crate) fn cancelled(tree: &[Member]) -> Cancelled {
    let mut cancelled = Cancelled::default();
    for Member { id, state, .. } in tree {
        match state {
            JobState::Pending | JobState::Parked => cancelled.ended.push(*id),
            JobState::Leased => cancelled.told.push(*id),
            JobState::Done | JobState::Cancelled | JobState::Dead => cancelled.over.push(*id),
        }
    }
    cancelled
}

/// Returns the jobs of a tree that end at once, each with its session, ordered by session: every writer to
/// several sessions uses this order.
pub(crate) fn endings(tree: &[Member]) -> Vec<(JobId, &SessionKey)> {
    let ends = tree.iter().filter(|member| matches!(member.state, JobState::Pending | JobState::Parked));
    let mut endings: Vec<_> = ends.filter_map(|member| Some((member.id, member.session.as_ref()?))).collect();
    endings.sort_by_key(|(_, session)| *session);
    endings
}

/// Returns the message and the event that tell a session of its cancelled run.
pub(crate) fn ending(
    tenant: &TenantId,
    run: JobId,
    session: &SessionKey,
    cancel: &Cancel,
) -> (NewMessage, SessionEventBody) {
    let note = NewMessage {
        id: MessageId::new(),
        tenant: tenant.clone(),
        session: session.clone(),
        role: Role::System,
        content: cancel.note.clone(),
        at: cancel.at,
    };
    (note, SessionEventBody::Run { run, state: RunEvent::Cancelled { by: cancel.by.clone() } })
}

/// The sessions to ring for, each once.
pub(crate) fn sessions<'m>(messages: impl IntoIterator<Item = &'m NewMessage>) -> Vec<Owner> {
    let mut owners: Vec<Owner> = Vec::new();
    for NewMessage { tenant, session, .. } in messages {
        let owner = Owner { tenant: tenant.clone(), session: session.clone() };
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }
    owners
}

/// Returns the sessions of these messages with the latest time in each.
pub(crate) fn last_times(messages: &[NewMessage]) -> Vec<(Owner, UnixMillis)> {
    let latest = |owner: &Owner| {
        let of_owner = |one: &&NewMessage| one.tenant == owner.tenant && one.session == owner.session;
        messages.iter().filter(of_owner).map(|one| one.at).max_by_key(|at| at.0)
    };
    sessions(messages).into_iter().filter_map(|owner| latest(&owner).map(|at| (owner, at))).collect()
}

/// Refuses an announcement that crosses tenants.
pub(crate) fn check_tenant(child: &str, announce: &Announce) -> Result<(), StoreError> {
    let Announce { message, job, .. } = announce;
    if message.tenant.as_str() == child && job.tenant.as_str() == child {
        return Ok(());
    }
    let why = format!(
        "the message or its job belongs to another tenant than the run (`{child}`); announce within the tenant"
    );
    Err(StoreError::Refused { what: ANNOUNCE, why })
}

/// Refuses an announcement that is not for the parent's session.
pub(crate) fn check_session(parent: Option<&str>, announce: &Announce) -> Result<(), StoreError> {
    let Announce { parent: id, message, .. } = announce;
    if parent == Some(message.session.as_str()) {
        return Ok(());
    }
    let why =
        format!("run `{id}` does not belong to session `{}`; announce in its own session", message.session);
    Err(StoreError::Refused { what: ANNOUNCE, why })
}
