//! `exec`: runs a shell command in the workspace, judged before it runs.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use claw_core::port::{ChangeKind, ChangedEntry, FileChange, ProcessCard, Ran, Stopped, shown_path};
use claw_core::tool::{Ask, Call, Effect, Facts, Group, Meta, Need, Output, Plan, Script, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::format;

/// The longest time limit of a command, in seconds.
const LONGEST: u32 = 3600;

#[derive(Default)]
pub(crate) struct Exec;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// The command, as bash reads it.
    #[schemars(length(min = 1))]
    command: String,
    /// Directory to start in, relative to the workspace.
    #[serde(default = "here")]
    directory: String,
    /// Variables to set, each as `NAME=value`.
    #[serde(default)]
    env: Vec<String>,
    /// Text for standard input; empty if left out.
    stdin: Option<String>,
    /// Time limit; if not given, 300 in the sandbox, 60 on the host, and none in the background.
    #[schemars(range(min = 1, max = 3600))]
    timeout_seconds: Option<u32>,
    /// Allow network access. Needs a person's approval.
    #[serde(default)]
    network: bool,
    /// Paths outside the workspace that the command reads. Needs a person's approval.
    #[serde(default)]
    read_paths: Vec<String>,
    /// Paths outside the workspace that the command changes. Needs a person's approval.
    #[serde(default)]
    write_paths: Vec<String>,
    /// Return standard error separately, instead of both streams in order.
    #[serde(default)]
    split_output: bool,
    /// Start the command and return at once. Use `process` to read its output, type into it and end it.
    #[serde(default)]
    background: bool,
    /// Run on a terminal, for programs that need one.
    #[serde(default)]
    pty: bool,
    /// Run the command, show what it changed, and discard the changes.
    #[serde(default)]
    dry_run: bool,
}

fn here() -> String {
    ".".to_owned()
}

impl Args {
    fn script(&self) -> Script {
        let pair = |entry: &String| match entry.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => (entry.clone(), String::new()),
        };
        let mut env: Vec<_> = self.env.iter().map(pair).collect();
        env.sort();
        Script {
            text: self.command.clone(),
            directory: self.directory.clone(),
            env,
            // A command in the background has an input that is still empty.
            input: self.stdin.clone().or_else(|| self.background.then(String::new)),
            network: self.network,
            apart: self.split_output,
            timeout_secs: self.timeout_seconds,
            terminal: self.pty,
            dry_run: self.dry_run,
        }
    }

    /// Refuses arguments that are valid alone but not together.
    fn check(&self) -> Result<(), ToolError> {
        if let Some(entry) = self.env.iter().find(|entry| !entry.contains('=')) {
            return Err(ToolError::invalid(format!("`{entry}` in `env` has no value"))
                .try_instead("write each variable as `NAME=value`"));
        }
        if self.split_output && (self.background || self.pty) {
            let with = if self.pty { "pty" } else { "background" };
            return Err(ToolError::invalid(format!("`split_output` cannot be combined with `{with}`"))
                .try_instead("leave one of them out"));
        }
        if self.dry_run && self.background {
            return Err(ToolError::invalid("`dry_run` cannot be combined with `background`")
                .try_instead("leave one of them out"));
        }
        Ok(())
    }
}

impl Tool for Exec {
    type Args = Args;
    const META: Meta = Meta::new("exec", Group::Runtime)
        .effects(&[Effect::Read, Effect::Write, Effect::Execute, Effect::Network])
        .removable(&[Effect::Write, Effect::Network])
        .aliases(&["bash", "Bash"])
        .needs(&[Need::Shell, Need::Processes])
        // The shell enforces the command's own time limit; this one only bounds the wait.
        .timeout_secs(LONGEST + 60)
        .about("Run a shell command in the workspace and return its output and exit code.");

