//! Parses text into a tree, by the grammar of bash.
//!
//! Syntax that this grammar does not know is an error, and then a person is asked: a reading that differs
//! from bash's would be worse than none. Recursion is counted, so that no input exhausts the stack.

mod grammar;
mod substitution;
mod word;

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use super::syntax::{List, Word};
use super::verdict::Span;

/// Deepest nesting of commands.
pub(super) const DEEPEST: usize = 40;

/// The reason why a text is not a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParseError {
    pub(super) what: &'static str,
    pub(super) at: usize,
}

pub(super) type Parsed<T> = Result<T, ParseError>;

/// Parses a whole script that is nested `depth` deep in others.
pub(super) fn parse(text: &str, depth: usize) -> Parsed<List> {
    // Every step costs one; only input made to be read again and again runs out.
    let fuel = Cell::new(10_000 + 4 * text.len());
    let mut parser = Parser { text, at: 0, depth, fuel: &fuel, pending: Vec::new(), shift: None };
    if let Some(at) = broken_operator(text) {
        parser.at = at;
        return parser.error("an operator is split over two lines");
    }
    let list = parser.list(&[])?;
    if parser.at < text.len() {
        return parser.error("this closes something that was not opened");
    }
    match parser.pending.is_empty() {
        true => Ok(list),
        false => parser.error("a here-document has no body"),
    }
}

/// Position at which an operator may be split over two lines: `(\` and `(` on the next line open an
/// expression.
fn broken_operator(text: &str) -> Option<usize> {
    let operator = |c: Option<char>| c.is_some_and(|c| "();&|<>$".contains(c));
    text.match_indices("\\\n").map(|(at, _)| at).find(|at| {
        let (before, mut after) = text.split_at(*at);
        while let Some(rest) = after.strip_prefix("\\\n") {
            after = rest;
        }
        operator(before.chars().next_back()) && operator(after.chars().next())
    })
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    fuel: &'a Cell<usize>,
    /// Here-documents whose lines are still to be read.
    pending: Vec<Pending>,
    /// The position of this whole text, if it was unescaped and has no positions of its own.
    shift: Option<Span>,
}

struct Pending {
    delimiter: String,
    quoted: bool,
    strip: bool,
    body: Rc<OnceCell<Word>>,
}

impl<'a> Parser<'a> {
    fn error<T>(&self, what: &'static str) -> Parsed<T> {
        Err(ParseError { what, at: self.shift.map_or(self.at, |span| span.start) })
    }

    fn span(&self, start: usize) -> Span {
        self.shift.unwrap_or(Span { start, end: self.at })
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn looking_at(&self, text: &str) -> bool {
        self.rest().starts_with(text)
    }

    fn eat(&mut self, text: &str) -> bool {
        let there = self.looking_at(text);
        if there {
            self.at += text.len();
        }
        there
    }

    /// A parser for text that was taken out of this one and has no positions of its own.
    fn inner<'b>(&self, text: &'b str, span: Span) -> Parser<'b>
    where
        'a: 'b,
    {
        Parser { text, at: 0, depth: self.depth, fuel: self.fuel, pending: Vec::new(), shift: Some(span) }
    }

    /// The next word if it is plain, and its end. Consumes nothing.
    fn ahead(&self) -> Option<(String, usize)> {
        let (mut text, mut at) = (String::new(), self.at);
        while let Some(c) = self.text.get(at..).and_then(|rest| rest.chars().next()) {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\\' if self.text[at..].starts_with("\\\n") => at += 2,
                '\\' | '\'' | '"' | '$' | '`' => return None,
                // Longer than any word of the grammar; names of functions are read as words.
                _ if text.len() > 256 => return None,
                c => {
                    text.push(c);
                    at += c.len_utf8();
                }
            }
        }
        (!text.is_empty()).then_some((text, at))
    }

    /// Consumes the next word if it is one of these.
    fn take(&mut self, words: &[&str]) -> bool {
        match self.ahead() {
            Some((text, end)) if words.contains(&text.as_str()) => {
                self.at = end;
                true
            }
            _ => false,
        }
    }

    /// Parses one level deeper.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEEPEST {
            return self.error("it is nested too deeply");
        }
        let Some(fuel) = self.fuel.get().checked_sub(1) else {
            return self.error("it takes too long to read");
        };
        self.fuel.set(fuel);
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Skips spaces, continued lines and a comment, up to the end of the line.
    fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.looking_at("\\\n") => self.at += 2,
                Some('#') => {
                    let rest = self.rest();
                    self.at += rest.find('\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    /// Skips spaces and line ends.
    fn lines(&mut self) -> Parsed<()> {
        self.blanks();
        while self.peek() == Some('\n') {
            self.line_end()?;
            self.blanks();
        }
        Ok(())
    }

    /// Consumes a line's end and the here-documents after it.
    fn line_end(&mut self) -> Parsed<()> {
        self.at += 1;
        for pending in std::mem::take(&mut self.pending) {
            self.here_document(&pending)?;
        }
        Ok(())
    }

    fn here_document(&mut self, pending: &Pending) -> Parsed<()> {
        let start = self.at;
        let mut body = String::new();
        loop {
            let rest = self.rest();
            if rest.is_empty() {
                return self.error("a here-document has no end");
            }
            let end = rest.find('\n').unwrap_or(rest.len());
            let line = &rest[..end];
            let line = if pending.strip { line.trim_start_matches('\t') } else { line };
            self.at += (end + 1).min(rest.len());
            if line == pending.delimiter {
                break;
            }
            if !pending.quoted && line.ends_with('\\') {
                // bash joins such lines before it looks for the delimiter.
                return self.error("a line of a here-document is continued with a backslash");
            }
            body.push_str(line);
            body.push('\n');
        }
        // The line end after the delimiter also ends the command.
        let span = self.span(start);
        let word = if pending.quoted {
            Word { parts: vec![super::syntax::Part::Quoted(body)], span }
        } else {
            let mut inner = self.inner(&body, span);
            let parts = inner.deeper(|parser| parser.double_quoted(word::Ending::End))?;
            Word { parts: vec![super::syntax::Part::Double(parts)], span }
        };
        // Each body is read once.
        let _ = pending.body.set(word);
        Ok(())
    }
}
