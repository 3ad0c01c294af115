//! Runs commands in containers for tools. Commands of callers without a sandbox run on the host.

use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use claw_core::port::{self, Allowed, Child, HostRan, Ran, RunContext, ShellHost, Size, Start};
use claw_core::tool::{Argv, Effect, ErrorKind, Script, Sight, Target, ToolError};
use smol_str::SmolStr;
use tokio::task::spawn_blocking;

use super::super::helper::wire::{Confined, Ending, Spec};
use super::super::{Ended, Grant, Limits, Reach, SandboxError, Stopped};
use super::access::{cannot_hold, reading};
use super::aftermath::Aftermath;
use super::call::{Ear, Mouth};
use super::container::{self, Container, Image, Making};
use super::engine::{Engine, EngineFacts, Listed};
use super::mounts::WORKSPACE;
use super::pool::Pool;
use super::this_program::Own;
use super::watch::{self, Watch};
use super::wire::{self, Order, Running, Seen};
use super::{DockerError, DockerOptions, WorkspaceAccess};
use crate::shell::{Finished, LocalShell, Reason, closed_ports, environment, named, no_dry_run};

/// The name of the place where commands run, for display.
pub(super) const PLACE: &str = "a Docker container";

/// Runs commands in containers.
#[derive(Debug)]
pub struct DockerShell {
    local: LocalShell,
    pub(super) options: DockerOptions,
    pub(super) engine: Engine,
    pub(super) pool: Pool,
}

/// A command for a container.
#[derive(Debug, Clone, Default)]
pub struct DockerCommand {
    /// The program, then its arguments; or one script.
    pub argv: Vec<String>,
    /// True if `argv` is one script, for the image's shell.
    pub script: bool,
    /// The working directory, relative to the workspace.
    pub directory: String,
    /// Variables added to its environment.
    pub env: Vec<(String, String)>,
    /// The standard input; `None` gives it none.
    pub input: Option<Vec<u8>>,
    /// True if standard error is captured separately.
    pub apart: bool,
    /// The size of its terminal; `None` gives it pipes.
    pub terminal: Option<Size>,
    /// The timeout; `None` means the shell's own.
    pub time: Option<Duration>,
}

/// An order that was taken, and the name of the container that took it.
pub(super) struct Exchange {
    pub(super) ear: Ear,
    pub(super) mouth: Mouth,
    pub(super) container: String,
}

impl DockerCommand {
    pub(super) fn script(script: &Script) -> Self {
        Self {
            argv: vec![script.text.clone()],
            script: true,
            directory: script.directory.clone(),
            env: script.env.clone(),
            input: script.input.clone().map(String::into_bytes),
            apart: script.apart && !script.terminal,
            terminal: script.terminal.then(Size::default),
            time: script.timeout_secs.map(|seconds| Duration::from_secs(seconds.into())),
        }
    }

    pub(super) fn argv(argv: &Argv) -> Self {
        let (directory, env) = (argv.directory.clone(), argv.env.clone());
        Self { argv: argv.argv.clone(), directory, env, ..Self::default() }
    }
}

impl DockerShell {
    /// Creates a shell whose sandboxed commands run in containers of this engine. Other commands are run by
    /// `local`, whose options (timeout, output, hidden paths) apply in containers too.
    pub fn new(local: LocalShell, options: DockerOptions) -> Self {
        let engine = Engine::at(&options.socket);
        let pool = Pool::new(engine.clone(), options.installation.clone());
        Self { local, options, engine, pool }
    }

    /// Returns the options of every container.
    pub const fn options(&self) -> &DockerOptions {
        &self.options
    }

    /// Returns facts about the engine; an error if there is none.
    pub async fn engine(&self) -> Result<EngineFacts, DockerError> {
        self.engine.facts().await
    }

    /// Returns the digest of the image that commands run in; an error if it is missing.
    pub async fn image(&self) -> Result<String, DockerError> {
        Ok(self.engine.image(&self.options.image).await?.id)
    }

    /// The containers of this installation.
    pub async fn containers(&self) -> Result<Vec<Listed>, DockerError> {
        self.pool.list().await
    }

