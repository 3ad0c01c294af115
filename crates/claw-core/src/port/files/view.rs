//! What a caller may see of a file: its text with the secrets taken out.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::UnixMillis;

/// Which state of a file: two that are equal hold the same bytes. Nobody but its bridge knows what it means.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Version(pub SmolStr);

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    /// Whether it is a directory.
    pub directory: bool,
    /// Its size in bytes.
    pub size: u64,
    /// When it last changed.
    pub modified: UnixMillis,
    /// Which state of it this is.
    pub version: Version,
    /// Its permissions, where the place has them.
    pub mode: Option<u32>,
}

/// Which part of a file to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Where it begins.
    pub from: From,
    /// How many lines at most.
    pub lines: usize,
    /// How many bytes of the file at most; a line is cut rather than left out.
    pub bytes: usize,
}

/// Where a window begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// At this line, counted from 1.
    Line(u64),
    /// So many lines before the end.
    End(u64),
    /// At this byte of the file, or at the beginning of the character that it is in. Its first line is the one
    /// that it is in, of which it may show the rest alone.
    Byte(u64),
}

/// What a window shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// Text.
    Text(View),
    /// Something else, told by its content.
    Binary(Binary),
}

/// A file that is not text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// What it looks like: `image/png`, `application/pdf`, `application/octet-stream`, ...
    pub mime: &'static str,
    /// Its size in bytes.
    pub size: u64,
    /// Which state of it this is.
    pub version: Version,
}

/// Text of a file, as it may be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The text, decoded, with a placeholder in place of each secret. Line ends are as in the file.
    pub text: String,
    /// Where in the text placeholders stand for something else, sorted.
    pub redacted: Vec<Range<usize>>,
    /// The number of its first line; `None` where counting would mean reading the whole file.
    pub first_line: Option<u64>,
    /// How many lines it shows.
    pub lines: u64,
    /// Where in the file it begins and ends, in bytes.
    pub bytes: Range<u64>,
    /// The size of the file in bytes.
    pub size: u64,
    /// Whether its last line was cut.
    pub cut: bool,
    /// How the file is encoded: `UTF-8`, `UTF-16LE`, `windows-1252`, ...
    pub encoding: &'static str,
    /// Whether the file begins with a byte order mark, which is not part of the text.
    pub bom: bool,
    /// Which state of the file this is.
    pub version: Version,
}

/// A change of a text in the places of its view. It covers a placeholder whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// What to replace, in bytes of the view's text.
    pub range: Range<usize>,
    /// What to put there. A placeholder in it stands for the secret it lines up with.
    pub text: String,
}

/// How to write a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// A new file; one that is there is refused.
    Create,
    /// Whatever is there. A file that is there must be as this session last saw it.
    Overwrite,
    /// At the end of what is there.
    Append,
}

/// What a write did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Whether the file is new.
    pub created: bool,
    /// Its size now, in bytes.
    pub size: u64,
    /// What changed, as a unified diff of the views; empty where nothing did.
    pub diff: String,
    /// Which state of the file this is.
    pub version: Version,
}
