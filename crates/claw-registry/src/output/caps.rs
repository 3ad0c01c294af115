//! Limits on a result whose text is already scrubbed.

use claw_core::attachment::Attachment;
use claw_core::image::{self, Image};
use claw_core::text::{self, Text};
use claw_core::tool::{Block, Output, ToolError};
use serde_json::{Value, json};
use smol_str::SmolStr;

use super::cut::{cut, shorten};
use super::{ADVICE, REASON};
use crate::scrub::OutputScrubber;

/// Number of blocks, images included, and of files to deliver.
const BLOCKS: usize = 100;
/// Bytes of all images together.
const IMAGES: usize = 8 * 1024 * 1024;
/// Bytes of a type, a handle, a name.
const LABEL: usize = 256;
/// Bytes of an address.
const ADDRESS: usize = 4096;

/// The bytes of text that a block adds for the model.
pub(super) fn text_len(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.len(),
        Block::Image(_) => 0,
        Block::Attachment(attachment) => attachment.to_string().len(),
        Block::Resource { uri, text, .. } => uri.len() + text.as_ref().map_or(0, String::len),
    }
}

/// Puts text in place of images and attachments that are too large, are not what they claim, or hold a secret.
pub(super) fn images(content: &mut [Block], scrubber: OutputScrubber<'_>) {
    let mut left = IMAGES;
    for block in content {
        let checked = match block {
            Block::Image(image) => checked(image, left, scrubber),
            Block::Attachment(attachment) => checked_attachment(attachment, left, scrubber),
            Block::Text { .. } | Block::Resource { .. } => continue,
        };
        match checked {
            Ok(bytes) => left -= bytes,
            Err(text) => *block = Block::Text { text },
        }
    }
}

/// The size of an image that may be shown, or the text in its place.
fn checked(image: &Image, left: usize, scrubber: OutputScrubber<'_>) -> Result<usize, String> {
    let (mime, bytes) = (shorten(&image.mime, LABEL), image.bytes);
    let left_out = |why: String| Err(format!("[image {mime} left out; its {bytes} bytes {why}]"));
    let Some(data) = image.data() else { return left_out("did not come with it".to_owned()) };
    if data.len() > left {
        return left_out(format!("are too many: all images together may have {IMAGES}"));
    }
    // Text is scrubbed as text, whatever type it declares.
    if let Ok(Text { mut text, .. }) = text::decode(data) {
        scrubber.in_place(&mut text);
        return Err(format!("[not an image {mime}, but text]\n{text}"));
    }
    if let Err(wrong) = image::check_image(&image.mime, data) {
        return left_out(format!("are {}, and not what it claims to be", wrong.found));
    }
    if scrubber.passes(data) { Ok(data.len()) } else { left_out("hold a secret".to_owned()) }
}

/// The size of an attachment that may be kept; else the text that stands in its place.
fn checked_attachment(
    attachment: &Attachment,
    left: usize,
    scrubber: OutputScrubber<'_>,
) -> Result<usize, String> {
    let (mime, bytes) = (shorten(&attachment.mime, LABEL), attachment.bytes);
    let left_out = |why: String| Err(format!("[file {mime} left out; its {bytes} bytes {why}]"));
    let Some(data) = attachment.data() else { return left_out("did not come with it".to_owned()) };
    if data.len() > left {
        return left_out(format!("are too many: all files together may have {IMAGES}"));
    }
    // Text is scrubbed as text, whatever it is called.
    if let Ok(Text { mut text, .. }) = text::decode(data) {
        scrubber.in_place(&mut text);
        return Err(format!("[not {mime}, but text]\n{text}"));
    }
    if scrubber.passes(data) { Ok(data.len()) } else { left_out("hold a secret".to_owned()) }
}

/// The whole text of an output, if it should be one block: it is too long, has too many blocks, or a secret
/// spans blocks.
pub(super) fn to_be_folded(output: &Output, limit: usize, scrubber: OutputScrubber<'_>) -> Option<String> {
    let blocks = &output.content;
    if let [Block::Text { text }] = blocks.as_slice()
        && text.len() <= limit
    {
        return None;
    }
    let whole = output.model_text();
    let mut scrubbed = whole.clone();
    scrubber.in_place(&mut scrubbed);
    let texts: usize = blocks.iter().map(text_len).sum();
    (texts > limit || blocks.len() > BLOCKS || scrubbed != whole).then_some(scrubbed)
}

/// Puts one text in place of all words; images and attachments stay behind it.
pub(super) fn fold(content: &mut Vec<Block>, text: String) {
    content.retain(|block| matches!(block, Block::Image(_) | Block::Attachment(_)));
    content.insert(0, Block::Text { text });
}

/// Caps the fields that are not kept. Data that is too large is left out, since half of it would be useless.
pub(super) fn output(output: &mut Output, limit: usize) {
    let said = [truncate(&mut output.content, "blocks"), truncate(&mut output.media, "files")];
    output.content.extend(said.into_iter().flatten().map(|text| Block::Text { text }));
    for block in &mut output.content {
        match block {
            Block::Text { .. } => {}
            Block::Image(image) => label(&mut image.mime),
            Block::Attachment(attachment) => {
                label(&mut attachment.mime);
                attachment.uri.iter_mut().for_each(|uri| shorten_in_place(uri, ADDRESS));
            }
            Block::Resource { uri, mime, text: _ } => {
                shorten_in_place(uri, ADDRESS);
                mime.iter_mut().for_each(label);
            }
        }
    }
    if let Some(text) = &mut output.for_user
        && text.len() > limit
    {
        *text = cut(text, limit, "the rest is not shown");
    }
    output.pending.iter_mut().for_each(label);
    output.details.iter_mut().for_each(|details| data(details, limit));
    for media in &mut output.media {
        label(&mut media.mime);
        shorten_in_place(&mut media.name, LABEL);
        media.caption.iter_mut().for_each(|caption| shorten_in_place(caption, ADVICE));
    }
    if let Some(usage) = &mut output.usage {
        label(&mut usage.provider);
        label(&mut usage.model);
    }
}

/// Caps all fields but the message, which is kept.
pub(super) fn error(error: &mut ToolError, limit: usize) {
    error.advice.iter_mut().for_each(|advice| shorten_in_place(advice, ADVICE));
    error.setting.iter_mut().for_each(|setting| shorten_in_place(setting, ADVICE));
    error.cause.iter_mut().for_each(|cause| shorten_in_place(cause, REASON));
    error.details.iter_mut().for_each(|details| data(details, limit));
}

/// Truncates a list and tells how many there were.
fn truncate<T>(list: &mut Vec<T>, what: &str) -> Option<String> {
    let more = list.len().checked_sub(BLOCKS).filter(|&more| more > 0)?;
    list.truncate(BLOCKS);
    Some(format!("[{more} more {what} left out; at most {BLOCKS} are shown]"))
}

fn data(details: &mut Value, limit: usize) {
    let bytes = json_len(details);
    if bytes > limit.saturating_mul(4) {
        *details = json!({ "left_out": "too large", "bytes": bytes });
    }
}

/// The length of a value as text.
fn json_len(value: &Value) -> usize {
    let mut count = ByteCount(0);
    // Values always serialise, and counting never fails.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

struct ByteCount(usize);

impl std::io::Write for ByteCount {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn label(label: &mut SmolStr) {
    if label.len() > LABEL {
        *label = shorten(label, LABEL).into();
    }
}

fn shorten_in_place(text: &mut String, limit: usize) {
    if text.len() > limit {
        *text = shorten(text, limit);
    }
}
