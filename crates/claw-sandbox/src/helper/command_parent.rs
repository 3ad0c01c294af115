//! Looks after one command: starts it, waits for it, passes signals on, and leaves none of its processes behind.

use std::fs;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_dumpable_behavior,
};

use super::super::kernel::mounts::{During as _, Step};
use super::super::kernel::rename::Renames;
use super::super::kernel::sys;
use super::init::Init;
use super::memory_file_systems::MemoryDisks;
use super::supervise::Stdio;
use super::target;
use super::wire::{self, Ending, KILL, TERMINATE, Told};

/// The interval between checks of the disk usage.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

pub(super) struct Nurse<'a> {
    pub(super) init: &'a Init<'a>,
    /// True if this is the first process of a namespace: all others there belong to the command, and the
    /// sandbox has been entered.
    pub(super) alone: bool,
}

impl Nurse<'_> {
    /// Runs the command to its end. Reports its start over `channel`, and kills it on request or when the
    /// other side of `channel` goes away.
    pub(super) fn see_through(&self, mut channel: &UnixStream, stdio: Stdio) -> Step<Ending> {
        let signals = sys::child_signals().during("hear of children")?;
        let (command, listener) = self.start(stdio)?;
        let held = self.init.spec.confined.as_ref();
        let renames =
            listener.zip(held).map(|(listener, held)| Renames::new(listener, &held.reach.workspace));
        let mut renames = renames.transpose().during("look after renames")?;
        if self.alone {
            // Nothing of this process is to be looked at from inside.
            set_dumpable_behavior(DumpableBehavior::NotDumpable).during("close the first process")?;
        }
        let pid = command.as_raw_nonzero().get().unsigned_abs();
        let _ = wire::send_frame(channel, &Told::Started { pid });
        let disk = self.init.spec.limits.disk.map(|most| Disk::new(self.init, most));
        // A nurse outside of the command's mounts does not see them.
        let has_mounts = held.is_some_and(|held| !held.shares_files && (self.alone || held.namespaces == 0));
        let mut in_memory = if has_mounts { MemoryDisks::find() } else { MemoryDisks::default() };
        let looks = disk.is_some() || !in_memory.is_empty();
        let (mut ending, mut listening) = (Ending::default(), true);
        let status = loop {
            let mut waiting = vec![PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)];
            // One that is not to be waited for stands for nothing.
            let asked = if listening { channel.as_fd() } else { signals.as_fd() };
            waiting.push(PollFd::from_borrowed_fd(asked, PollFlags::IN));
            if let Some(renames) = &renames {
                waiting.push(PollFd::from_borrowed_fd(renames.listener(), PollFlags::IN));
            }
            match poll(&mut waiting, looks.then_some(&LOOK)) {
                Err(rustix::io::Errno::INTR) => continue,
                polled => polled.during("wait for the command")?,
            };
            let renaming = waiting.get(2).map(PollFd::revents).unwrap_or_else(PollFlags::empty);
            if listening && !waiting[1].revents().is_empty() {
                let mut byte = [0];
                match channel.read(&mut byte) {
                    Ok(1) if byte[0] == TERMINATE => self.signal(Signal::TERM),
                    Ok(1) if byte[0] == KILL => self.signal(Signal::KILL),
                    _ => {
                        listening = false;
                        self.signal(Signal::KILL);
                    }
                }
            }
            if renaming.contains(PollFlags::IN) {
                renames.take_if(|renames| renames.serve().is_err());
            } else if !renaming.is_empty() {
                // Nobody is left under the filter.
                renames = None;
            }
            in_memory.look();
            if !ending.disk && disk.as_ref().is_some_and(Disk::is_full) {
                ending.disk = true;
                self.signal(Signal::KILL);
            }
            let mut drained = [0; 512];
            let _ = rustix::io::read(&signals, &mut drained);
            if let Some(status) = reap(command) {
                break status;
            }
        };
        if let Some(renames) = &mut renames {
            renames.end();
        }
        ending.full = in_memory.full();
        ending.exit = status.exit_status();
        ending.signal = status.terminating_signal();
        // Orphans become children of this process, so without children there is nobody.
        if !matches!(rustix::process::wait(WaitOptions::NOHANG), Err(rustix::io::Errno::CHILD)) {
            ending.stragglers = if self.alone { others() } else { end_descendants() };
        }
        Ok(ending)
    }

    /// Starts the command, and returns once it runs or has failed to start.
    fn start(&self, stdio: Stdio) -> Step<(Pid, Option<OwnedFd>)> {
        let rules = if self.alone { Some(self.init.rules(true)?) } else { None };
        let (mut failure, told) = pipe().during("make a pipe")?;
        let (ours, theirs) = wire::pair().during("make a socket")?;
        let hands_over = rules.as_ref().is_some_and(|rules| rules.hands_over);
        let (mut told, mut stdio) = (Some(told), Some(stdio));
        let namespaces = if self.alone { 0 } else { self.init.namespaces() };
        let command = sys::fork(namespaces, || {
            let (Some(mut told), Some(stdio)) = (told.take(), stdio.take()) else { return 1 };
            let (step, error) = target::become_command(self.init, rules, stdio, &theirs);
            let _ = wire::send_frame(&mut told, &Told::Failed { step, reason: error.to_string() });
            127
        });
        let command = command.during("start a process")?;
        drop((told, stdio, theirs));
        let mut said = Vec::new();
        failure.read_to_end(&mut said).during("wait for the start")?;
        if said.is_empty() {
            let listener = match hands_over {
                true => wire::receive_fds(&ours).during("take renames over")?,
                false => None,
            };
            return Ok((command, listener.and_then(|(_, fds)| fds.into_iter().next())));
        }
        match wire::receive_frame(said.as_slice()) {
            Ok(Told::Failed { step, reason }) => Err((step, io::Error::other(reason))),
            _ => Err(("start".into(), io::Error::other("the process ended without an answer"))),
        }
    }

    /// Signals every process of the command.
    fn signal(&self, signal: Signal) {
        if self.alone {
            sys::signal_all(signal.as_raw());
        } else {
            for pid in descendants() {
                let _ = kill_process(pid, signal);
            }
        }
    }
}

