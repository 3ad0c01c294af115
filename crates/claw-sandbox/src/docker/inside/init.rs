//! The first process of a container. It can be neither ended nor stopped from inside, and ends the container by ending.
//!
//! A command can stop its keepers, which have the same user. A stopped keeper obeys nobody, so the whole
//! container is ended.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{DumpableBehavior, WaitOptions, set_dumpable_behavior, wait};

use super::super::super::helper::{Process, processes};
use super::super::super::kernel::sys;

/// Runs until it is told to end, the container is idle for a while, or it is old and unused.
pub(super) fn stay(idle: Duration, age: Duration) -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let signals = sys::signals(&[libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGUSR1])?;
    let tick = (idle / 8).clamp(Duration::from_millis(50), Duration::from_secs(1));
    let tick = Timespec { tv_sec: tick.as_secs().cast_signed(), tv_nsec: tick.subsec_nanos().into() };
    let begun = Instant::now();
    let (mut used, mut seen, mut retired) = (begun, newest(), false);
    loop {
        let mut waiting = [PollFd::new(&signals, PollFlags::IN)];
        match poll(&mut waiting, Some(&tick)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        while let Some((signal, outside)) = next(&signals) {
            match signal {
                libc::SIGTERM | libc::SIGINT if outside => return Ok(()),
                libc::SIGUSR1 if outside => retired = true,
                _ => {}
            }
        }
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        let now = newest();
        let all: Vec<Process> =
            processes().filter(|process| !process.ended && !process.pid.is_init()).collect();
        // A process without a parent here came from outside: a keeper. Only a command stops it.
        if all.iter().any(|process| process.stopped && process.parent.is_none()) {
            return Ok(());
        }
        let alone = all.is_empty();
        if now != seen || !alone {
            (seen, used) = (now, Instant::now());
        }
        if alone && (retired || used.elapsed() >= idle || begun.elapsed() >= age) {
            return Ok(());
        }
    }
}

/// Returns the last process id given out: if it changes, somebody was here, however briefly.
fn newest() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().last().unwrap_or_default().to_owned()
}

/// Returns the next signal, and whether it came from outside the container: signals from inside are ignored.
/// The sender's id is 0 from outside, and the kernel marks it as sent by plain `kill`.
fn next(signals: &OwnedFd) -> Option<(i32, bool)> {
    let mut bytes = [0; 128];
    let whole = rustix::io::read(signals, &mut bytes).is_ok_and(|count| count == bytes.len());
    let word = |at: usize| Some(i32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let (signal, code, sender) = (word(0)?, word(8)?, word(12)?);
    whole.then_some((signal, code == libc::SI_USER && sender == 0))
}