    /// Gives an order to the container of a context.
    pub(super) async fn exchange(
        &self,
        context: &RunContext,
        order: &Order,
    ) -> Result<Exchange, DockerError> {
        let own = Own::find().await?;
        let container = self.container(context, &own).await?;
        let (ear, mouth) = self.pool.order(&own, &container, order).await?;
        Ok(Exchange { ear, mouth, container: container.name })
    }

    /// Returns the reach of a command of this context, including its extra grants.
    async fn reach(&self, context: &RunContext, beside: &[Allowed]) -> Reach {
        // Commands of a container share it; inside, each one that only reads is kept from writing.
        let access = match context.access {
            port::WorkspaceAccess::OnlyLayer => port::WorkspaceAccess::OnlyLayer,
            _ => port::WorkspaceAccess::Direct,
        };
        let context = &RunContext { access, paths: Vec::new(), home: None, ..context.clone() };
        let mut reach = self.local.confinement(context).await.reach;
        let write = context.effects.has(Effect::Write);
        let grant = |allowed: &Allowed| Grant { path: allowed.path.clone(), write: allowed.write && write };
        reach.grants.extend(beside.iter().map(grant));
        reach.write &= self.options.workspace == WorkspaceAccess::Rw;
        if self.options.workspace == WorkspaceAccess::None {
            // Paths that are not shown need not be hidden.
            reach.hidden.retain(|path| reach.grants.iter().any(|grant| path.starts_with(&grant.path)));
        }
        reach
    }

    pub(super) async fn container(&self, context: &RunContext, own: &Own) -> Result<Container, DockerError> {
        let image = self.engine.image(&self.options.image).await?;
        self.container_of(context, own, image, &context.paths).await
    }

    pub(super) async fn container_of(
        &self,
        context: &RunContext,
        own: &Own,
        image: Image,
        beside: &[Allowed],
    ) -> Result<Container, DockerError> {
        let (reach, access) = (self.reach(context, beside).await, self.options.workspace);
        // Follows paths, which may lead to a disk that is slow to answer.
        let resolve = move || match access {
            WorkspaceAccess::None => reach.resolved_around(reach.workspace.clone()),
            WorkspaceAccess::Ro | WorkspaceAccess::Rw => reach.resolved(),
        };
        let reach =
            spawn_blocking(resolve).await.map_err(|stopped| DockerError::Own(stopped.to_string()))??;
        Container::new(Making {
            options: &self.options,
            own,
            image,
            key: &context.sandbox_key,
            reach,
            beside,
        })
    }

    /// Runs a command to its end.
    pub async fn finish(
        &self,
        context: &RunContext,
        command: DockerCommand,
    ) -> Result<Finished, DockerError> {
        let own = Own::find().await?;
        let container = self.container(context, &own).await?;
        self.finish_in(context, &own, &container, command).await
    }

    async fn finish_in(
        &self,
        context: &RunContext,
        own: &Own,
        container: &Container,
        command: DockerCommand,
    ) -> Result<Finished, DockerError> {
        let options = self.local.options();
        let watch = Watch {
            timeout: command.time.unwrap_or(options.sandbox_timeout),
            grace: options.grace,
            cancel: context.cancel.clone(),
            progress: context.progress.clone(),
            keep: options.output,
            input: command.input.clone(),
            terminal: command.terminal.is_some(),
        };
        let running = self.running(context, container, command);
        let order = Order::Run(Box::new(running));
        let (ear, mouth) = tokio::select! {
            talk = self.pool.order(own, container, &order) => talk?,
            // An order whose sender is gone when it is read is ignored.
            () = context.cancel.cancelled() => return Ok(never_begun()),
        };
        let watched = watch::watch(ear, mouth, &watch).await?;
        let ending = match watched.ending {
            Ok(ending) => ending,
            Err(keeper) => {
                let (engine, own) = (self.engine.clone(), own.clone());
                Aftermath { engine, own, container: container.name.clone() }.see_to(keeper).await?
            }
        };
        let stopped = stopped(&ending);
        let Ending { exit, signal, stragglers, full, .. } = ending;
        let ((output, left_out), (errors, also)) = (watched.output, watched.errors);
        Ok(Finished {
            ended: Ended { exit, signal, stragglers, stopped, full },
            reason: watched.reason,
            output,
            errors,
            dropped: left_out.saturating_add(also),
        })
    }

