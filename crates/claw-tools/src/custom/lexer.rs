//! Splits a shell template into words and tells how each character is quoted.
//!
//! It knows less of the shell than a shell does, and refuses what it does not know: a substitution that holds
//! quotes, a here-document, arithmetic, `[[ ]]`. A placeholder is accepted only where a single-quoted text
//! means exactly itself in both `sh` and `bash`.

use super::code_positions::Reads;
use super::template::TemplateError;

/// Opens a placeholder.
const OPEN: &str = "{{";

/// A piece of a template, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text that is kept as it is.
    Text(String),
    /// A placeholder.
    Slot(Slot),
}

/// A placeholder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slot {
    /// Name of the parameter.
    pub(super) key: String,
    /// Position of the placeholder, in characters from 1.
    pub(super) at: usize,
    /// The word is this placeholder and nothing else.
    pub(super) whole: bool,
    /// Only quotes, variables and other placeholders stand before it in the word: its value may begin the
    /// word.
    pub(super) leads: bool,
    /// The word is an argument of a command with a literal name, so that the command stays the same without
    /// it.
    pub(super) droppable: bool,
}

/// Splits a shell template into pieces, or returns the position at which it cannot be filled safely.
pub(super) fn split(template: &str) -> Result<Vec<Piece>, TemplateError> {
    // A command without placeholders is taken as it is.
    if !is_filled(template) {
        return Ok(vec![Piece::Text(template.to_owned())]);
    }
    let mut lexer = Lexer::new(template);
    lexer.run()?;
    Ok(lexer.pieces)
}

/// Returns whether a text contains something that looks like a placeholder.
fn is_filled(text: &str) -> bool {
    text.match_indices(OPEN).any(|(at, _)| text[at + OPEN.len()..].trim_start().starts_with('.'))
}

/// Splits a text without a shell: every placeholder is allowed.
pub(super) fn split_plain(text: &str) -> Result<Vec<Piece>, TemplateError> {
    let mut lexer = Lexer::new(text);
    while let Some(c) = lexer.peek() {
        match lexer.placeholder()? {
            Some((key, at)) => {
                let leads = lexer.pieces.iter().all(|piece| matches!(piece, Piece::Slot(_)));
                let slot = Slot { key, at, whole: false, leads, droppable: true };
                lexer.pieces.push(Piece::Slot(slot));
            }
            None => lexer.take(c),
        }
    }
    if let [Piece::Slot(slot)] = lexer.pieces.as_mut_slice() {
        slot.whole = true;
    }
    Ok(lexer.pieces)
}

struct Lexer {
    text: Vec<char>,
    at: usize,
    pieces: Vec<Piece>,
    /// The word that is being read.
    word: Word,
    /// The command that is being read.
    command: Command,
    /// Position and name of a construct that cannot be combined with placeholders.
    refused: Option<(usize, &'static str)>,
}

/// The state of one word.
#[derive(Default)]
struct Word {
    begun: bool,
    /// The word as written, as far as it is plain.
    plain: String,
    /// The word without its quotes, as far as it is known.
    bare: String,
    /// A part of it is a placeholder or an expansion.
    open: bool,
    /// A part of it is quoted, expanded or a placeholder.
    dressed: bool,
    /// It contains an ordinary unquoted character, so that a later value does not begin the word.
    anchored: bool,
    /// An unquoted `[` was read: the following text may be an index, which bash evaluates.
    bracket: bool,
    /// Indices of the pieces that are its placeholders.
    slots: Vec<usize>,
}

/// The state of one simple command.
#[derive(Default)]
struct Command {
    /// The command's name has been read.
    named: bool,
    /// The command's name, if it is literal.
    name: String,
    /// Finds words that the program reads as code.
    reads: Reads,
    /// Words after the name.
    operands: usize,
    /// The next word is the name of a variable, whose index bash evaluates.
    index: bool,
    /// The next word is the target of a redirection.
    target: bool,
}

/// Words that are followed by a command or by something else that is no argument.
const RESERVED: &[&str] = &[
    "!", "builtin", "case", "command", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while", "{", "}",
];
impl Lexer {
    fn new(template: &str) -> Self {
        Self {
            text: template.chars().collect(),
            at: 0,
            pieces: Vec::new(),
            word: Word::default(),
            command: Command::default(),
            refused: None,
        }
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn follows(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(n, c)| self.text.get(self.at + n) == Some(&c))
    }

