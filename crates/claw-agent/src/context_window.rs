//! Making messages fit into a model's context window: old results are trimmed first.
//!
//! The store keeps everything; only the request to the model is shorter. The trimmed part grows in steps, so
//! that a provider's cache holds for a while.

use claw_core::message::{Args, Part, Turn};
use claw_core::store::Role;
use claw_core::tool::Block;

/// The fewest bytes of a result that is trimmed.
const SMALL: usize = 200;
/// The cost of an image, in bytes of text.
const IMAGE: usize = 4_000;

/// Estimates the tokens of these turns: four bytes each.
pub(crate) fn tokens(turns: &[Turn]) -> usize {
    turns.iter().flat_map(|turn| &turn.parts).map(bytes).sum::<usize>().div_ceil(4)
}

/// Removes the content of results, oldest first, until the turns fit. The latest results stay.
pub(crate) fn trim(turns: &mut [Turn], budget: usize) {
    let over = tokens(turns).saturating_sub(budget);
    if over == 0 {
        return;
    }
    let step = (budget / 4).max(1);
    let mut left = over.div_ceil(step).saturating_mul(step);
    let last = turns.iter().rposition(|turn| turn.role == Role::Tool);
    let older = last.map_or(0, |last| last);
    for part in turns.iter_mut().take(older).flat_map(|turn| &mut turn.parts) {
        let size = bytes(part);
        let Part::Result(told) = part else { continue };
        if size <= SMALL {
            continue;
        }
        let text =
            format!("[{size} bytes of output are left out here; make the call again if you need them]");
        told.content = vec![Block::Text { text }];
        left = left.saturating_sub((size - bytes(part)).div_ceil(4));
        if left == 0 {
            return;
        }
    }
}

/// Cuts long texts in the middle until the turns fit, or no text is long any more.
pub(crate) fn shorten(turns: &mut [Turn], budget: usize) {
    let mut most = 16_000;
    while tokens(turns) > budget && most >= 250 {
        for part in turns.iter_mut().flat_map(|turn| &mut turn.parts) {
            match part {
                Part::Text { text } | Part::Thinking { text, .. } => cut(text, most),
                Part::Result(told) => told.content.iter_mut().for_each(|block| match block {
                    Block::Text { text } => cut(text, most),
                    Block::Resource { text, .. } => {
                        if let Some(text) = text {
                            cut(text, most);
                        }
                    }
                    Block::Image(image) => *block = Block::Text { text: image.to_string() },
                    Block::Attachment(_) => {}
                }),
                Part::Image(image) => *part = Part::text(image.to_string()),
                Part::Call(_) => {}
            }
        }
        most /= 2;
    }
}

fn cut(text: &mut String, most: usize) {
    if text.len() <= most {
        return;
    }
    let (head, tail) = (text.floor_char_boundary(most / 2), text.ceil_char_boundary(text.len() - most / 2));
    *text = format!("{}\n[...]\n{}", &text[..head], &text[tail..]);
}

fn bytes(part: &Part) -> usize {
    match part {
        Part::Text { text } | Part::Thinking { text, .. } => text.len(),
        Part::Image(_) => IMAGE,
        Part::Call(wanted) => {
            let args = match &wanted.args {
                Args::Json(args) => args.to_string().len(),
                Args::Broken { text, .. } => text.len(),
            };
            wanted.tool.len() + args
        }
        Part::Result(told) => told
            .content
            .iter()
            .map(|block| match block {
                Block::Text { text } => text.len(),
                Block::Image(_) => IMAGE,
                Block::Attachment(attachment) => attachment.to_string().len(),
                Block::Resource { uri, text, .. } => uri.len() + text.as_ref().map_or(0, String::len),
            })
            .sum(),
    }
}

#[cfg(test)]
mod tests;
