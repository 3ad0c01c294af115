//! The resource limits of a command, with their defaults. `sandbox.*` of the configuration sets those of containers.

use serde::{Deserialize, Serialize};

/// The resource limits of a command. `None` sets no limit. On the host memory, processors and the number of
/// processes are not limited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of memory, all its processes together; without control groups, for each process.
    pub memory: Option<u64>,
    /// Processes and threads at once.
    pub processes: Option<u64>,
    /// Processors, in hundredths: 150 is one and a half. Needs control groups.
    pub cpu_percent: Option<u64>,
    /// Seconds of processor time for each process.
    pub cpu_seconds: Option<u64>,
    /// Open files for each process.
    pub open_files: Option<u64>,
    /// Bytes of the largest file it writes.
    pub file_size: Option<u64>,
    /// The bytes by which the free space of the workspace's disk may shrink, whoever fills it, before the
    /// command is stopped.
    pub disk: Option<u64>,
    /// Bytes of its private `/tmp`.
    pub temporary: u64,
}

const MIB: u64 = 1 << 20;

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: Some(4096 * MIB),
            processes: Some(512),
            cpu_percent: None,
            cpu_seconds: None,
            open_files: Some(4096),
            file_size: Some(4096 * MIB),
            disk: Some(8192 * MIB),
            temporary: 1024 * MIB,
        }
    }
}
