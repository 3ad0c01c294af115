//! One chain: its file of lines and its head.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use claw_core::port::UnixMillis;
use claw_core::store::{Entry, Outcome, Record, StoreError, Tally};
use claw_core::{CallId, NodeId, SessionKey};

use super::head::Head;
use super::lines::{Gist, each_line, fate, holds, tail};
use super::{already_begun, damaged, failed, made};
use crate::approvals::ApprovalTable;
use crate::calls::{Calls, Known};

const MOST_CALLS: usize = 1_000_000;

#[derive(Debug)]
pub(super) struct Chain {
    path: PathBuf,
    node: NodeId,
    opened: UnixMillis,
    /// Where the chain ended then.
    old: Head,
    /// The calls from before, as far as their ids are from after: made by a clock that was ahead, or chosen.
    ahead: OnceLock<Calls>,
    seen: Mutex<Seen>,
}

/// What this process knows of the lines since the ledger was opened, its own and others'.
#[derive(Debug)]
struct Seen {
    until: u64,
    calls: Calls,
}

impl Chain {
    /// The chain at `path`, of a ledger that was opened at `opened`, when it ended with `old`.
    pub(super) fn new(path: PathBuf, node: NodeId, opened: UnixMillis, old: Head) -> Self {
        let seen = Mutex::new(Seen { until: old.bytes, calls: Calls::new(MOST_CALLS) });
        Self { path, node, opened, old, ahead: OnceLock::new(), seen }
    }

    /// Writes a line, whatever it says.
    pub(super) fn append(&self, record: Record) -> Result<(), StoreError> {
        self.locked(|tip, seen| tip.append(&self.node, &record, seen))
    }

    /// Writes an intent and marks its approval used, unless the call has begun before. `old` is what became
    /// of it before the ledger was opened.
    pub(super) fn begin(
        &self,
        record: Record,
        old: Option<Outcome>,
        approvals: &ApprovalTable,
    ) -> Result<(), StoreError> {
        let call = record.call;
        self.locked(|tip, seen| {
            let begun = match seen.calls.known(call) {
                Known::Begun(outcome) => Some(outcome),
                Known::Fresh => old,
                Known::Forgotten => self.fate(call, 0..tip.head.bytes)?,
            };
            match begun {
                Some(outcome) => Err(already_begun(call, outcome)),
                None => approvals.spend(&record, || tip.append(&self.node, &record, seen)),
            }
        })
    }

    /// What became of a call before the ledger was opened; `None` where it had not begun. An id tells when it
    /// was made, so for one that is newer than all of then nothing is read.
    pub(super) fn old_fate(&self, call: CallId) -> Result<Option<Outcome>, StoreError> {
        match made(call) {
            Some(made) if made > self.old.newest => Ok(None),
            // One call from the future would otherwise have the chain read for every call until then.
            Some(made) if made > self.opened => match self.ahead()?.known(call) {
                Known::Fresh => Ok(None),
                Known::Begun(outcome) => Ok(Some(outcome)),
                Known::Forgotten => self.fate(call, 0..self.old.bytes),
            },
            _ => self.fate(call, 0..self.old.bytes),
        }
    }

    fn ahead(&self) -> Result<&Calls, StoreError> {
        if let Some(ahead) = self.ahead.get() {
            return Ok(ahead);
        }
        let mut ahead = Calls::new(MOST_CALLS);
        self.each_holding("", 0..self.old.bytes, |line| {
            let is_ahead = made(line.call).is_some_and(|made| made > self.opened);
            if let Some(fate) = line.fate().filter(|_| is_ahead) {
                ahead.record(line.call, fate);
            }
        })?;
        Ok(self.ahead.get_or_init(|| ahead))
    }

    pub(super) fn recent(&self, limit: usize) -> Result<Vec<Entry>, StoreError> {
        let Some(file) = self.open_to_read()? else { return Ok(Vec::new()) };
        let lines = file.metadata().and_then(|file_is| tail(&file, file_is.len(), limit));
        let lines = lines.map_err(failed("read", &self.path))?;
        let entry = |line: &Vec<u8>| serde_json::from_slice(line);
        lines.iter().map(entry).collect::<Result<_, _>>().map_err(|error| {
            damaged(&self.path, format!("a line does not read as an entry ({error}); verify the ledger"))
        })
    }

