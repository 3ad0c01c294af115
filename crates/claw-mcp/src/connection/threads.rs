//! The threads on which connections live, apart from those of their callers.
//!
//! A message passes four tasks of the protocol library on its way out and on its way back. Tasks of one thread wake each
//! other without a system call, and a server that floods us holds up no caller.

use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// The longest that connections may take to end.
const FAREWELL: Duration = Duration::from_secs(2);

/// Threads that are started when the first connection needs one. They end with `ends`.
pub(crate) struct ConnectionThreads {
    /// The most threads. With none, connections live on the runtime of the caller that needs them first.
    most: usize,
    ends: CancellationToken,
    started: Mutex<Started>,
}

#[derive(Default)]
struct Started {
    handles: Vec<Handle>,
    /// The number of connections that were given a thread.
    given: usize,
}

impl ConnectionThreads {
    /// Starts no thread yet.
    pub(crate) fn new(most: usize, ends: CancellationToken) -> Self {
        Self { most, ends, started: Mutex::default() }
    }

    /// Returns the runtime for a new connection. The threads take turns.
    pub(crate) fn next(&self) -> Handle {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = started.given;
        started.given = turn.wrapping_add(1);
        if started.handles.len() < self.most {
            match start(self.ends.clone()) {
                Ok(handle) => started.handles.push(handle),
                Err(error) => tracing::warn!(%error, "a thread for MCP connections could not be started"),
            }
        }
        match started.handles.len() {
            0 => Handle::current(),
            threads => started.handles[turn % threads].clone(),
        }
    }
}

/// Starts a thread with a runtime of its own.
fn start(ends: CancellationToken) -> std::io::Result<Handle> {
    let (tell, told) = sync_channel(1);
    let run = move || {
        // Made here: a runtime must not be dropped in a task, which would happen if no thread could be started.
        let runtime = match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                let _ = tell.send(Err(error));
                return;
            }
        };
        let _ = tell.send(Ok(runtime.handle().clone()));
        runtime.block_on(async {
            ends.cancelled().await;
            let _ = timeout(FAREWELL, all_ended()).await;
        });
    };
    thread::Builder::new().name("mcp".to_owned()).spawn(run)?;
    told.recv().map_err(std::io::Error::other)?
}

/// Waits until the tasks of this runtime have ended: connections say goodbye to their servers, and approvals are withdrawn.
async fn all_ended() {
    while Handle::current().metrics().num_alive_tasks() > 0 {
        sleep(Duration::from_millis(20)).await;
    }
}
