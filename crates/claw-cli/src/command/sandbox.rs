//! `clawsmith sandbox`: shows and tests the sandbox of commands, and runs one in it.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use claw_core::counted::counted;
use claw_core::tool::Progress;
use claw_sandbox::{Grant, Network};
use claw_terminal::{Cell, Column, Out, Table, tell, visible};
use clawsmith::app::sandbox::{
    CommandReach, CommandSandbox, PartState, ReachedPath, SandboxCost, SandboxPart, SandboxStatus,
    SandboxedCommand,
};
use tokio_util::sync::CancellationToken;

use crate::choice::{Choices, one_of};
use crate::cli::Session;
use crate::exit_code::Outcome;
use crate::opened::runtime;

/// The operations on the sandbox.
#[derive(Debug, Subcommand)]
pub(crate) enum Sandbox {
    /// Show the sandbox's layers on this machine, and what a command in the sandbox can reach.
    Status(Reaching),
    /// Run commands that try to escape, and measure the cost of the sandbox.
    Probe,
    /// Run a command in the sandbox. The exit code is the command's, or 128 plus the number of the signal that ended
    /// it.
    Run(Run),
}

/// The reach of a command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Reaching {
    /// The workspace [default: the current directory].
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// The workspace cannot be changed.
    #[arg(long)]
    read_only: bool,
    /// Another readable path; may be repeated.
    #[arg(long, value_name = "PATH")]
    grant: Vec<PathBuf>,
    /// Another writable path; may be repeated.
    #[arg(long, value_name = "PATH")]
    grant_write: Vec<PathBuf>,
    /// The network that the command can reach.
    #[arg(long, value_parser = one_of(NETWORKS), default_value = "none")]
    network: Network,
}

/// The network that a command reaches.
const NETWORKS: Choices<Network> = &[
    ("none", "No network", Network::None),
    ("loopback", "A loopback interface of its own", Network::Loopback),
    ("host", "The network of this machine", Network::Host),
];

/// The command to run.
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    reaching: Reaching,
    /// Show the command's changes, and discard them.
    #[arg(long, conflicts_with = "read_only")]
    discard: bool,
    /// Seconds after which the command is ended.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

impl Sandbox {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let (setup, runtime) = (session.load()?, runtime()?);
        match self {
            Self::Status(reaching) => {
                let sandbox = setup.command_sandbox(reaching.reach(session))?;
                let status = runtime.block_on(sandbox.status());
                session.shown(&status.facts, |out| Ok(show(out, &status, sandbox.is_docker())?))
            }
            Self::Probe => {
                let probe = runtime.block_on(setup.probe_sandbox())?;
                session.shown(&probe, |out| {
                    out.table(&Table::of(
                        &probe.tries,
                        &[
                            ("try", &|one| Cell::strong(one.what)),
                            ("result", &|one| match one.held {
                                Some(true) => Cell::good("held"),
                                Some(false) => Cell::bad("got out"),
                                None => Cell::warning("not tried"),
                            }),
                            ("its message", &|one| Cell::quiet(&one.said)),
                        ],
                    ))?;
                    let SandboxCost { sandbox_ms, host_ms } = probe.cost;
                    out.line(format_args!(
                        "\n`true` takes {sandbox_ms:.1} ms in the sandbox, {host_ms:.1} ms on the host"
                    ))?;
                    let _: () = match &probe.not_undoable {
                        None => out.line("changes of commands in this directory can be undone")?,
                        Some(reason) => out.line(format_args!(
                            "changes of commands in this directory cannot be undone: {reason}"
                        ))?,
                    };
                    Ok(())
                })?;
                Ok(ExitCode::from(u8::from(!probe.held)))
            }
            Self::Run(run) => {
                let sandbox = setup.command_sandbox(run.reaching.reach(session))?;
                runtime.block_on(run.run(session, sandbox))
            }
        }
    }
}

impl Reaching {
    fn reach(&self, session: &Session) -> CommandReach {
        let grant = |write: bool| move |path: &PathBuf| Grant { path: path.clone(), write };
        let (read, write) = (self.grant.iter().map(grant(false)), self.grant_write.iter().map(grant(true)));
        CommandReach {
            workspace: session.around.directory.join(self.workspace.as_deref().unwrap_or(Path::new(""))),
            read_only: self.read_only,
            grants: read.chain(write).collect(),
            network: self.network,
        }
    }
}

