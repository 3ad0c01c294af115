//! Decides which tables are copied, by which key, and which are derived from the others.
//!
//! Tables, columns and keys are read from the two databases. A table that only one of them has must be listed
//! in [`DERIVED`]; a column that only one of them has, or whose types differ, is an error. So a new table
//! needs no change here, or causes an error that says so.

use std::collections::BTreeMap;

use claw_core::store::StoreError;

use super::refused;
use super::value::Value;

/// Tables about the origin of a database, which are not copied.
const OWN: [&str; 2] = ["_sqlx_migrations", "copy_progress"];

/// Conditions for the rows that opening a store creates, by table; a store with only these is empty.
const MADE_BY_OPENING: [(&str, &str); 2] = [
    ("installation", "TRUE"),
    ("tenants", "tenant = 'main' AND name = 'main' AND created = 0 AND NOT disabled AND policy = 'null'"),
];

/// Returns the SQL condition, for both databases, that selects the rows of a table not created by opening a
/// store.
pub(crate) fn put_there(table: &str) -> String {
    let made = MADE_BY_OPENING.iter().find(|(name, _)| *name == table);
    made.map_or_else(|| "TRUE".to_owned(), |(_, rows)| format!("NOT ({rows})"))
}

/// A table that is not copied, since it is derived from others.
pub(crate) struct Derived {
    pub(crate) name: &'static str,
    /// True if it is derived anew although both databases have it.
    always: bool,
    /// The statement that causes it to be filled, in each dialect; `None` if triggers or other derived tables
    /// fill it.
    pub(crate) sqlite: Option<&'static str>,
    pub(crate) postgres: Option<&'static str>,
}

/// The tables that are not copied, and how they are filled.
const DERIVED: &[Derived] = &[
    // PostgreSQL counts a conversation's messages and events; SQLite looks at the last of each.
    Derived { name: "sessions", always: false, sqlite: None, postgres: Some(COUNT_SESSIONS) },
    // Each store numbers the events of all sessions by itself.
    Derived { name: "feed", always: true, sqlite: Some(NUMBER_EVENTS), postgres: Some(NUMBER_EVENTS) },
    // A process hides the secrets of the tenants that have a mark.
    Derived { name: "sealed_marks", always: true, sqlite: Some(MARK_TENANTS), postgres: Some(MARK_TENANTS) },
    // Words are kept in ways that have nothing in common, so every document waits to be indexed again.
    Derived {
        name: "passages",
        always: true,
        sqlite: Some("UPDATE documents SET mark = id WHERE text IS NOT NULL AND shelf = 'memory'"),
        postgres: Some(
            "UPDATE documents SET mark = nextval('document_marks') WHERE text IS NOT NULL AND shelf = 'memory'",
        ),
    },
    // Vectors are carried by the hash of their text (`embeddings`); passages get them back without a provider.
    Derived { name: "passage_vectors", always: true, sqlite: None, postgres: None },
    // Only where pgvector is there; filled with those.
    Derived { name: "passage_embeddings", always: true, sqlite: None, postgres: None },
    Derived { name: "passage_words", always: true, sqlite: None, postgres: None },
];

/// Columns that hold the progress of a derived table; they start again with it.
const BEGIN_ANEW: [(&str, &str); 6] = [
    ("documents", "mark"),
    ("documents", "embedded"),
    ("documents", "embed_after"),
    ("documents", "embed_tries"),
    ("documents", "embed_error"),
    ("document_owners", "passages"),
];

const COUNT_SESSIONS: &str = "INSERT INTO sessions (tenant, session, started, messages, events)
    SELECT tenant, session, coalesce(event.at, message.at), coalesce(said.last, 0), coalesce(told.last, 0)
    FROM (SELECT tenant, session, max(seq) AS last FROM messages GROUP BY tenant, session) AS said
    FULL JOIN (SELECT tenant, session, max(seq) AS last FROM events GROUP BY tenant, session) AS told
        USING (tenant, session)
    LEFT JOIN (SELECT DISTINCT ON (tenant, session) tenant, session, at
        FROM messages ORDER BY tenant, session, seq) AS message USING (tenant, session)
    LEFT JOIN (SELECT DISTINCT ON (tenant, session) tenant, session, at
        FROM events ORDER BY tenant, session, seq) AS event USING (tenant, session)";

const NUMBER_EVENTS: &str = "INSERT INTO feed (tenant, session, seq)
    SELECT tenant, session, seq FROM events ORDER BY at, tenant, session, seq";

const MARK_TENANTS: &str = "INSERT INTO sealed_marks (tenant, mark)
    SELECT tenant, row_number() OVER (ORDER BY tenant)
    FROM (SELECT tenant FROM secrets UNION SELECT tenant FROM programs UNION SELECT tenant FROM custom_tools) AS sealed";

/// The type of a column in a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Integer,
    Boolean,
    Real,
    Text,
    Json,
    Blob,
    Uuid,
}

impl Kind {
    /// Returns the class of types that both databases share.
    fn class(self) -> &'static str {
        match self {
            Self::Integer | Self::Boolean => "a number",
            Self::Real => "a fraction",
            Self::Text | Self::Json => "text",
            Self::Blob | Self::Uuid => "bytes",
        }
    }
}

