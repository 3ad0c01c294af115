//! The ledger, independent of its database: its hash [`chain`], and the query for a page, which both dialects share.

pub mod chain;

use claw_core::TenantId;
use claw_core::store::{Entry, EntryPage, EntryUser, StoreError};
use sqlx::{Database, Encode, QueryBuilder, Type};

use crate::row;

/// Builds the query for a page: position and line, the latest first.
pub(crate) fn page<DB: Database>(tenant: &TenantId, page: &EntryPage) -> QueryBuilder<DB>
where
    for<'t> &'t str: Encode<'t, DB> + Type<DB>,
    for<'t> i64: Encode<'t, DB> + Type<DB>,
{
    let EntryPage { agents, user, session, tool, before, limit } = page;
    let mut asked = QueryBuilder::new("SELECT position, line FROM ledger WHERE tenant = ");
    asked.push_bind(tenant.as_str());
    if let Some(before) = before {
        asked.push(" AND position < ").push_bind(row::number(*before));
    }
    match agents.as_deref() {
        None => {}
        Some([]) => {
            asked.push(" AND 1 = 0");
        }
        Some([first, rest @ ..]) => {
            asked.push(" AND agent IN (").push_bind(first.as_str());
            for agent in rest {
                asked.push(", ").push_bind(agent.as_str());
            }
            asked.push(")");
        }
    }
    match user {
        EntryUser::Anyone => {}
        EntryUser::Nobody => {
            asked.push(" AND user_id IS NULL");
        }
        EntryUser::User(user) => {
            asked.push(" AND user_id = ").push_bind(user.as_str());
        }
    }
    if let Some(session) = session {
        asked.push(" AND session = ").push_bind(session.as_str());
    }
    if let Some(tool) = tool {
        asked.push(" AND tool = ").push_bind(tool.as_str());
    }
    asked.push(" ORDER BY position DESC LIMIT ").push_bind(row::number(*limit));
    asked
}

/// Converts the rows of a page.
pub(crate) fn entries(rows: Vec<(i64, String)>) -> Result<Vec<(u64, Entry)>, StoreError> {
    let entry = |(position, line): (i64, String)| {
        Ok((row::count(position)?, row::json("an entry of the ledger", &line)?))
    };
    rows.into_iter().map(entry).collect()
}
