//! Sums of the cost of models: the SQL that both dialects share.

use claw_core::port::UnixMillis;
use claw_core::store::{NewUsage, StoreError, Tokens, Usage, UsageFilter, UsageLine};
use claw_core::{JobId, TenantId};
use sqlx::{Database, Encode, QueryBuilder, Type};

use crate::row;

pub(crate) const WRITE: &str = "could not record the usage";
pub(crate) const READ: &str = "could not read the usage";

const DAY: i64 = 24 * 60 * 60 * 1_000;

/// The summed columns. A sum can be wider than its column; [`NewUsage::MOST`] keeps it narrow enough.
macro_rules! sums {
    () => {
        "count(*), CAST(coalesce(sum(input), 0) AS BIGINT), CAST(coalesce(sum(output), 0) AS BIGINT),
         CAST(coalesce(sum(cache_read), 0) AS BIGINT), CAST(coalesce(sum(cache_write), 0) AS BIGINT),
         CAST(coalesce(sum(cost), 0) AS BIGINT)"
    };
}

/// The number of answers, their tokens of each kind, their cost.
pub(crate) type Sums = (i64, i64, i64, i64, i64, i64);
/// Day, provider and model, then the sums.
pub(crate) type Line = (i64, String, String, i64, i64, i64, i64, i64, i64);

/// Refuses impossible figures.
pub(crate) fn check(new: &NewUsage) -> Result<(), StoreError> {
    let refused = |why| Err(StoreError::Database { what: WRITE, why, transient: false });
    new.fault().map_or(Ok(()), refused)
}

/// Asks for [`Sums`]. `root` is the filter's root as the database keeps it.
pub(crate) fn sums<DB: Database, I>(
    tenant: &TenantId,
    filter: &UsageFilter,
    root: impl Fn(&JobId) -> I,
) -> QueryBuilder<DB>
where
    I: for<'t> Encode<'t, DB> + Type<DB>,
    for<'t> &'t str: Encode<'t, DB> + Type<DB>,
    for<'t> i64: Encode<'t, DB> + Type<DB>,
{
    filtered(concat!("SELECT ", sums!(), " FROM usage WHERE tenant = "), tenant, filter, root)
}

/// Asks for [`Line`]s. Both dialects divide towards zero; a day before 1970 begins before it.
pub(crate) fn lines<DB: Database, I>(
    tenant: &TenantId,
    filter: &UsageFilter,
    root: impl Fn(&JobId) -> I,
) -> QueryBuilder<DB>
where
    I: for<'t> Encode<'t, DB> + Type<DB>,
    for<'t> &'t str: Encode<'t, DB> + Type<DB>,
    for<'t> i64: Encode<'t, DB> + Type<DB>,
{
    let select = concat!(
        "SELECT at / 86400000 - CASE WHEN at % 86400000 < 0 THEN 1 ELSE 0 END AS day, provider, model, ",
        sums!(),
        " FROM usage WHERE tenant = "
    );
    let mut asked = filtered(select, tenant, filter, root);
    asked.push(" GROUP BY day, provider, model");
    asked
}

/// Reads the usage from its sums.
pub(crate) fn usage((answers, input, output, read, write, cost): Sums) -> Result<Usage, StoreError> {
    let tokens = tokens((input, output, read, write))?;
    Ok(Usage { answers: row::count(answers)?, tokens, cost })
}

/// Reads the tokens of each kind: input, output, read from the cache, written to it.
pub(crate) fn tokens((input, output, read, write): (i64, i64, i64, i64)) -> Result<Tokens, StoreError> {
    Ok(Tokens {
        input: row::count(input)?,
        output: row::count(output)?,
        cache_read: row::count(read)?,
        cache_write: row::count(write)?,
    })
}

/// Reads the usage lines and sorts them: each database sorts names its own way.
pub(crate) fn sorted(found: Vec<Line>) -> Result<Vec<UsageLine>, StoreError> {
    let line = |(day, provider, model, answers, input, output, read, write, cost): Line| {
        let day = UnixMillis(day.saturating_mul(DAY));
        let usage = usage((answers, input, output, read, write, cost))?;
        Ok(UsageLine { day, provider: provider.into(), model: model.into(), usage })
    };
    let mut lines = found.into_iter().map(line).collect::<Result<Vec<_>, StoreError>>()?;
    lines.sort_by(|a, b| (a.day, &a.provider, &a.model).cmp(&(b.day, &b.provider, &b.model)));
    Ok(lines)
}

fn filtered<DB: Database, I>(
    select: &str,
    tenant: &TenantId,
    filter: &UsageFilter,
    root: impl Fn(&JobId) -> I,
) -> QueryBuilder<DB>
where
    I: for<'t> Encode<'t, DB> + Type<DB>,
    for<'t> &'t str: Encode<'t, DB> + Type<DB>,
    for<'t> i64: Encode<'t, DB> + Type<DB>,
{
    let UsageFilter { session, agent, user, root: tree, from, to } = filter;
    let mut asked = QueryBuilder::new(select);
    asked.push_bind(tenant.as_str());
    if let Some(session) = session {
        asked.push(" AND session = ").push_bind(session.as_str());
    }
    if let Some(agent) = agent {
        asked.push(" AND agent = ").push_bind(agent.as_str());
    }
    if let Some(user) = user {
        asked.push(" AND user_id = ").push_bind(user.as_str());
    }
    if let Some(tree) = tree {
        asked.push(" AND run IN (SELECT id FROM jobs WHERE tenant = ").push_bind(tenant.as_str());
        asked.push(" AND root = ").push_bind(root(tree)).push(")");
    }
    if let Some(from) = from {
        asked.push(" AND at >= ").push_bind(from.0);
    }
    if let Some(to) = to {
        asked.push(" AND at < ").push_bind(to.0);
    }
    asked
}
