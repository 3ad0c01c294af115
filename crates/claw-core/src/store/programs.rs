//! Credentialed programs: which binary may be run with which credentials, and how far.
//!
//! The credentials are variables for the program's environment, sealed as one value. Their names are kept
//! beside it, so that a list can show them.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::{Changes, Sealed, StoreError};
use crate::id::{AgentId, ProgramName, TenantId};
use crate::port::UnixMillis;
use crate::tool::Digest;

/// Where a program is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ProgramPlace {
    /// Whose data it is.
    pub tenant: TenantId,
    /// Which agent's; `None` is the tenant's, for all its agents.
    pub agent: Option<AgentId>,
    /// What it is called by, such as `gh`.
    pub name: ProgramName,
}

/// What is known of a program, except its credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramSettings {
    /// The file that is run, by its absolute path.
    pub binary: String,
    /// What that file held when it was registered. One that holds something else is not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The programs that it may run beside itself: names in the system's `PATH`, absolute paths, or paths that start with
    /// `../` and are relative to the directory of its file. A directory stands for every file below it. Entries that do
    /// not exist are ignored. The kernel refuses everything else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub helpers: Vec<String>,
    /// Calls whose arguments match one of these patterns are refused.
    #[serde(default)]
    pub deny_args: Vec<String>,
    /// Arguments that begin with one of these are refused: they make the program tell its credentials.
    #[serde(default)]
    pub deny_verbose: Vec<String>,
    /// How long it may run, in seconds.
    #[serde(default = "timeout")]
    pub timeout_secs: u32,
    /// What an agent is told about it.
    #[serde(default)]
    pub tips: String,
    /// Whether it may be used at all.
    #[serde(default = "enabled")]
    pub enabled: bool,
}

impl ProgramSettings {
    /// A program that is run without further rules, for 30 seconds at most.
    pub fn new(binary: impl Into<String>) -> Self {
        Self {
            binary: binary.into(),
            digest: None,
            helpers: Vec::new(),
            deny_args: Vec::new(),
            deny_verbose: Vec::new(),
            timeout_secs: timeout(),
            tips: String::new(),
            enabled: enabled(),
        }
    }
}

const fn timeout() -> u32 {
    30
}

const fn enabled() -> bool {
    true
}

/// A program without the values of its variables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProgramCard {
    /// Where it is.
    #[serde(flatten)]
    pub place: ProgramPlace,
    /// How it is run.
    #[serde(flatten)]
    pub settings: ProgramSettings,
    /// The names of the variables that it is given, sorted.
    pub variables: Vec<String>,
    /// When it was last written. Sealing it with another key does not count.
    pub at: UnixMillis,
}

/// A program with its variables, sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// All but their values.
    pub card: ProgramCard,
    /// Their values.
    pub env: Sealed,
}

/// A program with its variables in plain, for the process that needs them. `Debug` shows the names alone.
pub struct OpenProgram {
    /// All but their values.
    pub card: ProgramCard,
    /// Names and values, sorted by name.
    pub variables: Vec<(String, String)>,
}

impl fmt::Debug for OpenProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenProgram").field("card", &self.card).finish_non_exhaustive()
    }
}

/// Where programs are listed and their variables opened: the store and its keys together.
#[async_trait]
pub trait Credentials: Send + Sync {
    /// Rises with each change of programs.
    fn changes(&self) -> watch::Receiver<u64>;
    /// The tenant's programs and those of its agents, sorted as [`Programs::programs`] gives them.
    async fn programs(&self, tenant: &TenantId) -> Result<Vec<ProgramCard>, StoreError>;
    /// The program at exactly this place, opened.
    async fn open(&self, place: &ProgramPlace) -> Result<Option<OpenProgram>, StoreError>;
}

/// Keeps credentialed programs; a change is told as [`Topic::Secrets`](super::Topic::Secrets).
#[async_trait]
pub trait Programs: Changes {
    /// The program at exactly this place. [`StoreError::Damaged`] where its variables are not sealed.
    async fn program(&self, place: &ProgramPlace) -> Result<Option<Program>, StoreError>;
    /// Writes a program, in place of the one that is there.
    async fn put_program(&self, program: &Program) -> Result<(), StoreError>;
    /// Lets a program be used, or not, and leaves the rest of it; `false` where there is none.
    async fn enable_program(
        &self,
        place: &ProgramPlace,
        enabled: bool,
        at: UnixMillis,
    ) -> Result<bool, StoreError>;
    /// Removes a program; `false` where there is none.
    async fn remove_program(&self, place: &ProgramPlace) -> Result<bool, StoreError>;
    /// The tenant's programs and those of its agents, sorted: the tenant's first, then by agent and name.
    async fn programs(&self, tenant: &TenantId) -> Result<Vec<ProgramCard>, StoreError>;
}
