//! Commands: what a tool may run, and what a place that runs them implements.

use std::path::PathBuf;

use async_trait::async_trait;
use smol_str::SmolStr;
use tokio_util::sync::CancellationToken;

use crate::tool::{Argv, Effects, Progress, Script, Secrets, Sight, Target, ToolError};

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
    async fn run(&self, context: &RunContext, script: &Script) -> Result<Ran, ToolError>;
    /// Runs a program.
    async fn spawn(&self, context: &RunContext, argv: &Argv) -> Result<Ran, ToolError>;
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
    /// Whether it was granted the network.
    pub network: bool,
    /// Paths that do not exist for it, as far as they are there.
    pub hidden: Vec<PathBuf>,
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
}

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
