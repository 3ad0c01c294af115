//! The helper: this program again, with one thread and nothing in its environment.
//!
//! It is started once and forks a supervisor if none is idle. The supervisor sets up the limits and the
//! namespaces, in which the first process looks after the command; after its end the supervisor can be given
//! another. Each of the three kills its children when its parent is gone, so that nothing outlives the
//! program, however it ended.

mod command_parent;
mod disk_space;
mod init;
mod kill_processes;
mod memory_file_systems;
mod supervise;
mod target;
pub(super) mod wire;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(feature = "docker")]
use super::docker::inside;
use super::kernel::{probe, sys};

pub(super) use kill_processes::{Process, end_descendants, processes};
pub(super) use supervise::see_through;

const NAME: &str = "clawsmith-sandbox-helper";
const SERVE: &str = "serve-sandboxes-on-standard-input";

static LETS_IN: AtomicBool = AtomicBool::new(false);

/// Becomes the sandbox helper if this process was started as one, and then does not return. To be called
/// first in `main`, before there is a second thread: the helper is this program executed again, and without
/// this call it would run the program's own `main` instead. So without it, no helper is started.
pub fn enter_if_asked() {
    #[cfg(feature = "docker")]
    inside::enter_if_asked();
    let mut arguments = std::env::args_os();
    if arguments.next().is_some_and(|name| name == NAME) && arguments.next().is_some_and(|word| word == SERVE)
    {
        // Nobody reads what it could say; the other side sees that it is gone.
        sys::exit(u8::from(serve().is_err()));
    }
    LETS_IN.store(true, Ordering::Release);
}

/// Returns whether the helper can be started.
pub(super) fn is_let_in() -> bool {
    LETS_IN.load(Ordering::Acquire)
}

/// Starts the helper. It serves requests from the socket until that is closed.
pub(super) fn start() -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = wire::pair()?;
    // The link leads to the program that runs now, even if its file was replaced meanwhile.
    let child = Command::new("/proc/self/exe")
        .arg0(NAME)
        .arg(SERVE)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok((child, ours))
}

fn serve() -> io::Result<()> {
    sys::close_from(3)?;
    let mut requests = io::stdin().as_fd().try_clone_to_owned()?;
    let null = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    // Not in the terminal's session: what is typed there is not meant for the helper.
    let _ = rustix::process::setsid();
    sys::reset_signals();
    sys::forget_children();
    while let Some((request, fds)) = wire::receive_fds(&requests)? {
        let Some(socket) = fds.into_iter().next() else { continue };
        let served = sys::fork(0, || {
            // This copy of the helper's own socket must not stay open, or its death would not be noticed.
            let socket = replace(&mut requests, socket);
            match (socket, request) {
                (Ok(socket), wire::RUN) => supervise::supervise(socket),
                (Ok(socket), wire::PROBE) => {
                    sys::reset_signals();
                    u8::from(wire::send_frame(socket, &probe::Found::look()).is_err())
                }
                _ => 1,
            }
        });
        // The socket is closed here, and so the other side hears of it.
        drop(served);
    }
    Ok(())
}

/// Replaces the descriptor `old`, which this process only inherited, by `with`.
fn replace(old: &mut OwnedFd, with: OwnedFd) -> io::Result<UnixStream> {
    rustix::io::dup3(&with, old, rustix::io::DupFlags::CLOEXEC)?;
    Ok(with.into())
}