    pub(super) fn running(
        &self,
        context: &RunContext,
        container: &Container,
        command: DockerCommand,
    ) -> Running {
        let added = &command.env;
        let mut env = environment(|name| std::env::var(name).ok(), Path::new(WORKSPACE), added);
        // Where programs are is the image's to say.
        env.retain(|(name, _)| name != "PATH" || added.iter().any(|(added, _)| added == name));
        // Limits shared by all commands of a container are set on the container.
        let limits = Limits { memory: None, processes: None, ..self.local.options().limits.clone() };
        let (write, network) = (container.reach.write, container.reach.network);
        let closed_ports = closed_ports(network);
        let reach = Reach { write, network, closed_ports, ..Reach::workspace(WORKSPACE) };
        let confined = Confined {
            reach,
            namespaces: 0,
            own_proc: false,
            landlock: None,
            seccomp: true,
            // The container has its own.
            shares_files: false,
            shares_processes: false,
        };
        let seen = context.sights.iter().filter_map(|sight| {
            let target = self.target(context, &sight.target)?;
            let identity = sight.identity.clone().filter(|identity| !identity.starts_with(&container.image));
            Some((target, Seen { path: sight.path.clone(), identity }))
        });
        Running {
            spec: Spec {
                argv: command.argv,
                env,
                directory: self.inside(context, Path::new(&command.directory)),
                limits,
                cgroup: None,
                confined: Some(confined),
                terminal: command.terminal.is_some(),
            },
            script: command.script,
            apart: command.apart,
            input: command.input.is_some(),
            terminal: command.terminal,
            window: None,
            reads_only: context.access == port::WorkspaceAccess::ReadOnly && container.reach.write,
            mounted: container.mounted.clone(),
            seen: seen.collect(),
        }
    }

    /// A path of the workspace as it is inside. Others are the image's.
    fn inside(&self, context: &RunContext, path: &Path) -> PathBuf {
        match path.strip_prefix(&context.workspace) {
            Ok(rest) if rest.as_os_str().is_empty() => PathBuf::from(WORKSPACE),
            Ok(rest) => Path::new(WORKSPACE).join(rest),
            Err(_) => Path::new(WORKSPACE).join(path),
        }
    }

    pub(super) fn target(&self, context: &RunContext, target: &Target) -> Option<wire::Target> {
        match target {
            Target::Program { name, directory } => Some(wire::Target::Program {
                name: match name.contains('/') {
                    true => self.inside(context, &Path::new(directory).join(name)).display().to_string(),
                    false => name.clone(),
                },
                directory: self.inside(context, Path::new(directory)),
            }),
            Target::File { path } => Some(wire::Target::File { path: self.inside(context, Path::new(path)) }),
            Target::Sandbox
            | Target::Skill { .. }
            | Target::Process { .. }
            | Target::Outside { .. }
            | Target::Host { .. }
            | Target::Session { .. } => None,
        }
    }

    async fn ran(&self, context: &RunContext, command: DockerCommand) -> Result<Ran, ToolError> {
        let own = Own::find().await.map_err(refused)?;
        let container = self.container(context, &own).await.map_err(refused)?;
        self.compare(context, &container)?;
        let finished = match self.finish_in(context, &own, &container, command.clone()).await {
            Err(error) if cannot_hold(&error) => {
                let reading = &reading(context);
                let container = self.container(reading, &own).await.map_err(refused)?;
                self.finish_in(reading, &own, &container, command).await
            }
            finished => finished,
        };
        let mut ran = finished.map_err(|error| self.told(context, error))?.ran(PLACE)?;
        let writes = container.reach.write && context.access == port::WorkspaceAccess::Layer;
        ran.unlayered = writes.then(|| "there are no layers in containers".to_owned());
        // The engine sets the size of this one.
        for place in ran.full.iter_mut().filter(|place| place.path != "/dev/shm") {
            place.setting = Some(SmolStr::new_static("sandbox.docker.tmp_mib"));
        }
        Ok(ran)
    }

    /// Refuses to run if the sandbox differs from the judged one. The rest is compared inside.
    pub(super) fn compare(&self, context: &RunContext, container: &Container) -> Result<(), ToolError> {
        let place = self.place(container);
        let moved =
            |sight: &&Sight| sight.target == Target::Sandbox && sight.identity.as_ref() != Some(&place);
        context.sights.iter().find(moved).map_or(Ok(()), |sight| Err(changed(&sight.target)))
    }

