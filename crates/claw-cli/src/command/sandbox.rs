//! `clawsmith sandbox`: shows and tests the sandbox of commands, and runs one in it.

mod docker;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand, ValueEnum};
use claw_core::port::{CommandHome, FileChange, RunContext, WorkspaceAccess};
use claw_core::tool::{Effect, Effects, Progress, Secrets};
use claw_policy::sandbox::SandboxMode;
use claw_sandbox::docker::DockerShell;
use claw_sandbox::shell::{Finished, LocalShell, Reason, ShellOptions};
use claw_sandbox::{Grant, Launcher, LayerName, Layers, Limits, Network, SandboxError, Standing};
use clawsmith::config::SandboxBackend;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::output::{Cell, Table, tell, visible};

/// The operations on the sandbox.
#[derive(Debug, Subcommand)]
pub(crate) enum Sandbox {
    /// Print the sandbox's layers here, and the reach of a command in it.
    #[command(after_help = "Examples:
  clawsmith sandbox status
  clawsmith sandbox status --json")]
    Status(Reaching),
    /// Run commands that try to escape, and measure the cost of the sandbox.
    #[command(after_help = "Exit code 1 where one of them got out.

Examples:
  clawsmith sandbox probe
  clawsmith sandbox probe --json")]
    Probe,
    /// Run a command in it. The exit code is the command's, or 128 plus the number of the signal that ended
    /// it.
    #[command(after_help = "Examples:
  clawsmith sandbox run -- ls -la
  clawsmith sandbox run --discard -- make install DESTDIR=out
  clawsmith sandbox run --read-only --network loopback -- make test
  clawsmith sandbox run --grant /opt/toolchain --timeout 600 -- sh -c 'cc --version'")]
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
    /// The network it reaches.
    #[arg(long, value_enum, default_value_t = Talk::None)]
    network: Talk,
}

/// The network that a command reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Talk {
    /// No network.
    None,
    /// Itself.
    Loopback,
    /// The network of this machine.
    Host,
}

/// The command to run.
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    reaching: Reaching,
    /// Show its changes, and discard them.
    #[arg(long, conflicts_with = "read_only")]
    discard: bool,
    /// Seconds until it is ended.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

impl Sandbox {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let runtime = super::tools::runtime()?;
        match self {
            Self::Status(reaching) => runtime.block_on(status(&reaching, session)),
            Self::Probe => runtime.block_on(probe(session)),
            Self::Run(run) => runtime.block_on(run.run(session)),
        }
    }
}

/// The data directory is never shown to a command, wherever the workspace is.
fn place(reaching: &Reaching, session: &Session, launcher: Arc<Launcher>) -> Result<Place, Failure> {
    let setup = session.load()?;
    setup.make_private_directories();
    let workspace = match &reaching.workspace {
        Some(path) => session.around.directory.join(path),
        None => session.around.directory.clone(),
    };
    let unusable = format!("the workspace `{}` cannot be used", workspace.display());
    let workspace = workspace.canonicalize().map_err(|error| Failure::usage(unusable).because(error))?;
    let grant = |write: bool| move |path: &PathBuf| Grant { path: path.clone(), write };
    let grants = reaching.grant.iter().map(grant(false)).chain(reaching.grant_write.iter().map(grant(true)));
    let options = ShellOptions {
        grants: grants.collect(),
        network: match reaching.network {
            Talk::None => Network::None,
            Talk::Loopback => Network::Loopback,
            Talk::Host => Network::Host,
        },
        ..setup.shell_options()
    };
    let effects = match reaching.read_only {
        true => Effects::ALL.without(Effects::of(&[Effect::Write])),
        false => Effects::ALL,
    };
    let context = RunContext {
        workspace,
        sandbox_key: "cli".into(),
        sandboxed: true,
        effects,
        access: WorkspaceAccess::Direct,
        network: false,
        readable: Vec::new(),
        granted: setup.granted_to_commands()?,
        home: Some(CommandHome { key: "cli".into(), write: true }),
        hidden: Vec::new(),
        paths: Vec::new(),
        sights: Vec::new(),
        cancel: CancellationToken::new(),
        progress: Progress::silent(),
        secrets: Secrets::default(),
    };
    let docker = (setup.config().sandbox.backend == SandboxBackend::Docker).then(|| {
        let local = LocalShell::new(Arc::clone(&launcher), options.clone());
        DockerShell::new(local, setup.docker_options())
    });
    Ok(Place { launcher, options, context, mode: setup.config().sandbox.mode, docker })
}

