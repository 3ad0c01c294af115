//! `search`: finds text in files.

use claw_core::port::{Hits, Order, Search as Wanted, Searched, Walk};
use claw_core::tool::{Call, Effect, Facts, Group, Meta, Need, Output, Plan, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::list_files::here;
use crate::format::{self, BYTES};

/// Longest part of a line that is shown, in bytes.
const LINE: usize = 400;

#[derive(Default)]
pub(crate) struct Search;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Regular expression. Case-sensitive only if it has an upper case letter.
    pattern: String,
    /// Directory or file to search.
    #[serde(default = "here")]
    path: String,
    /// Only files that match one of these, such as `*.rs`; `!vendor/**` excludes.
    #[serde(default)]
    globs: Vec<String>,
    /// Only these file types: `rust`, `py`, `js`, `md`, ...
    #[serde(default)]
    types: Vec<String>,
    /// Kind of result.
    #[serde(default)]
    mode: Mode,
    /// Take the pattern as plain text.
    #[serde(default)]
    literal: bool,
    /// Force case-sensitive or case-insensitive matching.
    case: Option<bool>,
    /// Match whole words only.
    #[serde(default)]
    word: bool,
    /// Let a match span lines.
    #[serde(default)]
    multiline: bool,
    /// Lines to show before and after each match.
    #[serde(default)]
    #[schemars(range(max = 20))]
    context: usize,
    /// Include hidden and ignored files.
    #[serde(default)]
    all: bool,
    /// The most matching lines to return.
    #[serde(default = "hundred")]
    #[schemars(range(min = 1, max = 1000))]
    limit: usize,
}

#[derive(Deserialize, JsonSchema, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Lines,
    Files,
    Count,
}

const fn hundred() -> usize {
    100
}

impl Tool for Search {
    type Args = Args;
    const META: Meta = Meta::new("search", Group::Fs)
        .effects(&[Effect::Read])
        .aliases(&["grep", "Grep"])
        .needs(&[Need::Files])
        .about("Search the contents of workspace files with a regular expression.");

    fn plan(&self, _: &Facts, args: &Args) -> Plan {
        Plan::reading(&args.path)
    }

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let within = Walk {
            path: args.path.clone(),
            depth: None,
            globs: args.globs.clone(),
            types: args.types.clone(),
            hidden: args.all,
            ignored: args.all,
            directories: false,
            order: Order::Path,
            limit: 0,
        };
        let context = args.context.min(20);
        let wanted = Wanted {
            within,
            pattern: args.pattern.clone(),
            literal: args.literal,
            case: args.case,
            word: args.word,
            multiline: args.multiline,
            before: context,
            after: context,
            limit: if args.mode == Mode::Lines { args.limit.clamp(1, 1000) } else { 0 },
        };
        Ok(show(&args, &call.files()?.search(&wanted).await?))
    }
}

fn show(args: &Args, found: &Searched) -> Output {
    let mut text = header(args, found);
    let mut shown = 0;
    for hits in &found.files {
        let (part, lines) = match args.mode {
            Mode::Lines if hits.lines.is_empty() => break,
            Mode::Lines => lines(args, hits, BYTES.saturating_sub(text.len())),
            Mode::Files => (format!("{}\n", format::path(&args.path, &hits.path)), 1),
            Mode::Count => (format!("{}: {}\n", format::path(&args.path, &hits.path), hits.count), 1),
        };
        if text.len() + part.len() > BYTES {
            break;
        }
        text.push_str(&part);
        shown += lines;
    }
    let (total, what) = match args.mode {
        Mode::Lines => (found.hits, "matching lines"),
        Mode::Files | Mode::Count => (found.with_hits, "files"),
    };
    if total > shown {
        let narrow = "narrow it down with `path`, `globs`, `types` or a longer pattern";
        let counts = if args.mode == Mode::Lines { ", or see where they are with mode `count`" } else { "" };
        text.push_str(&format!("({} more {what}; {narrow}{counts})\n", total - shown));
    }
    text.push_str(&notes(args, found));
    let details = json!({
        "path": args.path,
        "hits": found.hits,
        "files": found.with_hits,
        "shown": shown,
        "searched": found.searched,
        "binary": found.binary,
        "failed": found.failed,
        "stopped": found.stopped,
    });
    Output::text(text.trim_end()).with_details(details)
}

fn header(args: &Args, found: &Searched) -> String {
    let pattern = &args.pattern;
    let searched = format::count(found.searched, "file", "files");
    match found.hits {
        0 => format!("nothing matches `{pattern}` in `{}`; {searched} searched\n", args.path),
        hits => {
            let lines = if hits == 1 { "1 line matches" } else { &format!("{hits} lines match") };
            format!("{lines} `{pattern}`, in {} of {searched}\n", found.with_hits)
        }
    }
}

/// The lines of one file that fit, and how many of them match.
fn lines(args: &Args, hits: &Hits, room: usize) -> (String, u64) {
    let mut text = format!("{}\n", format::path(&args.path, &hits.path));
    let (mut shown, mut last) = (0, None);
    for line in &hits.lines {
        let gap = args.context > 0 && last.is_some_and(|last| line.number > last + 1);
        let mark = if line.hit { ':' } else { '-' };
        let shown_line =
            format!("{}{:>6}{mark} {}\n", if gap { "   ...\n" } else { "" }, line.number, cut(&line.text));
        if text.len() + shown_line.len() > room {
            break;
        }
        text.push_str(&shown_line);
        last = Some(line.number);
        shown += u64::from(line.hit);
    }
    if shown == 0 { (" ".repeat(room + 1), 0) } else { (text, shown) }
}

fn cut(line: &str) -> String {
    if line.len() <= LINE {
        return line.to_owned();
    }
    format!("{}...", &line[..line.floor_char_boundary(LINE)])
}

/// Notes on what was left out.
fn notes(args: &Args, found: &Searched) -> String {
    let mut notes = Vec::new();
    if found.binary > 0 {
        notes.push(format!("{} left out: not text", format::count(found.binary, "file", "files")));
    }
    if found.failed > 0 {
        let failed = format::count(found.failed, "file or directory", "files or directories");
        notes.push(format!("{failed} could not be read"));
    }
    if found.stopped {
        notes.push("there may be more, too deep to be searched".to_owned());
    }
    if found.hits == 0 && !args.all {
        notes.push("hidden and ignored files are left out; `all` includes them".to_owned());
    }
    if notes.is_empty() { String::new() } else { format!("({})", notes.join("; ")) }
}

#[cfg(test)]
mod tests;
