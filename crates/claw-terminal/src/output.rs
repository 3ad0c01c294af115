//! Output for people and programs: tables and colour on a terminal, plain when piped, JSON on request.

use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::sync::OnceLock;

use anstyle::Style;
use serde::Serialize;

use crate::control_characters::{escaped, visible};
use crate::style;
use crate::table::{Column, Table};
use crate::wrap::prose;

/// The width of the terminal that will show the piped output.
static COLUMNS: OnceLock<usize> = OnceLock::new();

/// Fits the output to so many columns, even if it does not go to a terminal.
pub fn fit_to(columns: usize) {
    // The first one holds, and there is one.
    let _ = COLUMNS.set(columns);
}

/// Standard output, as this run wants it.
#[derive(Debug)]
pub struct Out {
    /// A writer that does not strip colours: a tool's output is piped byte for byte.
    writer: BufWriter<io::Stdout>,
    /// Programs read it: results are JSON.
    pub json: bool,
    terminal: bool,
    colour: bool,
}

impl Out {
    /// Opens standard output; `json` if programs read it.
    pub fn stdout(json: bool) -> Self {
        let stdout = io::stdout();
        let terminal = stdout.is_terminal();
        let colour = terminal && anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never;
        Self { writer: BufWriter::new(stdout), json, terminal, colour }
    }

