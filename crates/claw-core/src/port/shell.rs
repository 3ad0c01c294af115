//! Commands: what a tool may run, and what a place that runs them implements.

use std::ops::Range;
use std::path::PathBuf;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{CommandChanges, PendingChanges, WorkspaceAccess};
use crate::tool::{Argv, Effects, ErrorKind, Progress, Script, Secrets, Sight, Target, ToolError};

/// Running commands, as a tool sees it: exactly what the plan named, nothing else.
#[async_trait]
pub trait Shell: Send + Sync {
    /// Runs a script that the plan asked for.
    async fn run(&self, script: &Script) -> Result<Ran, ToolError>;
    /// Runs a program that the plan asked for.
    async fn spawn(&self, argv: &Argv) -> Result<Ran, ToolError>;
}

/// A place where commands run.
#[async_trait]
pub trait ShellHost: Send + Sync {
    /// Looks at what a plan leads to, where it would run, without changing anything. Answers in order.
    async fn look(&self, context: &RunContext, targets: &[Target]) -> Result<Vec<Sight>, ToolError>;
    /// Runs a script.
    async fn run(&self, context: &RunContext, script: &Script) -> Result<HostRan, ToolError>;
    /// Runs a program.
    async fn spawn(&self, context: &RunContext, argv: &Argv) -> Result<HostRan, ToolError>;
    /// Starts a command that is not waited for. Neither its time nor the context's `cancel` and `progress` hold for
    /// it: whoever has the child sees to its end.
    async fn start(&self, context: &RunContext, start: &Start) -> Result<Child, ToolError> {
        let _ = (context, start);
        let message = "this place cannot keep commands running";
        Err(ToolError::new(ErrorKind::Unavailable, message).try_instead("run the command to its end"))
    }
}

/// A command that is to be started and not waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// What runs.
    pub program: Program,
    /// The size of its terminal; `None` gives it pipes.
    pub terminal: Option<Size>,
    /// Whether its standard error comes apart from its standard output. A terminal has but one stream.
    pub apart: bool,
    /// Whether it reaches other machines though the context does not say so. What the policy took away stays away.
    pub network: bool,
    /// What it reaches beside the workspace, in a sandbox.
    pub paths: Vec<Allowed>,
}

impl Start {
    /// With pipes, both streams together and nothing beyond the context.
    pub const fn new(program: Program) -> Self {
        Self { program, terminal: None, apart: false, network: false, paths: Vec::new() }
    }
}

/// What is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A script, for a shell. Its input is not given to it: that is up to whoever has the child.
    Script(Script),
    /// A program with no shell.
    Argv(Argv),
}

/// A path that a command reaches beside its workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// A file, or a directory with all below it.
    pub path: PathBuf,
    /// Whether it may be changed.
    pub write: bool,
}

/// How large a terminal is, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// How wide.
    pub columns: u16,
    /// How high.
    pub rows: u16,
}

impl Default for Size {
    fn default() -> Self {
        Self { columns: 80, rows: 24 }
    }
}

/// A command that runs. Dropping its control ends it, with all that it started.
pub struct Child {
    /// What the system calls it, as far as it can be seen from here; in a container, what it is called there.
    pub pid: u32,
    /// Where it runs, for people.
    pub place: &'static str,
    /// What it reads. Dropping this ends its input; on a terminal it does not.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// What it prints.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// What it prints to standard error, where that comes apart.
    pub errors: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// How it is ended and waited for.
    pub control: Box<dyn Control>,
}

impl std::fmt::Debug for Child {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Child").field("pid", &self.pid).field("place", &self.place).finish_non_exhaustive()
    }
}

/// The hold on a command that runs.
#[async_trait]
pub trait Control: Send + Sync {
    /// Waits for its end. Can be dropped and called again.
    async fn ended(&mut self) -> Result<Ended, ToolError>;
    /// Asks all of its processes to end.
    async fn terminate(&mut self);
    /// Ends all of its processes.
    async fn kill(&mut self);
    /// Makes its terminal another size; refused where it has none.
    fn resize(&self, size: Size) -> Result<(), ToolError>;
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ended {
    /// The exit code; `None` where a signal ended it.
    pub exit: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Processes that it left running, and that were ended with it.
    pub stragglers: u32,
    /// The limit by which it was stopped.
    pub stopped: Option<Stopped>,
}

/// The home directory of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandHome {
    /// The directory's key: commands with the same key share it.
    pub key: SmolStr,
    /// The command may change it.
    pub write: bool,
}

