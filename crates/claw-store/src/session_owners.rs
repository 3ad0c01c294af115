//! Sessions and their owners: the SQL that both dialects share.

use claw_core::port::UnixMillis;
use claw_core::store::{Circle, Conversation, ConversationPage, MessagePage, Party, StoreError};
use claw_core::tool::PeerKind;
use claw_core::{JobId, SessionKey, TenantId};
use serde_json::Value;
use sqlx::{Database, Encode, QueryBuilder, Type};

use crate::row;

pub(crate) const ACCEPT: &str = "could not accept the message";
pub(crate) const READ: &str = "could not read sessions";
pub(crate) const CHANGE: &str = "could not change the session";

/// Stores a session whose first writer owns it; for anybody else nothing is stored, and no row comes back.
/// `$10` is the job as JSON.
macro_rules! keep {
    ($json:literal) => {
        concat!(
            "INSERT INTO conversations
                 (tenant, session, agent, user_id, channel, chat, peer, lane, started, last, job)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10",
            $json,
            ")
             ON CONFLICT (tenant, session) DO UPDATE SET
                 channel = excluded.channel, chat = excluded.chat, lane = excluded.lane, job = excluded.job,
                 last = CASE WHEN excluded.last > conversations.last THEN excluded.last
                             ELSE conversations.last END
             WHERE conversations.peer = excluded.peer AND conversations.agent = excluded.agent
               AND CASE excluded.peer
                   WHEN 'direct' THEN conversations.user_id IS NOT DISTINCT FROM excluded.user_id
                   ELSE conversations.channel = excluded.channel
                        AND conversations.chat IS NOT DISTINCT FROM excluded.chat END
             RETURNING session"
        )
    };
}
pub(crate) use keep;

/// Selects a session. The expression that reads its job differs by dialect.
macro_rules! columns {
    ($job:literal) => {
        concat!(
            "SELECT c.session, c.agent, c.user_id, c.channel, c.chat, c.peer, c.lane, ",
            $job,
            ", c.title, c.started, c.last,
             (SELECT coalesce(max(m.seq), 0) FROM messages AS m
              WHERE m.tenant = c.tenant AND m.session = c.session),
             (SELECT count(*) FROM jobs AS j WHERE j.tenant = c.tenant AND j.lane = c.lane
              AND j.state = 'pending' AND j.session = c.session),
             (SELECT count(*) FROM jobs AS j WHERE j.tenant = c.tenant AND j.session = c.session
              AND j.state IN ('leased', 'parked') AND j.session IS NOT NULL)
             FROM conversations AS c WHERE c.tenant = "
        )
    };
}
pub(crate) use columns;

/// Session, agent, user, channel, chat, peer, lane, job, title, started, last, messages, waiting, running.
pub(crate) type Row = (
    String,
    String,
    Option<String>,
    String,
    Option<String>,
    String,
    String,
    String,
    Option<String>,
    i64,
    i64,
    i64,
    i64,
    i64,
);

pub(crate) const RENAME: &str = "UPDATE conversations SET title = $3 WHERE tenant = $1 AND session = $2";
/// Raises the time of a session's last message. Binds tenant, session and time.
pub(crate) const RAISE_LAST: &str =
    "UPDATE conversations SET last = $3 WHERE tenant = $1 AND session = $2 AND last < $3";
/// Inserts a session under the new key, unless the key is taken. Binds tenant, session, new key and time.
pub(crate) const FORK: &str = "INSERT INTO conversations
         (tenant, session, agent, user_id, channel, chat, peer, lane, started, last, job, title)
     SELECT tenant, $3, agent, user_id, channel, chat, peer, lane, $4, $4, job, title
     FROM conversations WHERE tenant = $1 AND session = $2
       AND NOT EXISTS (SELECT 1 FROM messages WHERE tenant = $1 AND session = $3)
     ON CONFLICT (tenant, session) DO NOTHING";
