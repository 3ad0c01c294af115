//! The supervisor of a command at a time: outside of its sandbox, between it and the program.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid};

use super::super::kernel::cgroup::{self, Group};
use super::super::kernel::mounts::{During as _, Step};
use super::super::kernel::sys;
use super::command_parent::CommandParent;
use super::init::Init;
use super::kill_processes;
use super::wire::{self, Ending, KILL, Spec, TERMINATE, Told};

/// The standard input, output and error of a command.
pub(crate) type Stdio = [OwnedFd; 3];

/// Reads commands, runs each to its end and reports it, until none is requested any more. After a failure it
/// exits: the state of its groups and namespaces is unknown.
pub(super) fn supervise(mut control: UnixStream) -> u8 {
    let _ = rustix::process::setsid();
    sys::reset_signals();
    let mut group = None;
    loop {
        let told = match read(&control) {
            Ok(None) => return 0,
            Ok(Some((spec, stdio))) => run(&control, spec, stdio, &mut group),
            Err(failure) => Err(failure),
        };
        let (told, failed) = match told {
            Ok(ending) => (Told::Ended(ending), false),
            Err((step, error)) => (Told::Failed { step, reason: error.to_string() }, true),
        };
        if wire::send_frame(&mut control, &told).is_err() || failed {
            return 1;
        }
    }
}

fn read(control: &UnixStream) -> Step<Option<(Spec, Stdio)>> {
    let fds = loop {
        match wire::receive_fds(control).during("receive the command")? {
            None => return Ok(None),
            // Meant for the command before, which had ended.
            Some((TERMINATE | KILL, _)) => {}
            Some((_, fds)) => break fds,
        }
    };
    let stdio = Stdio::try_from(fds).map_err(|_| io::Error::from(io::ErrorKind::UnexpectedEof));
    let stdio = stdio.during("receive its streams")?;
    Ok(Some((wire::receive_frame(control).during("read the command")?, stdio)))
}

/// Runs a command to its end in a place set up by others, such as a container.
pub(crate) fn see_through(mut control: &UnixStream, spec: &Spec, stdio: Stdio) -> u8 {
    let init = Init::new(spec, Path::new("/tmp"));
    let parent = CommandParent { init: &init, alone: false };
    let ended = set_child_subreaper(Some(getpid())).during("adopt orphans").and_then(|()| {
        parent.see_through(control, stdio).inspect_err(|_| _ = kill_processes::end_descendants())
    });
    let told = match ended {
        Ok(ending) => Told::Ended(ending),
        Err((step, error)) => Told::Failed { step, reason: error.to_string() },
    };
    u8::from(wire::send_frame(&mut control, &told).is_err())
}

fn run(control: &UnixStream, spec: Spec, stdio: Stdio, group: &mut Option<Group>) -> Step<Ending> {
    if let Some(places) = &spec.cgroup {
        group.take_if(|group| !group.suits(places, &spec.limits));
        if group.is_none() {
            *group = Some(Group::enter(places, &spec.limits).during("enter control groups")?);
        }
    }
    let out_of_memory = || group.as_ref().map_or(0, Group::out_of_memory);
    let before = out_of_memory();
    let own_processes = spec.confined.as_ref().is_some_and(|held| held.namespaces & libc::CLONE_NEWPID != 0);
    let own_mounts = spec.confined.as_ref().is_some_and(|held| held.namespaces & libc::CLONE_NEWNS != 0);
    let scratch = (spec.confined.is_some() && !own_mounts).then(Scratch::make);
    let scratch = scratch.transpose().during("make a temporary directory")?;
    let temporary = scratch.as_ref().map_or(Path::new("/tmp"), |scratch| &scratch.0);
    let init = Init::new(&spec, temporary);
    let mut ending = if own_processes {
        inside(control, &init, stdio)?
    } else {
        set_child_subreaper(Some(getpid())).during("adopt orphans")?;
        let parent = CommandParent { init: &init, alone: false };
        // Were it not to be waited for, it must not go on either.
        parent.see_through(control, stdio).inspect_err(|_| _ = kill_processes::end_descendants())?
    };
    ending.memory = out_of_memory() > before;
    Ok(ending)
}

