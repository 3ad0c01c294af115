//! Rows and columns: fitted to the width of a terminal, or aligned with blanks where there is none.

use comfy_table::{ColumnConstraint, ContentArrangement, presets};

use super::visible;

/// Rows of the same length under a header.
pub(crate) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
    spare_last: bool,
}

/// A last column narrower than this says nothing.
const LEAST_LAST: usize = 30;
/// Blanks between columns.
const GAP: usize = 2;

/// One cell, and how it looks on a terminal.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    look: Look,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Plain,
    Good,
    Bad,
    Warning,
    Quiet,
    Strong,
}

impl Cell {
    pub(crate) fn new(text: impl ToString) -> Self {
        Self { text: text.to_string(), look: Look::Plain }
    }

    pub(crate) fn good(text: impl ToString) -> Self {
        Self { look: Look::Good, ..Self::new(text) }
    }

    pub(crate) fn bad(text: impl ToString) -> Self {
        Self { look: Look::Bad, ..Self::new(text) }
    }

    pub(crate) fn warning(text: impl ToString) -> Self {
        Self { look: Look::Warning, ..Self::new(text) }
    }

    pub(crate) fn quiet(text: impl ToString) -> Self {
        Self { look: Look::Quiet, ..Self::new(text) }
    }

    pub(crate) fn strong(text: impl ToString) -> Self {
        Self { look: Look::Strong, ..Self::new(text) }
    }

    fn styled(&self, colour: bool) -> comfy_table::Cell {
        use comfy_table::{Attribute, Color};
        let cell = comfy_table::Cell::new(visible(&self.text));
        if !colour {
            return cell;
        }
        match self.look {
            Look::Plain => cell,
            Look::Good => cell.fg(Color::Green),
            Look::Bad => cell.fg(Color::Red),
            Look::Warning => cell.fg(Color::Yellow),
            Look::Quiet => cell.add_attribute(Attribute::Dim),
            Look::Strong => cell.add_attribute(Attribute::Bold),
        }
    }
}

impl Table {
    pub(crate) fn new<const N: usize>(header: [&'static str; N]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new(), spare_last: false }
    }

    /// The last column is left out on a terminal that has no room for it.
    pub(crate) fn spare_last(mut self) -> Self {
        self.spare_last = true;
        self
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.rows.push(cells.to_vec());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// As wide as the terminal at most; long cells are wrapped, but never those of the first column.
    pub(super) fn for_terminal(&self, colour: bool) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        if colour {
            table.enforce_styling();
        }
        // Some terminals do not say how wide they are, and some say 0.
        let width = table.width().filter(|width| *width > 0).unwrap_or(80);
        table.set_width(width);
        let columns = self.columns(width.into());
        let header = self.header.iter().map(|text| Cell::quiet(text.to_uppercase()).styled(colour));
        table.set_header(header.take(columns).collect::<Vec<_>>());
        for row in &self.rows {
            table.add_row(row.iter().take(columns).map(|cell| cell.styled(colour)).collect::<Vec<_>>());
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        if let Some(first) = table.column_mut(0) {
            first.set_constraint(ColumnConstraint::ContentWidth);
        }
        let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
        lines.join("\n") + "\n"
    }

    /// How many columns are shown in this width.
    fn columns(&self, width: usize) -> usize {
        let all = self.header.len();
        let widest = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].text.chars().count());
            cells.chain([self.header[column].len()]).max().unwrap_or(0) + GAP
        };
        let others: usize = (0..all.saturating_sub(1)).map(widest).sum();
        if self.spare_last && others + LEAST_LAST > width { all - 1 } else { all }
    }

    /// Columns aligned with blanks, one line per row whatever its width.
    pub(super) fn plain(&self) -> String {
        let header = self.header.iter().map(|text| text.to_uppercase()).collect::<Vec<_>>();
        let rows = self.rows.iter().map(|row| row.iter().map(|cell| one_line(&cell.text)).collect());
        let lines: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        let mut text = String::new();
        for line in &lines {
            let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
        text
    }
}

/// A cell that cannot break the line it stands in.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
