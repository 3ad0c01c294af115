//! Calls as people read them: a summary of a call, and its result.

use std::collections::HashMap;
use std::path::Path;

use claw_core::CallId;
use claw_core::message::{Args, Part, ToolResult, Wanted, is_mark};
use claw_core::tool::Block;
use serde_json::Value;

/// The largest file whose change is previewed, in bytes.
const LARGEST_SHOWN: u64 = 1024 * 1024;

/// The longest summary, in characters.
const LONGEST: usize = 100;
/// The most lines of a diff shown with an approval.
const MOST_DIFF: usize = 200;

/// The result of a call, for display.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShownResult {
    /// True if the call achieved its purpose: false for a failing command, although its call succeeded.
    pub is_good: bool,
    /// A few words beside the call's name: `+3 -1`, `exit code 1`.
    pub note: String,
    /// The output of a command.
    pub printed: Vec<String>,
    /// The changes of files, as lines of a diff, and other remarkable details.
    pub details: Vec<String>,
    /// The details are the change of a file.
    pub is_change: bool,
}

/// The calls that messages of a session made, by which their beginnings, results and approvals are shown.
#[derive(Debug, Default)]
pub struct SeenCalls(HashMap<CallId, Wanted>);

impl SeenCalls {
    /// Takes the calls of a message.
    pub fn learn(&mut self, parts: Vec<Part>) {
        self.0.extend(parts.into_iter().filter_map(|part| match part {
            Part::Call(wanted) => Some((wanted.call, wanted)),
            _ => None,
        }));
    }

    /// The tool of a call, with its path or command. Arguments are the model's own words: secrets are still in it.
    pub fn named(&self, call: CallId, tool: &str) -> String {
        let about = self.0.get(&call).map(|wanted| summary(tool, &wanted.args)).unwrap_or_default();
        format!("{tool} {about}").trim_end().to_owned()
    }

    /// A result for display.
    pub fn result(&self, told: &ToolResult) -> ShownResult {
        let is_change = matches!(told.tool.as_str(), "edit" | "write_file");
        ShownResult { is_change, ..result(told, self.0.get(&told.call).map(|wanted| &wanted.args)) }
    }

    /// The change that a call would make to a file of the workspace, as lines of a diff; empty if there is none to show.
    pub fn preview(&self, call: CallId, workspace: &Path) -> Vec<String> {
        let wanted = self.0.get(&call);
        wanted.and_then(|wanted| preview(&wanted.tool, &wanted.args, workspace)).unwrap_or_default()
    }
}

/// Summarizes a call's arguments: its path, or its command.
pub fn summary(tool: &str, args: &Args) -> String {
    let text = match args {
        Args::Json(args) => main_argument(tool, args).unwrap_or_else(|| args.to_string()),
        Args::Broken { text, .. } => text.clone(),
    };
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let cut = first.char_indices().nth(LONGEST).map(|(end, _)| &first[..end]);
    match cut.or_else(|| lines.next().map(|_| first)) {
        Some(start) => format!("{start}…"),
        None => first.to_owned(),
    }
}

/// Returns the main argument of a call.
fn main_argument(tool: &str, args: &Value) -> Option<String> {
    let text = |key: &str| args.get(key)?.as_str().map(str::to_owned);
    let within = |pattern: String| match text("path") {
        Some(path) => format!("{pattern} in {path}"),
        None => pattern,
    };
    match tool {
        "read_file" | "write_file" | "edit" | "list_files" => text("path"),
        "search" | "glob" => text("pattern").map(within),
        "exec" => text("command"),
        "web_fetch" => text("url"),
        "web_search" | "memory_search" | "skill_search" | "tool_search" => text("query"),
        "use_skill" => text("name"),
        _ => None,
    }
}

/// Converts a result for display: how a file changed, what a command printed. `args` are those of the call.
fn result(told: &ToolResult, args: Option<&Args>) -> ShownResult {
    let lines = told.content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.lines().filter(|line| !is_mark(line))),
        _ => None,
    });
    let lines: Vec<String> = lines.flatten().map(str::to_owned).collect();
    if told.failed {
        return ShownResult { note: lines.first().cloned().unwrap_or_default(), ..ShownResult::default() };
    }
    match told.tool.as_str() {
        "edit" | "write_file" => changed(&lines, args),
        "exec" | "process" | "credentialed_exec" => ran(lines),
        _ => ShownResult { is_good: true, ..ShownResult::default() },
    }
}

/// Shows the change of a file: the diff, or the content of a new file.
fn changed(lines: &[String], args: Option<&Args>) -> ShownResult {
    let diff: Vec<String> = lines.iter().skip_while(|line| !line.starts_with("--- ")).cloned().collect();
    let is_new = diff.is_empty() && lines.first().is_some_and(|line| line.starts_with("created "));
    if let (true, Some(Args::Json(args))) = (is_new, args)
        && let Some(content) = args.get("content").and_then(Value::as_str)
    {
        let details: Vec<String> = content.lines().map(|line| format!("+{line}")).collect();
        return ShownResult {
            is_good: true,
            note: format!("new, +{}", details.len()),
            details,
            ..ShownResult::default()
        };
    }
    let (mut added, mut taken) = (0_usize, 0_usize);
    for line in diff.iter().filter(|line| !line.starts_with("+++ ") && !line.starts_with("--- ")) {
        added += usize::from(line.starts_with('+'));
        taken += usize::from(line.starts_with('-'));
    }
    let note = if diff.is_empty() { String::new() } else { format!("+{added} -{taken}") };
    // The path is in the call's own line.
    let details = diff.into_iter().skip_while(|line| line.starts_with("--- ") || line.starts_with("+++ "));
    ShownResult { is_good: true, note, details: details.collect(), ..ShownResult::default() }
}