/// For whom and within what a command runs.
#[derive(Debug, Clone)]
pub struct RunContext {
    /// The workspace.
    pub workspace: PathBuf,
    /// Which sandbox it shares.
    pub sandbox_key: SmolStr,
    /// Whether it must run in one.
    pub sandboxed: bool,
    /// The effects the policy left; the sandbox enforces the absence of the others.
    pub effects: Effects,
    /// Access to the workspace in the sandbox, where the effects let the command write at all.
    pub access: WorkspaceAccess,
    /// Whether it was granted the network.
    pub network: bool,
    /// Directories beside the workspace that it can read and not change, in a sandbox: those of skills in use.
    pub readable: Vec<PathBuf>,
    /// Directories that the deployment grants beside the workspace. Files in them that hold secrets by their names are
    /// not shown.
    pub granted: Vec<Allowed>,
    /// The command's home directory, which outlives it; `None` makes the workspace its home.
    pub home: Option<CommandHome>,
    /// Paths that do not exist for it, as far as they are there.
    pub hidden: Vec<PathBuf>,
    /// Paths beside the workspace that it reaches in a sandbox, where they are not hidden.
    pub paths: Vec<Allowed>,
    /// What was seen when the plan was judged; compared again before running.
    pub sights: Vec<Sight>,
    /// Rings when the command must end.
    pub cancel: CancellationToken,
    /// Where its output streams to.
    pub progress: Progress,
    /// Values that this command is given and that its output must not show.
    pub secrets: Secrets,
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ran {
    /// The exit code; `None` where a signal ended it.
    pub exit: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What it printed, both streams in order unless they were to be taken apart.
    pub output: String,
    /// What it printed to standard error, where that was to be taken apart.
    pub errors: String,
    /// How many bytes of both are left out, in the middle.
    pub dropped: u64,
    /// Processes that it left running, and that were ended with it.
    pub stragglers: u32,
    /// The limit by which it was stopped.
    pub stopped: Option<Stopped>,
    /// Where it ran, for people: the sandbox, or the host.
    pub place: &'static str,
    /// The outcome of its changes; `None` where it wrote to the workspace directly, or could not write.
    pub changes: Option<CommandChanges>,
    /// The reason why no layer could be made: it wrote to the workspace directly, and its changes cannot be undone.
    pub unlayered: Option<String>,
}

/// A command that has ended, as its host knows it.
pub struct HostRan {
    /// Its output and exit code.
    pub ran: Ran,
    /// Its changes, if it ran on a layer.
    pub pending: Option<Box<dyn PendingChanges>>,
}

impl std::fmt::Debug for HostRan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostRan").field("ran", &self.ran).field("pending", &self.pending.is_some()).finish()
    }
}

impl std::ops::Deref for HostRan {
    type Target = Ran;

    fn deref(&self) -> &Ran {
        &self.ran
    }
}

impl From<Ran> for HostRan {
    fn from(ran: Ran) -> Self {
        Self { ran, pending: None }
    }
}

/// The line that stands where so many bytes of a command's output are missing.
pub fn gap(bytes: u64) -> String {
    format!("{}{bytes}{}", GAP.0, GAP.1)
}

/// Where such lines are in an output, and how many bytes each stands for. A program may have printed some itself; of
/// two that share a line break the first counts.
pub fn gaps(output: &str) -> Vec<(Range<usize>, u64)> {
    let mut gaps: Vec<(Range<usize>, u64)> = Vec::new();
    for (at, _) in output.match_indices(GAP.0) {
        if gaps.last().is_some_and(|(before, _)| at < before.end) {
            continue;
        }
        let rest = &output[at + GAP.0.len()..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if let Ok(bytes) = rest[..digits].parse()
            && rest[digits..].starts_with(GAP.1)
        {
            gaps.push((at..at + GAP.0.len() + digits + GAP.1.len(), bytes));
        }
    }
    gaps
}

const GAP: (&str, &str) = ("\n[... ", " bytes are left out here ...]\n");

/// A limit by which a command was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// Its time was up.
    Time,
    /// It took more memory than it may.
    Memory,
    /// The disk filled up while it ran.
    Disk,
}
