//! A call whose caller vanished: its future was dropped before the outcome was recorded.

use std::sync::Arc;

use claw_core::CallId;
use claw_core::store::{EntryEvent, Outcome};
use claw_core::tool::Meta;
use tokio_util::sync::CancellationToken;

use crate::{Executor, Offer};

/// If dropped before the outcome is recorded, cancels the call and records its outcome.
pub(super) struct Abandoned(Option<Watch>);

struct Watch {
    executor: Executor,
    offer: Offer,
    call: CallId,
    tool: Arc<Meta>,
    cancel: CancellationToken,
    /// The tool's outcome and run time in microseconds, once it has ended.
    ended: Option<(Outcome, u64)>,
}

impl Abandoned {
    /// Watches a call from the moment that its intent is recorded.
    pub(super) fn watch(
        executor: &Executor,
        offer: &Offer,
        call: CallId,
        tool: &Arc<Meta>,
        cancel: &CancellationToken,
    ) -> Self {
        let (executor, offer) = (executor.clone(), offer.clone());
        let (tool, cancel) = (Arc::clone(tool), cancel.clone());
        Self(Some(Watch { executor, offer, call, tool, cancel, ended: None }))
    }

    /// Sets the outcome to record if the rest is dropped.
    pub(super) fn ended(&mut self, outcome: Outcome, micros: u64) {
        if let Some(watch) = &mut self.0 {
            watch.ended = Some((outcome, micros));
        }
    }

    /// The outcome is recorded, or cannot be.
    pub(super) fn arrived(mut self) {
        self.0 = None;
    }
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        let Some(watch) = self.0.take() else { return };
        watch.cancel.cancel();
        // Without a runtime nothing can be recorded any more, and the ledger rightly shows the outcome as
        // unknown.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(watch.write());
    }
}

impl Watch {
    async fn write(self) {
        let (outcome, micros) = self.ended.unwrap_or((Outcome::Failed, 0));
        let error = self.ended.is_none().then(|| "its caller went away while it ran".to_owned());
        let end = EntryEvent::Outcome { outcome, micros, bytes: 0, error, changes: None };
        let line = self.executor.line(&self.offer, self.call, self.tool.name.as_str(), end);
        if let Err(error) = self.executor.store().finish_call(line).await {
            tracing::error!(%error, call = %self.call, "the outcome of an abandoned call could not be written");
        }
    }
}
