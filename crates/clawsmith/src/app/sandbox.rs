//! The sandbox of commands, as a person examines it: its parts and whether they work here, the reach of a command,
//! attempts to get out, and one command run in it.

mod report;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use claw_core::port::{CommandHome, FileChange, RunContext};
use claw_core::tool::{Effect, Effects, Progress};
use claw_policy::sandbox_mode::SandboxMode;
use claw_sandbox::docker::{DockerCommand, DockerShell};
use claw_sandbox::shell::{Finished, LocalShell, Reason, ShellOptions};
use claw_sandbox::{Grant, Launcher, Network, SandboxError, Stopped};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

pub use self::report::{PartState, ReachedPath, SandboxPart, SandboxStatus};
use super::{Error, Setup};
use crate::config::SandboxBackend;

/// Escape attempts on files that are the machine's in the kernel sandbox, and the image's in a container.
const KERNEL_TRIES: &[(&str, &str)] = &[
    ("read /etc/shadow", "read line < /etc/shadow"),
    (
        "list the home of root",
        "for home in ~root /root; do for path in $home/* $home/.[!.]*; do test ! -e \"$path\" || exit 0; done; done; exit 1",
    ),
    ("write to /usr", ": > /usr/clawsmith-probe"),
];

/// Escape attempts for containers only.
const DOCKER_TRIES: &[(&str, &str)] = &[
    ("write to the image", "(: > /clawsmith-probe) || (: > /bin/clawsmith-probe)"),
    ("reach the engine", "test -e /var/run/docker.sock || test -e /run/docker.sock"),
    ("change this program", "echo x >> /.clawsmith/program"),
];

/// The exit code of a shell that does not find a program.
const NOT_FOUND: i32 = 127;

/// Escape attempts for both: a name, and a script that succeeds only if it got out. A small system has few programs,
/// and one that is missing proves nothing: only `mount` and `unshare` are needed.
const TRIES: &[(&str, &str)] = &[
    ("write to the kernel's settings", "echo x > /proc/sys/kernel/hostname"),
    ("see the program's processes", "set -- /proc/[0-9]*; test $# -gt 12"),
    ("signal the program", "kill -0 $PROGRAM"),
    ("mount a file system", "mount -t tmpfs none /tmp"),
    ("make a user namespace", "unshare -U true"),
    (
        "see an interface that is up",
        "for file in /sys/class/net/*/operstate; do read state < $file; test \"$state\" != up || exit 0; done; exit 1",
    ),
    (
        "see a block device",
        "for path in /dev/sd* /dev/vd* /dev/nvme* /dev/loop*; do test ! -e $path || exit 0; done; exit 1",
    ),
    ("write to a terminal", "echo x > /dev/tty"),
];

/// The number of commands whose median time is the cost.
const RUNS: u32 = 20;

/// The reach of a command.
#[derive(Debug, Clone)]
pub struct CommandReach {
    /// The workspace.
    pub workspace: PathBuf,
    /// The workspace cannot be changed.
    pub read_only: bool,
    /// Other paths.
    pub grants: Vec<Grant>,
    /// The network.
    pub network: Network,
}

/// The sandbox for one command.
pub struct CommandSandbox {
    mode: SandboxMode,
    launcher: Arc<Launcher>,
    options: ShellOptions,
    context: RunContext,
    /// The shell for containers; `None` if the sandbox is the kernel's.
    docker: Option<DockerShell>,
}

/// The result of trying to get out.
#[derive(Debug, Serialize)]
pub struct SandboxProbe {
    /// No attempt got out.
    pub held: bool,
    /// The attempts.
    pub tries: Vec<SandboxTry>,
    /// The cost of a command that does nothing.
    pub cost: SandboxCost,
    /// The reason why changes of commands in the current directory cannot be undone; `None` if they can.
    pub not_undoable: Option<String>,
}

/// An attempt to get out.
#[derive(Debug, Serialize)]
pub struct SandboxTry {
    /// The attempt.
    #[serde(rename = "try")]
    pub what: &'static str,
    /// It did not succeed; `None` if it could not be tried, since a program is missing.
    pub held: Option<bool>,
    /// The first line that it was told.
    pub said: String,
}

