//! The statements that both dialects read.

use super::tables::Part;

/// The parts of the SQL in which the two dialects differ.
pub(crate) struct Words {
    /// A column in a select list.
    pub(crate) read: fn(&super::tables::Column) -> String,
    /// A column as rows are ordered by it.
    pub(crate) order: fn(&super::tables::Column) -> String,
    /// A value for a column.
    pub(crate) write: fn(usize, &super::tables::Column) -> String,
    /// Between the columns and the values of an insertion.
    pub(crate) values: &'static str,
}

/// Quotes a name.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Reads a table in the order of its key, from the start or after a key.
pub(crate) fn select(part: &Part, words: &Words, from_start: bool) -> String {
    let columns = list(part.columns.iter().map(words.read));
    let keys: Vec<_> = part.key.iter().filter_map(|at| part.columns.get(*at)).collect();
    let order = list(keys.iter().map(|column| (words.order)(column)));
    let after = if from_start {
        String::new()
    } else {
        let values = keys.iter().enumerate().map(|(at, column)| (words.write)(at + 1, column));
        format!(" WHERE ({order}) > ({})", list(values))
    };
    format!("SELECT {columns} FROM {}{after} ORDER BY {order}", quoted(&part.name))
}

/// Adds this many rows to a table.
pub(crate) fn insert(part: &Part, words: &Words, rows: usize) -> String {
    let columns = list(part.columns.iter().map(|column| quoted(&column.name)));
    let width = part.columns.len();
    let row = |row: usize| {
        let value = |(at, column)| (words.write)(row * width + at + 1, column);
        format!("({})", list(part.columns.iter().enumerate().map(value)))
    };
    let rows = list((0..rows).map(row));
    format!("INSERT INTO {} ({columns}) {} {rows}", quoted(&part.name), words.values)
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}
