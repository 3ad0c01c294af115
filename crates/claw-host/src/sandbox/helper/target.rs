//! The last steps of the process that becomes the command.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio as Stream};

use super::super::kernel::root::{During as _, Step};
use super::super::kernel::{privileges, sys};
use super::init::{Init, Rules};
use super::supervise::Stdio;

/// Becomes the command; comes back only to say why it could not. Where the sandbox was not entered by a process
/// above, there are no `rules` yet and this one enters it.
pub(super) fn become_command(
    init: &Init<'_>,
    rules: Option<Rules>,
    gate: File,
    stdio: Stdio,
) -> (String, io::Error) {
    match try_become(init, rules, gate, stdio) {
        Err(failure) => failure,
    }
}

fn try_become(init: &Init<'_>, rules: Option<Rules>, mut gate: File, stdio: Stdio) -> Step<Infallible> {
    let spec = init.spec;
    sys::reset_signals();
    rustix::process::setsid().during("begin a session")?;
    gate.read_exact(&mut [0]).during("wait for the limits")?;
    let rules = match rules {
        Some(rules) => rules,
        None => {
            init.enter()?;
            init.rules()?
        }
    };
    let at = format!("enter the directory `{}`", spec.directory.display());
    std::env::set_current_dir(&spec.directory).during(at)?;
    let (memory, processes) = spec
        .cgroup
        .as_ref()
        .map_or((false, false), |places| (places.memory.is_some(), places.processes.is_some()));
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
    command.stdin(Stream::from(input)).stdout(Stream::from(output)).stderr(Stream::from(error));
    sys::close_on_exec_from(3).during("close descriptors")?;
    rules.put_on()?;
    Err((format!("run `{program}`"), command.exec()))
}
