//! A snapshot of a tree: metadata of its entries, with the bytes of requested files.

use std::collections::BTreeMap;

use claw_core::port::{Entry, EntryKind, Stat};

use super::listing::Tree;

/// The files of one root that a caller sees at one moment.
#[derive(Debug, Default)]
pub(super) struct Cards(BTreeMap<(String, String), Card>);

#[derive(Debug)]
struct Card {
    entry: Entry,
    bytes: Option<Vec<u8>>,
}

impl Cards {
    /// Adds the entry at a path, which is relative to the root.
    pub(super) fn add(&mut self, path: &str, stat: &Stat, bytes: Option<Vec<u8>>) {
        let kind = if stat.directory { EntryKind::Directory } else { EntryKind::File };
        let (directory, name) = split(path);
        let entry = Entry { path: name.to_owned(), kind, size: stat.size, modified: stat.modified };
        self.0.insert((directory.to_owned(), name.to_owned()), Card { entry, bytes });
    }

    /// Adds the bytes of a file already in the tree.
    pub(super) fn fill(&mut self, path: &str, bytes: Vec<u8>) {
        if let Some(card) = self.0.get_mut(&key(path)) {
            card.bytes = Some(bytes);
        }
    }

    fn card(&self, path: &str) -> Option<&Card> {
        self.0.get(&key(path))
    }
}

impl Tree for Cards {
    fn entry(&self, path: &str) -> Option<Entry> {
        self.card(path).map(|card| Entry { path: path.to_owned(), ..card.entry.clone() })
    }

    fn entries(&self, directory: &str) -> Vec<Entry> {
        let within = self.0.range((directory.to_owned(), String::new())..);
        let within = within.take_while(|((above, _), _)| above == directory);
        // The root itself is in the directory that has its own name.
        within.filter(|((_, name), _)| !name.is_empty()).map(|(_, card)| card.entry.clone()).collect()
    }

    fn read(&self, path: &str) -> Option<Vec<u8>> {
        self.card(path)?.bytes.clone()
    }
}

/// Splits a path into its directory and its name. Both are empty for the root.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn key(path: &str) -> (String, String) {
    let (directory, name) = split(path);
    (directory.to_owned(), name.to_owned())
}
