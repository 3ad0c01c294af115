//! A call whose caller went away without a word: its future was dropped while the tool ran.

use claw_core::CallId;
use claw_core::store::{EntryEvent, Outcome};
use tokio_util::sync::CancellationToken;

use crate::{Executor, Offer};

/// Rings the call's cancellation and writes its outcome if it is dropped before the tool has arrived.
pub(super) struct Abandoned(Option<Watch>);

struct Watch {
    executor: Executor,
    offer: Offer,
    call: CallId,
    tool: String,
    cancel: CancellationToken,
}

impl Abandoned {
    pub(super) fn watch(
        executor: &Executor,
        offer: &Offer,
        call: CallId,
        tool: &str,
        cancel: &CancellationToken,
    ) -> Self {
        Self(Some(Watch {
            executor: executor.clone(),
            offer: offer.clone(),
            call,
            tool: tool.to_owned(),
            cancel: cancel.clone(),
        }))
    }

    /// The tool has come to its end.
    pub(super) fn arrived(mut self) {
        self.0 = None;
    }
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        let Some(watch) = self.0.take() else { return };
        watch.cancel.cancel();
        // Without a runtime nothing can be written any more, and the ledger rightly says: unknown.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let error = Some("its caller went away while it ran".to_owned());
            let end = EntryEvent::Outcome { outcome: Outcome::Failed, micros: 0, bytes: 0, error };
            let line = watch.executor.line(&watch.offer, watch.call, &watch.tool, end);
            if let Err(error) = watch.executor.store().finish_call(line).await {
                tracing::error!(%error, call = %watch.call, "the outcome of an abandoned call could not be written");
            }
        });
    }
}