    fn plan(&self, _: &Facts, args: &Args) -> Plan {
        let mut plan = Plan::script(args.script()).with(Effect::Read);
        for (paths, write) in [(&args.read_paths, false), (&args.write_paths, true)] {
            let reach = |path: &String| Ask::Reach { path: path.clone(), write };
            plan.asks.extend(paths.iter().map(reach));
        }
        if args.network { plan.with(Effect::Network) } else { plan }
    }

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        args.check()?;
        if args.background {
            return Ok(started(&call.processes()?.start(&args.script()).await?));
        }
        let ran = call.shell()?.run(&args.script()).await?;
        Ok(told(&ran, &args))
    }
}

fn started(card: &ProcessCard) -> Output {
    let name = card.name();
    let text = format!(
        "started in the background as `{name}`; `process` with that id shows what it prints (`poll`, `wait`)\n\
         you are told when it ends; what it changes in the workspace cannot be undone"
    );
    Output::text(text).for_user(format!("runs in the background as {name}")).with_details(json!(card))
}

fn told(ran: &Ran, args: &Args) -> Output {
    let mut ending = ending(ran, args);
    ending.extend(changed(ran, args.dry_run));
    let printed = match args.split_output {
        false => printed(&ran.output),
        true => {
            format!("standard output:\n{}standard error:\n{}", printed(&ran.output), printed(&ran.errors))
        }
    };
    let mut text =
        format!("{printed}{}", ending.iter().map(|line| format!("[{line}]\n")).collect::<String>());
    if let Some(changes) = &ran.changes {
        text.push_str(&changes.diff);
    }
    let mut details = json!({
        "exit": ran.exit,
        "signal": ran.signal,
        "stopped": ran.stopped.map(word),
        "stragglers": ran.stragglers,
        "left_out_bytes": ran.dropped,
        "place": ran.place,
    });
    if !ran.full.is_empty() {
        details["full"] = json!(ran.full);
    }
    if let Some(missing) = &ran.missing {
        details["missing"] = json!(missing);
    }
    if let Some(changes) = &ran.changes {
        details["changes"] = json!(changes);
        details["dry_run"] = json!(args.dry_run);
    }
    if args.split_output {
        details["stdout"] = json!(ran.output);
        details["stderr"] = json!(ran.errors);
    }
    Output::text(text.trim_end()).for_user(ending.join("; ")).with_details(details)
}

/// Ends the output with a line break, unless it is empty.
pub(crate) fn printed(text: &str) -> String {
    match text.is_empty() || text.ends_with('\n') {
        true => text.to_owned(),
        false => format!("{text}\n"),
    }
}

/// Describes how the command ended.
fn ending(ran: &Ran, args: &Args) -> Vec<String> {
    let mut lines = Vec::new();
    match ran.stopped {
        Some(Stopped::Time) => {
            let time = args.timeout_seconds.map(|seconds| format!(" of {seconds} s")).unwrap_or_default();
            let more = match args.timeout_seconds {
                Some(LONGEST..) => "",
                _ => "; `timeout_seconds` gives it more",
            };
            lines.push(format!("stopped: its time limit{time} was reached{more}"));
        }
        Some(Stopped::Memory) => lines.push("stopped: it reached its memory limit".to_owned()),
        Some(Stopped::Disk) => lines.push("stopped: the disk filled up".to_owned()),
        None => {}
    }
    lines.push(match (ran.exit, ran.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}{}", name(signal)),
        (None, None) => "ended, exit status unknown".to_owned(),
    });
    lines.extend(ran.full.iter().map(ToString::to_string));
    lines.extend(ran.missing.iter().map(ToString::to_string));
    if ran.stragglers > 0 {
        let count = format::count(ran.stragglers.into(), "process that it left", "processes that it left");
        lines.push(format!("killed {count} running"));
    }
    if lacks_network(ran) && !args.network {
        lines.push("a command in the sandbox has no network unless `network` is true".to_owned());
    }
    if ran.dropped > 0 {
        lines.push(format!("{} bytes are left out of the middle", ran.dropped));
    }
    lines
}

/// Most changed paths that are listed.
const NAMED: usize = 20;

