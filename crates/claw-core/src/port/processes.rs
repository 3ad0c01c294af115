//! Commands that run in the background, as a tool sees them: those of its own session, and no others.

use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;

use super::{Size, UnixMillis};
use crate::id::ProcessId;
use crate::store::ProcessEnd;
use crate::tool::{Input, Script, ToolError};

/// The commands of the caller's session that run in the background.
///
/// A command is named by its id, or by the end of it where that is enough to tell it from the others.
#[async_trait]
pub trait Processes: Send + Sync {
    /// Starts a script that the plan asked for, and does not wait for it.
    async fn start(&self, script: &Script) -> Result<ProcessCard, ToolError>;
    /// All of them, those that ended not long ago too, in the order in which they were started.
    async fn list(&self) -> Result<Vec<ProcessCard>, ToolError>;
    /// What one printed from a place on, at most so many bytes; `None` for the newest of it.
    async fn read(&self, process: &str, from: Option<u64>, most: usize) -> Result<Printed, ToolError>;
    /// Types something that the plan asked for.
    async fn send(&self, input: &Input) -> Result<ProcessCard, ToolError>;
    /// Makes its terminal another size.
    async fn resize(&self, process: &str, size: Size) -> Result<ProcessCard, ToolError>;
    /// Waits until something is printed or it ends, and no longer than that.
    async fn wait(&self, process: &str, expected: &Expected, limit: Duration) -> Result<Awaited, ToolError>;
    /// Ends it, with all that it started.
    async fn kill(&self, process: &str) -> Result<ProcessCard, ToolError>;
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expected {
    /// A regular expression that what is printed must match; `None` waits for the end.
    pub pattern: Option<String>,
    /// From where on; `None` for all that is still there.
    pub from: Option<u64>,
}

/// What came of waiting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Awaited {
    /// The command as it stands.
    pub card: ProcessCard,
    /// What matched.
    pub matched: Option<String>,
    /// Where reading goes on behind it; without a match, behind all that was printed.
    pub next: u64,
}

/// A command that runs in the background, or did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProcessCard {
    /// Its id.
    pub id: ProcessId,
    /// The command, scrubbed.
    pub command: String,
    /// Whether it has a terminal.
    pub terminal: bool,
    /// When it was started.
    pub started: UnixMillis,
    /// Whether it runs.
    pub state: ProcessState,
    /// How many bytes it has printed, scrubbed: where what comes next begins.
    pub printed: u64,
    /// Where it runs, for people.
    pub place: &'static str,
}

impl ProcessCard {
    /// The end of its id, by which it is usually told from others.
    pub fn name(&self) -> String {
        name(self.id)
    }
}

/// The end of a process's id.
fn name(id: ProcessId) -> String {
    let text = id.to_string();
    text.get(text.len().saturating_sub(8)..).unwrap_or(&text).to_owned()
}

impl ProcessId {
    /// The end of the id, by which a process is usually told from others.
    pub fn name(self) -> String {
        name(self)
    }
}

/// Whether a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum ProcessState {
    /// It does.
    Running,
    /// It ended like this.
    Ended(ProcessEnd),
}

/// A part of what a command printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Printed {
    /// The command as it stands.
    pub card: ProcessCard,
    /// The text, scrubbed.
    pub text: String,
    /// Where it begins.
    pub from: u64,
    /// Where the next part begins.
    pub next: u64,
    /// How many bytes after the asked place are no longer there.
    pub dropped: u64,
    /// A line that is not finished yet, such as a prompt. It is no part of what was printed until it is.
    pub unfinished: String,
}