    /// Converts the reason why a command did not run into a tool error.
    pub(super) fn told(&self, context: &RunContext, error: DockerError) -> ToolError {
        match error {
            DockerError::Changed(at) => {
                let inside = |sight: &&Sight| self.target(context, &sight.target).is_some();
                let judged = context.sights.iter().filter(inside).nth(at);
                changed(judged.map_or(&Target::Sandbox, |sight| &sight.target))
            }
            error => refused(error),
        }
    }

    /// Identifies the sandbox, for comparison.
    pub(super) fn place(&self, container: &Container) -> String {
        let access = container::access(&container.reach, self.options.workspace).name();
        format!("docker {} workspace={access} network={:?}", container.image, container.reach.network)
    }
}

#[async_trait]
impl ShellHost for DockerShell {
    async fn look(&self, context: &RunContext, targets: &[Target]) -> Result<Vec<Sight>, ToolError> {
        // A command that cannot run needs no approval.
        if targets.contains(&Target::Sandbox) {
            self.hold_back(context)?;
        }
        match context.sandboxed {
            true => self.looked(context, targets).await.map_err(refused),
            false => self.local.look(context, targets).await,
        }
    }

    async fn run(&self, context: &RunContext, script: &Script) -> Result<HostRan, ToolError> {
        if !context.sandboxed {
            return self.local.run(context, script).await;
        }
        if script.dry_run {
            return Err(no_dry_run("containers write to the workspace directly"));
        }
        self.hold_back(context)?;
        self.ran(context, DockerCommand::script(script)).await.map(HostRan::from)
    }

    async fn spawn(&self, context: &RunContext, argv: &Argv) -> Result<HostRan, ToolError> {
        if !context.sandboxed {
            return self.local.spawn(context, argv).await;
        }
        self.hold_back(context)?;
        self.ran(context, DockerCommand::argv(argv)).await.map(HostRan::from)
    }

    async fn start(&self, context: &RunContext, start: &Start) -> Result<Child, ToolError> {
        self.hold_back(context)?;
        match context.sandboxed {
            true => self.started(context, start).await,
            false => self.local.start(context, start).await,
        }
    }
}

/// The limit by which a command was stopped.
fn stopped(ending: &Ending) -> Option<Stopped> {
    match (ending.disk, ending.memory) {
        (true, _) => Some(Stopped::Disk),
        // Another command of the container may have been the one; one that ended well was not.
        (false, true) if ending.exit != Some(0) => Some(Stopped::Memory),
        _ => None,
    }
}

/// Converts the end of a command that was not waited for.
pub(super) fn ended(ending: Ending) -> port::Ended {
    let stopped = stopped(&ending).map(|stopped| match stopped {
        Stopped::Memory => port::Stopped::Memory,
        Stopped::Disk => port::Stopped::Disk,
    });
    let Ending { exit, signal, stragglers, .. } = ending;
    port::Ended { exit, signal, stragglers, stopped }
}

/// Returns the result of a command that was cancelled before it began.
fn never_begun() -> Finished {
    let ended =
        Ended { exit: None, signal: Some(libc::SIGKILL), stragglers: 0, stopped: None, full: Vec::new() };
    let (output, errors) = (String::new(), String::new());
    Finished { ended, reason: Some(Reason::Cancelled), output, errors, dropped: 0 }
}

fn changed(target: &Target) -> ToolError {
    let message = format!("{} changed since the call was judged", named(target));
    ToolError::new(ErrorKind::Conflict, message).try_instead("call again, so that it is judged again")
}

/// Converts a container error into a tool error.
pub(super) fn refused(error: DockerError) -> ToolError {
    let kind = match &error {
        DockerError::Reach(SandboxError::Path { .. }) => ErrorKind::Invalid,
        DockerError::Start { .. } => ErrorKind::Failed,
        DockerError::Changed(_) => ErrorKind::Conflict,
        _ => ErrorKind::Unavailable,
    };
    let told = ToolError::new(kind, error.to_string());
    let told = match kind {
        ErrorKind::Unavailable => {
            told.try_instead("use another tool; a person can run `clawsmith sandbox status` for details")
        }
        _ => told,
    };
    match std::error::Error::source(&error) {
        Some(source) => told.because(source),
        None => told,
    }
}
