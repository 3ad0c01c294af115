//! Commands on this machine: in the kernel sandbox, or on the host if so configured.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use claw_core::port::{
    Allowed, Child, FileChange, HostRan, Program, Ran, RunContext, ShellHost, Size, Start, WorkspaceAccess,
};
use claw_core::tool::{Argv, Effect, ErrorKind, Script, Sight, Target, ToolError};
use tokio::sync::OnceCell;

use super::confine::writes;
use super::pending_changes::Pending;
use super::process::{Command, Finished, Input, Process, Streams, Watch};
use super::search_path::SearchPath;
use super::{OutputLimits, child, environment, generated_directories, identify_files};
use crate::{Confinement, Grant, Launcher, LayerName, Limits, Network, Reach, SandboxError, WorkspaceLayer};
use claw_host::transaction::Transactions;

/// Names of directories that tools fill with generated files.
pub const GENERATED: [&str; 6] = ["target", "node_modules", ".venv", "venv", "build", "dist"];

/// The options of every command of a shell.
#[derive(Debug, Clone)]
pub struct ShellOptions {
    /// The resource limits of a command.
    pub limits: Limits,
    /// The network of a command in the sandbox. If the caller may not use the network, the command gets none.
    pub network: Network,
    /// The paths that a command in the sandbox reaches beside the workspace.
    pub grants: Vec<Grant>,
    /// The paths that it never reaches, even inside the workspace: the store, the keys.
    pub hidden: Vec<PathBuf>,
    /// The layers without which no command runs in the sandbox.
    pub required: Vec<LayerName>,
    /// Place of the layers that commands write to; without it they write to the workspace directly.
    pub transactions: Option<Transactions>,
    /// Names of directories with generated files: if git ignores one, commands write to it directly.
    pub direct: Vec<String>,
    /// The directory of each session's `/tmp`; `None` gives every command one of its own.
    pub temporary: Option<PathBuf>,
    /// Place of the home directories of agents' commands; without it the workspace is their home.
    pub homes: Option<PathBuf>,
    /// Agents work for the user of this program: git in their homes knows that user's name and address.
    pub knows_user: bool,
    /// The timeout of a command on the host.
    pub host_timeout: Duration,
    /// The timeout of a command in the sandbox.
    pub sandbox_timeout: Duration,
    /// The time between asking a command to end and killing it.
    pub grace: Duration,
    /// The limits on captured output.
    pub output: OutputLimits,
}

impl Default for ShellOptions {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            network: Network::None,
            grants: Vec::new(),
            hidden: Vec::new(),
            required: Confinement::new(Reach::workspace("/")).required,
            transactions: None,
            direct: GENERATED.map(str::to_owned).to_vec(),
            temporary: None,
            homes: None,
            knows_user: false,
            host_timeout: Duration::from_secs(60),
            sandbox_timeout: Duration::from_secs(300),
            grace: Duration::from_secs(3),
            output: OutputLimits::default(),
        }
    }
}

/// Runs commands on this machine.
#[derive(Debug)]
pub struct LocalShell {
    launcher: Arc<Launcher>,
    options: ShellOptions,
}

impl LocalShell {
    /// Creates a shell whose commands this launcher starts.
    pub const fn new(launcher: Arc<Launcher>, options: ShellOptions) -> Self {
        Self { launcher, options }
    }

    /// A command as this shell runs it: with the environment, the limits and the sandbox of the context.
    pub async fn command(
        &self,
        context: &RunContext,
        argv: Vec<String>,
        directory: &str,
        env: &[(String, String)],
    ) -> Command {
        let directory = context.workspace.join(directory);
        let confinement = match context.sandboxed {
            true => Some(self.confinement(context).await),
            false => None,
        };
        let home = match &confinement {
            // Inside of the sandbox it is elsewhere, and the helper says where.
            Some(confinement) => confinement.reach.home.as_ref().map(|home| home.path.clone()),
            None => self.home(context).await.map(|home| home.path),
        };
        let home = home.unwrap_or_else(|| context.workspace.clone());
        let search = tokio::task::spawn_blocking(search(context)).await.unwrap_or_default();
        Command {
            argv,
            env: environment::with_path(|name| std::env::var(name).ok(), &home, &search, env),
            directory,
            limits: self.options.limits.clone(),
            confinement,
            input: Input::Closed,
            streams: Streams::Together,
        }
    }

