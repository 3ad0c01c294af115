//! Results of calls: scrubbed first, then cut.
//!
//! The whole scrubbed text is kept as an artifact before the model's copy is cut, so nothing is lost, and a
//! cut cannot split a secret and so hide it from the scrubber. Everything has a limit, and omissions are
//! noted. Images are stored by digest before anything names them.

mod caps;
mod cut;
mod scrub;

use std::borrow::Cow;

use claw_core::CallId;
use claw_core::store::{NewBlob, StoreError};
use claw_core::tool::{Block, Digest, Output, ToolError};
use serde_json::{Value, json};

pub(crate) use self::cut::cut;
use self::cut::shorten;
use crate::reply::Refusal;
use crate::scrub::{CallScrubber, OutputScrubber, ScrubbedJson};
use crate::{Executor, Offer, guard};

/// Bytes of a reason, of the ledger's copy of an error, of a cause.
const REASON: usize = 4096;
/// Bytes of advice and of a note.
const ADVICE: usize = 1024;
/// Bytes of a tool's name.
const NAME: usize = 80;
/// Bytes of arguments that the ledger holds whole, and of the head of larger ones.
const LEDGER_ARGS: usize = 16 * 1024;
const LEDGER_HEAD: usize = 4096;

/// Scrubs and caps a refusal.
pub(crate) fn refusal(refusal: Refusal, scrubber: &CallScrubber) -> Refusal {
    Refusal {
        reason: shorten(&scrubber.text(&refusal.reason), REASON),
        advice: refusal.advice.map(|advice| shorten(&scrubber.text(&advice), ADVICE)),
        setting: refusal.setting.map(|setting| shorten(&scrubber.text(&setting), ADVICE)),
        details: refusal.details.map(|details| Box::new(ledger_args(&details, scrubber))),
        ..refusal
    }
}

/// Scrubs and caps a note.
pub(crate) fn note(text: &str, scrubber: &CallScrubber) -> String {
    shorten(&scrubber.text(text), ADVICE)
}

/// Scrubs and caps a requested tool name, which may be anything.
pub(crate) fn name(text: &str, scrubber: &CallScrubber) -> String {
    shorten(&scrubber.text(text), NAME)
}

/// Arguments for the ledger: whole if they are small, else their size, digest and head. The digest is of the
/// scrubbed text, so that secrets cannot be guessed with it.
pub(crate) fn ledger_args(args: &Value, scrubber: &CallScrubber) -> Value {
    let ScrubbedJson { value, text } = scrubber.json_in(Cow::Borrowed(args));
    if text.len() <= LEDGER_ARGS {
        return value;
    }
    let digest = Digest::of_bytes(text.as_bytes()).to_string();
    json!({ "left_out": "too large", "bytes": text.len(), "digest": digest, "head": shorten(&text, LEDGER_HEAD) })
}

/// A result as it leaves the road: scrubbed and cut.
pub(crate) struct Capped {
    pub(crate) result: Result<Output, ToolError>,
    /// The bytes of text that the model reads.
    pub(crate) bytes: u64,
    /// The error for the ledger, scrubbed whatever the deployment shows to model and user.
    pub(crate) ledger_error: Option<String>,
}

/// Scrubs a result and cuts it to size.
pub(crate) async fn finish(
    executor: &Executor,
    offer: &Offer,
    call: CallId,
    result: Result<Output, ToolError>,
    scrubber: &CallScrubber,
) -> Capped {
    let ledger_error = result.as_ref().err().map(|error| shorten(&scrubber.text(&error.message), REASON));
    let shelf = Shelf { executor, offer, call };
    let limit = executor.0.limits.output_bytes;
    let shown = scrubber.for_output();
    let (result, bytes) = match result {
        Ok(output) => {
            let output = finish_output(output, limit, shown, &shelf).await;
            let bytes = output.content.iter().map(caps::text_len).sum();
            (Ok(output), bytes)
        }
        Err(error) => {
            let error = finish_error(error, limit, shown, &shelf).await;
            let bytes = error.message.len();
            (Err(error), bytes)
        }
    };
    Capped { result, bytes: bytes as u64, ledger_error }
}

