//! The state of each file that each session has seen last.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use claw_core::port::{Owner, Version};

/// Number of files remembered at a time.
const FILES: usize = 50_000;
/// Bytes of their texts.
const TEXT_BYTES: usize = 32 * 1024 * 1024;
/// Longest text that is kept.
const LONGEST: usize = 512 * 1024;

type Key = (Owner, PathBuf);

/// A session's view of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) version: Version,
    /// A part of it was hidden.
    pub(super) redacted: bool,
    /// The whole text as seen, without secrets.
    pub(super) text: Option<Arc<str>>,
}

/// The recent views. The least recently used one is dropped first.
#[derive(Default)]
pub(crate) struct SeenTable(Mutex<Table>);

#[derive(Default)]
struct Table {
    files: HashMap<Key, (u64, Seen)>,
    /// By the time of last use.
    order: BTreeMap<u64, Key>,
    /// Those with a text.
    texts: BTreeMap<u64, usize>,
    text_bytes: usize,
    time: u64,
}

impl SeenTable {
    /// A session's view of a file; `None` if it is not known here.
    pub(super) fn get(&self, owner: &Owner, path: &Path) -> Option<Seen> {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.files.get(&(owner.clone(), path.to_owned())).map(|(_, seen)| seen.clone())
    }

    /// Stores a view; returns whether its version is new. A further view of the same version adds to the
    /// known one.
    pub(super) fn put(&self, owner: &Owner, path: &Path, mut seen: Seen) -> bool {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (owner.clone(), path.to_owned());
        seen.text = seen.text.filter(|text| text.len() <= LONGEST);
        let before = table.remove(&key);
        let news = before.as_ref().is_none_or(|before| before.version != seen.version);
        if let Some(before) = before.filter(|before| before.version == seen.version) {
            seen.redacted |= before.redacted;
            seen.text = seen.text.or(before.text);
        }
        table.insert(key, seen);
        news
    }
}

impl Table {
    fn remove(&mut self, key: &Key) -> Option<Seen> {
        let (time, seen) = self.files.remove(key)?;
        self.order.remove(&time);
        self.text_bytes -= self.texts.remove(&time).unwrap_or(0);
        Some(seen)
    }

    fn insert(&mut self, key: Key, seen: Seen) {
        self.time += 1;
        if let Some(text) = &seen.text {
            self.texts.insert(self.time, text.len());
            self.text_bytes += text.len();
        }
        self.order.insert(self.time, key.clone());
        self.files.insert(key, (self.time, seen));
        while self.files.len() > FILES {
            let Some((_, oldest)) = self.order.first_key_value() else { break };
            let oldest = oldest.clone();
            self.remove(&oldest);
        }
        while self.text_bytes > TEXT_BYTES {
            let Some((time, bytes)) = self.texts.pop_first() else { break };
            self.text_bytes -= bytes;
            if let Some((_, seen)) = self.order.get(&time).and_then(|key| self.files.get_mut(key)) {
                seen.text = None;
            }
        }
    }
}

#[cfg(test)]
mod tests;
