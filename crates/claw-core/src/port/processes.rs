//! Background commands: those of its own session for a tool, and those of a program for the host.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{Clock, Owner, RunContext, ShellHost, Size, UnixMillis};
use crate::id::ProcessId;
use crate::redact::StreamRedactor;
use crate::store::ProcessEnd;
use crate::tool::{Caller, Effects, Input, Script, Sight, ToolError};

/// The character that ends the input of a program on a terminal.
const END: &str = "\u{4}";

/// The background commands of the caller's session.
///
/// A command is named by its id, or by the end of the id if that is unambiguous.
#[async_trait]
pub trait Processes: Send + Sync {
    /// Starts a script that the plan names, without waiting for it.
    async fn start(&self, script: &Script) -> Result<ProcessCard, ToolError>;
    /// Returns all of them, including recently ended ones, in the order in which they started.
    async fn list(&self) -> Result<Vec<ProcessCard>, ToolError>;
    /// Returns output of a command from an offset on, at most `most` bytes; `None` for the newest output.
    async fn read(&self, process: &str, from: Option<u64>, most: usize) -> Result<Printed, ToolError>;
    /// Sends input that the plan names.
    async fn send(&self, input: &Input) -> Result<ProcessCard, ToolError>;
    /// Resizes the command's terminal.
    async fn resize(&self, process: &str, size: Size) -> Result<ProcessCard, ToolError>;
    /// Waits for the expected output or the command's end, at most `limit`.
    async fn wait(&self, process: &str, expected: &Expected, limit: Duration) -> Result<Awaited, ToolError>;
    /// Ends the command and all processes that it started.
    async fn kill(&self, process: &str) -> Result<ProcessCard, ToolError>;
}

/// The background commands of a program. They end when it is dropped.
#[async_trait]
pub trait ProcessHost: Send + Sync {
    /// Starts a script without waiting for it.
    async fn start(&self, start: BackgroundStart<'_>) -> Result<Arc<dyn BackgroundCommand>, ToolError>;
    /// Returns the commands of an owner, in the order in which they were started.
    fn of(&self, owner: &Owner) -> Vec<Arc<dyn BackgroundCommand>>;
    /// Ends all running commands and waits for them; returns how many there were.
    async fn end_all(&self) -> usize;
}

/// A script to be started in the background.
pub struct BackgroundStart<'a> {
    /// Runs the script.
    pub shell: &'a dyn ShellHost,
    /// The conditions under which it runs.
    pub context: &'a RunContext,
    /// The caller, whose session owns the command.
    pub caller: &'a Caller,
    /// The script.
    pub script: &'a Script,
    /// The command as people and models read it.
    pub command: String,
    /// Scrubs the output before it is stored.
    pub scrub: Box<dyn StreamRedactor>,
    /// The clock.
    pub clock: &'a Arc<dyn Clock>,
}

/// A background command, running or ended, as the host keeps it.
#[async_trait]
pub trait BackgroundCommand: Send + Sync {
    /// Returns the properties that it was started with.
    fn started(&self) -> &StartedCommand;
    /// Returns all text typed so far, beyond the input that it was started with.
    fn typed(&self) -> String;
    /// Returns its state.
    fn card(&self) -> ProcessCard;
    /// Returns output from an offset on, at most `most` bytes; `None` for the newest output.
    fn read(&self, from: Option<u64>, most: usize) -> Printed;
    /// Returns its state with all text typed into it, as the sight of `process`.
    fn sight(&self, process: &str) -> Sight;
    /// Types text, if the command is still in the state `seen` when the text was judged.
    async fn send(&self, input: &Input, seen: Option<&Sight>) -> Result<(), ToolError>;
    /// Resizes its terminal.
    async fn resize(&self, size: Size) -> Result<(), ToolError>;
    /// Asks it to end.
    fn kill(&self);
    /// Waits until it has ended.
    async fn ended(&self);
    /// Waits for a pattern in the output, or for the end, at most `limit`.
    async fn wait(
        &self,
        expected: &Expected,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<Awaited, ToolError>;
}

/// The properties of a command, known when it starts.
#[derive(Debug, Clone)]
pub struct StartedCommand {
    /// Its id.
    pub id: ProcessId,
    /// The session that it belongs to.
    pub owner: Owner,
    /// The script that runs.
    pub script: Script,
    /// The programs that its words resolved to, each as word and path.
    pub programs: Vec<(String, String)>,
    /// Effects that the policy allowed the call that started it.
    pub effects: Effects,
    /// The command as people and models read it.
    pub command: String,
    /// The time it was started.
    pub started: UnixMillis,
    /// The sandbox or host it runs in, for people.
    pub place: &'static str,
}

impl StartedCommand {
    /// Returns the text that is really typed: on a terminal, a control character ends the input.
    pub fn typed(&self, input: &Input) -> String {
        let end = if input.end && self.script.terminal { END } else { "" };
        format!("{}{end}", input.text)
    }
}

/// The output to wait for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expected {
    /// A regular expression that the output must match; `None` waits for the end of the command.
    pub pattern: Option<String>,
    /// The offset to search from; `None` for all stored output.
    pub from: Option<u64>,
}

/// The outcome of waiting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Awaited {
    /// The command's present state.
    pub card: ProcessCard,
    /// The matching text; `None` without a match.
    pub matched: Option<String>,
    /// The offset after the match; without a match, after all output.
    pub next: u64,
}

/// A background command, running or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProcessCard {
    /// Its id.
    pub id: ProcessId,
    /// The command, scrubbed.
    pub command: String,
    /// True if it has a terminal.
    pub terminal: bool,
    /// The time it was started.
    pub started: UnixMillis,
    /// Its state.
    pub state: ProcessState,
    /// The number of bytes it has printed, after scrubbing: the offset of its next output.
    pub printed: u64,
    /// The sandbox or host it runs in, for people.
    pub place: &'static str,
}

impl ProcessCard {
    /// Returns the end of its id, usually enough to name it.
    pub fn name(&self) -> String {
        name(self.id)
    }
}

/// Returns the end of a process's id.
fn name(id: ProcessId) -> String {
    let text = id.to_string();
    text.get(text.len().saturating_sub(8)..).unwrap_or(&text).to_owned()
}

impl ProcessId {
    /// Returns the end of the id, usually enough to name the process.
    pub fn name(self) -> String {
        name(self)
    }
}

/// The state of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum ProcessState {
    /// The command runs.
    Running,
    /// The command has ended.
    Ended(ProcessEnd),
}

/// A part of a command's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Printed {
    /// The command's present state.
    pub card: ProcessCard,
    /// The text, scrubbed.
    pub text: String,
    /// Its offset.
    pub from: u64,
    /// The offset of the next part.
    pub next: u64,
    /// The number of bytes after the requested offset that are no longer stored.
    pub dropped: u64,
    /// An unfinished line, such as a prompt. It counts as output once it is finished.
    pub unfinished: String,
}
