//! Verifies row by row that the target has the same rows as the source, and no others.

use claw_core::store::StoreError;
use futures_util::TryStreamExt as _;

use super::side::{Source, Target};
use super::tables::CountedTable;
use super::value::{Value, show};
use super::{replace_nul, within};
use crate::progress::{Progress, Tell};
use crate::row;

/// The number of rows compared between two progress reports.
const STEP: u64 = 1_000;

/// Compares a table on both sides; returns its number of rows.
pub(crate) async fn table(
    source: &mut dyn Source,
    target: &mut dyn Target,
    CountedTable { table, of }: CountedTable<'_>,
    tell: Tell<'_>,
) -> Result<u64, StoreError> {
    let (name, loses_nul) = (table.source.name.as_str(), target.loses_nul());
    let mut theirs = source.rows(&table.source, None);
    let mut ours = target.rows(&table.target, None);
    let mut rows = 0;
    loop {
        let pair = (theirs.try_next().await, ours.try_next().await);
        let (mut theirs, ours) = match pair {
            (Ok(theirs), Ok(ours)) => (theirs, ours),
            (Err(error), _) | (_, Err(error)) => return Err(within(name, error)),
        };
        if let Some(row) = theirs.as_mut().filter(|_| loses_nul) {
            replace_nul(table, row)?;
        }
        match (theirs, ours) {
            (None, None) => {
                tell(Progress::Compared { table: name, rows, of });
                return Ok(rows);
            }
            (theirs, ours) if theirs == ours => rows += 1,
            (Some(row), None) => return Err(differs(name, "is missing", &table.source.key_of(&row))),
            (None, Some(row)) => return Err(differs(name, "is too many", &table.target.key_of(&row))),
            (Some(theirs), Some(ours)) => {
                let (key, other) = (table.source.key_of(&theirs), table.target.key_of(&ours));
                let what =
                    if key == other { "differs from the source" } else { "is in the place of another row" };
                return Err(differs(name, what, &other));
            }
        }
        if rows % STEP == 0 {
            tell(Progress::Compared { table: name, rows, of });
        }
    }
}

fn differs(table: &str, what: &str, key: &[Value]) -> StoreError {
    let why = format!(
        "the row ({}) of `{table}` {what}: one of the two was changed meanwhile; start over with `--restart`",
        show(key)
    );
    row::damaged("the copy", why)
}