    /// A script as this shell runs it.
    async fn scripted(&self, context: &RunContext, script: &Script) -> Command {
        let argv = vec![interpreter().await.to_owned(), "-c".to_owned(), script.text.clone()];
        self.command(context, argv, &script.directory, &script.env).await
    }

    /// The options of every command.
    pub(crate) const fn options(&self) -> &ShellOptions {
        &self.options
    }

    /// Directories of the workspace that the command writes to directly.
    async fn generated(&self, context: &RunContext, command: &Command) -> Vec<PathBuf> {
        let (workspace, names) = (context.workspace.clone(), self.options.direct.clone());
        let start = command.directory.strip_prefix(&workspace).unwrap_or(Path::new("")).to_owned();
        let found = tokio::task::spawn_blocking(move || {
            generated_directories::find(&workspace, &start.to_string_lossy(), &names)
        });
        found.await.unwrap_or_default()
    }

    /// Runs a command on a layer that is discarded, within this shell's timeout; returns the changes it would
    /// have made.
    pub async fn finish_discarding(
        &self,
        context: &RunContext,
        mut command: Command,
    ) -> Result<(Finished, Vec<FileChange>), SandboxError> {
        let none = || SandboxError::NoLayer("there is no data directory".to_owned());
        let transactions = self.options.transactions.as_ref().ok_or_else(none)?;
        let pending = Pending::create(transactions, context, &self.options.hidden, Vec::new()).await;
        let pending = pending.map_err(|error| SandboxError::NoLayer(error.to_string()))?;
        if let Some(confinement) = &mut command.confinement {
            let layer = pending.discarding(&confinement.reach).await;
            confinement.reach.layer = Some(layer.map_err(|error| SandboxError::NoLayer(error.to_string()))?);
        }
        let finished = self.finish_within(context, command, None).await?;
        let changes = pending.changes().await.map_err(|error| SandboxError::NoLayer(error.to_string()))?;
        Ok((finished, changes))
    }

    /// Runs a command to its end, within this shell's timeout.
    pub async fn finish(&self, context: &RunContext, command: Command) -> Result<Finished, SandboxError> {
        self.finish_within(context, command, None).await
    }

    async fn finish_within(
        &self,
        context: &RunContext,
        command: Command,
        time: Option<Duration>,
    ) -> Result<Finished, SandboxError> {
        let timeout =
            if context.sandboxed { self.options.sandbox_timeout } else { self.options.host_timeout };
        let watch = Watch {
            timeout: time.unwrap_or(timeout),
            grace: self.options.grace,
            cancel: context.cancel.clone(),
            progress: context.progress.clone(),
            keep: self.options.output,
        };
        Process::start(&self.launcher, command).await?.see_through(&watch).await
    }

    pub(super) async fn ran(
        &self,
        context: &RunContext,
        command: Command,
        time: Option<Duration>,
    ) -> Result<Ran, ToolError> {
        self.compare(context).await?;
        let finished = self.finish_within(context, command, time).await.map_err(refused)?;
        finished.ran(place(context))
    }

    /// Runs a command that does not write to a layer. If it only reads, denied paths are still hidden by a
    /// layer: they stay hidden even if somebody replaces or creates them meanwhile.
    async fn ran_masked(
        &self,
        context: &RunContext,
        command: Command,
        time: Option<Duration>,
    ) -> Result<Ran, ToolError> {
        let is_inside = |path: &PathBuf| path.starts_with(&context.workspace);
        let hides = self.options.hidden.iter().chain(&context.hidden).any(is_inside);
        let transactions = self.options.transactions.as_ref();
        let reads = context.sandboxed && !writes(context) && hides;
        if let Some(transactions) = transactions.filter(|_| reads)
            && let Ok(mask) = Pending::create(transactions, context, &self.options.hidden, Vec::new()).await
        {
            self.compare(context).await?;
            let mut masked = command.clone();
            if let Some(confinement) = &mut masked.confinement {
                confinement.reach.layer = Some(WorkspaceLayer { read_only: true, ..mask.mount() });
            }
            match self.finish_within(context, masked, time).await {
                Err(SandboxError::NoLayer(_)) => {}
                finished => return finished.map_err(refused)?.ran(place(context)),
            }
        }
        self.ran(context, command, time).await
    }

