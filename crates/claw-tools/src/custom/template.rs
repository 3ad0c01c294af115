//! A template: a command with placeholders, checked when it is made.

use serde_json::Value;

use super::code_positions::Reads;
use super::fill::{self, FillError};
use super::lexer::{self, Piece, Slot};
use super::parameters::Parameters;

/// The longest template, in bytes.
const LONGEST: usize = 16 * 1024;

/// A template that cannot be filled safely. Positions count characters from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// An invalid placeholder.
    #[error("at character {at}: a placeholder is `{{{{.name}}}}`, without spaces")]
    Malformed {
        /// Position.
        at: usize,
    },
    /// A placeholder that names no parameter.
    #[error("at character {at}: `{key}` is not among the parameters{}", listed(.known))]
    Unknown {
        /// Position.
        at: usize,
        /// The name.
        key: String,
        /// The parameters.
        known: Vec<String>,
    },
    /// A placeholder at a position where its value cannot be kept apart from the command, or a construct that
    /// hides positions.
    #[error(
        "at character {at}: no placeholder can be filled safely because of {what}; write each placeholder \
         as a separate word, outside of quotes and substitutions"
    )]
    Unplaced {
        /// Position.
        at: usize,
        /// The text that is there.
        what: &'static str,
    },
    /// An optional parameter whose absence would change the command.
    #[error(
        "at character {at}: the optional parameter `{key}` must be a whole argument of a command, so that \
         it can be left out if a call gives no value; make it required or give it a `default`"
    )]
    Optional {
        /// Position.
        at: usize,
        /// The name.
        key: String,
    },
    /// A list within a word.
    #[error(
        "at character {at}: `{key}` is a list, so it must be a whole argument; each item becomes an argument of its own"
    )]
    List {
        /// Position.
        at: usize,
        /// The name.
        key: String,
    },
    /// A placeholder in an argument that the program reads as code.
    #[error(
        "the program reads this argument as code, or runs the file that it names; write it out, without a placeholder"
    )]
    Code,
    /// The argument list names no program.
    #[error("no program is named; write the program's name first, without a placeholder")]
    NoProgram,
    /// An error in one word of an argument list.
    #[error("in argument {number}: {error}")]
    InWord {
        /// Number of the word, the program being 0.
        number: usize,
        /// The error.
        error: Box<TemplateError>,
    },
    /// Too long, or not a text.
    #[error("{0}")]
    Unreadable(String),
}

fn listed(known: &[String]) -> String {
    match known {
        [] => "; the tool has no parameters".to_owned(),
        known => format!("; they are `{}`", known.join("`, `")),
    }
}

/// A command with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    form: Form,
    parameters: Parameters,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    Shell(Vec<Piece>),
    Words(Vec<Vec<Piece>>),
}

impl Template {
    /// Reads a shell command whose placeholders are among the parameters of this schema.
    pub fn shell(template: &str, schema: &Value) -> Result<Self, TemplateError> {
        readable(template)?;
        if template.trim().is_empty() {
            return Err(TemplateError::NoProgram);
        }
        let (pieces, parameters) = (lexer::split(template)?, Parameters::read(schema));
        placed(&pieces, &parameters)?;
        Ok(Self { form: Form::Shell(pieces), parameters })
    }

    /// Reads a program and its arguments, which run without a shell.
    pub fn words(words: &[String], schema: &Value) -> Result<Self, TemplateError> {
        let parameters = Parameters::read(schema);
        let mut split: Vec<Vec<Piece>> = Vec::with_capacity(words.len());
        let mut reads = Reads::default();
        for (number, word) in words.iter().enumerate() {
            let read = || {
                readable(word)?;
                let pieces = lexer::split_plain(word)?;
                placed(&pieces, &parameters)?;
                match pieces.as_slice() {
                    [] | [Piece::Text(_)] => {}
                    [Piece::Text(start), ..] if !reads.is_code(start) => {}
                    [Piece::Slot(_), ..] if !reads.is_code("") => {}
                    _ => return Err(TemplateError::Code),
                }
                Ok(pieces)
            };
            let pieces = read().map_err(|error| TemplateError::InWord { number, error: Box::new(error) })?;
            reads.word(match pieces.as_slice() {
                [] => Some(""),
                [Piece::Text(word)] => Some(word),
                _ => None,
            });
            split.push(pieces);
        }
        let program = split.first().is_some_and(|pieces| matches!(&pieces[..], [Piece::Text(_)]));
        match program {
            true => Ok(Self { form: Form::Words(split), parameters }),
            false => Err(TemplateError::NoProgram),
        }
    }

    /// Fills a shell command: each value becomes one single-quoted text and is never read again.
    pub fn command(&self, args: &Value) -> Result<String, FillError> {
        match &self.form {
            Form::Shell(pieces) => fill::shell(pieces, &self.parameters, args),
            Form::Words(_) => {
                let quoted = |word: &String| fill::quoted(word);
                Ok(self.argv(args)?.iter().map(quoted).collect::<Vec<_>>().join(" "))
            }
        }
    }

    /// Fills an argument list; empty for a shell command.
    pub fn argv(&self, args: &Value) -> Result<Vec<String>, FillError> {
        let Form::Words(words) = &self.form else { return Ok(Vec::new()) };
        let mut filled = Vec::with_capacity(words.len());
        for pieces in words {
            filled.extend(fill::word(pieces, &self.parameters, args)?);
        }
        Ok(filled)
    }
}

fn readable(text: &str) -> Result<(), TemplateError> {
    if text.len() > LONGEST {
        return Err(TemplateError::Unreadable(format!(
            "it has {} bytes; at most {LONGEST} are allowed",
            text.len()
        )));
    }
    match text.chars().position(|c| c == '\0') {
        Some(at) => Err(TemplateError::Unreadable(format!("at character {}: it holds a NUL", at + 1))),
        None => Ok(()),
    }
}

/// Checks every placeholder against the parameters.
fn placed(pieces: &[Piece], parameters: &Parameters) -> Result<(), TemplateError> {
    for piece in pieces {
        let Piece::Slot(Slot { key, at, whole, droppable, .. }) = piece else { continue };
        let (key, at) = (key.clone(), *at);
        let Some(parameter) = parameters.get(&key) else {
            let known = parameters.names().map(str::to_owned).collect();
            return Err(TemplateError::Unknown { at, key, known });
        };
        if parameter.list && !whole {
            return Err(TemplateError::List { at, key });
        }
        let always = parameter.required || parameter.default.is_some();
        if !(*whole && *droppable) && (parameter.list || !always) {
            return Err(TemplateError::Optional { at, key });
        }
    }
    Ok(())
}
