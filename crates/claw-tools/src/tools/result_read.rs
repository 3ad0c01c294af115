//! `result_read`: reads results that were too long to send whole, in parts.

use claw_core::ArtifactId;
use claw_core::port::{Artifacts, Part};
use claw_core::tool::{Call, Cost, Effect, Group, Meta, Need, Output, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::format;

/// Largest part that one call returns, so that a part is never itself too long to send.
const PAGE_BYTES: usize = 12_000;
const PAGE_LINES: usize = 1_000;
/// Number of lines searched at a time.
const CHUNK_LINES: usize = 2_000;
/// Longest excerpt of a line that contains the text.
const EXCERPT_BYTES: usize = 400;

#[derive(Default)]
pub(crate) struct ResultRead;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Id of the kept result. Leave out to list them.
    artifact: Option<String>,
    /// First line to read.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    first: usize,
    /// The most lines to return.
    #[serde(default = "two_hundred")]
    #[schemars(range(min = 1, max = 1000))]
    count: usize,
    /// Return only the lines that contain this text, numbered.
    contains: Option<String>,
    /// Bytes to skip of the first line, if it is too long for one call.
    #[serde(default)]
    skip: usize,
}

fn one() -> usize {
    1
}

fn two_hundred() -> usize {
    200
}

impl Tool for ResultRead {
    type Args = Args;
    const META: Meta = Meta::new("result_read", Group::Tools)
        .effects(&[Effect::Read])
        .cost(Cost::Light)
        .needs(&[Need::Artifacts])
        .standing()
        .about("Read a tool result that was too long to send whole, by lines or by text.");

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let kept = call.artifacts()?;
        let Some(id) = args.artifact.as_deref().filter(|id| !id.is_empty()) else {
            return list(kept).await;
        };
        let from = From {
            id: id.parse().map_err(|_| {
                ToolError::invalid(format!("`{id}` is not the id of a kept result"))
                    .try_instead("call `result_read` without `artifact` to list the kept results")
            })?,
            line: args.first.max(1),
            count: args.count.clamp(1, PAGE_LINES),
        };
        match args.contains.filter(|text| !text.is_empty()) {
            Some(text) => find(kept, &from, &text).await,
            None => read(kept, &from, args.skip).await,
        }
    }
}

struct From {
    id: ArtifactId,
    line: usize,
    count: usize,
}

async fn list(kept: &dyn Artifacts) -> Result<Output, ToolError> {
    let artifacts = kept.list().await?;
    let text = match artifacts.as_slice() {
        [] => "no results are kept in this session".to_owned(),
        all => {
            let lines = all.iter().map(|a| {
                format!(
                    "{}: {}, {}",
                    a.id,
                    format::count(a.lines as u64, "line", "lines"),
                    format::count(a.bytes as u64, "byte", "bytes")
                )
            });
            format!("kept results, newest first:\n{}", lines.collect::<Vec<_>>().join("\n"))
        }
    };
    Ok(Output::text(text).with_details(json!({ "artifacts": artifacts })))
}

async fn read(kept: &dyn Artifacts, from: &From, skip: usize) -> Result<Output, ToolError> {
    let part = kept.lines(from.id, from.line, from.count).await?;
    if part.count == 0 {
        return Err(past_the_end(from, part.total));
    }
    let page = Page::of(&part, skip);
    let next = match page.next {
        Some((line, 0)) => format!("next: first = {line}"),
        Some((line, skip)) => format!("line {line} is cut; next: first = {line}, skip = {skip}"),
        None => "the end".to_owned(),
    };
    let text = format!("lines {} to {} of {}; {next}\n{}", part.first, page.last, part.total, page.text);
    let details = json!({
        "artifact": from.id,
        "first": part.first,
        "last": page.last,
        "total": part.total,
        "next": page.next.map(|(first, skip)| json!({ "first": first, "skip": skip })),
    });
    Ok(Output::text(text).with_details(details))
}

/// The part of a result that fits into one answer.
struct Page<'a> {
    text: &'a str,
    /// The last line in it, complete or cut.
    last: usize,
    /// The next line to read, and how many bytes of it were shown.
    next: Option<(usize, usize)>,
}

impl<'a> Page<'a> {
    fn of(part: &'a Part, skip: usize) -> Self {
        let body = part.text.strip_suffix('\n').unwrap_or(&part.text);
        let first_line = body.find('\n').unwrap_or(body.len());
        let start = body.floor_char_boundary(skip.min(first_line));
        let rest = &body[start..];
        if rest.len() <= PAGE_BYTES {
            let last = part.first + part.count - 1;
            return Self { text: rest, last, next: (last < part.total).then_some((last + 1, 0)) };
        }
        let fits = &rest[..rest.floor_char_boundary(PAGE_BYTES)];
        match fits.rfind('\n') {
            Some(end) => {
                let text = &fits[..end];
                let last = part.first + text.matches('\n').count();
                Self { text, last, next: Some((last + 1, 0)) }
            }
            None => Self { text: fits, last: part.first, next: Some((part.first, start + fits.len())) },
        }
    }
}

async fn find(kept: &dyn Artifacts, from: &From, wanted: &str) -> Result<Output, ToolError> {
    let mut found: Vec<String> = Vec::new();
    let mut bytes = 0;
    let mut line = from.line;
    let (total, next) = 'search: loop {
        let part = kept.lines(from.id, line, CHUNK_LINES).await?;
        if part.count == 0 && line == from.line {
            return Err(past_the_end(from, part.total));
        }
        for (number, text) in (part.first..).zip(part.text.lines()) {
            let Some(at) = text.find(wanted) else { continue };
            if found.len() == from.count || bytes > PAGE_BYTES {
                break 'search (part.total, Some(number));
            }
            let hit = format!("{number}: {}", excerpt(text, at));
            bytes += hit.len();
            found.push(hit);
        }
        line = part.first + part.count;
        if part.count == 0 || line > part.total {
            break (part.total, None);
        }
    };
    let goes_on = next.map_or("no more".to_owned(), |line| format!("next: first = {line}"));
    let (lines, first) = (format::count(found.len() as u64, "line", "lines"), from.line);
    let header = format!("{lines} with `{wanted}` from line {first} of {total} on; {goes_on}");
    let text = [header].into_iter().chain(found).collect::<Vec<_>>().join("\n");
    Ok(Output::text(text).with_details(json!({ "artifact": from.id, "total": total, "next": next })))
}

/// The line; if it is long, the part around byte `at`.
fn excerpt(line: &str, at: usize) -> String {
    if line.len() <= EXCERPT_BYTES {
        return line.to_owned();
    }
    let start = line.floor_char_boundary(at.saturating_sub(EXCERPT_BYTES / 4));
    let end = line.floor_char_boundary(start + EXCERPT_BYTES);
    format!("[byte {start} of {}] {}", line.len(), &line[start..end])
}

fn past_the_end(from: &From, total: usize) -> ToolError {
    let lines = format::count(total as u64, "line", "lines");
    let message = format!("`{}` has {lines}, none from line {} on", from.id, from.line);
    ToolError::invalid(message).try_instead("start at an earlier line")
}

#[cfg(test)]
mod tests;
