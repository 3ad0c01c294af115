//! Credentialed programs: binaries that run with credentials, and their limits.
//!
//! The credentials are variables for the program's environment, sealed as one value. Their names are stored
//! beside it, so that a list can show them.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::{Changes, Sealed, StoreError};
use crate::id::{AgentId, ProgramName, TenantId};
use crate::port::UnixMillis;
use crate::tool::Digest;

/// The key of a program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ProgramPlace {
    /// The tenant that owns the program.
    pub tenant: TenantId,
    /// The agent; `None` for the tenant's, shared by all its agents.
    pub agent: Option<AgentId>,
    /// The name it is called by, such as `gh`.
    pub name: ProgramName,
}

/// The settings of a program, except its credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramSettings {
    /// The file that is run, by its absolute path.
    pub binary: String,
    /// The digest of that file when it was registered. A file with another digest is not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The programs that it may run besides itself: names in the system's `PATH`, absolute paths, or paths
    /// that start with `../` and are relative to the directory of its file. A directory stands for every file
    /// below it. Entries that do not exist are ignored. The kernel refuses everything else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub helpers: Vec<String>,
    /// Calls whose arguments match one of these patterns are refused.
    #[serde(default)]
    pub deny_args: Vec<String>,
    /// Arguments that begin with one of these are refused: they make the program reveal its credentials.
    #[serde(default)]
    pub deny_verbose: Vec<String>,
    /// The timeout, in seconds.
    #[serde(default = "timeout")]
    pub timeout_secs: u32,
    /// Advice for agents that use it.
    #[serde(default)]
    pub tips: String,
    /// False disables the program.
    #[serde(default = "enabled")]
    pub enabled: bool,
}

impl ProgramSettings {
    /// Returns the settings of a program without further rules, with the default timeout.
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
    /// Its key.
    #[serde(flatten)]
    pub place: ProgramPlace,
    /// Its settings.
    #[serde(flatten)]
    pub settings: ProgramSettings,
    /// The names of its variables, sorted.
    pub variables: Vec<String>,
    /// The time of the last change. Sealing it with another key does not count.
    pub at: UnixMillis,
}

/// A program with its sealed variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The program without the values.
    pub card: ProgramCard,
    /// The values.
    pub env: Sealed,
}

/// A program with its variables in plain text, for the process that needs them. `Debug` shows the names
/// alone.
pub struct OpenProgram {
    /// The program without the values.
    pub card: ProgramCard,
    /// Names and values, sorted by name.
    pub variables: Vec<(String, String)>,
}

impl fmt::Debug for OpenProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenProgram").field("card", &self.card).finish_non_exhaustive()
    }
}

/// Lists programs and decrypts their variables: the store and its keys together.
#[async_trait]
pub trait Credentials: Send + Sync {
    /// Returns a number that rises with each change of programs.
    fn changes(&self) -> watch::Receiver<u64>;
    /// Returns the tenant's programs and those of its agents, sorted like [`Programs::programs`].
    async fn programs(&self, tenant: &TenantId) -> Result<Vec<ProgramCard>, StoreError>;
    /// Returns the program with exactly this key, decrypted.
    async fn open(&self, place: &ProgramPlace) -> Result<Option<OpenProgram>, StoreError>;
}

/// Stores credentialed programs; a change is announced as [`Topic::Secrets`](super::Topic::Secrets).
#[async_trait]
pub trait Programs: Changes {
    /// Returns the program with exactly this key. [`StoreError::Damaged`] if its variables are not sealed.
    async fn program(&self, place: &ProgramPlace) -> Result<Option<Program>, StoreError>;
    /// Writes a program, replacing the one with its key.
    async fn put_program(&self, program: &Program) -> Result<(), StoreError>;
    /// Enables or disables a program and leaves the rest unchanged; `false` if there is none.
    async fn enable_program(
        &self,
        place: &ProgramPlace,
        enabled: bool,
        at: UnixMillis,
    ) -> Result<bool, StoreError>;
    /// Removes a program; `false` if there is none.
    async fn remove_program(&self, place: &ProgramPlace) -> Result<bool, StoreError>;
    /// Returns the tenant's programs and those of its agents, sorted: the tenant's first, then by agent and
    /// name.
    async fn programs(&self, tenant: &TenantId) -> Result<Vec<ProgramCard>, StoreError>;
}
