//! Judges a shell command before it runs: allow, ask or deny.
//!
//! The command is parsed by bash's grammar ([`parse`](self)), followed as a shell would follow it, and judged
//! by rules about programs, arguments and files, never about text. Anything not understood is asked about: a
//! text that is no command, a program that is known only at run time, a script too large to follow.
//!
//! The sandbox limits what a known program then does (`make`, `python x.py`).

mod builtins;
pub mod corpus;
mod invocation;
mod parse;
mod plain;
mod rules;
mod syntax;
mod typed;
mod verdict;
mod walk;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use builtins::is_builtin;
pub use invocation::Invocation;
pub use plain::{has_pipe, is_plain, is_single};
pub use rules::{CustomRule, RULES, Rule, RuleError, Rules, ShellConfig};
pub use typed::Typing;
pub use verdict::{Argument, Decision, Finding, Simple, Span, Verdict};

use walk::Walker;

/// The reason given for a command whose analysis failed.
pub(crate) const PANICKED: &str = "the analysis failed";

/// The longest command that is analysed, in bytes.
pub const LONGEST: usize = 64 * 1024;

/// Judges a command.
pub fn analyse(command: &str, rules: &Rules) -> Verdict {
    // The grammar and the walk are not known to panic; if they do, a person is asked.
    let judged = catch_unwind(AssertUnwindSafe(|| {
        let mut walker = Walker::new(rules, command);
        if command.len() > LONGEST {
            walker.hit("unknown.size", None);
        } else if command.contains('\0') {
            walker.hit("unknown.syntax", Some("it holds a NUL"));
        } else {
            walker.script();
        }
        (walker.findings, walker.commands, walker.reads)
    }));
    let (mut findings, mut commands, reads) = judged.unwrap_or_else(|_| {
        let mut walker = Walker::new(rules, command);
        walker.hit("unknown.syntax", Some(PANICKED));
        (walker.findings, Vec::new(), Vec::new())
    });
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
    let mut seen = std::collections::BTreeSet::new();
    commands.retain(|simple: &Simple| seen.insert((simple.argv.clone(), simple.span)));
    let decision = findings.first().map_or(Decision::Allow, |finding| finding.verdict);
    Verdict { decision, findings, commands, reads }
}

#[cfg(test)]
mod tests;
