//! Programs that run with credentials: who may use which, and the host that runs them.
//!
//! A credential is decrypted only for the process that needs it: neither a plan nor a sight nor a context
//! holds one.

use std::sync::Arc;

use async_trait::async_trait;

use super::{HostRan, RunContext};
use crate::id::{AgentId, TenantId};
use crate::store::{ProgramCard, StoreError};
use crate::tool::{Sight, ToolError};

/// The programs that a caller may use, sorted by name.
pub type Registered = Arc<[Arc<ProgramCard>]>;

/// A registered program with the arguments of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramRun {
    /// The program.
    pub program: Arc<ProgramCard>,
    /// The word it was called by: its name, or a path that must lead to its file.
    pub word: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The directory it starts in.
    pub directory: String,
    /// True to capture standard error separately from standard output.
    pub apart: bool,
    /// The timeout, in seconds.
    pub timeout_secs: u32,
}

/// Runs programs with their credentials.
#[async_trait]
pub trait ProgramHost: Send + Sync {
    /// Returns the programs that an agent may use: its own, and those of its tenant that it does not override
    /// by name.
    async fn programs(&self, tenant: &TenantId, agent: &AgentId) -> Result<Registered, StoreError>;
    /// Looks at the file that would run and at its sandbox, without changing anything. Refuses if the file is
    /// not the registered one. Every sight names the credential.
    async fn look(&self, context: &RunContext, run: &ProgramRun) -> Result<Vec<Sight>, ToolError>;
    /// Runs the program if everything is still as it was seen.
    async fn run(&self, context: &RunContext, run: &ProgramRun) -> Result<HostRan, ToolError>;
}