    /// Keeps a character as text.
    fn take(&mut self, c: char) {
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) => text.push(c),
            _ => self.pieces.push(Piece::Text(c.to_string())),
        }
        self.at += 1;
    }

    fn run(&mut self) -> Result<(), TemplateError> {
        while let Some(c) = self.peek() {
            if let Some((key, at)) = self.placeholder()? {
                self.slot(key, at)?;
                continue;
            }
            match c {
                ' ' | '\t' => {
                    self.end_word();
                    self.take(c);
                }
                '\n' | ';' | '&' | '|' | '(' | ')' => self.operator(c),
                '<' | '>' => self.redirection(c),
                '#' if !self.word.begun => self.comment()?,
                '\\' => self.escape()?,
                '\'' => self.quoted('\'')?,
                '"' => self.double()?,
                '`' => self.backticks()?,
                '$' => self.dollar()?,
                _ => self.ordinary(c),
            }
        }
        self.end_word();
        let slot = self.pieces.iter().find_map(|piece| match piece {
            Piece::Slot(slot) => Some(slot.at),
            Piece::Text(_) => None,
        });
        match (self.refused, slot) {
            (Some((at, what)), Some(_)) => Err(TemplateError::Unplaced { at: at + 1, what }),
            _ => Ok(()),
        }
    }

    /// Reads a placeholder if one begins here; returns its key and position.
    fn placeholder(&mut self) -> Result<Option<(String, usize)>, TemplateError> {
        if !self.follows(OPEN) {
            return Ok(None);
        }
        let at = self.at + 1;
        let blank = |at: usize| self.text.get(at).is_some_and(|c| c.is_whitespace());
        let mut inside = self.at + OPEN.len();
        while blank(inside) {
            inside += 1;
        }
        if self.text.get(inside) != Some(&'.') {
            return Ok(None);
        }
        let rest = &self.text[inside + 1..];
        let length = rest.iter().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).count();
        let key: String = rest[..length].iter().collect();
        let closed = rest.get(length) == Some(&'}') && rest.get(length + 1) == Some(&'}');
        if key.is_empty() || !closed || inside != self.at + OPEN.len() {
            return Err(TemplateError::Malformed { at });
        }
        self.at = inside + 1 + length + 2;
        Ok(Some((key, at)))
    }

    fn slot(&mut self, key: String, at: usize) -> Result<(), TemplateError> {
        if self.word.bracket {
            return Err(TemplateError::Unplaced { at, what: "an index in `[ ]` or a list in `{ }`" });
        }
        let is_code = self.command.index || self.command.reads.is_code(&self.word.bare);
        if is_code && !self.command.target {
            return Err(TemplateError::Unplaced { at, what: "an argument that the command reads as code" });
        }
        let leads = !self.word.anchored;
        self.word.begun = true;
        self.word.dressed = true;
        self.word.open = true;
        self.word.slots.push(self.pieces.len());
        self.pieces.push(Piece::Slot(Slot { key, at, whole: false, leads, droppable: false }));
        Ok(())
    }

    fn ordinary(&mut self, c: char) {
        self.word.begun = true;
        self.word.anchored = true;
        self.word.bracket |= matches!(c, '[' | '{');
        self.word.plain.push(c);
        self.word.bare.push(c);
        self.take(c);
    }

    /// Ends the current word and sets the flags of its placeholders.
    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        if !word.begun {
            return;
        }
        let whole = word.slots.len() == 1 && !word.anchored && word.plain.is_empty();
        let argument = self.command.named && !self.command.target;
        for at in &word.slots {
            if let Some(Piece::Slot(slot)) = self.pieces.get_mut(*at) {
                slot.whole = whole;
                slot.droppable = whole && argument;
            }
        }
        let is_target = std::mem::take(&mut self.command.target);
        if !is_target {
            self.settle(&word);
        }
    }

    /// Adds a word to the current command.
    fn settle(&mut self, word: &Word) {
        let (plain, text) = (!word.dressed, word.plain.as_str());
        if plain && text == "[[" {
            self.refused.get_or_insert((self.at - 2, "`[[ ]]`, in which bash computes what it compares"));
        }
        if plain && RESERVED.contains(&text) {
            self.command = Command::default();
            return;
        }
        let assigns = text.split_once('=').is_some_and(|(name, _)| is_name(name.trim_end_matches('+')));
        let command = &mut self.command;
        if !command.named && assigns {
            return;
        }
        let bare = (!word.open).then_some(word.bare.as_str());
        command.reads.word(bare);
        if command.named {
            let of_names = matches!(command.name.as_str(), "[" | "test" | "printf");
            // `printf` takes options only before its format.
            let may_be_option = command.name != "printf" || command.operands == 0;
            command.operands += 1;
            let is_option = matches!(word.bare.as_str(), "-v" | "-R") || word.open && may_be_option;
            command.index = of_names && is_option;
        } else {
            command.named = true;
            command.name = word.bare.rsplit('/').next().unwrap_or_default().to_owned();
        }
    }

    fn operator(&mut self, c: char) {
        let attached = self.word.begun;
        self.end_word();
        if c == '(' && self.text.get(self.at + 1) == Some(&'(') {
            self.refused.get_or_insert((self.at, "arithmetic in `(( ))`"));
        }
        if c == '(' && attached && self.text.get(self.at + 1) != Some(&')') {
            self.refused.get_or_insert((self.at, "a list in `( )`"));
        }
        self.command = Command::default();
        self.take(c);
    }

    fn redirection(&mut self, c: char) {
        let descriptor = self.word.plain.trim_start_matches('{').trim_end_matches('}');
        if !self.word.dressed && descriptor.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            let number = descriptor.bytes().all(|byte| byte.is_ascii_digit());
            if number || self.word.plain.starts_with('{') {
                // The number of a file descriptor, not a word.
                self.word = Word::default();
            }
        }
        self.end_word();
        if self.follows("<<") && !self.follows("<<<") {
            self.refused.get_or_insert((self.at, "a here-document"));
        }
        if self.text.get(self.at + 1) == Some(&'(') {
            self.refused.get_or_insert((self.at, "a process substitution"));
        }
        self.take(c);
        while let Some(c @ ('<' | '>' | '&' | '|')) = self.peek() {
            self.take(c);
        }
        self.command.target = true;
    }

    fn comment(&mut self) -> Result<(), TemplateError> {
        while let Some(c) = self.peek().filter(|c| *c != '\n') {
            self.no_slot("a comment")?;
            self.take(c);
        }
        Ok(())
    }

    fn escape(&mut self) -> Result<(), TemplateError> {
        self.take('\\');
        self.no_slot("a `\\` before it")?;
        match self.peek() {
            // A line continuation.
            Some('\n') => self.take('\n'),
            Some(c) => {
                self.word.begun = true;
                self.word.dressed = true;
                self.word.anchored = true;
                self.word.bare.push(c);
                self.take(c);
            }
            None => return Err(TemplateError::Unplaced { at: self.at, what: "a `\\` at the end" }),
        }
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Result<(), TemplateError> {
        let opened = self.at + 1;
        self.word.quote();
        self.take(quote);
        while let Some(c) = self.peek() {
            if c == quote {
                self.take(c);
                return Ok(());
            }
            self.no_slot("quotes")?;
            self.word.bare.push(c);
            self.take(c);
        }
        Err(TemplateError::Unplaced { at: opened, what: "a quote that is not closed" })
    }

    fn double(&mut self) -> Result<(), TemplateError> {
        let opened = self.at + 1;
        self.word.quote();
        self.take('"');
        while let Some(c) = self.peek() {
            self.no_slot("quotes")?;
            match c {
                '"' => {
                    self.take(c);
                    return Ok(());
                }
                '\\' => {
                    self.take(c);
                    self.no_slot("quotes")?;
                    if let Some(next) = self.peek() {
                        self.word.bare.push(next);
                        self.take(next);
                    }
                }
                '`' => self.backticks()?,
                '$' => self.dollar()?,
                _ => {
                    self.word.bare.push(c);
                    self.take(c);
                }
            }
        }
        Err(TemplateError::Unplaced { at: opened, what: "a quote that is not closed" })
    }

    /// Reads a command in backticks: only a simple one, without quotes.
    fn backticks(&mut self) -> Result<(), TemplateError> {
        self.word.expand();
        let opened = self.at;
        self.take('`');
        while let Some(c) = self.peek() {
            self.no_slot("a substitution")?;
            if matches!(c, '\\' | '\'' | '"' | '#' | '(' | ')') {
                self.refused.get_or_insert((opened, "a substitution with quotes, a comment or parentheses"));
            }
            self.take(c);
            if c == '`' {
                return Ok(());
            }
        }
        Err(TemplateError::Unplaced { at: opened + 1, what: "a '`' that is not closed" })
    }

    fn dollar(&mut self) -> Result<(), TemplateError> {
        self.word.expand();
        let opened = self.at;
        self.take('$');
        match self.peek() {
            Some('(') => self.nested(opened, '(', ')'),
            Some('{') if !self.follows(OPEN) => self.nested(opened, '{', '}'),
            Some('{') => Err(TemplateError::Unplaced { at: opened + 1, what: "a `$` before it" }),
            Some('[') => self.nested(opened, '[', ']'),
            Some('\'' | '"') => {
                self.refused
                    .get_or_insert((opened, "`$` before a quote, which changes what the quote means"));
                Ok(())
            }
            _ => {
                // The variable may be empty, so a value after it may begin the word.
                while let Some(c) = self.peek().filter(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    self.take(c);
                }
                Ok(())
            }
        }
    }

    /// Reads a substitution: only one without quotes, comments and further parentheses, so that its end is
    /// certain.
    fn nested(&mut self, opened: usize, open: char, close: char) -> Result<(), TemplateError> {
        self.take(open);
        let mut inside = String::new();
        while let Some(c) = self.peek() {
            self.no_slot("a substitution")?;
            if c == close {
                self.take(c);
                return Ok(());
            }
            inside.push(c);
            let comment = c == '#' && open == '(';
            if comment || matches!(c, '\\' | '\'' | '"' | '`' | '(' | '{') || inside.ends_with("case") {
                self.refused.get_or_insert((opened, "a substitution with quotes, a comment or parentheses"));
            }
            if inside.ends_with("<<") {
                self.refused.get_or_insert((opened, "a here-document"));
            }
            self.take(c);
        }
        Err(TemplateError::Unplaced { at: opened + 1, what: "a substitution that is not closed" })
    }

    /// Refuses a placeholder that begins here.
    fn no_slot(&mut self, what: &'static str) -> Result<(), TemplateError> {
        let at = self.at;
        let found = self.placeholder();
        self.at = at;
        match found? {
            Some((_, at)) => Err(TemplateError::Unplaced { at, what }),
            None => Ok(()),
        }
    }
}

impl Word {
    fn quote(&mut self) {
        (self.begun, self.dressed) = (true, true);
        self.plain.push('\'');
    }

    fn expand(&mut self) {
        (self.begun, self.dressed, self.open) = (true, true, true);
        self.plain.push('$');
    }
}

fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !text.is_empty() && text.chars().all(plain) && !text.starts_with(|c: char| c.is_ascii_digit())
}