/// Copies the messages. Binds tenant, session and new key, as the next one does.
macro_rules! fork_messages {
    ($id:literal) => {
        concat!(
            "INSERT INTO messages (tenant, session, seq, id, role, content, at, job)
             SELECT tenant, $3, seq, ",
            $id,
            ", role, content, at, job FROM messages WHERE tenant = $1 AND session = $2"
        )
    };
}
pub(crate) use fork_messages;
pub(crate) const FORK_SUMMARIES: &str = "INSERT INTO summaries (tenant, session, upto, text, at)
     SELECT tenant, $3, upto, text, at FROM summaries WHERE tenant = $1 AND session = $2";
/// Takes the mark of untrusted text along; binds tenant, session and new key.
pub(crate) const FORK_MARK: &str = "INSERT INTO untrusted_sessions (tenant, session, at)
     SELECT tenant, $3, at FROM untrusted_sessions WHERE tenant = $1 AND session = $2
     ON CONFLICT (tenant, session) DO NOTHING";
/// Binds tenant, session and time.
pub(crate) const MARK: &str = "INSERT INTO untrusted_sessions (tenant, session, at) VALUES ($1, $2, $3)
     ON CONFLICT (tenant, session) DO NOTHING";
/// Counts the marks of a session.
pub(crate) const MARKS: &str = "SELECT count(*) FROM untrusted_sessions WHERE tenant = $1 AND session = $2";
/// Returns 1 if the given job is over and the latest of its session besides the new one. Binds tenant, session, the given job and
/// the new one.
pub(crate) const IS_LATEST: &str = "SELECT count(*) FROM (
         SELECT id, state FROM jobs
         WHERE tenant = $1 AND session = $2 AND session IS NOT NULL AND id <> $4 ORDER BY position DESC LIMIT 1
     ) AS latest WHERE latest.id = $3 AND latest.state IN ('done', 'cancelled', 'dead')";
/// Counts the runs of a session that wait or go on.
pub(crate) const OPEN_RUNS: &str = "SELECT count(*) FROM jobs WHERE tenant = $1 AND session = $2
     AND state IN ('pending', 'leased', 'parked')";
/// The statements that each remove a part of a session.
pub(crate) const REMOVE: &[&str] = &[
    "DELETE FROM messages WHERE tenant = $1 AND session = $2",
    "DELETE FROM events WHERE tenant = $1 AND session = $2",
    "DELETE FROM feed WHERE tenant = $1 AND session = $2",
    "DELETE FROM summaries WHERE tenant = $1 AND session = $2",
    "DELETE FROM untrusted_sessions WHERE tenant = $1 AND session = $2",
    "DELETE FROM conversations WHERE tenant = $1 AND session = $2",
];

/// The new key of a session is not free.
pub(crate) fn taken(to: &SessionKey) -> StoreError {
    StoreError::Refused { what: CHANGE, why: format!("session `{to}` already exists") }
}

/// Returns the error for changing a session that has a run.
pub(crate) fn busy(session: &SessionKey) -> StoreError {
    let why =
        format!("a run of session `{session}` is queued or active; stop it first (`clawsmith runs list`)");
    StoreError::Refused { what: CHANGE, why }
}

/// Refuses names that would be ambiguous once they are stored.
pub(crate) fn check(party: &Party) -> Result<(), StoreError> {
    let refused = |why| Err(StoreError::Refused { what: ACCEPT, why });
    party.fault().map_or(Ok(()), refused)
}

/// Returns the person who owns a session; `None` for a group.
pub(crate) fn owner(party: &Party) -> Option<&str> {
    match party.peer {
        PeerKind::Direct => party.user.as_ref().map(|user| user.as_str()),
        PeerKind::Group => None,
    }
}

/// Returns the error for writing into another owner's session, without naming that owner.
/// The error for a message that was to follow a job that is not the latest any more.
pub(crate) fn went_on(session: &SessionKey, last: JobId) -> StoreError {
    let why = format!("job `{last}` is not the latest of session `{session}`, or is not over");
    StoreError::Refused { what: ACCEPT, why }
}

pub(crate) fn not_theirs(session: &SessionKey) -> StoreError {
    let why = format!("session `{session}` belongs to another user or agent; start your own");
    StoreError::Refused { what: ACCEPT, why }
}

pub(crate) fn peer(peer: PeerKind) -> &'static str {
    match peer {
        PeerKind::Direct => "direct",
        PeerKind::Group => "group",
    }
}