    /// Runs a command on a layer, if one is requested and possible; otherwise it writes to the workspace
    /// directly, and the result says why.
    pub(super) async fn ran_on_layer(
        &self,
        context: &RunContext,
        command: Command,
        time: Option<Duration>,
        dry_run: bool,
    ) -> Result<HostRan, ToolError> {
        let only = context.access == WorkspaceAccess::OnlyLayer;
        let asked = writes(context) && (only || context.access == WorkspaceAccess::Layer);
        let transactions = self.options.transactions.as_ref().filter(|_| asked && context.sandboxed);
        let Some(transactions) = transactions else {
            if dry_run && (asked || !context.sandboxed) {
                return Err(no_dry_run("commands run without a sandbox here"));
            }
            if only && context.sandboxed {
                return Err(no_layer("there is no data directory"));
            }
            return self.ran_masked(context, command, time).await.map(HostRan::from);
        };
        self.compare(context).await?;
        // A dry run writes nowhere, and what is held back until somebody agreed neither.
        let direct = if dry_run || only { Vec::new() } else { self.generated(context, &command).await };
        let unlayered = match self.no_mounts().await {
            Some(reason) => Err(reason),
            None => Pending::create(transactions, context, &self.options.hidden, direct)
                .await
                .map_err(|error| error.to_string()),
        };
        let unlayered = match unlayered {
            Ok(pending) => {
                pending.pin(context).await?;
                let mut layered = command.clone();
                if let Some(confinement) = &mut layered.confinement {
                    confinement.reach.layer = Some(match dry_run {
                        true => pending
                            .discarding(&confinement.reach)
                            .await
                            .map_err(|error| no_dry_run(&error.to_string()))?,
                        false => pending.mount(),
                    });
                }
                match self.finish_within(context, layered, time).await {
                    Ok(finished) => return pending.finished(finished.ran(place(context))?).await,
                    Err(SandboxError::NoLayer(reason)) => reason,
                    Err(error) => return Err(refused(error)),
                }
            }
            Err(reason) => reason,
        };
        if dry_run {
            return Err(no_dry_run(&unlayered));
        }
        if only {
            return Err(no_layer(&unlayered));
        }
        let mut ran =
            self.finish_within(context, command, time).await.map_err(refused)?.ran(place(context))?;
        ran.unlayered = Some(unlayered);
        Ok(ran.into())
    }

    /// Refuses if something that was judged is another thing now.
    async fn compare(&self, context: &RunContext) -> Result<(), ToolError> {
        let targets: Vec<Target> = context.sights.iter().map(|sight| sight.target.clone()).collect();
        let now = self.look(context, &targets).await?;
        let same = |(then, now): &(&Sight, &Sight)| then.path == now.path && then.identity == now.identity;
        match context.sights.iter().zip(&now).find(|pair| !same(pair)) {
            None => Ok(()),
            Some((sight, _)) => {
                let message =
                    format!("{} changed since the call was judged", identify_files::named(&sight.target));
                Err(ToolError::new(ErrorKind::Conflict, message)
                    .try_instead("call again, so that it is judged again"))
            }
        }
    }

    /// Why no mounts hold commands here; `None` if they do.
    async fn no_mounts(&self) -> Option<String> {
        let layers = self.launcher.layers().await;
        layers
            .missing(LayerName::Mounts)
            .map(|reason| format!("this machine does not allow mounts ({reason})"))
    }

