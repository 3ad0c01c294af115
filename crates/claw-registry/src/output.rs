//! What leaves a call: scrubbed first, cut after.
//!
//! The whole scrubbed text is kept as an artifact before the model's copy is cut, so nothing is lost and no
//! secret can slip through where the cut would have split it.

use claw_core::CallId;
use claw_core::tool::{Block, Output, ToolError};
use serde_json::json;

use crate::scrub::{CallScrubber, OutputScrubber};
use crate::{Executor, Offer, guard};

/// What is left of a result, and what was done to it.
pub(crate) struct Capped {
    pub(crate) result: Result<Output, ToolError>,
    pub(crate) notes: Vec<String>,
    pub(crate) bytes: u64,
    /// Scrubs what goes to logs and ledger, whatever the deployment decided for model and user.
    pub(crate) strict: CallScrubber,
}

/// Scrubs a result and cuts it to size.
pub(crate) async fn finish(
    executor: &Executor,
    offer: &Offer,
    call: CallId,
    result: Result<Output, ToolError>,
    scrubber: &CallScrubber,
) -> Capped {
    let shown = scrubber.for_output();
    let mut capped =
        Capped { result: Ok(Output::default()), notes: Vec::new(), bytes: 0, strict: scrubber.clone() };
    let limit = executor.0.limits.output_bytes;
    capped.result = match result {
        Ok(output) => {
            let mut output = scrub(output, shown);
            let texts: usize = output.content.iter().map(text_len).sum();
            if texts > limit {
                let whole = output.model_text();
                let kept = keep(executor, offer, call, &whole).await;
                output.content.retain(|block| !matches!(block, Block::Text { .. } | Block::Resource { .. }));
                output.content.insert(0, Block::Text { text: cut(&whole, limit, &kept) });
            }
            cap_rest(&mut output, limit);
            Ok(output)
        }
        Err(error) => {
            let mut error = scrub_error(error, shown);
            if error.message.len() > limit {
                let kept = keep(executor, offer, call, &error.message).await;
                error.message = cut(&error.message, limit, &kept);
            }
            Err(error)
        }
    };
    capped.bytes = match &capped.result {
        Ok(output) => output.content.iter().map(text_len).sum::<usize>() as u64,
        Err(error) => error.message.len() as u64,
    };
    capped
}

fn text_len(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.len(),
        Block::Image { .. } => 0,
        Block::Resource { uri, text, .. } => uri.len() + text.as_ref().map_or(0, String::len),
    }
}

fn scrub(mut output: Output, scrubber: OutputScrubber<'_>) -> Output {
    for block in &mut output.content {
        match block {
            Block::Text { text } => scrubber.in_place(text),
            Block::Image { .. } => {}
            Block::Resource { uri, text, .. } => {
                scrubber.in_place(uri);
                text.iter_mut().for_each(|text| scrubber.in_place(text));
            }
        }
    }
    output.for_user.iter_mut().for_each(|text| scrubber.in_place(text));
    output.deliverable.iter_mut().for_each(|text| scrubber.in_place(text));
    output.details = output.details.map(|details| scrubber.json(details));
    for media in &mut output.media {
        scrubber.in_place(&mut media.name);
        media.caption.iter_mut().for_each(|text| scrubber.in_place(text));
    }
    output
}

fn scrub_error(mut error: ToolError, scrubber: OutputScrubber<'_>) -> ToolError {
    scrubber.in_place(&mut error.message);
    error.advice.iter_mut().for_each(|text| scrubber.in_place(text));
    error.cause.iter_mut().for_each(|text| scrubber.in_place(text));
    error.details = error.details.map(|details| Box::new(scrubber.json(*details)));
    error
}

/// What the user reads is cut like what the model reads; data that is too large is left out, since half of
/// it would be no data at all.
fn cap_rest(output: &mut Output, limit: usize) {
    if let Some(text) = &mut output.for_user
        && text.len() > limit
    {
        *text = cut(text, limit, "the rest is not shown");
    }
    if let Some(details) = &output.details {
        let size = details.to_string().len();
        if size > limit.saturating_mul(4) {
            output.details = Some(json!({ "left_out": "too large", "bytes": size }));
        }
    }
}

/// Keeps the whole text and says where it is; `result_read` becomes callable.
async fn keep(executor: &Executor, offer: &Offer, call: CallId, text: &str) -> String {
    let Some(store) = &offer.0.registry.world().artifacts else {
        return "the whole was not kept: no artifact store is set up".to_owned();
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
            let cause = executor.0.scrubbers.for_tenant(&offer.caller().tenant).text(&error.for_log());
            tracing::error!(error = cause, %call, "a result could not be kept");
            "the whole could not be kept".to_owned()
        }
    }
}

/// Head and tail of a text, with a line between that says what is missing.
pub(crate) fn cut(text: &str, limit: usize, kept: &str) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let head_end = line_end(text, floor(text, limit * 2 / 3));
    let tail_start = ceil(text, text.len() - (limit - head_end).min(limit / 3));
    let missing = tail_start - head_end;
    format!("{}\n[... {missing} bytes left out; {kept} ...]\n{}", &text[..head_end], &text[tail_start..])
}

/// Ends the head after a whole line where one ends in its last quarter.
fn line_end(text: &str, end: usize) -> usize {
    match text[..end].rfind('\n') {
        Some(at) if at >= end / 4 * 3 => at,
        _ => end,
    }
}

fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// At most so many bytes of a text, with an ellipsis where some are missing.
pub(crate) fn shorten(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    format!("{}…", &text[..floor(text, limit)])
}

#[cfg(test)]
mod tests;
