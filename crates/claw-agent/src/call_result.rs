//! Results of calls, as the model reads them.
//!
//! External text is fenced by two marker lines that label it as data. They carry the call's id, which the
//! author of the data cannot know, so that the data cannot end its fence.

use claw_core::CallId;
use claw_core::message::{Args, MARK, ToolResult, Wanted, fenced, is_fenced};
use claw_core::store::Outcome;
use claw_core::tool::{Block, Effect, Effects, Meta, Need, Source};
use claw_registry::Reply;

const NOTE: &str = "[note] ";

/// Returns the result of a call that the executor has handled.
pub(crate) fn of(wanted: &Wanted, reply: &Reply, meta: Option<&Meta>) -> ToolResult {
    let mut content = match &reply.outcome {
        Ok(output) => {
            let mut content = output.content.clone();
            content.iter_mut().for_each(unload);
            let notes: Vec<String> = reply.notes.iter().map(|note| format!("note: {note}")).collect();
            if !notes.is_empty() {
                content.push(Block::Text { text: notes.join("\n") });
            }
            content
        }
        Err(_) => vec![Block::Text { text: reply.model_text() }],
    };
    if content.is_empty() {
        content.push(Block::Text { text: "done; there is no output".to_owned() });
    }
    if is_untrusted(reply, meta) {
        content = marked(content, wanted.call, &reply.tool);
    }
    told(wanted, content, !reply.is_done())
}

/// Returns whether a result holds text of others.
pub(crate) fn is_untrusted(reply: &Reply, meta: Option<&Meta>) -> bool {
    reply.refusal().is_none() && meta.is_some_and(|meta| is_from_outside(meta, reply.effects))
}

/// Drops the bytes of images and attachments, since a stored result only names them; the executor has stored them.
fn unload(block: &mut Block) {
    match block {
        Block::Image(image) => image.unload(),
        Block::Attachment(attachment) => attachment.unload(),
        Block::Text { .. } | Block::Resource { .. } => {}
    }
}

/// Returns the result of a call that was not made.
pub(crate) fn not_made(wanted: &Wanted, why: &str) -> ToolResult {
    told(wanted, vec![Block::Text { text: format!("not made: {why}") }], true)
}

/// Returns the result of a call with invalid arguments; `None` if they are JSON.
pub(crate) fn broken(wanted: &Wanted) -> Option<ToolResult> {
    let Args::Broken { text, cut } = &wanted.args else { return None };
    let bytes = text.len();
    Some(not_made(
        wanted,
        &match cut {
            true => format!(
                "its arguments were cut off after {bytes} bytes, because the answer became too long; make the call \
                 again with less in it, for instance in several parts"
            ),
            false => {
                format!("its arguments ({bytes} bytes) are not JSON; make the call again with a JSON object")
            }
        },
    ))
}

/// Returns the result of a call that had begun when the program ended.
pub(crate) fn after_a_crash(wanted: &Wanted, outcome: Outcome) -> ToolResult {
    let text = match outcome {
        Outcome::Done => {
            "this call ran and worked, and then the program was restarted: its output is lost; look at what it did \
             before you make it again"
        }
        Outcome::Failed => {
            "this call ran and failed, and then the program was restarted: its error is lost; look at how things \
             stand before you make it again"
        }
        Outcome::Unknown => {
            "unknown: this call had begun when the program was restarted, and nobody knows whether it did what it \
             should; it is not repeated by itself. Find out how things stand before you make it again"
        }
    };
    told(wanted, vec![Block::Text { text: text.to_owned() }], outcome != Outcome::Done)
}

/// Adds a note of ours to a result.
pub(crate) fn note(told: &mut ToolResult, text: &str) {
    told.content.push(Block::Text { text: format!("{NOTE}{text}") });
}

/// Returns a text without our markers, which differ from call to call; empty for our notes.
pub(crate) fn plain(text: &str) -> &str {
    if text.starts_with(NOTE) {
        return "";
    }
    if !text.starts_with(MARK) {
        return text;
    }
    let after = text.split_once('\n').map_or("", |(_, after)| after);
    after.rsplit_once('\n').map_or("", |(inside, _)| inside)
}

fn told(wanted: &Wanted, content: Vec<Block>, failed: bool) -> ToolResult {
    let Wanted { call, model_id, tool, .. } = wanted;
    ToolResult { call: *call, model_id: model_id.clone(), tool: tool.clone(), content, failed }
}

/// Returns whether the result of a call with these effects may hold text by unknown authors; stored results and
/// other sessions count as such. The plan of the call decides: a command without the network prints what is here.
fn is_from_outside(meta: &Meta, effects: Effects) -> bool {
    let is_kept = meta.needs.iter().any(|need| matches!(need, Need::Artifacts | Need::Talks));
    is_kept || effects.has(Effect::Network) || matches!(meta.source, Source::Mcp { .. })
}

fn marked(content: Vec<Block>, call: CallId, tool: &str) -> Vec<Block> {
    let mark = |text: String| match is_fenced(&text, call) {
        true => text,
        false => fenced(&text, call, tool),
    };
    let block = |block| match block {
        Block::Text { text } => Block::Text { text: mark(text) },
        // The URI is the author's text as well.
        Block::Resource { uri, text, .. } => {
            let text = text.unwrap_or_default();
            Block::Text { text: mark(format!("{uri}\n{text}")) }
        }
        // Its address is the writer's word too.
        Block::Attachment(mut attachment) => {
            attachment.uri = None;
            Block::Attachment(attachment)
        }
        image @ Block::Image(_) => image,
    };
    content.into_iter().map(block).collect()
}

#[cfg(test)]
mod tests;