    /// Writes one value as JSON and a line break.
    pub fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string_pretty(value)?;
        writeln!(self.writer, "{}", escaped(&text))
    }

    /// Writes a line.
    pub fn line(&mut self, text: impl std::fmt::Display) -> io::Result<()> {
        writeln!(self.writer, "{text}")
    }

    /// Tells the result of an operation: the value to programs, a sentence to people.
    pub fn told(&mut self, value: &impl Serialize, words: impl std::fmt::Display) -> io::Result<()> {
        match self.json {
            true => self.json(value),
            false => self.line(words),
        }
    }

    /// Lists values: all of them to programs, a table to people, and `empty` where there are none.
    pub fn list<T: Serialize>(
        &mut self,
        values: &[T],
        empty: &str,
        columns: &[Column<'_, T>],
    ) -> io::Result<()> {
        match self.json {
            true => self.json(&values),
            false if values.is_empty() => self.line(empty),
            false => self.table(&Table::of(values, columns)),
        }
    }

    /// Writes names and their values; those without a value are left out.
    pub fn fields<'a>(
        &mut self,
        fields: impl IntoIterator<Item = (&'a str, Option<String>)>,
    ) -> io::Result<()> {
        let given = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
        given.into_iter().try_for_each(|(name, value)| self.field(name, &value))
    }

    /// Writes a line for people, wrapped between words.
    pub fn prose(&mut self, text: impl std::fmt::Display) -> io::Result<()> {
        match self.columns() {
            Some(columns) => self.line(prose(&visible(&text.to_string()), columns)),
            None => self.line(text),
        }
    }

    /// Writes a name and its value, wrapped below itself.
    pub fn field(&mut self, name: &str, value: &str) -> io::Result<()> {
        const INDENT: usize = 11;
        let value = visible(value);
        let value = match self.columns() {
            Some(columns) => prose(&value, columns.saturating_sub(INDENT).max(1)),
            None => value.into_owned(),
        };
        let gap = if name.len() < INDENT { "" } else { " " };
        self.line(format_args!(
            "{name:<INDENT$}{gap}{}",
            value.replace('\n', &format!("\n{}", " ".repeat(INDENT)))
        ))
    }

    /// Writes a line in a style, if styles are shown.
    pub fn styled(&mut self, style: Style, text: &str) -> io::Result<()> {
        let style = if self.colour { style } else { Style::new() };
        self.line(format_args!("{style}{text}{style:#}"))
    }

    /// Writes the title of a part.
    pub fn heading(&mut self, text: &str) -> io::Result<()> {
        let text = self.columns().map_or(Cow::Borrowed(text), |columns| Cow::Owned(prose(text, columns)));
        self.styled(style::HEADING, &text)
    }

    /// Writes a table, fitted to the terminal.
    pub fn table(&mut self, table: &Table) -> io::Result<()> {
        let text = match self.columns() {
            Some(columns) => table.for_terminal(columns, self.colour),
            None => table.plain(),
        };
        self.writer.write_all(text.as_bytes())
    }

    /// Writes text from elsewhere, with a line break at its end.
    pub fn foreign(&mut self, text: &str) -> io::Result<()> {
        let text = if self.terminal { visible(text) } else { Cow::Borrowed(text) };
        self.writer.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            self.writer.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Writes a piece of streaming text from elsewhere, at once.
    pub fn piece(&mut self, text: &str) -> io::Result<()> {
        let text = if self.terminal { visible(text) } else { Cow::Borrowed(text) };
        self.writer.write_all(text.as_bytes())?;
        self.flush()
    }

    /// Returns the number of columns of the terminal; `None` if it is none.
    pub fn columns(&self) -> Option<usize> {
        match COLUMNS.get() {
            Some(columns) => Some(*columns),
            None => self.terminal.then(|| columns_of(&io::stdout())),
        }
    }

    /// Returns whether styles are shown.
    pub fn shows_styles(&self) -> bool {
        self.colour
    }

    /// Writes one value as JSON on a line of its own, shown at once.
    pub fn json_line(&mut self, value: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_string(value)?;
        writeln!(self.writer, "{}", escaped(&text))?;
        self.flush()
    }

    /// Writes a unified diff from elsewhere.
    pub fn diff(&mut self, diff: &str) -> io::Result<()> {
        diff.lines().try_for_each(|line| self.diff_line(line))
    }

    /// Writes a line of a unified diff from elsewhere.
    pub fn diff_line(&mut self, line: &str) -> io::Result<()> {
        let style = match line.as_bytes().first() {
            Some(b'+') => style::ADDED,
            Some(b'-') => style::TAKEN,
            Some(b'@' | b'(') => style::QUIET,
            _ => Style::new(),
        };
        let line = if self.terminal { visible(line) } else { Cow::Borrowed(line) };
        self.styled(style, &line)
    }

    /// Writes bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)
    }

    /// Shows everything written so far.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Returns a terminal's width; 80 if it reports none or 0.
fn columns_of(terminal: &impl std::os::fd::AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(terminal).map_or(0, |size| usize::from(size.ws_col));
    if size == 0 { 80 } else { size }
}

/// Returns the width of standard error; `None` if it is not a terminal.
pub fn told_columns() -> Option<usize> {
    let stderr = io::stderr();
    COLUMNS.get().copied().or_else(|| stderr.is_terminal().then(|| columns_of(&stderr)))
}

/// A text as standard error shows it.
fn fitted(text: &str) -> Cow<'_, str> {
    let text = visible(text);
    match told_columns() {
        Some(columns) => Cow::Owned(prose(&text, columns)),
        None => text,
    }
}

/// Writes a line on standard error, for people: progress, notes, questions.
pub fn tell(text: impl std::fmt::Display) {
    let text = text.to_string();
    // Nothing is left to be done about standard error failing.
    let _ = writeln!(anstream::stderr().lock(), "{}", fitted(&text));
}

/// Prints the output of a program or a tool in a style, keeping its lines.
pub fn tell_styled(style: Style, text: impl std::fmt::Display) {
    let text = text.to_string();
    // Nothing is left to be done about standard error failing.
    let _ = writeln!(anstream::stderr().lock(), "{style}{}{style:#}", visible(&text));
}

/// Writes a line on standard error that begins with the kind of problem.
pub fn complain(word: &str, text: impl std::fmt::Display) {
    let (style, text) = (style::BAD, format!("{word}: {text}"));
    let text = fitted(&text);
    let (word, rest) = text.split_at(word.len() + 1);
    // Nothing is left to be done about standard error failing.
    let _ = writeln!(anstream::stderr().lock(), "{style}{word}{style:#}{rest}");
}
