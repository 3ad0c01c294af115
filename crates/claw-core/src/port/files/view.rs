//! The view of a file that a caller may see: its text without the secrets.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::UnixMillis;

/// The version of a file: equal versions hold the same bytes. Only the bridge can interpret the text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Version(pub SmolStr);

/// The state of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    /// True for a directory.
    pub directory: bool,
    /// Its size in bytes.
    pub size: u64,
    /// The time of its last change.
    pub modified: UnixMillis,
    /// Its version.
    pub version: Version,
    /// Its permissions; `None` if the storage has none.
    pub mode: Option<u32>,
}

/// The part of a file to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The start.
    pub from: From,
    /// The most lines.
    pub lines: usize,
    /// The most bytes of the file; a line is cut rather than left out.
    pub bytes: usize,
}

/// The start of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// This line, counted from 1.
    Line(u64),
    /// This many lines before the end.
    End(u64),
    /// This byte of the file, or the start of the character that contains it. The first line of the window
    /// may be the rest of a line.
    Byte(u64),
}

/// The content of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    /// Text.
    Text(View),
    /// Binary data, recognised by its content.
    Binary(Binary),
}

/// A file that is not text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// The type by its content: `image/png`, `application/pdf`, `application/octet-stream`, ...
    pub mime: &'static str,
    /// Its size in bytes.
    pub size: u64,
    /// Its version.
    pub version: Version,
}

/// Text of a file without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// The text, decoded, with a placeholder in place of each secret. Line ends are as in the file.
    pub text: String,
    /// The byte ranges of placeholders in the text, sorted.
    pub redacted: Vec<Range<usize>>,
    /// The number of its first line; `None` if counting would need a read of the whole file.
    pub first_line: Option<u64>,
    /// The number of lines it shows.
    pub lines: u64,
    /// Its byte range in the file.
    pub bytes: Range<u64>,
    /// The size of the file in bytes.
    pub size: u64,
    /// True if its last line was cut.
    pub cut: bool,
    /// The encoding of the file: `UTF-8`, `UTF-16LE`, `windows-1252`, ...
    pub encoding: &'static str,
    /// True if the file begins with a byte order mark, which is not part of the text.
    pub bom: bool,
    /// The version of the file.
    pub version: Version,
}

/// A replacement of one range of a view's text. The range covers a placeholder whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// The range to replace, in bytes of the view's text.
    pub range: Range<usize>,
    /// The new text. A placeholder in it stands for the secret it lines up with.
    pub text: String,
}

/// The way to write a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Creates a new file; refused if the path exists.
    Create,
    /// Replaces the file, which must be as this session last saw it, or creates it.
    Overwrite,
    /// Appends to the file.
    Append,
}

/// The outcome of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// True if the file is new.
    pub created: bool,
    /// Its size now, in bytes.
    pub size: u64,
    /// The change, as a unified diff of the views; empty if nothing changed.
    pub diff: String,
    /// The new version of the file.
    pub version: Version,
}
