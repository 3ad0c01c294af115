//! Background commands, as a tool sees them: those of its own session only.

use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;

use super::{Size, UnixMillis};
use crate::id::ProcessId;
use crate::store::ProcessEnd;
use crate::tool::{Input, Script, ToolError};

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
