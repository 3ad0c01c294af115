//! Removes secrets from every text of a result. A new field has to be named here: the patterns are
//! exhaustive.

use claw_core::tool::{Block, Media, Output, ToolError, Usage};
use smol_str::SmolStr;

use crate::scrub::OutputScrubber;

pub(super) fn output(output: &mut Output, scrubber: OutputScrubber<'_>) {
    for block in &mut output.content {
        match block {
            Block::Text { text } => scrubber.in_place(text),
            // Bytes cannot be scrubbed; they pass as a whole or not at all.
            Block::Image(image) => label(&mut image.mime, scrubber),
            Block::Attachment(attachment) => {
                label(&mut attachment.mime, scrubber);
                attachment.uri.iter_mut().for_each(|uri| scrubber.in_place(uri));
            }
            Block::Resource { uri, mime, text } => {
                scrubber.in_place(uri);
                mime.iter_mut().for_each(|mime| label(mime, scrubber));
                text.iter_mut().for_each(|text| scrubber.in_place(text));
            }
        }
    }
    output.for_user.iter_mut().for_each(|text| scrubber.in_place(text));
    output.deliverable.iter_mut().for_each(|text| scrubber.in_place(text));
    output.pending.iter_mut().for_each(|handle| label(handle, scrubber));
    output.details = output.details.take().map(|details| scrubber.json(details));
    for Media { artifact: _, mime, name, caption } in &mut output.media {
        label(mime, scrubber);
        scrubber.in_place(name);
        caption.iter_mut().for_each(|text| scrubber.in_place(text));
    }
    if let Some(Usage { provider, model, .. }) = &mut output.usage {
        label(provider, scrubber);
        label(model, scrubber);
    }
}

pub(super) fn error(error: &mut ToolError, scrubber: OutputScrubber<'_>) {
    let ToolError { kind: _, message, advice, setting, cause, details } = error;
    scrubber.in_place(message);
    advice.iter_mut().for_each(|text| scrubber.in_place(text));
    setting.iter_mut().for_each(|text| scrubber.in_place(text));
    cause.iter_mut().for_each(|text| scrubber.in_place(text));
    *details = details.take().map(|details| Box::new(scrubber.json(*details)));
}

fn label(label: &mut SmolStr, scrubber: OutputScrubber<'_>) {
    let mut text = label.to_string();
    scrubber.in_place(&mut text);
    if *label != text {
        *label = text.into();
    }
}