struct Place {
    mode: SandboxMode,
    launcher: Arc<Launcher>,
    options: ShellOptions,
    context: RunContext,
    /// The shell for containers; `None` if the sandbox is the kernel's.
    docker: Option<DockerShell>,
}

impl Place {
    async fn finish(&self, argv: &[String]) -> Result<Finished, Failure> {
        if let Some(docker) = self.docker.as_ref().filter(|_| self.context.sandboxed) {
            return docker::finish(docker, self, argv).await;
        }
        let shell = LocalShell::new(Arc::clone(&self.launcher), self.options.clone());
        let command = shell.command(&self.context, argv.to_vec(), "", &[]).await;
        let finished = shell.finish(&self.context, command).await;
        finished.map_err(|error| match (&error, argv.first()) {
            // The sandbox stood; what was to run in it is not there.
            (SandboxError::Start { step, reason }, Some(program)) if step.starts_with("run `") => {
                Failure::failed(format!("`{program}` cannot be run: {reason}")).hint(
                    match program.contains('/') {
                        true => {
                            "see whether that file is there, may be run, and can be reached from the sandbox \
                             (`--grant`)"
                        }
                        false => {
                            "see whether it is installed where the sandbox reaches it, or give its whole path"
                        }
                    },
                )
            }
            _ => Failure::failed("the command did not run")
                .because(error)
                .hint("clawsmith sandbox status")
                .refusing(),
        })
    }

    async fn finish_discarding(&self, argv: &[String]) -> Result<(Finished, Vec<FileChange>), Failure> {
        let shell = LocalShell::new(Arc::clone(&self.launcher), self.options.clone());
        let command = shell.command(&self.context, argv.to_vec(), "", &[]).await;
        let done = shell.finish_discarding(&self.context, command).await;
        done.map_err(|error| Failure::failed("the command did not run").because(error).refusing())
    }

    async fn script(&self, text: &str) -> Result<Finished, Failure> {
        self.finish(&["/bin/sh".to_owned(), "-c".to_owned(), text.to_owned()]).await
    }
}

async fn status(reaching: &Reaching, session: &mut Session) -> Outcome {
    let place = place(reaching, session, Arc::default())?;
    if let Some(docker) = &place.docker {
        return docker::status(docker, &place, session).await;
    }
    let layers = place.launcher.layers().await;
    let missing = place.options.required.iter().find(|layer| !layers.works(**layer));
    let Limits { memory, processes, open_files, file_size, disk, temporary, .. } = place.options.limits;
    if session.out.json {
        let limits = json!({
            "memory": memory, "processes": processes, "open_files": open_files, "file_size": file_size,
            "disk": disk, "temporary": temporary,
        });
        let value = json!({
            "mode": place.mode,
            "backend": "kernel",
            "usable": missing.is_none(),
            "layers": layers,
            "required": place.options.required,
            "reach": reach(&place),
            "limits": limits,
        });
        session.out.json(&value)?;
        return Ok(ExitCode::SUCCESS);
    }
    session.out.line(held(place.mode))?;
    session.out.line("")?;
    layer_table(&layers, &place, session)?;
    session.out.line("")?;
    session.out.heading("A command in it reaches")?;
    let write = place.context.effects.has(Effect::Write);
    let access = |write: bool| if write { "read, write" } else { "read" };
    let mut table = Table::new(["path", "access"]);
    table.row([Cell::strong(place.context.workspace.display()), Cell::new(access(write))]);
    for grant in &place.options.grants {
        table.row([Cell::new(grant.path.display()), Cell::new(access(grant.write && write))]);
    }
    let mounted = layers.works(LayerName::Mounts);
    let temporary_files =
        if mounted { "its session's own" } else { "none: no mounts give it one of its own" };
    table.row([Cell::new("/tmp"), Cell::new(temporary_files)]);
    table.row([Cell::new("programs and libraries of the system"), Cell::new("read")]);
    for path in &place.options.hidden {
        table.row([Cell::quiet(path.display()), Cell::quiet("never, wherever it lies")]);
    }
    table.row([Cell::new("network"), Cell::new(network(place.options.network))]);
    session.out.table(&table)?;
    if !mounted {
        session.out.line("")?;
        session.out.prose(
            "Without mounts a command that may write is asked about: it can change modes and times of files outside the \
             workspace, and its changes cannot be undone.",
        )?;
    }
    session.out.line("")?;
    session.out.heading("and may use")?;
    let mut table = Table::new(["what", "at most"]);
    let count = |value: Option<u64>| value.map_or_else(|| "no limit".to_owned(), |value| value.to_string());
    for (what, most) in [
        ("memory", size(memory)),
        ("processes", count(processes)),
        ("open files", count(open_files)),
        ("one file", size(file_size)),
        ("the workspace's disk", size(disk)),
        ("/tmp", size(Some(temporary))),
    ] {
        table.row([Cell::new(what), Cell::new(most)]);
    }
    session.out.table(&table)?;
    Ok(ExitCode::SUCCESS)
}