    /// Describes where a command of this context would run, to the person who is asked for approval.
    pub(super) async fn described(&self, context: &RunContext) -> String {
        if !context.sandboxed {
            return "no sandbox: the command can reach everything that this program can reach, and could \
                    answer this approval itself"
                .to_owned();
        }
        let on_layer = matches!(context.access, WorkspaceAccess::Layer | WorkspaceAccess::OnlyLayer);
        let loose = self.no_mounts().await.is_some();
        let layered = on_layer && self.options.transactions.is_some() && !loose;
        let workspace = match (writes(context), layered) {
            (true, _) if loose => {
                "no mounts: workspace read and write, changes cannot be undone, and the command can change \
                 modes and times of files outside"
            }
            (false, _) => "workspace read only",
            (true, false) => "workspace read and write",
            (true, true) => "workspace read and write, changes applied when the command has ended",
        };
        let network = match self.network(context) {
            Network::None => "no network",
            Network::Loopback => "a private network",
            Network::Host => "the network of this machine",
        };
        format!("the kernel sandbox: {workspace}, {network}")
    }

    /// Identifies the sandbox of a command of this context. Fails if a required layer is missing: a command
    /// that cannot run needs no approval.
    pub(super) async fn place(&self, context: &RunContext) -> Result<String, ToolError> {
        if !context.sandboxed {
            return Ok("host".to_owned());
        }
        let layers = self.launcher.layers().await;
        if let Some((layer, reason)) =
            self.options.required.iter().find_map(|layer| Some((*layer, layers.missing(*layer)?)))
        {
            let missing = SandboxError::Missing { layer, reason: reason.to_owned() };
            let refused = refused(missing);
            return Err(match refused.advice {
                Some(_) => refused,
                None => refused
                    .try_instead("use another tool; a person can run `clawsmith sandbox status` for details"),
            });
        }
        let works: Vec<_> = LayerName::ALL.into_iter().filter(|name| layers.works(*name)).collect();
        let works: Vec<_> = works.iter().map(|name| name.name()).collect();
        let (write, network) = (context.effects.has(Effect::Write), self.network(context));
        Ok(format!("kernel write={write} network={network:?} {}", works.join("+")))
    }
}

#[async_trait]
impl ShellHost for LocalShell {
    async fn look(&self, context: &RunContext, targets: &[Target]) -> Result<Vec<Sight>, ToolError> {
        let seen = identify_files::look(targets, &context.workspace, search(context)).await?;
        let mut sights = Vec::with_capacity(targets.len());
        for (target, seen) in targets.iter().zip(seen) {
            let (path, identity) = match target {
                Target::Sandbox => (Some(self.described(context).await), Some(self.place(context).await?)),
                // The keeper of a process looks at it.
                Target::Program { .. }
                | Target::File { .. }
                | Target::Skill { .. }
                | Target::Process { .. }
                | Target::Outside { .. }
                | Target::Host { .. }
                | Target::Session { .. } => seen,
            };
            let writable = match target {
                Target::Sandbox => context.sandboxed && self.no_mounts().await.is_some(),
                _ => identify_files::is_writable(
                    target,
                    path.as_deref(),
                    &context.workspace,
                    &self.writable(context),
                ),
            };
            sights.push(Sight { target: target.clone(), path, identity, credential: None, writable });
        }
        Ok(sights)
    }

    async fn run(&self, context: &RunContext, script: &Script) -> Result<HostRan, ToolError> {
        let mut command = self.scripted(context, script).await;
        if let Some(input) = &script.input {
            command.input = Input::Bytes(input.clone().into_bytes());
        }
        command.streams = match (script.terminal, script.apart) {
            (true, _) => Streams::Terminal(Size::default()),
            (false, true) => Streams::Apart,
            (false, false) => Streams::Together,
        };
        let time = script.timeout_secs.map(|seconds| Duration::from_secs(seconds.into()));
        self.ran_on_layer(context, command, time, script.dry_run).await
    }

    async fn spawn(&self, context: &RunContext, argv: &Argv) -> Result<HostRan, ToolError> {
        let command = self.command(context, argv.argv.clone(), &argv.directory, &argv.env).await;
        self.ran_on_layer(context, command, None, false).await
    }