/// Describes the command's changes.
pub(crate) fn changed(ran: &Ran, dry_run: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(reason) = &ran.unlayered {
        lines.push(format!("its changes went to the workspace directly and cannot be undone: {reason}"));
    }
    let Some(changes) = ran.changes.as_ref().filter(|changes| !changes.is_empty()) else { return lines };
    if !changes.applied.is_empty() {
        let would = if dry_run { ", not applied: this was a dry run" } else { "" };
        lines.push(format!("{}{would}", changes.summary()));
        let mut named = listed(&changes.applied);
        let more = named.len().saturating_sub(NAMED);
        named.truncate(NAMED);
        lines.extend(named);
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
    }
    for path in &changes.beside_documents {
        let path = shown_path(path);
        lines.push(format!(
            "note: file tools use your document {path}, not this file; change the document with write_file"
        ));
    }
    for held in &changes.held {
        lines.push(format!("held back: {} ({})", shown_path(&held.path), held.reason));
    }
    for conflict in &changes.conflicts {
        let path = shown_path(&conflict.path);
        lines.push(match &conflict.kept {
            Some(kept) => format!(
                "conflict: somebody else changed {path} meanwhile; their version stays, the command's \
                 version is {}",
                shown_path(kept)
            ),
            None => format!("conflict: somebody else changed {path} meanwhile; it was not deleted"),
        });
    }
    lines
}

/// Files of a new directory beyond which the directory alone is named.
const NAMED_APART: usize = 5;

/// A line for each changed file, by path. A new directory of many files is one line, so that the output of a build does
/// not hide the rest. Directories are named only if nothing else changed.
fn listed(changes: &[FileChange]) -> Vec<String> {
    let is_directory = |change: &&FileChange| change.entry == ChangedEntry::Directory;
    let mut files: Vec<&FileChange> = changes.iter().filter(|change| !is_directory(change)).collect();
    if files.is_empty() {
        files = changes.iter().collect();
    }
    let is_new = |change: &&FileChange| change.kind == ChangeKind::Created;
    let made: HashSet<&Path> =
        changes.iter().filter(is_directory).filter(is_new).map(|change| change.path.as_path()).collect();
    let mut counts: HashMap<&Path, usize> = HashMap::new();
    for directory in files.iter().filter_map(|file| top(file, &made)) {
        *counts.entry(directory).or_default() += 1;
    }
    let mut lines: Vec<String> = Vec::new();
    for change in files {
        let line = match top(change, &made).map(|directory| (directory, counts[directory])) {
            Some((directory, count)) if count > NAMED_APART => {
                format!("+ {}/ (new, {count} files)", shown_path(directory))
            }
            _ => format!("{} {}", sign(change.kind), shown_path(&change.path)),
        };
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    lines
}

/// The topmost of these directories that a file is in.
fn top<'a>(file: &'a FileChange, directories: &HashSet<&Path>) -> Option<&'a Path> {
    file.path.ancestors().skip(1).filter(|path| directories.contains(path)).last()
}

const fn sign(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Created => "+",
        ChangeKind::Changed => "~",
        ChangeKind::Deleted => "-",
    }
}

/// Returns whether the command failed like one that needs the network and has none.
pub(crate) fn lacks_network(ran: &Ran) -> bool {
    const SAID: [&str; 5] = [
        "ould not resolve host",
        "Temporary failure in name resolution",
        "Name or service not known",
        "Network is unreachable",
        "getaddrinfo",
    ];
    let said = |text: &str| SAID.iter().any(|said| text.contains(said));
    ran.place != "the host" && ran.exit != Some(0) && (said(&ran.output) || said(&ran.errors))
}

pub(crate) const fn word(stopped: Stopped) -> &'static str {
    match stopped {
        Stopped::Time => "time",
        Stopped::Memory => "memory",
        Stopped::Disk => "disk",
    }
}

/// The name of a signal, after a space and in parentheses; empty if it is an unusual one.
pub(crate) const fn name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        3 => " (SIGQUIT)",
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        24 => " (SIGXCPU)",
        25 => " (SIGXFSZ)",
        31 => " (SIGSYS)",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
