//! The processes below this one, as the kernel lists them: found, and killed until none is left.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process};

/// Kills every descendant of this process, and returns how many were found first.
pub(crate) fn end_descendants() -> u32 {
    let mut found = None;
    // A process that forks all the time is caught within a few rounds, since its children are found below it
    // or, when it has died, below this process.
    for _ in 0..2000 {
        let live = descendants();
        found.get_or_insert(live.len());
        if live.is_empty() {
            break;
        }
        for pid in live {
            let _ = kill_process(pid, Signal::KILL);
        }
        while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
        std::thread::sleep(Duration::from_millis(1));
    }
    while let Ok(Some(_)) = rustix::process::wait(WaitOptions::NOHANG) {}
    u32::try_from(found.unwrap_or(0)).unwrap_or(u32::MAX)
}

/// Returns the live descendants of this process.
pub(super) fn descendants() -> Vec<Pid> {
    let all: Vec<Process> = processes().collect();
    let mut below = vec![getpid()];
    let mut at = 0;
    while let Some(parent) = below.get(at).copied() {
        below.extend(all.iter().filter(|process| process.parent == Some(parent)).map(|process| process.pid));
        at += 1;
    }
    let live = |pid: &Pid| all.iter().any(|process| process.pid == *pid && !process.ended);
    below.into_iter().skip(1).filter(live).collect()
}

/// A process, as the kernel lists it.
pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) parent: Option<Pid>,
    pub(crate) ended: bool,
    /// True if a signal stopped it.
    pub(crate) stopped: bool,
}

/// Returns all visible processes.
pub(crate) fn processes() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name stands in brackets and may hold anything.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut rest = rest.split_whitespace();
        let (state, parent) = (rest.next()?, rest.next()?);
        let ended = matches!(state, "Z" | "X");
        let stopped = state.eq_ignore_ascii_case("t");
        Some(Process { pid, parent: Pid::from_raw(parent.parse().ok()?), ended, stopped })
    })
}
