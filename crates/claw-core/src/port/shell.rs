//! Commands: running them from a tool, and the host that executes them.

use std::ops::Range;
use std::path::PathBuf;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{CommandChanges, PendingChanges, WorkspaceAccess};
use crate::tool::{Argv, Effects, ErrorKind, Progress, Script, Secrets, Sight, Target, ToolError};

/// Runs commands for a tool: only those that the plan names.
#[async_trait]
pub trait Shell: Send + Sync {
    /// Runs a script that the plan names.
    async fn run(&self, script: &Script) -> Result<Ran, ToolError>;
    /// Runs a program that the plan names.
    async fn spawn(&self, argv: &Argv) -> Result<Ran, ToolError>;
}

/// A host that executes commands.
#[async_trait]
pub trait ShellHost: Send + Sync {
    /// Looks at the targets of a plan where they would run, without changing anything. Answers in order.
    async fn look(&self, context: &RunContext, targets: &[Target]) -> Result<Vec<Sight>, ToolError>;
    /// Runs a script.
    async fn run(&self, context: &RunContext, script: &Script) -> Result<HostRan, ToolError>;
    /// Runs a program.
    async fn spawn(&self, context: &RunContext, argv: &Argv) -> Result<HostRan, ToolError>;
    /// Starts a command without waiting for it. Its timeout and the context's `cancel` and `progress` do not
    /// apply: the holder of the child has to end it.
    async fn start(&self, context: &RunContext, start: &Start) -> Result<Child, ToolError> {
        let _ = (context, start);
        let message = "this place cannot keep commands running";
        Err(ToolError::new(ErrorKind::Unavailable, message).try_instead("run the command to its end"))
    }
}

/// A command to start without waiting for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The program.
    pub program: Program,
    /// The size of its terminal; `None` gives it pipes.
    pub terminal: Option<Size>,
    /// True to separate standard error from standard output. A terminal has only one stream.
    pub apart: bool,
    /// True to grant the network even if the context does not. A network that the policy denies stays denied.
    pub network: bool,
    /// Paths outside the workspace that it reaches in a sandbox.
    pub paths: Vec<Allowed>,
}

impl Start {
    /// Starts with pipes, both streams together and nothing beyond the context.
    pub const fn new(program: Program) -> Self {
        Self { program, terminal: None, apart: false, network: false, paths: Vec::new() }
    }
}

/// The program to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A script, for a shell. Its input is ignored: the holder of the child writes it.
    Script(Script),
    /// A program without a shell.
    Argv(Argv),
}

/// A path outside its workspace that a command reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// A file, or a directory with everything below it.
    pub path: PathBuf,
    /// True if it may be changed.
    pub write: bool,
}

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// The width.
    pub columns: u16,
    /// The height.
    pub rows: u16,
}

impl Default for Size {
    fn default() -> Self {
        Self { columns: 80, rows: 24 }
    }
}

/// A running command. Dropping its control ends it, with all processes that it started.
pub struct Child {
    /// Its process id as visible from here; for a container, the id inside it.
    pub pid: u32,
    /// The sandbox or host it runs in, for people.
    pub place: &'static str,
    /// Its standard input. Dropping this closes it; on a terminal it does not.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its output.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// Its standard error; `None` if that is part of `output`.
    pub errors: Option<Box<dyn AsyncRead + Send + Unpin>>,
    /// The handle to end it and wait for it.
    pub control: Box<dyn Control>,
}

impl std::fmt::Debug for Child {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Child").field("pid", &self.pid).field("place", &self.place).finish_non_exhaustive()
    }
}

/// The control of a running command.
#[async_trait]
pub trait Control: Send + Sync {
    /// Waits for its end. The future can be dropped and the method called again.
    async fn ended(&mut self) -> Result<Ended, ToolError>;
    /// Asks all of its processes to end.
    async fn terminate(&mut self);
    /// Kills all of its processes.
    async fn kill(&mut self);
    /// Resizes its terminal; refused if it has none.
    fn resize(&self, size: Size) -> Result<(), ToolError>;
}

/// The end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ended {
    /// The exit code; `None` if a signal ended it.
    pub exit: Option<i32>,
    /// The signal that ended it; `None` if it exited.
    pub signal: Option<i32>,
    /// The number of processes that it left running, and that were ended with it.
    pub stragglers: u32,
    /// The limit that stopped it; `None` if it ended by itself.
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

