//! Background processes: who runs what, and how it ended.
//!
//! They die with the program that owns them. What its next life finds still marked as running is lost: nobody
//! knows how it ended.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Changes, StoreError, Worker};
use crate::id::{AgentId, ProcessId, SessionKey, TenantId, UserId};
use crate::port::UnixMillis;

/// A process that was started, before it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewProcess {
    /// Its id. The same id begun again is the same process.
    pub id: ProcessId,
    /// Whose data it is.
    pub tenant: TenantId,
    /// In which conversation; no other sees it.
    pub session: SessionKey,
    /// Which agent started it.
    pub agent: AgentId,
    /// For whom.
    pub user: Option<UserId>,
    /// The program that owns it.
    pub worker: Worker,
    /// The command as a person reads it, scrubbed.
    pub command: String,
    /// Where it runs.
    pub directory: String,
    /// What the system calls it on its node, as long as it runs.
    pub pid: u32,
    /// When it was started.
    pub started: UnixMillis,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "lowercase")]
pub enum ProcessEnd {
    /// By itself, or by a signal that was not ours.
    Exited {
        /// Its exit code.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
    /// By us.
    Killed,
    /// With the program that owned it; nobody saw how.
    Lost,
}

/// A stored process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Process {
    /// What was started.
    #[serde(flatten)]
    pub new: NewProcess,
    /// How and when it ended; `None` while it runs.
    pub ended: Option<(ProcessEnd, UnixMillis)>,
}

/// Keeps background processes; a change is told as [`Topic::Processes`](super::Topic::Processes).
#[async_trait]
pub trait Processes: Changes {
    /// Stores a process that was started. One whose id was begun before is left as it is.
    async fn begin_process(&self, new: NewProcess) -> Result<(), StoreError>;
    /// Stores how a process ended, and gives it as it stands: the first end stands. `None` where this tenant
    /// has none of that id.
    async fn end_process(
        &self,
        tenant: &TenantId,
        id: ProcessId,
        end: ProcessEnd,
        at: UnixMillis,
    ) -> Result<Option<Process>, StoreError>;
    /// One process; `None` where this tenant has none of that id.
    async fn process(&self, tenant: &TenantId, id: ProcessId) -> Result<Option<Process>, StoreError>;
    /// The processes of a conversation, in the order in which they were started.
    async fn processes(&self, tenant: &TenantId, session: &SessionKey) -> Result<Vec<Process>, StoreError>;
    /// Marks lost what earlier boots of this worker's node left running, for all tenants, and gives it, in
    /// the order in which it was started. Each is given once: whoever gets it reports it.
    async fn lose_processes(&self, worker: &Worker, at: UnixMillis) -> Result<Vec<Process>, StoreError>;
}
