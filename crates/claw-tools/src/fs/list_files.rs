//! `list_files`: lists a directory.

use claw_core::port::{Entry, EntryKind, Order, Walk, Walked};
use claw_core::tool::{Call, Effect, Facts, Group, Meta, Need, Output, Plan, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::format::{self, BYTES};

#[derive(Default)]
pub(crate) struct ListFiles;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Directory relative to the workspace root.
    #[serde(default = "here")]
    path: String,
    /// Levels to descend.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100))]
    depth: usize,
    /// Include hidden and ignored files.
    #[serde(default)]
    all: bool,
    /// The most entries to return.
    #[serde(default = "three_hundred")]
    #[schemars(range(min = 1, max = 2000))]
    limit: usize,
}

pub(super) fn here() -> String {
    ".".to_owned()
}

const fn one() -> usize {
    1
}

const fn three_hundred() -> usize {
    300
}

impl Tool for ListFiles {
    type Args = Args;
    const META: Meta = Meta::new("list_files", Group::Fs)
        .effects(&[Effect::Read])
        .aliases(&["ls", "LS"])
        .needs(&[Need::Files])
        .about("List what is in a workspace directory, with sizes and times.");

    fn plan(&self, _: &Facts, args: &Args) -> Plan {
        Plan::reading(&args.path)
    }

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let walk = Walk {
            path: args.path.clone(),
            depth: Some(args.depth.clamp(1, 100)),
            globs: Vec::new(),
            types: Vec::new(),
            hidden: args.all,
            ignored: args.all,
            directories: true,
            order: Order::Path,
            limit: args.limit.clamp(1, 2000),
        };
        Ok(show(&args, &call.files()?.walk(&walk).await?))
    }
}

fn show(args: &Args, walked: &Walked) -> Output {
    let path = &args.path;
    let mut text = format!(
        "`{path}`: {}, {}",
        format::count(walked.files, "file", "files"),
        format::count(walked.directories, "directory", "directories"),
    );
    if args.depth > 1 {
        text.push_str(&format!(" down to level {}", args.depth));
    }
    text.push('\n');
    let mut listed = 0;
    for entry in &walked.entries {
        let line = line(path, entry);
        if text.len() + line.len() > BYTES {
            break;
        }
        text.push_str(&line);
        listed += 1;
    }
    let total = walked.files + walked.directories;
    if total > listed {
        let more = total - listed;
        text.push_str(&format!("({more} more; list a directory below, or use `glob` for files by name)\n"));
    }
    if walked.stopped {
        text.push_str("(there is more, too deep to be counted)\n");
    }
    if !args.all && walked.entries.first().is_none_or(|entry| !entry.path.is_empty()) {
        text.push_str("(without hidden and ignored ones; `all` lists them too)");
    }
    let details = json!({
        "path": path,
        "files": walked.files,
        "directories": walked.directories,
        "listed": listed,
        "stopped": walked.stopped,
    });
    Output::text(text.trim_end()).with_details(details)
}

fn line(directory: &str, entry: &Entry) -> String {
    let (size, mark) = match entry.kind {
        EntryKind::Directory => ("-".to_owned(), "/"),
        EntryKind::File => (format::size(entry.size), ""),
        EntryKind::Link => ("link".to_owned(), ""),
        EntryKind::Other => ("other".to_owned(), ""),
    };
    let name = format::name(if entry.path.is_empty() { directory } else { &entry.path });
    format!("{size:>6}  {}  {name}{mark}\n", format::time(entry.modified))
}

#[cfg(test)]
mod tests;
