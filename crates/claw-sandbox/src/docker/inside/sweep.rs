//! Kills the processes of a command whose keeper is gone.

use std::collections::HashMap;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, kill_process};

use super::super::super::helper::processes;

/// Kills every process without a keeper above it, and returns how many were found. A keeper adopts the
/// orphans of its command and comes from outside; so a process that was adopted by the first process has no
/// keeper any more.
pub(super) fn sweep() -> u32 {
    let mut found = 0;
    for _ in 0..200 {
        let left = orphans();
        found = found.max(u32::try_from(left.len()).unwrap_or(u32::MAX));
        if left.is_empty() {
            break;
        }
        for pid in left {
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    found
}

fn orphans() -> Vec<Pid> {
    let all: HashMap<Pid, (Option<Pid>, bool)> =
        processes().map(|process| (process.pid, (process.parent, process.ended))).collect();
    let below_first = |pid: &Pid| {
        let mut at = *pid;
        for _ in 0..all.len() {
            match all.get(&at).and_then(|(parent, _)| *parent) {
                Some(parent) if parent.is_init() => return true,
                Some(parent) => at = parent,
                None => return false,
            }
        }
        false
    };
    let live = all.iter().filter(|(_, (_, ended))| !ended).map(|(pid, _)| *pid);
    live.filter(|pid| !pid.is_init() && *pid != getpid() && below_first(pid)).collect()
}
