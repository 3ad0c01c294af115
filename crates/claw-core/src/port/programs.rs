//! Programs that run with credentials: who may use which, and the place that runs them.
//!
//! A credential is opened for the process that needs it and for nothing else: neither a plan nor a sight nor a
//! context holds one.

use std::sync::Arc;

use async_trait::async_trait;

use super::{HostRan, RunContext};
use crate::id::{AgentId, TenantId};
use crate::store::{ProgramCard, StoreError};
use crate::tool::{Sight, ToolError};

/// The programs that a caller may use, sorted by name.
pub type Registered = Arc<[Arc<ProgramCard>]>;

/// A registered program with what one call gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramRun {
    /// Which program.
    pub program: Arc<ProgramCard>,
    /// The word by which it was called: its name, or a path that must lead to its file.
    pub word: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The directory it starts in.
    pub directory: String,
    /// Whether its standard error is taken apart from its standard output.
    pub apart: bool,
    /// How long it may run, in seconds.
    pub timeout_secs: u32,
}

/// A place that runs programs with their credentials.
#[async_trait]
pub trait ProgramHost: Send + Sync {
    /// The programs that an agent may use: its own, and those of its tenant that have no namesake among them.
    async fn programs(&self, tenant: &TenantId, agent: &AgentId) -> Result<Registered, StoreError>;
    /// Looks at the file that would run and at the sandbox it would run in, without changing anything. Refuses where
    /// that file is not the one that was registered. Every sight names the credential.
    async fn look(&self, context: &RunContext, run: &ProgramRun) -> Result<Vec<Sight>, ToolError>;
    /// Runs it, where all is as it was seen.
    async fn run(&self, context: &RunContext, run: &ProgramRun) -> Result<HostRan, ToolError>;
}
