//! A call whose caller went away without a word: its future was dropped before the outcome was written.

use claw_core::store::Record;
use tokio_util::sync::CancellationToken;

use crate::{Executor, Offer};

/// Rings the call's cancellation and writes its outcome if it is dropped before that was written.
pub(super) struct Abandoned(Option<Watch>);

struct Watch {
    executor: Executor,
    /// Keeps what the line speaks of alive.
    _offer: Offer,
    line: Record,
    cancel: CancellationToken,
}

impl Abandoned {
    /// Watches from the moment that the intent is written. `line` is how the call ends if it is dropped now.
    pub(super) fn watch(
        executor: &Executor,
        offer: &Offer,
        line: Record,
        cancel: &CancellationToken,
    ) -> Self {
        let (executor, _offer, cancel) = (executor.clone(), offer.clone(), cancel.clone());
        Self(Some(Watch { executor, _offer, line, cancel }))
    }

    /// The tool has come to its end; if the rest is dropped, this is how it ended.
    pub(super) fn ended(&mut self, line: Record) {
        if let Some(watch) = &mut self.0 {
            watch.line = line;
        }
    }

    /// The outcome is written, or cannot be.
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
            let call = watch.line.call;
            if let Err(error) = watch.executor.store().finish_call(watch.line).await {
                tracing::error!(%error, %call, "the outcome of an abandoned call could not be written");
            }
        });
    }
}