/// Shows the output of a command and its end. The line about its end is the last of its kind: a command may
/// print one too.
fn ran(mut lines: Vec<String>) -> ShownResult {
    let is_end = |line: &String| {
        line.starts_with("[exit code ")
            || line.starts_with("[ended by signal ")
            || line.starts_with("[ended, ")
    };
    let Some(at) = lines.iter().rposition(is_end) else {
        return ShownResult { is_good: true, printed: lines, ..ShownResult::default() };
    };
    let details = lines.split_off(at + 1);
    let end = lines.pop().unwrap_or_default();
    let end = end.trim_start_matches('[').trim_end_matches(']');
    let is_good = end == "exit code 0";
    let stopped = lines.last().filter(|line| line.starts_with("[stopped: ")).cloned();
    if stopped.is_some() {
        lines.pop();
    }
    let note = match (is_good, stopped) {
        (true, _) => String::new(),
        (false, Some(stopped)) => stopped.trim_start_matches('[').trim_end_matches(']').to_owned(),
        (false, None) => end.to_owned(),
    };
    // The files that a command changed are named in a line; their diffs are in `clawsmith undo show`.
    let plain = |line: &String| line.trim_start_matches('[').trim_end_matches(']').to_owned();
    let details = details.iter().take_while(|line| line.starts_with('[')).map(plain).collect();
    ShownResult { is_good, note, printed: lines, details, ..ShownResult::default() }
}

/// Returns the text of a file to be changed; empty if it is not a file, or too large to show.
fn before(path: &Path) -> String {
    let is_shown = std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= LARGEST_SHOWN);
    if is_shown { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() }
}

/// Returns the change that a call would make to a file, as lines of a diff; `None` if there is none to show.
fn preview(tool: &str, args: &Args, workspace: &Path) -> Option<Vec<String>> {
    let Args::Json(args) = args else { return None };
    let text = |key: &str| args.get(key).and_then(Value::as_str);
    let path = text("path")?;
    let before = before(&workspace.join(path));
    let after = match tool {
        "write_file" => text("content")?.to_owned(),
        "edit" if text("patch").is_some() => {
            return Some(text("patch")?.lines().map(str::to_owned).collect());
        }
        "edit" => {
            let mut after = before.clone();
            let mut replace = |edit: &Value, all: bool| {
                let of = |key: &str| edit.get(key).and_then(Value::as_str);
                let (Some(old), Some(new)) = (of("old_string"), of("new_string")) else { return };
                after = if all { after.replace(old, new) } else { after.replacen(old, new, 1) };
            };
            replace(args, args.get("replace_all").and_then(Value::as_bool).unwrap_or_default());
            args.get("edits")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .for_each(|edit| replace(edit, false));
            after
        }
        _ => return None,
    };
    let diff = claw_registry::unified_diff(path, &before, &after, MOST_DIFF);
    Some(diff.lines().map(str::to_owned).collect::<Vec<_>>()).filter(|lines| !lines.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(tool: &str, text: &str) -> ToolResult {
        ToolResult {
            call: CallId::new(),
            model_id: "m".into(),
            tool: tool.into(),
            content: vec![Block::Text { text: text.into() }],
            failed: false,
        }
    }

    #[test]
    fn a_call_is_named_by_what_it_is_about() {
        let check = |tool: &str, args: Value, expected: &str| {
            assert_eq!(summary(tool, &Args::Json(args)), expected);
        };
        check("edit", json!({ "path": "calc.py", "old_string": "a", "new_string": "b" }), "calc.py");
        check("exec", json!({ "command": "make\nmake test" }), "make…");
        check("search", json!({ "pattern": "fn", "path": "src" }), "fn in src");
        check("other", json!({ "a": 1 }), r#"{"a":1}"#);
        check("exec", json!({ "command": "x".repeat(200) }), &format!("{}…", "x".repeat(100)));
    }

    #[test]
    fn a_command_that_failed_is_no_good() {
        let text =
            "out\n[exit code 0]\nmore\n[exit code 2]\n[1 file changed, +1 -0]\n[+ a]\n--- a/a\n+++ b/a\n";
        let shown = result(&told("exec", text), None);
        assert_eq!((shown.is_good, shown.note.as_str()), (false, "exit code 2"));
        assert_eq!(shown.printed, ["out", "[exit code 0]", "more"], "what it printed itself is no end");
        assert_eq!(shown.details, ["1 file changed, +1 -0", "+ a"]);
        let shown = result(
            &told("exec", "[stopped: its time limit was reached]\n[ended by signal 9 (SIGKILL)]"),
            None,
        );
        assert_eq!((shown.is_good, shown.note.as_str()), (false, "stopped: its time limit was reached"));
    }

    #[test]
    fn an_edit_counts_its_lines_and_a_new_file_is_shown() {
        let text = "changed `a`\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n-one\n+two\n+three\n";
        let shown = result(&told("edit", text), None);
        assert_eq!(shown.note, "+2 -1");
        assert_eq!(shown.details[0], "@@ -1 +1,2 @@");
        let args = Args::Json(json!({ "path": "a", "content": "x\ny\n" }));
        let shown = result(&told("write_file", "created `a`: 4 bytes"), Some(&args));
        assert_eq!((shown.note.as_str(), shown.details), ("new, +2", vec!["+x".to_owned(), "+y".to_owned()]));
    }
}