/// Adds the condition that a session is in the circle.
pub(crate) fn within<DB: Database>(asked: &mut QueryBuilder<DB>, circle: &Circle)
where
    for<'t> &'t str: Encode<'t, DB> + Type<DB>,
{
    match circle {
        Circle::User { agent, user } => {
            asked.push(" AND c.peer = 'direct' AND c.agent = ").push_bind(agent.as_str());
            asked.push(" AND c.user_id = ").push_bind(user.as_str());
        }
        Circle::Group { agent, channel, chat } => {
            asked.push(" AND c.peer = 'group' AND c.agent = ").push_bind(agent.as_str());
            asked.push(" AND c.channel = ").push_bind(channel.as_str());
            asked.push(" AND c.chat = ").push_bind(chat.as_str());
        }
        Circle::Session(session) => {
            asked.push(" AND c.session = ").push_bind(session.as_str());
        }
    }
}

/// Asks for a part of a circle's list.
pub(crate) fn list<DB: Database>(
    select: &'static str,
    tenant: &TenantId,
    circle: &Circle,
    page: &ConversationPage,
) -> QueryBuilder<DB>
where
    for<'t> &'t str: Encode<'t, DB> + Type<DB>,
    for<'t> i64: Encode<'t, DB> + Type<DB>,
{
    let mut asked = QueryBuilder::new(select);
    asked.push_bind(tenant.as_str());
    within(&mut asked, circle);
    if let Some(since) = page.since {
        asked.push(" AND c.last >= ").push_bind(since.0);
    }
    if let Some((last, session)) = &page.after {
        asked.push(" AND (c.last, c.session) < (").push_bind(last.0);
        asked.push(", ").push_bind(session.as_str()).push(")");
    }
    asked.push(" ORDER BY c.last DESC, c.session DESC LIMIT ").push_bind(row::number(page.limit));
    asked
}

/// Builds the query for one session of a circle.
pub(crate) fn one<DB: Database>(
    select: &'static str,
    tenant: &TenantId,
    circle: &Circle,
    session: &SessionKey,
) -> QueryBuilder<DB>
where
    for<'t> &'t str: Encode<'t, DB> + Type<DB>,
{
    let mut asked = QueryBuilder::new(select);
    asked.push_bind(tenant.as_str());
    within(&mut asked, circle);
    asked.push(" AND c.session = ").push_bind(session.as_str());
    asked
}

/// Builds the query for the last messages of a session of a circle, newest first.
pub(crate) fn said<DB: Database>(
    tenant: &TenantId,
    circle: &Circle,
    session: &SessionKey,
    MessagePage { before, limit }: MessagePage,
) -> QueryBuilder<DB>
where
    for<'t> &'t str: Encode<'t, DB> + Type<DB>,
    for<'t> i64: Encode<'t, DB> + Type<DB>,
{
    let select = "SELECT m.seq, m.id, m.role, m.content, m.at, m.job
                  FROM conversations AS c
                  JOIN messages AS m ON m.tenant = c.tenant AND m.session = c.session
                  WHERE c.tenant = ";
    let mut asked = one(select, tenant, circle, session);
    asked.push(" AND m.seq < ").push_bind(row::number(before));
    asked.push(" ORDER BY m.seq DESC LIMIT ").push_bind(row::number(limit));
    asked
}

/// Reads a session from its row.
pub(crate) fn conversation(row: &Row) -> Result<Conversation, StoreError> {
    let (session, agent, user, channel, chat, peer, lane, job, title, ..) = row;
    let (.., started, last, messages, waiting, running) = row;
    let party = Party {
        agent: row::word("a conversation's agent", agent)?,
        user: user.as_deref().map(|user| row::word("a conversation's user", user)).transpose()?,
        channel: channel.into(),
        chat: chat.as_ref().map(Into::into),
        peer: row::word("a conversation's peer", peer)?,
    };
    let order: Value = row::json("the order of a session's job", job)?;
    Ok(Conversation {
        session: row::word("a conversation's key", session)?,
        party,
        lane: lane.into(),
        order,
        title: title.clone(),
        started: UnixMillis(*started),
        last: UnixMillis(*last),
        messages: row::count(*messages)?,
        waiting: row::count(*waiting)?,
        running: *running > 0,
    })
}
