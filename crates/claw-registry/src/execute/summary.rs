//! The summary of a call that a person reads before approving it.
//!
//! The author of the call may want to mislead: nothing in it can control a terminal, look like one of our
//! lines, or hide its effect behind its length.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Component, Path, PathBuf};

use claw_core::port::ProgramRun;
use claw_core::tool::{Ask, Script, Sight, Target};
use claw_policy::approval::{self as policy, AnalysedAsk};
use claw_policy::shell::{Simple, Verdict};
use serde_json::Value;

use super::Judged;

use crate::output;
use crate::scrub::CallScrubber;

/// Bytes of a command or of the arguments that are kept for the person who answers; the middle of longer
/// texts is cut, with a note.
const SHOWN: usize = 256 * 1024;

/// Describes the call's asks one by one, then its arguments. Texts are scrubbed first and cut afterwards.
pub(super) fn summary(judged: &Judged, args: &Value, scrubber: &CallScrubber) -> String {
    let mut lines: Vec<String> =
        judged.analysis.asks.iter().flat_map(|analysed| ask_lines(judged, analysed, scrubber)).collect();
    lines.extend(judged.sights.iter().find_map(place).map(|place| format!("in {}", plain(place, scrubber))));
    let rest = unsaid(args, &judged.plan.asks);
    if rest.as_object().is_none_or(|fields| !fields.is_empty()) {
        let other = if rest == *args { "" } else { "other " };
        let shown = scrubber.json(&rest);
        let hidden = if shown == rest { "" } else { " (some values are hidden)" };
        lines.push(format!("with the {other}arguments{hidden}:"));
        lines.push(block(&shown.to_string(), scrubber));
    }
    if lines.is_empty() {
        lines.push("without arguments".to_owned());
    }
    lines.join("\n")
}

/// Describes one ask.
fn ask_lines(judged: &Judged, analysed: &AnalysedAsk, scrubber: &CallScrubber) -> Vec<String> {
    if let Some(run) = analysed.login() {
        return login(run, &judged.sights, scrubber);
    }
    let mut lines = Vec::new();
    let verdict = analysed.verdict.as_ref();
    match &analysed.ask {
        Ask::Script(script) => lines.extend(script_lines(judged, script, verdict, scrubber)),
        Ask::Argv(argv) => {
            lines.push(format!("run in {}, without a shell:", plain(&argv.directory, scrubber)));
            lines.push(block(&format!("{:?}", argv.argv), scrubber));
            lines.extend(environment(&argv.env, scrubber));
        }
        Ask::Input(input) => {
            let to = judged.sights.iter().find_map(|sight| match &sight.target {
                Target::Process { process } if *process == input.process => sight.path.as_deref(),
                _ => None,
            });
            lines.push(format!("type into {}, which runs:", plain(&input.process, scrubber)));
            lines.push(block(to.unwrap_or("an unknown command"), scrubber));
            lines.push("this:".to_owned());
            lines.push(block(&input.text, scrubber));
            if input.end {
                lines.push("and end its input".to_owned());
            }
            lines.extend(verdict.map(|verdict| commands(judged, verdict, scrubber)).unwrap_or_default());
        }
        Ask::Write { path } => {
            lines.push(format!("write {}", plain(path, scrubber)));
            lines.extend(
                elsewhere(path, &judged.sights)
                    .map(|real| format!("which leads to {}", plain(real, scrubber))),
            );
        }
        // The reason says which directory it is in.
        Ask::Reach { path, write } => {
            let what = if *write { "change" } else { "read" };
            lines.push(format!("{what} {}", plain(path, scrubber)));
        }
        Ask::Host { origin } => {
            lines.push(format!("connect to {}", plain(&origin.to_string(), scrubber)));
        }
        Ask::Fetch { url, .. } => {
            lines.push("fetch this address:".to_owned());
            lines.push(block(url, scrubber));
        }
        Ask::Publish { path } => {
            lines.push(format!("publish the directory {} as a skill:", plain(path, scrubber)));
            let of_path =
                |sight: &&Sight| matches!(&sight.target, Target::Skill { path: seen } if seen == path);
            let seen = judged.sights.iter().find(of_path).and_then(|sight| sight.path.as_deref());
            lines.push(block(seen.unwrap_or("there is no such skill"), scrubber));
        }
        Ask::Session { session, sends } => {
            let what = if *sends { "send a message to session" } else { "read session" };
            lines.push(format!("{what} {}", plain(session, scrubber)));
            let of_session = |sight: &&Sight| matches!(&sight.target, Target::Session { session: seen } if seen == session);
            let place = judged.sights.iter().find(of_session).and_then(|sight| sight.path.as_deref());
            lines.extend(place.map(|place| format!("which works in {}", plain(place, scrubber))));
        }
        Ask::Opaque => lines.push("do something that cannot be known in advance".to_owned()),
    }
    lines
}

/// Describes a script: its text, its environment, its input and the commands in it.
fn script_lines(
    judged: &Judged,
    script: &Script,
    verdict: Option<&Verdict>,
    scrubber: &CallScrubber,
) -> Vec<String> {
    let mut lines = Vec::new();
    lines.push(format!("run in {}:", plain(&script.directory, scrubber)));
    lines.push(block(&script.text, scrubber));
    lines.extend(environment(&script.env, scrubber));
    if let Some(input) = script.input.as_ref().filter(|input| !input.is_empty()) {
        lines.push("with this standard input:".to_owned());
        lines.push(block(input, scrubber));
    }
    // If the script is a single command, it would be shown twice.
    let is_all = |verdict: &Verdict| match verdict.commands.as_slice() {
        [only] => only.to_string() == script.text.trim(),
        _ => false,
    };
    let verdict = verdict.filter(|verdict| !is_all(verdict));
    lines.extend(verdict.map(|verdict| commands(judged, verdict, scrubber)).unwrap_or_default());
    lines
}