/// The median time of a command that does nothing, in milliseconds.
#[derive(Debug, Serialize)]
pub struct SandboxCost {
    /// In the sandbox.
    pub sandbox_ms: f64,
    /// On the host.
    pub host_ms: f64,
}

/// A command that ran in the sandbox.
#[derive(Debug, Serialize)]
pub struct SandboxRun {
    /// Its changes, which were discarded.
    pub discarded: Vec<FileChange>,
    /// Its exit code.
    pub exit: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Why it was stopped.
    pub stopped: Option<&'static str>,
    /// Processes that it left running, which were ended.
    pub stragglers: u32,
    /// Bytes left out of the output.
    pub dropped: u64,
    /// The output.
    pub output: String,
}

impl Setup {
    /// The sandbox for a command of this reach. The data directory is never shown to a command, wherever the
    /// workspace is.
    pub fn command_sandbox(&self, reach: CommandReach) -> Result<CommandSandbox, Error> {
        self.make_private_directories();
        let unusable = format!("the workspace `{}` cannot be used", reach.workspace.display());
        let workspace =
            reach.workspace.canonicalize().map_err(|error| Error::invalid(unusable).because(error))?;
        let options = ShellOptions { grants: reach.grants, network: reach.network, ..self.shell_options() };
        let context = RunContext {
            effects: match reach.read_only {
                true => Effects::ALL.without(Effects::of(&[Effect::Write])),
                false => Effects::ALL,
            },
            granted: self.granted_to_commands()?,
            home: Some(CommandHome { key: "cli".into(), write: true }),
            ..RunContext::new(workspace, "cli")
        };
        let launcher = Arc::<Launcher>::default();
        let docker = (self.config().sandbox.backend == SandboxBackend::Docker).then(|| {
            let local = LocalShell::new(Arc::clone(&launcher), options.clone());
            DockerShell::new(local, self.docker_options())
        });
        Ok(CommandSandbox { mode: self.config().sandbox.mode, launcher, options, context, docker })
    }

    /// Returns the reason why changes of commands in the current directory cannot be undone; `None` if they can.
    pub(crate) async fn not_undoable(&self) -> Result<Option<String>, Error> {
        let workspace = self.around.directory.clone();
        let reach = CommandReach { workspace, read_only: false, grants: Vec::new(), network: Network::None };
        Ok(self.command_sandbox(reach)?.not_undoable().await)
    }

    /// Runs commands that try to escape, and measures the cost of the sandbox.
    pub async fn probe_sandbox(&self) -> Result<SandboxProbe, Error> {
        let workspace =
            tempfile::tempdir().map_err(|error| Error::failed("no temporary directory").because(error))?;
        let mut sandbox = self.command_sandbox(CommandReach {
            workspace: workspace.path().to_owned(),
            read_only: false,
            grants: Vec::new(),
            network: Network::None,
        })?;
        let mut tries = Vec::new();
        let own = if sandbox.docker.is_some() { DOCKER_TRIES } else { KERNEL_TRIES };
        for (what, script) in own.iter().chain(TRIES) {
            let script = script.replace("$PROGRAM", &std::process::id().to_string());
            let finished = sandbox.finish(&["/bin/sh".to_owned(), "-c".to_owned(), script]).await?;
            let said = finished.output.lines().next().unwrap_or_default().to_owned();
            let exit = finished.ended.exit;
            let held = (exit != Some(NOT_FOUND)).then_some(exit != Some(0));
            tries.push(SandboxTry { what, held, said });
        }
        let sandbox_ms = sandbox.cost().await?;
        sandbox.context.sandboxed = false;
        let cost = SandboxCost { sandbox_ms, host_ms: sandbox.cost().await? };
        let held = tries.iter().all(|one| one.held != Some(false));
        Ok(SandboxProbe { held, tries, cost, not_undoable: self.not_undoable().await? })
    }
}

/// A command to run in a sandbox.
#[derive(Debug, Clone, Copy)]
pub struct SandboxedCommand<'a> {
    /// The program and its arguments.
    pub argv: &'a [String],
    /// The time after which the command is ended.
    pub timeout: Duration,
    /// True if changes of the command are shown and discarded; otherwise they are kept.
    pub discard: bool,
}

