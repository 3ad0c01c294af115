//! The last steps of the process that becomes the command.

use std::convert::Infallible;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio as Stream};

use super::super::kernel::cgroup::{self, Places};
use super::super::kernel::mounts::{During as _, Step};
use super::super::kernel::{privileges, sys};
use super::init::{Init, Rules};
use super::supervise::Stdio;
use super::wire;

/// Becomes the command; returns only if that fails, with the reason. The `parent` gets the descriptor on which
/// renames arrive, if they are handed over. If no process above has entered the sandbox, there are no `rules`
/// yet and this one enters it.
pub(super) fn become_command(
    init: &Init<'_>,
    rules: Option<Rules>,
    stdio: Stdio,
    parent: &UnixStream,
) -> (String, io::Error) {
    match try_become(init, rules, stdio, parent) {
        Err(failure) => failure,
    }
}

fn try_become(init: &Init<'_>, rules: Option<Rules>, stdio: Stdio, parent: &UnixStream) -> Step<Infallible> {
    let spec = init.spec;
    sys::reset_signals();
    rustix::process::setsid().during("begin a session")?;
    if spec.terminal {
        rustix::process::ioctl_tiocsctty(&stdio[0]).during("take the terminal")?;
    }
    let rules = match rules {
        Some(rules) => rules,
        None => {
            if spec.cgroup.is_some() {
                cgroup::go_first();
            }
            init.enter()?;
            init.rules(false)?
        }
    };
    let at = format!("enter the directory `{}`", spec.directory.display());
    std::env::set_current_dir(&spec.directory).during(at)?;
    // Where no group counts them, each process has its share; on the host neither is limited, since the address
    // space says little of the memory that is used, and all processes of the user would count.
    let counted = |place: fn(&Places) -> &Option<PathBuf>| match (&spec.confined, &spec.cgroup) {
        (None, _) => true,
        (Some(_), places) => places.as_ref().is_some_and(|places| place(places).is_some()),
    };
    let (memory, processes) = (counted(|places| &places.memory), counted(|places| &places.processes));
    privileges::limit(&spec.limits, memory, processes).during("limit the process")?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let (program, arguments) = spec
        .argv
        .split_first()
        .ok_or(io::ErrorKind::InvalidInput)
        .map_err(io::Error::from)
        .during("read the command")?;
    let [input, output, error] = stdio;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(spec.env.iter().map(|(name, value)| (name, value)));
    if spec.confined.is_some() {
        command.env("TMPDIR", &init.temporary);
    }
    if let Some(home) = init.home() {
        command.env("HOME", home);
    }
    command.stdin(Stream::from(input)).stdout(Stream::from(output)).stderr(Stream::from(error));
    sys::close_on_exec_from(3).during("close descriptors")?;
    if let Some(listener) = rules.put_on()? {
        wire::send_fds(parent, b'L', &[listener.as_fd()]).during("send the listener for renames")?;
    }
    Err((format!("run `{program}`"), command.exec()))
}
