//! `read_file`: numbered lines of one workspace file.

use claw_core::port::{Binary, From, Reading, View, Window};
use claw_core::tool::{Call, Effect, Facts, Group, Meta, Need, Output, Plan, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::absent;

/// Lines of one answer: the default and the maximum.
const LINES: usize = 1_000;
const MOST_LINES: usize = 2_000;
/// Bytes of the file in one answer. With line numbers it stays below the limit up to which results are sent
/// whole.
const BYTES: usize = 24_000;

#[derive(Default)]
pub(crate) struct ReadFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Path relative to the workspace root.
    path: String,
    /// First line to read; a negative number counts from the end: -20 reads the last 20 lines.
    #[serde(default = "first")]
    offset: i64,
    /// The most lines to return.
    #[serde(default = "lines")]
    #[schemars(range(min = 1, max = 2000))]
    limit: usize,
    /// Byte of the file to start at instead of `offset`, to continue within a long line.
    byte: Option<u64>,
}

const fn first() -> i64 {
    1
}

const fn lines() -> usize {
    LINES
}

impl Tool for ReadFile {
    type Args = Args;
    const META: Meta = Meta::new("read_file", Group::Fs)
        .effects(&[Effect::Read])
        .aliases(&["read", "Read"])
        .needs(&[Need::Files])
        .about("Read a text file from the workspace, with line numbers.");

    fn plan(&self, _: &Facts, args: &Args) -> Plan {
        Plan::reading(&args.path)
    }

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let from = match (args.byte, args.offset) {
            (Some(byte), _) => From::Byte(byte),
            (None, end @ ..0) => From::End(end.unsigned_abs()),
            (None, line) => From::Line(line.max(1).unsigned_abs()),
        };
        let window = Window { from, lines: args.limit.clamp(1, MOST_LINES), bytes: BYTES };
        match call.files()?.read(&args.path, window).await? {
            Reading::Text(view) => show(&args, &view),
            Reading::Binary(binary) => Err(not_text(&args.path, &binary)),
        }
    }
}

fn show(args: &Args, view: &View) -> Result<Output, ToolError> {
    let path = &args.path;
    if view.size == 0 {
        return Ok(Output::text(format!("`{path}` is empty")));
    }
    if view.lines == 0 {
        let place = args.byte.map_or_else(|| format!("line {}", args.offset), |byte| format!("byte {byte}"));
        let message = format!("`{path}` ends before {place}");
        return Err(ToolError::invalid(message).try_instead("read its end with offset = -100"));
    }
    let at_end = view.bytes.end >= view.size && !view.cut;
    let count = i64::try_from(view.lines).unwrap_or(i64::MAX);
    // If lines have not been counted from the beginning, they are counted from the end, as with `offset`.
    let first = match view.first_line {
        Some(first) => Some(i64::try_from(first).unwrap_or(i64::MAX)),
        None if at_end => Some(-count),
        None => args.byte.is_none().then_some(args.offset),
    };
    let mut text = String::with_capacity(view.text.len() + view.text.len() / 4 + 200);
    text.push_str(&format!("`{path}`"));
    if let Some(first) = first {
        text.push_str(&format!(", lines {first} to {}", first + count - 1));
    }
    if args.byte.is_some() {
        text.push_str(&format!(", from byte {} on", view.bytes.start));
    }
    for note in notes(view) {
        text.push_str(", ");
        text.push_str(&note);
    }
    text.push('\n');
    for (passed, line) in (0..).zip(view.text.split_inclusive('\n')) {
        let line = line.strip_suffix('\n').unwrap_or(line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        match first {
            Some(first) => text.push_str(&format!("{:>6}\t{line}\n", first + passed)),
            None => text.push_str(&format!("     ?\t{line}\n")),
        }
    }
    // No line follows the one counted as -1 from the end.
    let following = first.filter(|first| *first >= 0 || first + count < 0).map(|first| first + count);
    let next = if at_end { None } else { following };
    let next_byte = (!at_end && (view.cut || next.is_none())).then_some(view.bytes.end);
    text.push_str(&match (next, next_byte) {
        (None, None) => "(the end)".to_owned(),
        (None, Some(byte)) => format!("(there is more; next: byte = {byte})"),
        (Some(next), None) => format!("(there is more; next: offset = {next})"),
        (Some(next), Some(byte)) => format!(
            "(line {} is cut: {BYTES} bytes are shown; the rest of it: byte = {byte}; the next line: offset = {next})",
            next - 1
        ),
    });
    let details = json!({
        "path": path,
        "first": first,
        "lines": view.lines,
        "next": next,
        "next_byte": next_byte,
        "size": view.size,
        "encoding": view.encoding,
        "redacted": view.redacted.len(),
    });
    Ok(Output::text(text).with_details(details))
}

/// Notes on a file beyond its lines, such as its encoding.
fn notes(view: &View) -> Vec<String> {
    let mut notes = Vec::new();
    if view.encoding != "UTF-8" {
        notes.push(format!("encoded in {}", view.encoding));
    }
    if view.bom {
        notes.push("with a byte order mark".to_owned());
    }
    if view.text.contains("\r\n") {
        notes.push("with CRLF line ends".to_owned());
    }
    if !view.redacted.is_empty() {
        notes.push(
            "with hidden values, which stay as they are if you leave their `[REDACTED]` in place".to_owned(),
        );
    }
    notes
}

fn not_text(path: &str, binary: &Binary) -> ToolError {
    let Binary { mime, size, .. } = binary;
    let is_document = *mime == "application/pdf" || mime.contains("document") || mime.contains("msword");
    let reader = match mime.split('/').next().unwrap_or_default() {
        "image" => Some("read_image"),
        "audio" => Some("read_audio"),
        "video" => Some("read_video"),
        _ if is_document => Some("read_document"),
        _ => None,
    };
    // Does not suggest a tool that this build lacks.
    let reader = reader.filter(|name| !absent().iter().any(|meta| meta.name.as_str() == *name));
    let packed = ["zip", "gzip", "tar", "xz", "bzip", "zstd", "7z", "rar"];
    let advice = match reader {
        Some(reader) => format!("use `{reader}`"),
        None if is_document => "convert it to text with a program in `exec`".to_owned(),
        None if packed.iter().any(|of| mime.contains(of)) => "unpack it with `exec`".to_owned(),
        None => "inspect it with a program in `exec`".to_owned(),
    };
    ToolError::invalid(format!("`{path}` is not text: {mime}, {size} bytes")).try_instead(advice)
}

#[cfg(test)]
mod tests;