    pub(super) fn tally(&self, session: &SessionKey) -> Result<Tally, StoreError> {
        let mut tally = Tally::default();
        let mut fates = HashMap::new();
        // As it stands in a line, quotes and all.
        let text = serde_json::to_string(session).map_err(io::Error::from);
        let text = text.map_err(failed("search", &self.path))?;
        self.each_holding(&text, 0..u64::MAX, |line| {
            if line.session == session.as_str() {
                match line.fate() {
                    Some(fate) => drop(fates.insert(line.call, fate)),
                    None => tally.refused += 1,
                }
            }
        })?;
        for fate in fates.into_values() {
            match fate {
                Outcome::Done => tally.done += 1,
                Outcome::Failed => tally.failed += 1,
                Outcome::Unknown => tally.open += 1,
            }
        }
        Ok(tally)
    }

    fn fate(&self, call: CallId, range: Range<u64>) -> Result<Option<Outcome>, StoreError> {
        let mut fate = None;
        self.each_holding(&call.to_string(), range, |line| {
            if line.call == call {
                fate = line.fate().or(fate);
            }
        })?;
        Ok(fate)
    }

    fn each_holding(
        &self,
        text: &str,
        range: Range<u64>,
        mut each: impl FnMut(Gist),
    ) -> Result<(), StoreError> {
        let Some(file) = self.open_to_read()? else { return Ok(()) };
        let read = each_line(&file, range, |line| {
            if holds(line, text) {
                each(serde_json::from_slice(line)?);
            }
            io::Result::Ok(())
        });
        read.map(drop).map_err(failed("read", &self.path))
    }

    fn open_to_read(&self) -> Result<Option<File>, StoreError> {
        match File::open(&self.path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("open", &self.path)(error)),
        }
    }

    /// Does `work` while no other thread or process appends, with all that they appended seen.
    fn locked<T>(
        &self,
        work: impl FnOnce(&mut Tip<'_>, &mut Seen) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tip = Tip::lock(&self.path)?;
        seen.catch_up(&tip)?;
        work(&mut tip, &mut seen)
    }
}

impl Seen {
    fn catch_up(&mut self, tip: &Tip<'_>) -> Result<(), StoreError> {
        if self.until == tip.head.bytes {
            return Ok(());
        }
        // A chain that is shorter than it was is another one, put in its place.
        let from = if self.until < tip.head.bytes { self.until } else { 0 };
        let read = each_line(&tip.lines, from..tip.head.bytes, |line| {
            let line: Gist = serde_json::from_slice(line)?;
            if let Some(fate) = line.fate() {
                self.calls.record(line.call, fate);
            }
            io::Result::Ok(())
        });
        read.map_err(failed("read", tip.path))?;
        self.until = tip.head.bytes;
        Ok(())
    }
}

/// The end of a chain, held so that nobody else appends. Dropping it lets go.
struct Tip<'a> {
    path: &'a Path,
    lines: File,
    head_file: File,
    head: Head,
}

impl<'a> Tip<'a> {
    fn lock(path: &'a Path) -> Result<Self, StoreError> {
        let head_path = path.with_extension("head");
        let (head_file, fresh_head) = open_to_write(&head_path)?;
        head_file.lock().map_err(failed("lock", &head_path))?;
        let (lines, fresh_lines) = open_to_write(path)?;
        if fresh_head || fresh_lines {
            sync_directory(path)?;
        }
        let length = lines.metadata().map_err(failed("read", path))?.len();
        let head = match Head::read(&head_file) {
            Ok(Some(head)) => head,
            Ok(None) if length == 0 => start(&head_file).map_err(failed("write", &head_path))?,
            Ok(None) => return Err(damaged(path, "its head is missing; verify the ledger")),
            Err(error) => return Err(damaged(&head_path, format!("it does not read ({error})"))),
        };
        let mut tip = Self { path, lines, head_file, head };
        if length < head.bytes {
            let why = format!("it is cut off: {} entries should take {} bytes", head.count, head.bytes);
            return Err(damaged(path, why + "; verify the ledger"));
        }
        tip.recover(length)?;
        Ok(tip)
    }

