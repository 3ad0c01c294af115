//! Checking chains: has an entry been changed, taken out or cut off?

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use claw_core::store::{Entry, StoreError};
use serde::Serialize;

use super::head::Head;
use super::lines::each_line;
use super::{chain_name, failed};

/// What was found out about one chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChainReport {
    /// Tenant and node, as in the name of its files.
    pub chain: String,
    /// How many entries are sound, counted from the first.
    pub entries: u64,
    /// What is wrong, if something is: the first thing found.
    pub fault: Option<Fault>,
    /// Traces of a program that was killed. Nothing that was acknowledged is missing.
    pub notes: Vec<Note>,
}

/// What is wrong with a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// The entry is not what was written: its hash differs from the one kept of it.
    #[error("entry {seq} was changed: it does not have the hash that was kept of it")]
    Changed {
        /// Which entry.
        seq: u64,
    },
    /// The entry does not read as one.
    #[error("entry {seq} does not read as an entry")]
    Unreadable {
        /// Which entry.
        seq: u64,
    },
    /// The entry is not there, though later ones are.
    #[error("entry {seq} is missing: entry {found} follows the one before it")]
    Missing {
        /// Which entry.
        seq: u64,
        /// What stands in its place.
        found: u64,
    },
    /// The entry belongs to another chain.
    #[error("entry {seq} is of another tenant or node")]
    Foreign {
        /// Which entry.
        seq: u64,
    },
    /// The last entries are gone.
    #[error("the chain is cut off: its head counts {counted} entries, {found} are there")]
    CutOff {
        /// How many there were.
        counted: u64,
        /// How many there are.
        found: u64,
    },
    /// There are entries and no head, so that nobody can tell whether it is all of them.
    #[error("the head is missing, so entries may be missing at the end")]
    HeadMissing,
    /// The head does not read as one, or does not fit its own chain.
    #[error("the head is damaged, so entries may be missing at the end")]
    HeadDamaged,
}

/// A trace of a program that was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "note", rename_all = "snake_case")]
pub enum Note {
    /// Sound entries that the head does not count yet; the next append takes them in.
    Uncounted {
        /// How many.
        entries: u64,
    },
    /// The beginning of a line; the next append moves it aside.
    Torn {
        /// How long it is.
        bytes: u64,
    },
    /// Beginnings of lines that were moved aside.
    Aside {
        /// How many files.
        files: usize,
    },
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Uncounted { entries } => {
                write!(f, "the head does not count the last {entries} yet; the next append takes them in")
            }
            Self::Torn { bytes } => {
                write!(f, "{bytes} bytes of an unfinished entry at the end; the next append moves them aside")
            }
            Self::Aside { files } => write!(f, "{files} unfinished entries were moved aside"),
        }
    }
}

/// Checks every chain of the ledger below `data`, by name. Changes nothing.
pub fn verify(data: impl AsRef<Path>) -> Result<Vec<ChainReport>, StoreError> {
    let directory = super::directory(data);
    let names = file_names(&directory).map_err(failed("read", &directory))?;
    let chain = |name: &String| {
        name.strip_suffix(".jsonl").or_else(|| name.strip_suffix(".head")).map(ToOwned::to_owned)
    };
    let chains: BTreeSet<String> = names.iter().filter_map(chain).collect();
    chains.into_iter().map(|chain| check(&directory, chain, &names)).collect()
}

fn check(directory: &Path, chain: String, names: &BTreeSet<String>) -> Result<ChainReport, StoreError> {
    let path = directory.join(format!("{chain}.jsonl"));
    let head_path = directory.join(format!("{chain}.head"));
    let head_file = open(&head_path)?;
    if let Some(file) = &head_file {
        // Held while reading, so that no append is seen half done.
        file.lock_shared().map_err(failed("lock", &head_path))?;
    }
    let head = head_file.as_ref().map_or(Ok(None), Head::read);
    let mut walk = Walk { chain: &chain, head: head.as_ref().ok().copied().flatten(), at: Head::start() };
    let (found, torn) = match open(&path)? {
        Some(file) => walk.read(&file).map_err(failed("read", &path))?,
        None => (None, 0),
    };
    let fault = found.or_else(|| match head {
        Err(_) => Some(Fault::HeadDamaged),
        Ok(None) => (walk.at.count > 0).then_some(Fault::HeadMissing),
        Ok(Some(head)) => walk.end(head),
    });
    let counted = walk.head.map_or(0, |head| head.count);
    let entries = walk.at.count;
    let prefix = format!("{chain}.jsonl.torn-");
    let aside = names.iter().filter(|name| name.starts_with(&prefix)).count();
    let notes = [
        (fault.is_none() && entries > counted).then(|| Note::Uncounted { entries: entries - counted }),
        (fault.is_none() && torn > 0).then_some(Note::Torn { bytes: torn }),
        (aside > 0).then_some(Note::Aside { files: aside }),
    ];
    Ok(ChainReport { chain, entries, fault, notes: notes.into_iter().flatten().collect() })
}

/// One way along a chain, from its first entry.
struct Walk<'a> {
    chain: &'a str,
    head: Option<Head>,
    at: Head,
}

impl Walk<'_> {
    /// Reads the lines up to the first fault, and returns it with the bytes of a torn last line.
    fn read(&mut self, file: &File) -> io::Result<(Option<Fault>, u64)> {
        let length = file.metadata()?.len();
        match each_line(file, 0..length, |line| self.step(line)) {
            Ok(end) => Ok((None, length - end)),
            Err(Stop::Fault(fault)) => Ok((Some(fault), 0)),
            Err(Stop::Io(error)) => Err(error),
        }
    }

    fn step(&mut self, line: &[u8]) -> Result<(), Stop> {
        let seq = self.at.count + 1;
        let entry: Entry = serde_json::from_slice(line).map_err(|_| Fault::Unreadable { seq })?;
        if entry.seq != seq {
            return Err(Fault::Missing { seq, found: entry.seq }.into());
        }
        if entry.prev != self.at.hash {
            // The entry before is what the hash is of; the first has none before it.
            self.at.count = self.at.count.saturating_sub(1);
            return Err(Fault::Changed { seq: seq.saturating_sub(1).max(1) }.into());
        }
        if chain_name(&entry.record.tenant, &entry.node) != self.chain {
            return Err(Fault::Foreign { seq }.into());
        }
        let next = self.at.after(line, entry.record.call);
        if self.head.is_some_and(|head| head.count == seq && head.hash != next.hash) {
            return Err(Fault::Changed { seq }.into());
        }
        self.at = next;
        if self.head.is_some_and(|head| head.count == seq && head != next) {
            return Err(Fault::HeadDamaged.into());
        }
        Ok(())
    }

    /// What is wrong with where it ended.
    fn end(&self, head: Head) -> Option<Fault> {
        let (counted, found) = (head.count, self.at.count);
        (found < counted).then_some(Fault::CutOff { counted, found })
    }
}

enum Stop {
    Fault(Fault),
    Io(io::Error),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn file_names(directory: &Path) -> io::Result<BTreeSet<String>> {
    let name = |file: io::Result<fs::DirEntry>| Ok(file?.file_name().to_string_lossy().into_owned());
    fs::read_dir(directory)?.map(name).collect()
}

fn open(path: &PathBuf) -> Result<Option<File>, StoreError> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("open", path)(error)),
    }
}
