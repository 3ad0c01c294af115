//! The head of a chain: how far it goes, what its last line hashes to and how new its calls are, kept apart
//! from the lines.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use claw_core::CallId;
use claw_core::port::UnixMillis;
use claw_core::tool::Digest;
use serde::{Deserialize, Serialize};

use super::made;

/// Heads are written over in place by one write of always the same length, so that none is ever half new.
const LENGTH: usize = 192;

/// Where a chain ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    /// How many lines there are.
    pub(super) count: u64,
    /// How many bytes they take.
    pub(super) bytes: u64,
    /// The hash of the last one, without its newline.
    pub(super) hash: Digest,
    /// When the newest call of any line was made, by its id.
    pub(super) newest: UnixMillis,
}

impl Head {
    /// The head of an empty chain.
    pub(super) fn start() -> Self {
        Self { count: 0, bytes: 0, hash: Digest::of_bytes(b""), newest: UnixMillis::default() }
    }

    /// The head after one more line, given without its newline, that is about `call`.
    pub(super) fn after(self, line: &[u8], call: CallId) -> Self {
        let bytes = self.bytes + line.len() as u64 + 1;
        let newest = made(call).map_or(self.newest, |made| made.max(self.newest));
        Self { count: self.count + 1, bytes, hash: Digest::of_bytes(line), newest }
    }

    /// Reads it from its file; `None` where the file is empty.
    pub(super) fn read(file: &File) -> io::Result<Option<Self>> {
        let mut text = [0; LENGTH];
        match file.read_at(&mut text, 0)? {
            0 => Ok(None),
            read => serde_json::from_slice(&text[..read]).map(Some).map_err(io::Error::from),
        }
    }

    pub(super) fn write(&self, file: &File) -> io::Result<()> {
        let head = serde_json::to_string(self)?;
        file.write_all_at(format!("{head:<width$}\n", width = LENGTH - 1).as_bytes(), 0)
    }
}
