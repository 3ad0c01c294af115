//! The protocol with this program inside a container: an order as JSON, then pieces, over the streams of one
//! `exec`. Nothing of an order appears on a command line or in the engine's records.

use std::path::PathBuf;

use claw_core::port::{Scope, Size, Stat, Version, Walk, Walked};
use claw_core::tool::ErrorKind;
use serde::{Deserialize, Serialize};

use super::super::helper::wire::{Ending, Spec};

/// Bytes for the command's standard input.
pub(crate) const INPUT: u8 = b'I';
/// The end of the input.
pub(crate) const INPUT_END: u8 = b'E';
/// A new size for the command's terminal, as JSON.
pub(crate) const SIZE: u8 = b'S';
/// Permission to send more of a stream: the stream, and the bytes of it that were read.
pub(crate) const MORE: u8 = b'M';
/// A command's output; both streams if they are merged.
pub(crate) const OUTPUT: u8 = b'O';
/// A command's standard error, if that is separate.
pub(crate) const ERRORS: u8 = b'R';
/// A message, as JSON.
pub(crate) const TOLD: u8 = b'T';

/// The most bytes of one piece.
pub(crate) const MOST: usize = 16 << 20;

/// The step that fails if the container's kernel or engine cannot keep one command from writing.
pub(crate) const READING: &str = "keep the command from writing";

/// An order to the program inside.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Run a command.
    Run(Box<Running>),
    /// Look at programs and files.
    Look(Vec<Target>),
    /// Kill processes whose keeper is gone.
    Sweep,
    /// Do something with a file. The content to write follows as input.
    File(Box<Filing>),
}

/// A file operation inside.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Filing {
    pub(crate) act: Act,
    pub(crate) path: String,
    pub(crate) directory: PathBuf,
    pub(crate) scope: Scope,
    pub(crate) expect: Expected,
}

/// A file operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Act {
    Stat,
    Read,
    Mkdirp,
    Write {
        mode: Option<u32>,
    },
    Remove,
    Look,
    Walk(Walk),
    /// The bytes of all files that a walk finds.
    Fetch(Walk),
}

/// The state that a write expects to find.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Expected {
    Anything,
    Absent,
    Version(Version),
}

/// The result of a file operation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Filed {
    Stat(Option<Stat>),
    Done,
    Looked { path: Option<String>, identity: Option<String> },
    Walked(Walked),
    Failed { kind: ErrorKind, message: String, advice: Option<String>, details: Option<serde_json::Value> },
}

/// A command to be run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Running {
    /// The command. Its environment is added to the image's.
    pub(crate) spec: Spec,
    /// True if the only argument is a script for the image's shell.
    pub(crate) script: bool,
    /// True if standard error is separate.
    pub(crate) apart: bool,
    /// True if an input follows.
    pub(crate) input: bool,
    /// The size of its terminal, which then is its input and both of its streams.
    pub(crate) terminal: Option<Size>,
    /// The bytes of each stream sent before they are read; `None` means no limit.
    pub(crate) window: Option<usize>,
    /// True if it can write nothing but `/tmp` and devices, whatever is mounted.
    pub(crate) reads_only: bool,
    /// The mounts to verify.
    pub(crate) mounted: Vec<Mounted>,
    /// The targets that must be unchanged, with what was seen of them.
    pub(crate) seen: Vec<(Target, Seen)>,
}

/// A target to look at, by its name inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    /// The program that a name means in a directory.
    Program { name: String, directory: PathBuf },
    /// A file.
    File { path: PathBuf },
}

/// The state of a target.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// The real path, with links resolved; `None` if there is nothing.
    pub(crate) path: Option<String>,
    /// The file's identity; `None` for a file of the image, which nobody can change.
    pub(crate) identity: Option<String>,
}

/// A path inside on which something must be mounted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mounted {
    pub(crate) path: PathBuf,
    /// Device and inode on the machine.
    pub(crate) device: u64,
    pub(crate) inode: u64,
    /// True if this very file must be there, false if it must not.
    pub(crate) shown: bool,
}

/// A message from inside.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Told {
    /// The order was read; from here on it may have had effects.
    Taken,
    /// The command could not be started.
    Failed { step: String, reason: String },
    /// The command runs, and is called this inside.
    Started { pid: u32 },
    /// So many more bytes of the input were passed to the command.
    Fed(usize),
    /// The command reads nothing any more.
    Deaf,
    /// The command has ended, with all that it started.
    Ended(Ending),
    /// The states of the requested targets, in order.
    Looked(Vec<Seen>),
    /// The target at this index has changed since it was seen.
    Changed(usize),
    /// The number of processes killed.
    Swept(u32),
    /// The bytes of this file come next, unless it is not readable; the path is relative to the start of the
    /// walk.
    Fetched { path: String, readable: bool },
    /// The result of a file operation; its bytes came before.
    Filed(Filed),
}

/// The piece that asks for more of a stream.
pub(crate) fn more(stream: u8, bytes: usize) -> Vec<u8> {
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    let [a, b, c, d] = bytes.to_le_bytes();
    piece(MORE, &[stream, a, b, c, d])
}

/// Parses a [`MORE`] piece: the stream, and the bytes asked for.
pub(crate) fn asked(more: &[u8]) -> Option<(u8, usize)> {
    match *more {
        [stream, a, b, c, d] => Some((stream, u32::from_le_bytes([a, b, c, d]) as usize)),
        _ => None,
    }
}

/// Encodes one piece: its kind, its length and its bytes.
pub(crate) fn piece(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let mut piece = Vec::with_capacity(5 + bytes.len());
    piece.push(kind);
    piece.extend(length.to_le_bytes());
    piece.extend(bytes);
    piece
}

/// Pieces in the making: bytes come as they come.
#[derive(Debug, Default)]
pub(crate) struct Pieces(Vec<u8>);

impl Pieces {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// The next piece, if it is whole; an error if it never can be.
    pub(crate) fn next(&mut self) -> Result<Option<(u8, Vec<u8>)>, TooLong> {
        let Some((head, rest)) = self.0.split_first_chunk::<5>() else { return Ok(None) };
        let [kind, length @ ..] = *head;
        let length = u32::from_le_bytes(length) as usize;
        if length > MOST {
            return Err(TooLong);
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let body = body.to_vec();
        self.0.drain(..5 + length);
        Ok(Some((kind, body)))
    }
}

/// A piece claims to be longer than any is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_whole_however_they_are_cut() {
        let whole = [piece(OUTPUT, b"one"), piece(TOLD, b""), piece(INPUT, &[0, 255])].concat();
        for size in 1..whole.len() {
            let (mut pieces, mut got) = (Pieces::default(), Vec::new());
            for part in whole.chunks(size) {
                pieces.add(part);
                while let Some(piece) = pieces.next().unwrap() {
                    got.push(piece);
                }
            }
            assert_eq!(got, [(OUTPUT, b"one".to_vec()), (TOLD, vec![]), (INPUT, vec![0, 255])]);
        }
    }

    #[test]
    fn refuses_a_piece_that_claims_to_be_endless() {
        let mut pieces = Pieces::default();
        pieces.add(&[OUTPUT, 255, 255, 255, 255]);
        assert_eq!(pieces.next(), Err(TooLong));
    }
}