fn pipe() -> io::Result<(fs::File, fs::File)> {
    let (read, write): (OwnedFd, OwnedFd) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    Ok((read.into(), write.into()))
}

/// Reaps all ended children; returns the status of the command, if it is among them.
fn reap(command: Pid) -> Option<WaitStatus> {
    let mut found = None;
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == command && !status.stopped() && !status.continued() {
            found = Some(status);
        }
    }
    found
}

/// Returns the number of live processes in this namespace beside the first.
fn others() -> u32 {
    let own = getpid();
    let live = processes().filter(|process| process.pid != own && !process.ended);
    u32::try_from(live.count()).unwrap_or(u32::MAX)
}

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
fn descendants() -> Vec<Pid> {
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

/// The disk that the workspace is on, and how much of it may go.
struct Disk {
    path: std::path::PathBuf,
    floor: Free,
}

/// Free bytes and inodes of a disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Free {
    bytes: u64,
    inodes: u64,
}

impl Free {
    fn on(path: &std::path::Path) -> Option<Self> {
        let disk = rustix::fs::statvfs(path).ok()?;
        Some(Self { bytes: disk.f_bfree.checked_mul(disk.f_frsize)?, inodes: disk.f_ffree })
    }

    /// The least that has to stay free if a command may use `most` bytes: half of both, however large the limit is.
    fn floor(self, most: u64) -> Self {
        Self { bytes: self.bytes.saturating_sub(most).max(self.bytes / 2), inodes: self.inodes / 2 }
    }

    /// Returns whether less is free than has to stay. A file system without a fixed number of inodes reports none, so its
    /// floor is 0.
    fn is_below(self, floor: Self) -> bool {
        self.bytes < floor.bytes || self.inodes < floor.inodes
    }
}

impl Disk {
    fn new(init: &Init<'_>, most: u64) -> Self {
        let held = init.spec.confined.as_ref();
        let path = held.map_or(&init.spec.directory, |held| &held.reach.workspace).clone();
        let floor = Free::on(&path).map_or_else(Free::default, |free| free.floor(most));
        Self { path, floor }
    }

    fn is_full(&self) -> bool {
        Free::on(&self.path).is_some_and(|free| free.is_below(self.floor))
    }
}

#[cfg(test)]
mod tests {
    use super::Free;

    #[test]
    fn a_command_that_uses_up_inodes_is_stopped_like_one_that_uses_up_bytes() {
        let free = |bytes, inodes| Free { bytes, inodes };
        let floor = free(1000, 100).floor(300);
        assert_eq!(floor, free(700, 50));
        assert!(!free(700, 50).is_below(floor));
        assert!(free(699, 100).is_below(floor));
        assert!(free(1000, 49).is_below(floor));
        // The file system makes inodes as it needs them, and reports none.
        assert!(!free(1000, 0).is_below(free(1000, 0).floor(300)));
    }
}
