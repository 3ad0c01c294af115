//! `glob`: finds files by name, the latest changed first.

use claw_core::port::{Order, Walk, Walked};
use claw_core::tool::{Call, Effect, Facts, Group, Meta, Need, Output, Plan, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::list_files::here;
use crate::format::{self, BYTES};

#[derive(Default)]
pub(crate) struct Glob;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Pattern such as `*.rs`, `src/**/*.{ts,tsx}` or `test_*`. Without a slash it matches names at any depth.
    pattern: String,
    /// Directory to look in.
    #[serde(default = "here")]
    path: String,
    /// Include hidden and ignored files.
    #[serde(default)]
    all: bool,
    /// The most paths to return.
    #[serde(default = "two_hundred")]
    #[schemars(range(min = 1, max = 2000))]
    limit: usize,
}

const fn two_hundred() -> usize {
    200
}

impl Tool for Glob {
    type Args = Args;
    const META: Meta = Meta::new("glob", Group::Fs)
        .effects(&[Effect::Read])
        .aliases(&["Glob"])
        .needs(&[Need::Files])
        .about("Find workspace files whose path matches a pattern, most recently changed first.");

    fn plan(&self, _: &Facts, args: &Args) -> Plan {
        Plan::reading(&args.path)
    }

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        if args.pattern.is_empty() {
            return Err(ToolError::invalid("the pattern is empty").try_instead("use one such as `*.rs`"));
        }
        let walk = Walk {
            path: args.path.clone(),
            depth: None,
            globs: vec![args.pattern.clone()],
            types: Vec::new(),
            hidden: args.all,
            ignored: args.all,
            directories: false,
            order: Order::Newest,
            limit: args.limit.clamp(1, 2000),
        };
        Ok(show(&args, &call.files()?.walk(&walk).await?))
    }
}

fn show(args: &Args, walked: &Walked) -> Output {
    let (pattern, path) = (&args.pattern, &args.path);
    let mut text = match walked.files {
        0 => format!("no file in `{path}` matches `{pattern}`\n"),
        files => {
            let matches = if files == 1 { "matches" } else { "match" };
            format!("{} {matches} `{pattern}`\n", format::count(files, "file", "files"))
        }
    };
    let mut listed = 0;
    for entry in &walked.entries {
        let line = format::path(path, &entry.path);
        if text.len() + line.len() > BYTES {
            break;
        }
        text.push_str(&line);
        text.push('\n');
        listed += 1;
    }
    if walked.files > listed {
        let more = format::count(walked.files - listed, "older one is", "older ones are");
        text.push_str(&format!("({more} not shown; use a narrower pattern or path)\n"));
    }
    if walked.stopped {
        text.push_str("(there may be more, too deep to be searched)\n");
    }
    if walked.files == 0 && !args.all {
        text.push_str("(hidden and ignored files are left out; `all` includes them)");
    }
    let details = json!({
        "pattern": pattern,
        "path": path,
        "files": walked.files,
        "listed": listed,
        "stopped": walked.stopped,
    });
    Output::text(text.trim_end()).with_details(details)
}

#[cfg(test)]
mod tests;