/// Says whose commands are sandboxed, and what it means for those that are not.
const fn held(mode: SandboxMode) -> &'static str {
    match mode {
        SandboxMode::All => "Every command of a tool runs in it (`sandbox.mode` is `all`).",
        SandboxMode::NonMain => {
            "Commands of your own conversations at the terminal run outside of it (`sandbox.mode` is `non-main`): an \
             agent there can reach the store and answer its own questions."
        }
        SandboxMode::Off => {
            "No command of a tool runs in it (`sandbox.mode` is `off`): an agent can reach the store and answer its own \
             questions."
        }
    }
}

fn layer_table(layers: &Layers, place: &Place, session: &mut Session) -> Result<(), Failure> {
    let mut table = Table::new(["layer", "here", "by"]);
    for layer in layers.iter() {
        let required = place.options.required.contains(&layer.name);
        let (here, by) = match &layer.standing {
            Standing::Works(by) => (Cell::good("works"), Cell::quiet(by)),
            Standing::Missing(reason) if required => (Cell::bad("missing"), Cell::new(reason)),
            Standing::Missing(reason) => (Cell::warning("missing"), Cell::new(reason)),
        };
        table.row([Cell::strong(layer.name), here, by]);
    }
    session.out.table(&table)?;
    let missing = place.options.required.iter().find(|layer| !layers.works(**layer));
    match missing {
        Some(layer) => session.out.line(format_args!("\nNo command runs: `{layer}` is required.")),
        None => Ok(()),
    }
}

fn reach(place: &Place) -> serde_json::Value {
    json!({
        "workspace": place.context.workspace,
        "write": place.context.effects.has(Effect::Write),
        "grants": place.options.grants,
        "hidden": place.options.hidden,
        "network": place.options.network,
    })
}

const fn network(network: Network) -> &'static str {
    match network {
        Network::None => "none",
        Network::Loopback => "itself",
        Network::Host => "what this machine can",
    }
}

fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "no limit".to_owned(), |bytes| format!("{} MiB", bytes >> 20))
}

/// Files that are the machine's in the kernel sandbox, and the image's in a container.
const KERNEL_TRIES: &[(&str, &str)] = &[
    ("read /etc/shadow", "cat /etc/shadow"),
    ("list the home of root", "ls ~root"),
    ("write to /usr", "touch /usr/clawsmith-probe"),
];

/// The escape attempts: a name, and a script that succeeds only if it got out.
const TRIES: &[(&str, &str)] = &[
    ("write to the kernel's settings", "echo x > /proc/sys/kernel/hostname"),
    ("see the program's processes", "test $(ls -d /proc/[0-9]* | wc -l) -gt 12"),
    ("signal the program", "kill -0 $PROGRAM"),
    ("mount a file system", "mount -t tmpfs none /tmp"),
    ("make a user namespace", "unshare -U true"),
    ("see an interface that is up", "grep -q up /sys/class/net/*/operstate"),
    ("open a block device", "ls /dev | grep -E '^(sd|vd|nvme|loop)'"),
    ("write to a terminal", "echo x > /dev/tty"),
];

const RUNS: u32 = 20;

