//! Rows and columns: fitted to the width of a terminal, or else aligned with blanks.

use anstyle::Style;

use crate::{style, visible, wrap};

/// A column of a table of values: its header, and the cell of a value.
pub type Column<'a, T> = (&'static str, &'a dyn Fn(&T) -> Cell);

/// Rows of the same length under a header.
#[derive(Debug)]
pub struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// The widest cell that is never wrapped.
const SHORT: usize = 24;
/// The widest cell without blanks that counts as a name and is never wrapped.
const NAME: usize = 60;
/// The least width of a last column; a narrower one goes below the others.
const LEAST_LAST: usize = 34;
/// The longest word that is kept whole; a longer one is broken.
const LONG_WORD: usize = 40;
/// The least width of a terminal; a smaller reported one is ignored.
const LEAST_WIDTH: usize = 40;
/// Blanks between columns.
const GAP: usize = 2;
/// The indentation of columns that have no room beside the others.
const INDENT: usize = 4;

/// The least and the most width of a column.
struct Need {
    least: usize,
    most: usize,
}

/// A column on a line, and its width there.
struct Place {
    column: usize,
    width: usize,
    most: usize,
}

/// A cell, and its style on a terminal.
#[derive(Debug, Clone)]
pub struct Cell {
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
    /// A plain cell.
    pub fn new(text: impl ToString) -> Self {
        Self { text: text.to_string(), look: Look::Plain }
    }

    /// A good state.
    pub fn good(text: impl ToString) -> Self {
        Self { look: Look::Good, ..Self::new(text) }
    }

    /// A bad state.
    pub fn bad(text: impl ToString) -> Self {
        Self { look: Look::Bad, ..Self::new(text) }
    }

    /// Returns `yes` in the style of a good state, or `no` in that of a bad one.
    pub fn yes(is: bool) -> Self {
        if is { Self::good("yes") } else { Self::bad("no") }
    }

    /// A state that needs attention.
    pub fn warning(text: impl ToString) -> Self {
        Self { look: Look::Warning, ..Self::new(text) }
    }

    /// A secondary text.
    pub fn quiet(text: impl ToString) -> Self {
        Self { look: Look::Quiet, ..Self::new(text) }
    }

    /// An emphasised text.
    pub fn strong(text: impl ToString) -> Self {
        Self { look: Look::Strong, ..Self::new(text) }
    }

    fn style(&self) -> Style {
        match self.look {
            Look::Plain => Style::new(),
            Look::Good => style::GOOD,
            Look::Bad => style::WRONG,
            Look::Warning => style::WARNING,
            Look::Quiet => style::QUIET,
            Look::Strong => style::STRONG,
        }
    }
}

