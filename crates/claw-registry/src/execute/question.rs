//! What a person is shown of a call that waits for their answer.
//!
//! Whoever wrote the call may want to mislead: nothing in it can steer a terminal, pass for a line of ours
//! or hide what it does behind its length.

use claw_core::tool::{Ask, Plan};
use serde_json::Value;

use crate::output;
use crate::scrub::CallScrubber;

/// How much of a command or of the arguments is shown; more is cut from the middle, and said to be.
const SHOWN: usize = 8 * 1024;

/// What the call would do, part by part, then its arguments. Scrubbed first, cut after.
pub(super) fn summary(plan: &Plan, args: &Value, scrubber: &CallScrubber) -> String {
    let mut lines = Vec::new();
    for ask in &plan.asks {
        match ask {
            Ask::Script(script) => {
                lines.push(format!("run in {}:", plain(&script.directory, scrubber)));
                lines.push(block(&script.text, scrubber));
                lines.extend(environment(&script.env, scrubber));
            }
            Ask::Argv(argv) => {
                lines.push(format!("run in {}, without a shell:", plain(&argv.directory, scrubber)));
                lines.push(block(&format!("{:?}", argv.argv), scrubber));
                lines.extend(environment(&argv.env, scrubber));
            }
            Ask::Write { path } => lines.push(format!("write {}", plain(path, scrubber))),
            Ask::Host { origin } => {
                lines.push(format!("connect to {}", plain(&origin.to_string(), scrubber)));
            }
            Ask::Opaque => lines.push("do something that cannot be told beforehand".to_owned()),
        }
    }
    lines.push("with the arguments:".to_owned());
    lines.push(block(&scrubber.json(args).to_string(), scrubber));
    lines.join("\n")
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

/// Text of one line: line breaks are shown, not made.
fn plain(text: &str, scrubber: &CallScrubber) -> String {
    harmless(&output::cut(&scrubber.text(text), SHOWN, "cut here")).replace('\n', "\\n")
}

/// Text of several lines, each indented, so that none passes for one of ours.
fn block(text: &str, scrubber: &CallScrubber) -> String {
    let text = harmless(&output::cut(&scrubber.text(text), SHOWN, "cut here"));
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// Control characters, and those that turn the direction of text, as escapes.
fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        let turns = matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
        if (c.is_control() && c != '\n' && c != '\t') || turns {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}
