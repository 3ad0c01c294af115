//! Looks after one command: starts it, waits for it, passes signals on, and leaves none of its processes behind.

use std::fs;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, set_dumpable_behavior,
};

use super::super::kernel::mounts::{During as _, Step};
use super::super::kernel::rename::Renames;
use super::super::kernel::sys;
use super::disk_space::Disk;
use super::init::Init;
use super::kill_processes::{descendants, end_descendants, processes};
use super::memory_file_systems::MemoryDisks;
use super::supervise::Stdio;
use super::target;
use super::wire::{self, Ending, KILL, TERMINATE, Told};

/// The interval between checks of the disk usage.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

pub(super) struct CommandParent<'a> {
    pub(super) init: &'a Init<'a>,
    /// True if this is the first process of a namespace: all others there belong to the command, and the
    /// sandbox has been entered.
    pub(super) alone: bool,
}

impl CommandParent<'_> {
    /// Runs the command to its end. Reports its start over `channel`, and kills it on request or when the
    /// other side of `channel` goes away.
    pub(super) fn see_through(&self, mut channel: &UnixStream, stdio: Stdio) -> Step<Ending> {
        let signals = sys::child_signals().during("receive signals of child processes")?;
        let (command, listener) = self.start(stdio)?;
        let held = self.init.spec.confined.as_ref();
        let renames =
            listener.zip(held).map(|(listener, held)| Renames::new(listener, &held.reach.workspace));
        let mut renames = renames.transpose().during("prepare the handling of renames")?;
        if self.alone {
            // Nothing of this process is to be looked at from inside.
            set_dumpable_behavior(DumpableBehavior::NotDumpable).during("close the first process")?;
        }
        let pid = command.as_raw_nonzero().get().unsigned_abs();
        let _ = wire::send_frame(channel, &Told::Started { pid });
        let disk = self.init.spec.limits.disk.map(|most| Disk::new(self.init, most));
        // A parent outside of the command's mounts does not see them.
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
                true => wire::receive_fds(&ours).during("receive the listener for renames")?,
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
