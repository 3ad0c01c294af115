//! Scrubs the progress of a running call on its way to the listener.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use claw_core::CallId;
use claw_core::event::What;
use claw_core::tool::{Progress, Secrets};

use super::Request;
use crate::scrub::Telling;
use crate::{Executor, Offer};

/// Returns the call's progress, scrubbed, and its end: text that the stream holds back is sent when the call is
/// over.
pub(super) fn scrub_progress(
    executor: &Executor,
    settings: bool,
    offer: &Offer,
    request: &Request,
    secrets: &Secrets,
) -> (Progress, Tail) {
    if request.progress.is_silent() && !executor.is_heard() {
        return (Progress::silent(), Tail(None));
    }
    let scrubber = executor.0.scrubbers.for_tenant(&offer.caller().tenant).for_settings(settings);
    let line = Arc::new(Line {
        executor: executor.clone(),
        offer: offer.clone(),
        call: request.call,
        listener: request.progress.clone(),
        telling: Mutex::new(Telling::new(scrubber, secrets.clone())),
    });
    let tail = Tail(Some(Arc::clone(&line)));
    (Progress::to(move |piece| line.tell(|telling| telling.push(piece))), tail)
}

struct Line {
    executor: Executor,
    offer: Offer,
    call: CallId,
    listener: Progress,
    telling: Mutex<Telling>,
}

impl Line {
    fn tell(&self, take: impl FnOnce(&mut Telling) -> String) {
        // Held while the listener is told, so that pieces arrive in order.
        let mut telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        let text = take(&mut telling);
        if text.is_empty() {
            return;
        }
        if catch_unwind(AssertUnwindSafe(|| self.listener.tell(&text))).is_err() {
            tracing::error!(call = %self.call, "a listener to progress panicked");
        }
        self.executor.emit(self.offer.caller(), self.call, || What::CallProgress { text });
    }
}

/// Sends the text held back.
pub(super) struct Tail(Option<Arc<Line>>);

impl Tail {
    pub(super) fn end(self) {
        if let Some(line) = self.0 {
            line.tell(Telling::end);
        }
    }
}