    async fn start(&self, context: &RunContext, start: &Start) -> Result<Child, ToolError> {
        if context.sandboxed && writes(context) && context.access == WorkspaceAccess::OnlyLayer {
            return Err(no_layer("commands in the background write to the workspace directly"));
        }
        self.compare(context).await?;
        let context = &RunContext { network: context.network || start.network, ..context.clone() };
        let mut command = match &start.program {
            Program::Script(script) => self.scripted(context, script).await,
            Program::Argv(argv) => self.command(context, argv.argv.clone(), &argv.directory, &argv.env).await,
        };
        if let Some(confinement) = &mut command.confinement {
            let write = confinement.reach.write;
            let grant =
                |allowed: &Allowed| Grant { path: allowed.path.clone(), write: allowed.write && write };
            confinement.reach.grants.extend(start.paths.iter().map(grant));
        }
        command.input = Input::Piped;
        command.streams = match (start.terminal, start.apart) {
            (Some(size), _) => Streams::Terminal(size),
            (None, true) => Streams::Apart,
            (None, false) => Streams::Together,
        };
        let process = Process::start(&self.launcher, command).await.map_err(refused)?;
        Ok(child::child(process, place(context)))
    }
}

/// Finds the programs of a context's commands, on a thread that may block.
fn search(context: &RunContext) -> impl FnOnce() -> SearchPath + Send + 'static {
    // A program with credentials, and whoever has no home of its own, finds the system's programs.
    let (has_home, sandboxed) = (context.home.is_some(), context.sandboxed);
    let granted = context.granted.clone();
    move || match has_home {
        true => SearchPath::find(|name| std::env::var(name).ok(), sandboxed.then_some(granted.as_slice())),
        false => SearchPath::default(),
    }
}

/// Returns the error for a dry run whose changes could not be discarded; the command is not run.
pub(crate) fn no_dry_run(reason: &str) -> ToolError {
    ToolError::new(ErrorKind::Unavailable, format!("a dry run is not possible: {reason}"))
        .try_instead("run the command without `dry_run`, or do not run it")
}

/// Returns the error for changes that need review but cannot be held back without a layer.
pub(crate) fn no_layer(reason: &str) -> ToolError {
    let message =
        format!("changes of commands must be held back here, but no layer can be created: {reason}");
    ToolError::new(ErrorKind::Unavailable, message)
        .try_instead("use the file tools; a person can set `shell.apply`")
}

/// Returns the place where a command runs, for display.
const fn place(context: &RunContext) -> &'static str {
    if context.sandboxed { "the sandbox" } else { "the host" }
}

/// Returns the shell for scripts. Searched for once.
async fn interpreter() -> &'static str {
    static FOUND: OnceCell<&'static str> = OnceCell::const_new();
    let find = || async {
        let bash = identify_files::existing(vec![PathBuf::from("/bin/bash")]).await;
        if bash.is_empty() { "/bin/sh" } else { "/bin/bash" }
    };
    FOUND.get_or_init(find).await
}

/// Advice if the kernel refuses namespaces to this user.
const NO_NAMESPACES: &str = "use another tool; a person can allow user namespaces on this machine (sysctl \
     `user.max_user_namespaces`, `kernel.unprivileged_userns_clone`, `kernel.apparmor_restrict_unprivileged_userns`), use \
     containers (`sandbox.backend = \"docker\"`), or do without the layer (`sandbox.allow_missing`)";

/// Converts a failure to start a command into a tool error.
pub(super) fn refused(error: SandboxError) -> ToolError {
    let kind = match &error {
        SandboxError::NoHelper | SandboxError::Helper(_) | SandboxError::Missing { .. } => {
            ErrorKind::Unavailable
        }
        SandboxError::Path { .. } => ErrorKind::Invalid,
        SandboxError::Start { .. } | SandboxError::NoLayer(_) => ErrorKind::Failed,
    };
    let mut told = ToolError::new(kind, error.to_string());
    if let SandboxError::Missing { layer: LayerName::Mounts | LayerName::Processes, .. } = &error {
        told = told.try_instead(NO_NAMESPACES);
    }
    match std::error::Error::source(&error) {
        Some(source) => told.because(source),
        None => told,
    }
}