/// A column in one database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// A table in one database. Generated columns are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) name: String,
    pub(crate) columns: Vec<Column>,
    /// The unique, never null sets of columns; the best first.
    pub(crate) keys: Vec<Vec<String>>,
    /// The tables whose rows must exist first.
    pub(crate) references: Vec<String>,
}

/// A table on one of the two sides. The columns have the same order on both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) columns: Vec<Column>,
    /// The indexes of the columns by which rows are ordered, in this order.
    pub(crate) key: Vec<usize>,
}

impl Part {
    pub(crate) fn key_of(&self, row: &[Value]) -> Vec<Value> {
        self.key.iter().filter_map(|at| row.get(*at)).cloned().collect()
    }
}

/// A table on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) source: Part,
    pub(crate) target: Part,
}

/// A table, and the number of rows that the source had when the copy began.
pub(crate) struct CountedTable<'a> {
    pub(crate) table: &'a Table,
    pub(crate) of: u64,
}

/// The plan of a copy.
pub(crate) struct Plan {
    /// The tables, each after those it references.
    pub(crate) tables: Vec<Table>,
    /// The tables of the target that are derived from these.
    pub(crate) derived: Vec<&'static Derived>,
}

/// Compares the tables of both sides.
pub(crate) fn plan(source: Vec<Shape>, target: Vec<Shape>) -> Result<Plan, StoreError> {
    let by_name = |shapes: Vec<Shape>| {
        let theirs = shapes.into_iter().filter(|shape| !OWN.contains(&shape.name.as_str()));
        theirs.map(|shape| (shape.name.clone(), shape)).collect::<BTreeMap<_, _>>()
    };
    let (source, mut target) = (by_name(source), by_name(target));
    let (mut tables, mut made) = (Vec::new(), Vec::new());
    for (name, source) in source {
        let anew = DERIVED.iter().find(|derived| derived.name == name && derived.always);
        match (target.remove(&name), anew) {
            (Some(_), Some(derived)) => made.push(derived),
            (Some(target), None) => {
                tables.push((pair(&source, &target)?, [source.references, target.references]));
            }
            (None, _) => {
                derived(&name)?;
            }
        }
    }
    for name in target.keys() {
        made.push(derived(name)?);
    }
    Ok(Plan { tables: ordered(tables)?, derived: made })
}

fn derived(name: &str) -> Result<&'static Derived, StoreError> {
    DERIVED.iter().find(|derived| derived.name == name).ok_or_else(|| {
        refused(format!(
            "the table `{name}` exists in only one of the two databases, and it is unknown how to rebuild it"
        ))
    })
}

fn pair(source: &Shape, target: &Shape) -> Result<Table, StoreError> {
    let name = &source.name;
    let is_kept = |column: &&Column| !BEGIN_ANEW.contains(&(name.as_str(), column.name.as_str()));
    let source_columns: Vec<Column> = source.columns.iter().filter(is_kept).cloned().collect();
    let mut columns = Vec::with_capacity(source_columns.len());
    for column in &source_columns {
        let Some(other) = target.columns.iter().find(|other| other.name == column.name) else {
            return Err(refused(format!("the target has no column `{}` in `{name}`", column.name)));
        };
        if other.kind.class() != column.kind.class() {
            let (here, there, column) = (column.kind.class(), other.kind.class(), &column.name);
            return Err(refused(format!("`{column}` in `{name}` is {here} here and {there} there")));
        }
        columns.push(other.clone());
    }
    if let Some(more) = target.columns.iter().filter(is_kept).find(|column| !columns.contains(column)) {
        return Err(refused(format!("the source has no column `{}` in `{name}`", more.name)));
    }
    let same = |one: &[String], other: &[String]| {
        one.len() == other.len() && one.iter().all(|column| other.contains(column))
    };
    let key = target.keys.iter().find(|key| source.keys.iter().any(|other| same(key, other)));
    let key = key.ok_or_else(|| {
        refused(format!("`{name}` has no key that is in both, never null and different in every row"))
    })?;
    let key: Vec<usize> =
        key.iter().filter_map(|part| columns.iter().position(|column| column.name == *part)).collect();
    let name = name.clone();
    Ok(Table {
        source: Part { name: name.clone(), columns: source_columns, key: key.clone() },
        target: Part { name, columns, key },
    })
}

/// Orders tables after those they reference.
fn ordered(mut left: Vec<(Table, [Vec<String>; 2])>) -> Result<Vec<Table>, StoreError> {
    let mut tables: Vec<Table> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let waits = |at: usize| {
            let (table, references) = &left[at];
            let others = left.iter().map(|(other, _)| &other.source.name);
            let mut others = others.filter(|other| **other != table.source.name);
            others.any(|other| references.iter().any(|names| names.contains(other)))
        };
        let Some(free) = (0..left.len()).find(|at| !waits(*at)) else {
            let names: Vec<_> = left.iter().map(|(table, _)| table.source.name.as_str()).collect();
            return Err(refused(format!("tables refer to each other in a circle: {}", names.join(", "))));
        };
        tables.push(left.remove(free).0);
    }
    Ok(tables)
}

#[cfg(test)]
mod tests;