impl Table {
    /// A table of values, a row each.
    pub fn of<T>(values: &[T], columns: &[Column<'_, T>]) -> Self {
        let row = |value: &T| columns.iter().map(|(_, cell)| cell(value)).collect();
        Self {
            header: columns.iter().map(|(name, _)| *name).collect(),
            rows: values.iter().map(row).collect(),
        }
    }

    /// An empty table.
    pub fn new<const N: usize>(header: [&'static str; N]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.rows.push(cells.to_vec());
    }

    /// Returns whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Formats the table within the terminal's width, completely: long texts are wrapped between words, and
    /// columns without room beside the others go below them, indented.
    pub fn for_terminal(&self, width: usize, colour: bool) -> String {
        let lines = self.layout(width.max(LEAST_WIDTH));
        let mut text = String::new();
        if self.header.iter().any(|name| !name.is_empty()) {
            let header: Vec<Cell> = self.header.iter().map(|name| Cell::quiet(name.to_uppercase())).collect();
            lines.iter().enumerate().for_each(|(at, line)| put(&mut text, at, line, &header, colour));
        }
        for row in &self.rows {
            lines.iter().enumerate().for_each(|(at, line)| put(&mut text, at, line, row, colour));
        }
        text
    }

    /// Distributes the columns over the lines of a row, with their widths.
    fn layout(&self, width: usize) -> Vec<Vec<Place>> {
        let needs =
            |squeezed| (0..self.header.len()).map(move |column| self.need(column, width - INDENT, squeezed));
        // A little narrower than good is better than a second line.
        let fits = needs(true).map(|need| need.least + GAP).sum::<usize>() <= width + GAP;
        let mut lines: Vec<Vec<Place>> = Vec::new();
        let mut left = 0;
        for (column, Need { least, most }) in needs(fits).enumerate() {
            match lines.last_mut() {
                Some(line) if GAP + least <= left => {
                    line.push(Place { column, width: least, most });
                    left -= GAP + least;
                }
                _ => {
                    left = width - least - if lines.is_empty() { 0 } else { INDENT };
                    lines.push(vec![Place { column, width: least, most }]);
                }
            }
        }
        for (at, line) in lines.iter_mut().enumerate() {
            let taken: usize = line.iter().map(|place| place.width + GAP).sum();
            let mut spare = (width + GAP).saturating_sub(taken + if at == 0 { 0 } else { INDENT });
            // Those that lack little first: what is left makes them whole.
            let mut lacking: Vec<&mut Place> = line.iter_mut().collect();
            lacking.sort_by_key(|place| place.most - place.width);
            for place in lacking {
                let more = spare.min(place.most - place.width);
                place.width += more;
                spare -= more;
            }
        }
        lines
    }

    /// Names and short texts are whole or the reader cannot use them; prose can be wrapped.
    fn need(&self, column: usize, room: usize, squeezed: bool) -> Need {
        let texts: Vec<_> = self.rows.iter().map(|row| visible(&row[column].text)).collect();
        let lines = texts.iter().flat_map(|text| text.lines()).chain([self.header[column]]);
        let most = lines.map(wrap::width).max().unwrap_or(0);
        let is_prose = most > SHORT && (most > NAME || texts.iter().any(|text| text.trim().contains(' ')));
        let is_last = column + 1 == self.header.len();
        let words = texts.iter().flat_map(|text| text.split_whitespace());
        let word = words.map(wrap::width).max().unwrap_or(0);
        let least = match is_prose {
            false => most,
            true if is_last => most.min(LEAST_LAST),
            true if squeezed => most.min(SHORT),
            true => most.min(word.clamp(LEAST_LAST, LONG_WORD)),
        };
        Need { least: least.min(room), most }
    }

    /// Formats columns aligned with blanks, one line per row of any width.
    pub fn plain(&self) -> String {
        let header = self.header.iter().map(|text| text.to_uppercase()).collect::<Vec<_>>();
        let rows =
            self.rows.iter().map(|row| row.iter().map(|cell| one_line(&visible(&cell.text))).collect());
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

/// Writes the cells of a row that belong to one of its lines; nothing if all of them are empty.
fn put(text: &mut String, at: usize, line: &[Place], row: &[Cell], colour: bool) {
    let cells: Vec<_> = line.iter().map(|place| (place, &row[place.column])).collect();
    if at > 0 && cells.iter().all(|(_, cell)| cell.text.is_empty()) {
        return;
    }
    let shown: Vec<Vec<String>> =
        cells.iter().map(|(place, cell)| wrap::cell(&visible(&cell.text), place.width.max(1))).collect();
    for height in 0..shown.iter().map(Vec::len).max().unwrap_or(0) {
        // How many blanks come before the next that is shown.
        let mut blanks = if at == 0 { 0 } else { INDENT };
        for ((place, cell), rows) in cells.iter().zip(&shown) {
            let piece = rows.get(height).map(String::as_str).unwrap_or_default().trim_end();
            let wide = wrap::width(piece);
            if !piece.is_empty() {
                let style = if colour { cell.style() } else { Style::new() };
                text.push_str(&" ".repeat(std::mem::take(&mut blanks)));
                text.push_str(&format!("{style}{piece}{style:#}"));
            }
            blanks += place.width.saturating_sub(wide) + GAP;
        }
        text.push('\n');
    }
}

/// Replaces control characters, so that a cell cannot break its line.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests;
