//! Reconnecting: the pauses between attempts to reach a server that failed.

use std::sync::Arc;
use std::time::Duration;

use claw_core::store::McpTransport;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::watching::watch_over;
use super::{ConnectionState, Now, Target, connect};

/// The first and the longest pause between two attempts, and the pause after [`QUICK_ATTEMPTS`] of them.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(60);
const SLOW_PAUSE: Duration = Duration::from_secs(300);
pub(super) const QUICK_ATTEMPTS: u32 = 10;
/// The number of failures in a row when a connection that was up is lost.
pub(super) const LOST: u32 = 1;

/// Dials, watches, and dials again, for as long as the connection is needed.
pub(super) async fn keep_up(target: Arc<Target>, now: &watch::Sender<Now>, retry: &Notify) {
    let mut attempts = 0;
    // A server that failed in the newer lifecycle is spoken to in the older one from then on.
    let mut legacy = matches!(target.server.transport, McpTransport::Sse(_));
    loop {
        now.send_replace(Now { state: ConnectionState::Connecting, live: None });
        let why = match connect(&target, &mut legacy).await {
            Ok((live, dialled)) => {
                let why = watch_over(&target, now, live, dialled).await;
                attempts = LOST;
                why
            }
            Err(why) => {
                attempts += 1;
                why
            }
        };
        tracing::debug!(server = %target.server.name, attempts, "{why}");
        let next_try = target.place.now().plus(pause(attempts));
        now.send_replace(Now { state: ConnectionState::Waiting { attempts, why, next_try }, live: None });
        let wanted = async {
            sleep(FIRST_PAUSE).await;
            retry.notified().await;
        };
        // A call's wish is taken first: left over, it would shorten the next pause.
        tokio::select! {
            biased;
            () = wanted => {}
            () = sleep(pause(attempts)) => {}
        }
    }
}

/// The pause after so many failures in a row.
pub(super) fn pause(attempts: u32) -> Duration {
    if attempts > QUICK_ATTEMPTS {
        return SLOW_PAUSE;
    }
    FIRST_PAUSE.saturating_mul(1 << attempts.saturating_sub(1).min(16)).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_further_apart_up_to_a_bound() {
        let pauses: Vec<u64> = (1..13).map(|attempts| pause(attempts).as_secs()).collect();
        assert_eq!(pauses, [2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 300, 300]);
    }
}
