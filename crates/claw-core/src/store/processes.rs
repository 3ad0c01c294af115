//! Background processes: their owners, commands and ends.
//!
//! Processes die with the program that owns them. A process that is still marked as running when the program
//! starts again is lost: its end is unknown.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Changes, StoreError, Worker};
use crate::id::{AgentId, ProcessId, SessionKey, TenantId, UserId};
use crate::port::UnixMillis;

/// A started process, before it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewProcess {
    /// Its id. The same id begun again is the same process.
    pub id: ProcessId,
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// The session; no other session sees it.
    pub session: SessionKey,
    /// The agent that started it.
    pub agent: AgentId,
    /// The user the agent acts for; `None` if there is none.
    pub user: Option<UserId>,
    /// The program that owns it.
    pub worker: Worker,
    /// The command as a person reads it, scrubbed.
    pub command: String,
    /// Its working directory.
    pub directory: String,
    /// Its process id on its node, as long as it runs.
    pub pid: u32,
    /// The time it was started.
    pub started: UnixMillis,
}

/// The end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "lowercase")]
pub enum ProcessEnd {
    /// It exited, or a signal that was not ours ended it.
    Exited {
        /// Its exit code; `None` if a signal ended it.
        code: Option<i32>,
        /// The signal that ended it; `None` if it exited.
        signal: Option<i32>,
    },
    /// Clawsmith ended it.
    Killed,
    /// It ended with the program that owned it; its exit code is unknown.
    Lost,
}

/// A stored process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Process {
    /// The process as it was started.
    #[serde(flatten)]
    pub new: NewProcess,
    /// Its end and the time; `None` while it runs.
    pub ended: Option<(ProcessEnd, UnixMillis)>,
}

/// Stores background processes; a change is announced as [`Topic::Processes`](super::Topic::Processes).
#[async_trait]
pub trait Processes: Changes {
    /// Stores a started process. If its id exists, nothing changes.
    async fn begin_process(&self, new: NewProcess) -> Result<(), StoreError>;
    /// Stores the end of a process, and returns its new state; the first end stands. `None` if this tenant
    /// has no process with that id.
    async fn end_process(
        &self,
        tenant: &TenantId,
        id: ProcessId,
        end: ProcessEnd,
        at: UnixMillis,
    ) -> Result<Option<Process>, StoreError>;
    /// Returns one process; `None` if this tenant has no process with that id.
    async fn process(&self, tenant: &TenantId, id: ProcessId) -> Result<Option<Process>, StoreError>;
    /// Returns the processes of a session, in the order in which they were started.
    async fn processes(&self, tenant: &TenantId, session: &SessionKey) -> Result<Vec<Process>, StoreError>;
    /// Marks the processes that earlier boots of this worker's node left running as lost, for all tenants,
    /// and returns them in the order in which they were started. Each is returned once: the caller reports
    /// it.
    async fn lose_processes(&self, worker: &Worker, at: UnixMillis) -> Result<Vec<Process>, StoreError>;
}