    /// Takes in lines that the head does not know, and moves a torn one aside.
    fn recover(&mut self, length: u64) -> Result<(), StoreError> {
        let (path, mut head) = (self.path, self.head);
        each_line(&self.lines, head.bytes..length, |line| {
            match serde_json::from_slice::<Entry>(line) {
                Ok(entry) if entry.seq == head.count + 1 && entry.prev == head.hash => {
                    head = head.after(line, entry.record.call);
                }
                _ => return Err(io::Error::other(format!("entry {} does not fit", head.count + 1))),
            }
            Ok(())
        })
        .map_err(|error| damaged(path, format!("{error}; verify the ledger")))?;
        self.head = head;
        if head.bytes < length { self.move_torn_aside(length) } else { Ok(()) }
    }

    fn move_torn_aside(&self, length: u64) -> Result<(), StoreError> {
        let mut torn = vec![0; (length - self.head.bytes) as usize];
        self.lines.read_exact_at(&mut torn, self.head.bytes).map_err(failed("read", self.path))?;
        let (mut file, aside) = create_aside(self.path)?;
        file.write_all(&torn).and_then(|()| file.sync_all()).map_err(failed("write", &aside))?;
        self.lines.set_len(self.head.bytes).map_err(failed("shorten", self.path))
    }

    /// Writes a line and then the head. If either fails, the line is taken back.
    fn append(&mut self, node: &NodeId, record: &Record, seen: &mut Seen) -> Result<(), StoreError> {
        let (seq, prev) = (self.head.count + 1, self.head.hash);
        let entry = Entry { seq, node: node.clone(), record: record.clone(), prev };
        let mut line = serde_json::to_vec(&entry).map_err(io::Error::from).map_err(self.cannot_append())?;
        let head = self.head.after(&line, record.call);
        line.push(b'\n');
        let written = self
            .lines
            .write_all_at(&line, self.head.bytes)
            .and_then(|()| self.lines.sync_data())
            .and_then(|()| head.write(&self.head_file));
        if let Err(error) = written {
            // If this fails too, the next append finds a line that its head does not know.
            let _ = self.lines.set_len(self.head.bytes);
            return Err(self.cannot_append()(error));
        }
        self.head = head;
        seen.until = head.bytes;
        if let Some(fate) = fate(record) {
            seen.calls.record(record.call, fate);
        }
        Ok(())
    }

    fn cannot_append(&self) -> impl FnOnce(io::Error) -> StoreError {
        failed("append to", self.path)
    }
}

/// Writes the first head, before the first line: lines without a head are never the trace of a crash.
fn start(file: &File) -> io::Result<Head> {
    let head = Head::start();
    head.write(file).map(|()| head)
}

/// Opens a file of the ledger, and tells whether it is new.
fn open_to_write(path: &Path) -> Result<(File, bool), StoreError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    let opened = match options.open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            options.create(true).truncate(false).open(path).map(|file| (file, true))
        }
        opened => opened.map(|file| (file, false)),
    };
    opened.map_err(failed("open", path))
}

/// A new file is only there after a crash if its directory says so.
fn sync_directory(path: &Path) -> Result<(), StoreError> {
    let Some(directory) = path.parent() else { return Ok(()) };
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed("sync", directory))
}

/// A new file beside `path`, the first of `.torn-1`, `.torn-2`, ... that is free.
fn create_aside(path: &Path) -> Result<(File, PathBuf), StoreError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut n = 0;
    loop {
        n += 1;
        let aside = path.with_extension(format!("jsonl.torn-{n}"));
        match options.open(&aside) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            opened => return opened.map_err(failed("create", &aside)).map(|file| (file, aside)),
        }
    }
}