/// The environment and limits of a command.
#[derive(Debug, Clone)]
pub struct RunContext {
    /// The workspace.
    pub workspace: PathBuf,
    /// The key of the sandbox it shares.
    pub sandbox_key: SmolStr,
    /// True if it must run in a sandbox.
    pub sandboxed: bool,
    /// The effects that the policy allows; the sandbox prevents the others.
    pub effects: Effects,
    /// Access to the workspace in the sandbox, if the effects let the command write at all.
    pub access: WorkspaceAccess,
    /// True if it was granted the network.
    pub network: bool,
    /// Read-only directories outside the workspace, in a sandbox: those of active skills.
    pub readable: Vec<PathBuf>,
    /// Directories that the deployment grants outside the workspace. Files in them with secret-bearing names
    /// are hidden.
    pub granted: Vec<Allowed>,
    /// The command's home directory, which outlives it; `None` makes the workspace its home.
    pub home: Option<CommandHome>,
    /// Paths that do not exist for it; missing ones are ignored.
    pub hidden: Vec<PathBuf>,
    /// Paths outside the workspace that it reaches in a sandbox, unless they are hidden.
    pub paths: Vec<Allowed>,
    /// Directories that the caller's tools or commands can change, whatever this command reaches itself.
    pub changeable: Vec<PathBuf>,
    /// The sights taken when the plan was judged; compared again before the command runs.
    pub sights: Vec<Sight>,
    /// Cancels the command.
    pub cancel: CancellationToken,
    /// The receiver of its streaming output.
    pub progress: Progress,
    /// Secret values that this command gets and that its output must not show.
    pub secrets: Secrets,
}

impl RunContext {
    /// Creates the context of commands in a sandbox that write to the workspace directly and reach nothing else.
    pub fn new(workspace: impl Into<PathBuf>, sandbox_key: impl Into<SmolStr>) -> Self {
        Self {
            workspace: workspace.into(),
            sandbox_key: sandbox_key.into(),
            sandboxed: true,
            effects: Effects::ALL,
            access: WorkspaceAccess::Direct,
            network: false,
            readable: Vec::new(),
            granted: Vec::new(),
            home: None,
            hidden: Vec::new(),
            paths: Vec::new(),
            changeable: Vec::new(),
            sights: Vec::new(),
            cancel: CancellationToken::new(),
            progress: Progress::silent(),
            secrets: Secrets::default(),
        }
    }
}

/// The outcome of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ran {
    /// The exit code; `None` if a signal ended it.
    pub exit: Option<i32>,
    /// The signal that ended it; `None` if it exited.
    pub signal: Option<i32>,
    /// Its output, both streams in order unless they were separated.
    pub output: String,
    /// Its standard error, if it was separated.
    pub errors: String,
    /// The number of bytes of both that are left out, in the middle.
    pub dropped: u64,
    /// The number of processes that it left running, and that were ended with it.
    pub stragglers: u32,
    /// The limit that stopped it; `None` if it ended by itself.
    pub stopped: Option<Stopped>,
    /// The sandbox or host it ran in, for people.
    pub place: &'static str,
    /// The outcome of its changes; `None` if it wrote to the workspace directly, or could not write.
    pub changes: Option<CommandChanges>,
    /// The reason why no layer could be made: it wrote to the workspace directly, and its changes cannot be
    /// undone. `None` if there was a layer or none was wanted.
    pub unlayered: Option<String>,
    /// Places of limited size that were full while it ran.
    pub full: Vec<FullPlace>,
    /// A program of the user that it did not find; `None` if it found all, or nobody knows where the program is.
    pub missing: Option<MissingProgram>,
}

/// A program that a command did not find, and that lies in a directory that commands may not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingProgram {
    /// The program's name.
    pub program: String,
    /// The directory that it is in.
    pub directory: String,
    /// The setting that lets commands read the directory, and its place.
    pub setting: String,
}

impl std::fmt::Display for MissingProgram {
    /// Writes the program, its place and what helps.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { program, directory, setting } = self;
        write!(f, "`{program}` is in `{directory}`, which commands may not read; to allow it: {setting}")
    }
}

/// A directory of limited size that was full while a command ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FullPlace {
    /// The directory, as the command sees it.
    pub path: String,
    /// The bytes that it holds.
    pub bytes: u64,
    /// The setting that gives it more; `None` if there is none.
    pub setting: Option<SmolStr>,
}

impl std::fmt::Display for FullPlace {
    /// Writes the place, its size and what helps.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, bytes, setting } = self;
        write!(f, "`{path}` was full: it holds {} MiB; delete files there", bytes >> 20)?;
        match setting {
            Some(setting) => write!(f, ", or ask a person to raise `{setting}`"),
            None => write!(f, ", or write to the workspace"),
        }
    }
}

/// An ended command, as its host reports it.
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

/// Returns the line that replaces this many bytes of a command's output.
pub fn gap(bytes: u64) -> String {
    format!("{}{bytes}{}", GAP.0, GAP.1)
}

/// Finds such lines in an output, with the number of bytes each replaces. A program may have printed some
/// itself; of two that share a line break the first counts.
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
    /// The timeout.
    Time,
    /// The memory limit.
    Memory,
    /// The disk became full while it ran.
    Disk,
}
