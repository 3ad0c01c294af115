//! Watches a command: collects its output, ends it on request, and records how it ended.

use std::sync::Arc;
use std::time::Duration;

use claw_core::port::{Clock, Control};
use claw_core::store::ProcessEnd;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::ProcessKeeping;
use super::background_command::{Kept, Order};

/// Time to wait for remaining output after a command has ended.
const DRAIN: Duration = Duration::from_secs(1);

pub(super) struct Watch {
    pub(super) kept: Arc<Kept>,
    pub(super) output: Box<dyn AsyncRead + Send + Unpin>,
    /// Dropping this ends the command.
    pub(super) control: Box<dyn Control>,
    pub(super) orders: mpsc::UnboundedReceiver<Order>,
    /// Cancelled when the table is gone.
    pub(super) over: CancellationToken,
    /// Time limit; `None` for none.
    pub(super) limit: Option<Duration>,
    pub(super) keeping: ProcessKeeping,
    pub(super) clock: Arc<dyn Clock>,
}

impl Watch {
    pub(super) async fn go(mut self) {
        let end = self.end().await;
        let known = &self.kept.known;
        let (tenant, at) = (&known.owner.tenant, self.clock.now());
        if let Err(error) = self.keeping.store.end_process(tenant, known.id, end, at).await {
            tracing::error!(%error, process = %known.id, "how a background command ended could not be stored");
        }
        self.kept.end(end);
        tracing::debug!(process = %known.id, ?end, "a background command ended");
    }

    async fn end(&mut self) -> ProcessEnd {
        let (mut buffer, mut open) = (vec![0; 16 << 10], true);
        // The time at which it is asked to end, then at which it is killed.
        let mut deadline = self.limit.map(|limit| Instant::now() + limit);
        let (mut asked, mut heard) = (false, true);
        let ended = loop {
            let due = deadline.unwrap_or_else(Instant::now);
            let kill = tokio::select! {
                ended = self.control.ended() => break ended,
                read = self.output.read(&mut buffer), if open => {
                    match read {
                        Ok(count @ 1..) => self.kept.print(&buffer[..count]),
                        _ => open = false,
                    }
                    false
                }
                order = self.orders.recv(), if heard => match order {
                    Some(Order::Kill) => !asked,
                    Some(Order::Resize(size, answer)) => {
                        let _ = answer.send(self.control.resize(size));
                        false
                    }
                    None => {
                        heard = false;
                        false
                    }
                },
                () = self.over.cancelled() => {
                    // Nothing is left to wait for.
                    self.control.kill().await;
                    return ProcessEnd::Killed;
                }
                () = tokio::time::sleep_until(due), if deadline.is_some() => {
                    if asked {
                        self.control.kill().await;
                        deadline = None;
                    }
                    !asked
                }
            };
            if kill {
                asked = true;
                self.control.terminate().await;
                deadline = Some(Instant::now() + self.keeping.limits.grace);
            }
        };
        let drain = Instant::now() + DRAIN;
        while open
            && let Ok(Ok(count @ 1..)) = tokio::time::timeout_at(drain, self.output.read(&mut buffer)).await
        {
            self.kept.print(&buffer[..count]);
        }
        match ended {
            _ if asked => ProcessEnd::Killed,
            Ok(ended) => ProcessEnd::Exited { code: ended.exit, signal: ended.signal },
            Err(error) => {
                tracing::warn!(%error, process = %self.kept.known.id, "a background command was lost");
                ProcessEnd::Lost
            }
        }
    }
}