async fn probe(session: &mut Session) -> Outcome {
    let workspace =
        tempfile::tempdir().map_err(|error| Failure::failed("no temporary directory").because(error))?;
    let reaching = Reaching {
        workspace: Some(workspace.path().to_owned()),
        read_only: false,
        grant: Vec::new(),
        grant_write: Vec::new(),
        network: Talk::None,
    };
    let mut place = place(&reaching, session, Arc::default())?;
    let mut tried = Vec::new();
    let tries = if place.docker.is_some() { docker::TRIES } else { KERNEL_TRIES };
    for (name, script) in tries.iter().chain(TRIES) {
        let script = script.replace("$PROGRAM", &std::process::id().to_string());
        let finished = place.script(&script).await?;
        let held = finished.ended.exit != Some(0);
        let said = finished.output.lines().next().unwrap_or_default().to_owned();
        tried.push((*name, held, said));
    }
    let inside = cost(&place).await?;
    place.context.sandboxed = false;
    let host = cost(&place).await?;
    let held = tried.iter().all(|(_, held, _)| *held);
    let code = ExitCode::from(u8::from(!held));
    if session.out.json {
        let tries: Vec<_> = tried
            .iter()
            .map(|(what, held, said)| json!({ "try": what, "held": held, "said": said }))
            .collect();
        session.out.json(&json!({
            "held": held,
            "tries": tries,
            "cost": { "sandbox_ms": inside, "host_ms": host },
        }))?;
        return Ok(code);
    }
    let mut table = Table::new(["try", "result", "what it was told"]);
    for (what, held, said) in &tried {
        let result = if *held { Cell::good("held") } else { Cell::bad("got out") };
        table.row([Cell::strong(what), result, Cell::quiet(said)]);
    }
    session.out.table(&table)?;
    session
        .out
        .line(format_args!("\n`true` takes {inside:.1} ms in the sandbox, {host:.1} ms on the host"))?;
    Ok(code)
}

/// The median time of a command that does nothing, in milliseconds.
async fn cost(place: &Place) -> Result<f64, Failure> {
    let argv = ["/bin/true".to_owned()];
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let begun = Instant::now();
        place.finish(&argv).await?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times.get(times.len() / 2).copied().unwrap_or_default())
}

impl Run {
    async fn run(self, session: &mut Session) -> Outcome {
        let mut place = place(&self.reaching, session, Arc::default())?;
        if self.discard && place.docker.is_some() {
            return Err(Failure::usage(
                "`--discard` needs the kernel sandbox, and `sandbox.backend` is `docker`",
            ));
        }
        place.options.sandbox_timeout = Duration::from_secs(self.timeout);
        if let Some(docker) = place.docker.take() {
            let local = LocalShell::new(Arc::clone(&place.launcher), place.options.clone());
            place.docker = Some(DockerShell::new(local, docker.options().clone()));
        }
        let cancel = place.context.cancel.clone();
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                cancel.cancel();
            }
        });
        if !session.out.json {
            place.context.progress = Progress::to(show);
        }
        let (finished, changes) = match self.discard {
            true => place.finish_discarding(&self.command).await?,
            false => (place.finish(&self.command).await?, Vec::new()),
        };
        if session.out.json {
            session.out.json(&json!({
                "discarded": changes,
                "exit": finished.ended.exit,
                "signal": finished.ended.signal,
                "stopped": stopped(&finished),
                "stragglers": finished.ended.stragglers,
                "dropped": finished.dropped,
                "output": finished.output,
            }))?;
        } else {
            if let Some(why) = stopped(&finished) {
                tell(format_args!("stopped: {why}"));
            }
            for change in &changes {
                tell(format_args!("discarded: {}", visible(&change.path.to_string_lossy())));
            }
            if finished.ended.stragglers > 0 {
                tell(format_args!("{} processes that it left running were ended", finished.ended.stragglers));
            }
        }
        let signal = finished.ended.signal.map(|signal| 128 + signal);
        let code = finished.ended.exit.or(signal).and_then(|code| u8::try_from(code).ok());
        Ok(ExitCode::from(code.unwrap_or(1)))
    }
}

/// Shows a command's output as it comes.
fn show(text: &str) {
    let mut out = io::stdout();
    let text = if out.is_terminal() { visible(text) } else { text.into() };
    // If nobody reads it any more, the command may still have work to do.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn stopped(finished: &Finished) -> Option<&'static str> {
    use claw_sandbox::Stopped;
    match (finished.reason, finished.ended.stopped) {
        (Some(Reason::TimedOut), _) => Some("its time was up"),
        (Some(Reason::Cancelled), _) => Some("it was cancelled"),
        (None, Some(Stopped::Memory)) => Some("it took more memory than it may"),
        (None, Some(Stopped::Disk)) => Some("the disk filled up while it ran"),
        (None, None) => None,
    }
}