/// The arguments that the lines above do not already show literally.
fn unsaid(args: &Value, asks: &[Ask]) -> Value {
    let Value::Object(fields) = args else { return args.clone() };
    let said = |value: &Value| {
        asks.iter().any(|ask| match ask {
            Ask::Script(script) => {
                let is = |text: &str| value.as_str() == Some(text);
                is(&script.text) || is(&script.directory) || script.input.as_deref().is_some_and(is)
            }
            Ask::Write { path } | Ask::Publish { path } | Ask::Reach { path, .. } => {
                value.as_str() == Some(path)
            }
            Ask::Session { session, .. } => value.as_str() == Some(session),
            _ => false,
        })
    };
    Value::Object(
        fields.iter().filter(|(_, value)| !said(value)).map(|(k, v)| (k.clone(), v.clone())).collect(),
    )
}

/// The real path, if it differs from the given one.
fn elsewhere<'a>(path: &str, sights: &'a [Sight]) -> Option<&'a str> {
    let real = policy::leads_to(path, sights)?;
    let written: PathBuf = Path::new(path).components().filter(|part| *part != Component::CurDir).collect();
    (!Path::new(real).ends_with(written)).then_some(real)
}

/// Describes a program with credentials: its file, its arguments and the names of its variables.
fn login(run: &ProgramRun, sights: &[Sight], scrubber: &CallScrubber) -> Vec<String> {
    let ProgramRun { program, word, arguments, directory, .. } = run;
    let name = program.place.name.as_str();
    let is_it = |sight: &&Sight| {
        sight.credential.as_deref() == Some(name) && matches!(sight.target, Target::Program { .. })
    };
    let file = sights.iter().find(is_it).and_then(|sight| sight.path.as_deref());
    let file = file.unwrap_or(&program.settings.binary);
    let argv: Vec<&str> =
        std::iter::once(word.as_str()).chain(arguments.iter().map(String::as_str)).collect();
    vec![
        format!("run in {}, without a shell:", plain(directory, scrubber)),
        block(&format!("{argv:?}"), scrubber),
        format!("which is the registered program {}", plain(file, scrubber)),
        format!("with the credentials {}", plain(&program.variables.join(", "), scrubber)),
    ]
}

/// Number of simple commands that are shown.
const COMMANDS: usize = 40;

/// The simple commands of a script, with the effects that its sandbox allows each. Each is shown once; if
/// there are too many, those with the most effects are shown.
fn commands(judged: &Judged, verdict: &Verdict, scrubber: &CallScrubber) -> Vec<String> {
    if verdict.commands.is_empty() {
        return Vec::new();
    }
    let mut times: Vec<(&Simple, usize)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for simple in &verdict.commands {
        match places.entry(format!("{simple} {}", simple.effects)) {
            Entry::Occupied(place) => times[*place.get()].1 += 1,
            Entry::Vacant(place) => {
                place.insert(times.len());
                times.push((simple, 1));
            }
        }
    }
    let hidden = times.len().saturating_sub(COMMANDS);
    if hidden > 0 {
        times.sort_by_key(|(simple, _)| std::cmp::Reverse(simple.effects.iter().count()));
        times.truncate(COMMANDS);
    }
    let line = |(simple, times): (&Simple, usize)| {
        let again = if times > 1 { format!(", {times} times") } else { String::new() };
        let held = judged.analysis.held_effects(simple, judged.place.facts.sandboxed, judged.left);
        format!("  {} ({held}){again}", plain(&simple.to_string(), scrubber))
    };
    let mut lines = vec!["which would run:".to_owned()];
    lines.extend(times.into_iter().map(line));
    if hidden > 0 {
        lines.push(format!("  and {hidden} other commands, which are not shown"));
    }
    lines
}

/// Describes the sandbox in which commands would run.
pub(super) fn place(sight: &Sight) -> Option<&str> {
    match sight.target {
        Target::Sandbox => sight.path.as_deref().or(sight.identity.as_deref()),
        _ => None,
    }
}

fn environment(env: &[(String, String)], scrubber: &CallScrubber) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, value) in env {
        if lines.is_empty() {
            lines.push("with the environment:".to_owned());
        }
        lines.push(format!("  {}", plain(&format!("{name}={value}"), scrubber)));
    }
    lines
}

/// Text on one line: line breaks are escaped.
pub(crate) fn plain(text: &str, scrubber: &CallScrubber) -> String {
    harmless(&output::cut(&scrubber.text(text), SHOWN, "cut here")).replace('\n', "\\n")
}

/// Text of several lines, each indented, so that none looks like one of ours.
pub(crate) fn block(text: &str, scrubber: &CallScrubber) -> String {
    let text = harmless(&output::cut(&scrubber.text(text), SHOWN, "cut here"));
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// Escapes control characters, direction marks and invisible characters.
fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        let turns = matches!(
            c,
            '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        );
        if (c.is_control() && c != '\n' && c != '\t') || turns {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}