/// Runs the command under a first process in a namespace of its own, and forwards messages both ways.
fn inside(control: &UnixStream, init: &Init<'_>, stdio: Stdio) -> Step<Ending> {
    let (ours, theirs) = wire::pair().during("make a socket")?;
    let mut ours = OwnedFd::from(ours);
    let (mut theirs, mut stdio) = (Some(OwnedFd::from(theirs)), Some(stdio));
    let first = sys::fork(init.namespaces(), || {
        let (Some(theirs), Some(stdio)) = (theirs.take(), stdio.take()) else { return 1 };
        match super::replace(&mut ours, theirs) {
            Ok(channel) => first(init, &channel, stdio),
            Err(_) => 1,
        }
    });
    let first = first.during("make namespaces")?;
    drop((theirs, stdio));
    let told = relay(control, &UnixStream::from(ours), first);
    // With its first process the whole namespace ends, and this waits until it has.
    let _ = kill_process(first, Signal::KILL);
    while waitpid(Some(first), WaitOptions::empty()).is_err_and(|error| error == rustix::io::Errno::INTR) {}
    told
}

/// The first process of the namespace, which furnishes it.
fn first(init: &Init<'_>, channel: &UnixStream, stdio: Stdio) -> u8 {
    cgroup::go_first();
    let parent = CommandParent { init, alone: true };
    let ended = init.enter().and_then(|()| parent.see_through(channel, stdio));
    let told = match ended {
        Ok(ending) => Told::Ended(ending),
        Err((step, error)) => Told::Failed { step, reason: error.to_string() },
    };
    u8::from(wire::send_frame(channel, &told).is_err())
}

fn relay(mut control: &UnixStream, mut channel: &UnixStream, first: Pid) -> Step<Ending> {
    let mut listening = true;
    loop {
        let mut waiting = vec![PollFd::from_borrowed_fd(channel.as_fd(), PollFlags::IN)];
        if listening {
            waiting.push(PollFd::from_borrowed_fd(control.as_fd(), PollFlags::IN));
        }
        match poll(&mut waiting, None) {
            Err(rustix::io::Errno::INTR) => continue,
            polled => polled.during("wait for the command")?,
        };
        let (told, asked) = (!waiting[0].revents().is_empty(), waiting.get(1).is_some_and(ready));
        if told {
            match wire::receive_frame(channel) {
                Ok(Told::Ended(ending)) => return Ok(ending),
                Ok(Told::Failed { step, reason }) => return Err((step, io::Error::other(reason))),
                Ok(Told::Started { .. }) => {
                    // Inside it has another number than out here.
                    let pid = first.as_raw_nonzero().get().unsigned_abs();
                    wire::send_frame(control, &Told::Started { pid }).unwrap_or(());
                }
                // It was killed, and with it all the others.
                Err(_) => return Ok(Ending { signal: Some(Signal::KILL.as_raw()), ..Ending::default() }),
            }
        }
        if asked {
            let mut byte = [0];
            match control.read(&mut byte) {
                Ok(1) if byte[0] != KILL => channel.write_all(&byte).unwrap_or(()),
                Ok(1) => channel.write_all(&byte).unwrap_or_else(|_| end(first)),
                _ => {
                    listening = false;
                    end(first);
                }
            }
        }
    }
}

fn ready(fd: &PollFd<'_>) -> bool {
    !fd.revents().is_empty()
}

fn end(first: Pid) {
    let _ = kill_process(first, Signal::KILL);
}

/// A temporary directory if `/tmp` is shared; removed when the command has ended.
struct Scratch(PathBuf);

impl Scratch {
    fn make() -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt as _;
        let path = PathBuf::from(format!("/tmp/clawsmith-{}", std::process::id()));
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