impl CommandSandbox {
    /// Returns whether it is made of containers.
    pub fn is_docker(&self) -> bool {
        self.docker.is_some()
    }

    /// Returns the reason why no layer can be made over the workspace; `None` if one can.
    async fn not_undoable(&self) -> Option<String> {
        if self.is_docker() {
            return Some("commands in containers write to the workspace directly".to_owned());
        }
        let shell = self.local();
        let command = shell.command(&self.context, vec!["/bin/true".to_owned()], "", &[]).await;
        match shell.finish_discarding(&self.context, command).await {
            Ok(_) => None,
            Err(SandboxError::NoLayer(reason)) => Some(reason),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Runs a command. Its output is shown as it comes; `cancel` ends it.
    pub async fn run(
        mut self,
        SandboxedCommand { argv, timeout, discard }: SandboxedCommand<'_>,
        progress: Progress,
        cancel: CancellationToken,
    ) -> Result<SandboxRun, Error> {
        if discard && self.is_docker() {
            return Err(Error::invalid(
                "`--discard` needs the kernel sandbox, and `sandbox.backend` is `docker`",
            ));
        }
        self.options.sandbox_timeout = timeout;
        if let Some(docker) = self.docker.take() {
            self.docker = Some(DockerShell::new(self.local(), docker.options().clone()));
        }
        (self.context.progress, self.context.cancel) = (progress, cancel);
        let (finished, discarded) = match discard {
            true => self.finish_discarding(argv).await?,
            false => (self.finish(argv).await?, Vec::new()),
        };
        Ok(SandboxRun {
            discarded,
            exit: finished.ended.exit,
            signal: finished.ended.signal,
            stopped: stopped(&finished),
            stragglers: finished.ended.stragglers,
            dropped: finished.dropped,
            output: finished.output,
        })
    }

    fn local(&self) -> LocalShell {
        LocalShell::new(Arc::clone(&self.launcher), self.options.clone())
    }

    async fn finish(&self, argv: &[String]) -> Result<Finished, Error> {
        if let Some(docker) = self.docker.as_ref().filter(|_| self.context.sandboxed) {
            let command = DockerCommand { argv: argv.to_vec(), ..DockerCommand::default() };
            return docker.finish(&self.context, command).await.map_err(not_run);
        }
        let shell = self.local();
        let command = shell.command(&self.context, argv.to_vec(), "", &[]).await;
        shell.finish(&self.context, command).await.map_err(|error| match (&error, argv.first()) {
            // The sandbox stood; what was to run in it is not there.
            (SandboxError::Start { step, reason }, Some(program)) if step.starts_with("run `") => {
                Error::failed(format!("`{program}` cannot be run: {reason}")).hint(
                    match program.contains('/') {
                        true => {
                            "check that the file exists, is executable, and can be reached from the sandbox \
                             (`--grant`)"
                        }
                        false => {
                            "check that it is installed where the sandbox can reach it, or give its full path"
                        }
                    },
                )
            }
            _ => not_run(error),
        })
    }

    async fn finish_discarding(&self, argv: &[String]) -> Result<(Finished, Vec<FileChange>), Error> {
        let shell = self.local();
        let command = shell.command(&self.context, argv.to_vec(), "", &[]).await;
        shell.finish_discarding(&self.context, command).await.map_err(not_run)
    }

    /// The median time of a command that does nothing, in milliseconds.
    async fn cost(&self) -> Result<f64, Error> {
        let argv = ["/bin/true".to_owned()];
        let mut times = Vec::new();
        for _ in 0..RUNS {
            let begun = Instant::now();
            self.finish(&argv).await?;
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        Ok(times.get(times.len() / 2).copied().unwrap_or_default())
    }
}

fn not_run(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::failed("the command did not run").because(error).hint("clawsmith sandbox status").refusing()
}

fn stopped(finished: &Finished) -> Option<&'static str> {
    match (finished.reason, finished.ended.stopped) {
        (Some(Reason::TimedOut), _) => Some("it reached its time limit"),
        (Some(Reason::Cancelled), _) => Some("it was cancelled"),
        (None, Some(Stopped::Memory)) => Some("it reached its memory limit"),
        (None, Some(Stopped::Disk)) => Some("the disk filled up while it ran"),
        (None, None) => None,
    }
}
