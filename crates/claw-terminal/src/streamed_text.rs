//! Text on a terminal as it streams, with lines broken between words. A complete line is written again,
//! styled.

use std::io;

use crate::markdown::{Markdown, table};
use crate::{Out, indent, prose, visible, width};

/// The most rows of a line that are rewritten: more may have left the screen.
const MOST_ROWS: usize = 20;

/// The answer that is being printed.
#[derive(Debug, Default)]
pub struct Speech {
    markdown: Markdown,
    /// The incomplete line, including the pending word.
    line: String,
    /// The pending word, which may continue and may have to go to the next row; with the blanks before it.
    word: String,
    /// The number of columns used in the row.
    taken: usize,
    /// The number of rows of the line above this one.
    rows: usize,
    /// The lines of an unfinished table, already printed above.
    table: Vec<String>,
}

impl Speech {
    /// Prints more text.
    pub fn say(&mut self, out: &mut Out, text: &str) -> io::Result<()> {
        let Some(columns) = out.columns() else { return out.piece(text) };
        // The last column stays free: terminals differ in where the next character goes.
        let columns = columns.saturating_sub(1).max(1);
        for c in visible(text).chars() {
            if self.line.is_empty() && c != '|' {
                self.end_table(out, columns)?;
            }
            if c == '\n' {
                self.flush(out, columns)?;
                self.end(out, columns)?;
                continue;
            }
            if c == ' ' && !self.word.trim().is_empty() {
                self.flush(out, columns)?;
            }
            self.line.push(c);
            self.word.push(c);
        }
        out.flush()
    }

    /// Writes the pending word and returns the column of the cursor; `None` if the terminal itself has wrapped the row.
    pub fn column(&mut self, out: &mut Out) -> io::Result<Option<usize>> {
        let Some(columns) = out.columns() else { return Ok(Some(0)) };
        let columns = columns.saturating_sub(1).max(1);
        if !self.word.is_empty() {
            self.flush(out, columns)?;
            out.flush()?;
        }
        Ok(Some(self.taken).filter(|taken| *taken <= columns))
    }

    /// Writes the pending word, on the next row if it does not fit on this one.
    fn flush(&mut self, out: &mut Out, columns: usize) -> io::Result<()> {
        let word = std::mem::take(&mut self.word);
        let (wide, text) = (width(&word), word.trim_start());
        let breaks = self.taken + wide > columns && !text.is_empty() && !self.stays_as_it_is();
        let indent = indent(&self.line);
        if !breaks || self.taken <= indent {
            self.taken += wide;
            return out.raw(word.as_bytes());
        }
        self.taken = indent + width(text);
        self.rows += 1;
        out.raw(format!("\n{}{text}", " ".repeat(indent)).as_bytes())
    }

    /// Code and tables are not broken.
    fn stays_as_it_is(&self) -> bool {
        let is_fence = self.line.trim_start().starts_with("```");
        is_fence
            || self.markdown.is_code()
            || self.line.trim_start().starts_with('|')
            || self.line.contains('\t')
    }

    /// Prints the rest: the answer is complete.
    pub fn finish(&mut self, out: &mut Out) -> io::Result<()> {
        let Some(columns) = out.columns() else { return Ok(()) };
        self.end_table(out, columns.saturating_sub(1).max(1))?;
        out.flush()
    }

    /// Writes a table that is whole again, with its columns aligned.
    fn end_table(&mut self, out: &mut Out, columns: usize) -> io::Result<()> {
        let lines = std::mem::take(&mut self.table);
        let is_over = lines.len() > MOST_ROWS || lines.iter().any(|line| width(line) > columns);
        if lines.is_empty() || is_over || !out.shows_styles() {
            return Ok(());
        }
        let Some(table) = table(&lines, columns) else { return Ok(()) };
        out.raw(format!("\r\x1b[{}A\x1b[J{table}\n", lines.len()).as_bytes())
    }

    /// The line is whole.
    fn end(&mut self, out: &mut Out, columns: usize) -> io::Result<()> {
        let as_it_is = self.stays_as_it_is();
        let (line, rows) = (std::mem::take(&mut self.line), std::mem::take(&mut self.rows));
        self.taken = 0;
        if line.starts_with('|') && !self.markdown.is_code() {
            self.table.push(line);
            return out.raw(b"\n");
        }
        let dressed = self.markdown.line(&line).filter(|_| out.shows_styles() && rows <= MOST_ROWS);
        // Lines that the terminal itself has wrapped cannot be overwritten.
        let over =
            if as_it_is { width(&line) > columns } else { line.split(' ').any(|word| width(word) > columns) };
        let Some(dressed) = dressed.filter(|_| !over) else { return out.raw(b"\n") };
        let dressed = if as_it_is { dressed } else { prose(&dressed, columns) };
        let up = if rows > 0 { format!("\x1b[{rows}A") } else { String::new() };
        out.raw(format!("\r{up}\x1b[J{dressed}\n").as_bytes())
    }
}