fn show(out: &mut Out, status: &SandboxStatus, is_docker: bool) -> io::Result<()> {
    out.line(status.held)?;
    if is_docker {
        out.line("The sandbox uses Docker containers (`sandbox.backend` is `docker`).")?;
    }
    out.line("")?;
    let state = |part: &SandboxPart| match part.state {
        PartState::Works => Cell::good("works"),
        PartState::Missing => Cell::warning("missing"),
        PartState::Required => Cell::bad("missing"),
    };
    let by = |part: &SandboxPart| match part.state {
        PartState::Works => Cell::quiet(&part.by),
        _ => Cell::new(&part.by),
    };
    let (name, what) = if is_docker { ("part", "what") } else { ("layer", "by") };
    let parts = [
        (name, &(|part: &SandboxPart| Cell::strong(&part.name)) as _),
        ("here", &state as _),
        (what, &by as _),
    ];
    out.table(&Table::of(&status.parts, &parts))?;
    if let Some(why) = &status.unusable {
        out.line(format_args!("\n{why}"))?;
    }
    out.line("")?;
    out.heading("A command in the sandbox can reach")?;
    let workspace = status.reach.first().map(|reached| &reached.path);
    let path = |reached: &ReachedPath| match reached.is_hidden {
        true => Cell::quiet(&reached.path),
        false if Some(&reached.path) == workspace => Cell::strong(&reached.path),
        false => Cell::new(&reached.path),
    };
    let access = |reached: &ReachedPath| match reached.is_hidden {
        true => Cell::quiet(&reached.access),
        false => Cell::new(&reached.access),
    };
    let inside = |reached: &ReachedPath| Cell::new(&reached.inside);
    let columns: &[Column<'_, ReachedPath>] = match is_docker {
        true => &[("path", &path), ("inside", &inside), ("access", &access)],
        false => &[("path", &path), ("access", &access)],
    };
    out.table(&Table::of(&status.reach, columns))?;
    if let Some(warning) = status.warning {
        out.line("")?;
        out.prose(warning)?;
    }
    out.line("")?;
    out.heading(if is_docker {
        "All commands of a container together may use"
    } else {
        "A command may use"
    })?;
    let limits: &[Column<'_, (&str, String)>] =
        &[("what", &|(what, _)| Cell::new(what)), ("at most", &|(_, most)| Cell::new(most))];
    out.table(&Table::of(&status.limits, limits))?;
    if status.containers.is_empty() {
        return Ok(());
    }
    out.line("")?;
    out.heading("Containers")?;
    out.table(&Table::of(
        &status.containers,
        &[
            ("container", &|container| Cell::strong(container.id.chars().take(12).collect::<String>())),
            ("shared by", &|container| Cell::new(&container.key)),
            ("shows", &|container| Cell::new(&container.variant)),
            ("state", &|container| match container.running {
                true => Cell::good("runs"),
                false => Cell::warning("stopped"),
            }),
        ],
    ))
}

impl Run {
    async fn run(self, session: &mut Session, sandbox: CommandSandbox) -> Outcome {
        let cancel = CancellationToken::new();
        let interrupted = cancel.clone();
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                interrupted.cancel();
            }
        });
        let progress = if session.out.json { Progress::silent() } else { Progress::to(print) };
        let timeout = Duration::from_secs(self.timeout);
        let command = SandboxedCommand { argv: &self.command, timeout, discard: self.discard };
        let ran = sandbox.run(command, progress, cancel).await?;
        session.shown(&ran, |_| {
            if let Some(why) = ran.stopped {
                tell(format_args!("stopped: {why}"));
            }
            for change in &ran.discarded {
                tell(format_args!("discarded: {}", visible(&change.path.to_string_lossy())));
            }
            if ran.stragglers > 0 {
                tell(format_args!(
                    "ended {} that the command had left running",
                    counted(ran.stragglers, "process")
                ));
            }
            Ok(())
        })?;
        let signal = ran.signal.map(|signal| 128 + signal);
        let code = ran.exit.or(signal).and_then(|code| u8::try_from(code).ok());
        Ok(ExitCode::from(code.unwrap_or(1)))
    }
}

/// Shows a command's output as it comes.
fn print(text: &str) {
    let mut out = io::stdout();
    let text = if out.is_terminal() { visible(text) } else { text.into() };
    // If nobody reads it any more, the command may still have work to do.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