async fn finish_output(
    mut output: Output,
    limit: usize,
    scrubber: OutputScrubber<'_>,
    shelf: &Shelf<'_>,
) -> Output {
    scrub::output(&mut output, scrubber);
    caps::images(&mut output.content, scrubber);
    // First, so that the newest artifact is the one the model reads.
    if let Some(deliverable) = output.deliverable.take() {
        output.deliverable = Some(shelf.cut(deliverable, limit.saturating_mul(4)).await);
    }
    let most = output.most_bytes.map_or(limit, |own| own.min(limit));
    if let Some(whole) = caps::to_be_folded(&output, most, scrubber) {
        let text = shelf.cut(whole, most).await;
        caps::fold(&mut output.content, text);
    }
    caps::output(&mut output, limit);
    shelf.store_bytes(&mut output.content).await;
    output
}

async fn finish_error(
    mut error: ToolError,
    limit: usize,
    scrubber: OutputScrubber<'_>,
    shelf: &Shelf<'_>,
) -> ToolError {
    scrub::error(&mut error, scrubber);
    error.message = shelf.cut(error.message, limit).await;
    caps::error(&mut error, limit);
    error
}

/// Keeps the whole of a cut text, and the bytes of images.
struct Shelf<'a> {
    executor: &'a Executor,
    offer: &'a Offer,
    call: CallId,
}

impl Shelf<'_> {
    /// Cuts a text that does not fit; the whole of it is kept.
    async fn cut(&self, text: String, limit: usize) -> String {
        if text.len() <= limit {
            return text;
        }
        let kept = self.keep(&text).await;
        cut(&text, limit, &kept)
    }

    /// Stores the bytes of images and attachments, so that messages can name them. One that cannot be stored becomes a line.
    async fn store_bytes(&self, content: &mut [Block]) {
        for block in content {
            let (blob, line) = match block {
                Block::Image(image) => (NewBlob::of_image(image), image.to_string()),
                Block::Attachment(attachment) => (NewBlob::of_attachment(attachment), attachment.to_string()),
                Block::Text { .. } | Block::Resource { .. } => continue,
            };
            if let Err(why) = self.store(blob).await {
                *block = Block::Text {
                    text: format!("{}, could not be stored: {why}]", line.trim_end_matches(']')),
                };
            }
        }
    }

    async fn store(&self, blob: Option<Result<NewBlob, StoreError>>) -> Result<(), String> {
        let Some(blob) = blob else { return Ok(()) };
        let (tenant, now) = (&self.offer.caller().tenant, self.offer.0.registry.world().clock.now());
        let stored = match blob {
            Ok(blob) => self.executor.0.store.put_blob(tenant, &blob, now).await,
            Err(error) => Err(error),
        };
        stored.map_err(|error| match error {
            StoreError::Refused { why, .. } => why,
            error => {
                tracing::error!(%error, call = %self.call, "the bytes of a result could not be stored");
                "the store failed; make the call again later".to_owned()
            }
        })
    }

    /// Keeps the whole text and tells where; `result_read` becomes callable.
    async fn keep(&self, text: &str) -> String {
        let (offer, call) = (self.offer, self.call);
        let Some(store) = &offer.0.registry.world().artifacts else {
            return "the whole was not kept: no store for kept results is set up".to_owned();
        };
        match store.put(&guard::owner(offer.caller()), call, text).await {
            Ok(artifact) => {
                offer.activate("result_read");
                let (id, lines) = (artifact.id, artifact.lines);
                format!(
                    "the whole has {lines} lines and is kept as artifact {id}; read parts of it with `result_read`"
                )
            }
            Err(error) => {
                let scrubbers = &self.executor.0.scrubbers;
                let cause = scrubbers.for_tenant(&offer.caller().tenant).text(&error.for_log());
                tracing::error!(error = cause, %call, "a result could not be kept");
                "the whole could not be kept".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests;
