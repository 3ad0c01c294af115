//! Judges text that is typed into a running command.
//!
//! It is judged together with all text typed before, as if the command were started with that input: so a
//! line typed in two halves is one line, and a variable set before is known. Text for a shell is a script,
//! text for another interpreter is asked about, text for other programs is their input.

use super::invocation::{self, Invocation, finding, reads_program};
use super::verdict::{Argument, Decision, Finding, Simple, Span, Verdict};
use super::{Rules, walk};

/// A word that nobody types: a command of this name is found if a shell reads the typed text.
const PROBE: &str = "clawsmith_probe_4f1d";
/// Programs that run typed text if they have a terminal: by themselves, or by their pager.
const PAGERS: &[&str] =
    &["less", "more", "most", "man", "info", "git", "systemctl", "journalctl", "top", "htop", "bat", "delta"];
/// Programs that change the keys of a terminal: with another erase key, `rqZm` is `rm`.
const SETTERS: &[&str] = &["stty", "tset", "reset", "setterm", "loadkeys", "bind", "bindkey"];
/// The keys that a shell may be sent: they end the running command, or the input.
const INTERRUPT: &str = "\u{3}";
const END: &str = "\u{4}";

/// A running command, and the text typed into it so far.
#[derive(Debug, Clone, Copy)]
pub struct Typing<'a> {
    /// The invocation that started it. Its input is the beginning of the typed text.
    pub started: Invocation<'a>,
    /// Text typed since.
    pub before: &'a str,
    /// The command has a terminal, where keys edit the typed text.
    pub terminal: bool,
    /// The programs that its words resolved to, each as word and path.
    pub programs: &'a [(String, String)],
}

impl Typing<'_> {
    /// Judges the text typed next.
    pub fn analyse(&self, text: &str, rules: &Rules) -> Verdict {
        let given = self.started.input.unwrap_or_default();
        let all = self.plain(&format!("{given}{}{text}", self.before));
        let mut verdict = Invocation { input: Some(&all), ..self.started }.analyse(rules);
        let span = Span { start: 0, end: self.started.text.len() };
        let mut ask = |reason: String| {
            let part = text.trim().to_owned();
            verdict.findings.extend(finding("unknown.input", span, part, Some(reason)));
        };
        if let Some((name, path)) = self.programs.iter().find(|(name, path)| is_another(name, path)) {
            ask(format!("`{name}` is `{path}`, which runs what is typed into it"));
        }
        if self.terminal
            && let Some(name) = verdict.commands.iter().find_map(pager)
        {
            ask(format!("`{name}` runs commands that are typed into it on a terminal"));
        }
        if self.terminal
            && let Some(name) = verdict.commands.iter().find_map(setter)
        {
            ask(format!(
                "`{name}` changes the meaning of the terminal's keys, and so of everything typed later"
            ));
        }
        if self.reads_script(rules)
            && let Some(reason) = self.odd(text)
        {
            ask(reason.to_owned());
        }
        verdict.findings.sort_by_key(|finding: &Finding| std::cmp::Reverse(finding.verdict));
        verdict.decision = verdict.findings.first().map_or(Decision::Allow, |finding| finding.verdict);
        verdict
    }

    /// The text that a program reads after a terminal has processed the keys.
    fn plain(&self, text: &str) -> String {
        match self.terminal {
            true => text.replace(['\r', '\u{3}'], "\n").replace(END, ""),
            false => text.to_owned(),
        }
    }

    /// Returns whether a shell reads the typed text.
    fn reads_script(&self, rules: &Rules) -> bool {
        let probed = Invocation { input: Some(PROBE), ..self.started }.analyse(rules);
        probed.commands.iter().any(|simple| simple.argv.first().and_then(Argument::known) == Some(PROBE))
    }

    /// The reason why typed text may be a different script for the shell than for this analysis.
    fn odd(&self, text: &str) -> Option<&'static str> {
        if self.terminal && (text == INTERRUPT || text == END) {
            return None;
        }
        let plain = |c: char| match c {
            '\n' => true,
            '\r' => self.terminal,
            '\t' => !self.terminal,
            c => !c.is_control(),
        };
        if !text.chars().all(plain) {
            return Some("keys within the text change the command; send the lines without keys");
        }
        // It may be on: a shell without a terminal has to be told to be interactive.
        let interactive = self.terminal || {
            let words = format!("{} {}", self.started.text, self.before);
            let option = |word: &str| word.starts_with('-') && word.contains(['i', 'H']);
            words.split_whitespace().any(option) || words.contains("hist") || text.contains("hist")
        };
        // A line may come in pieces: the part typed before counts.
        let line = self.before.rsplit(['\n', '\r']).next().unwrap_or_default();
        (interactive && recalls(&format!("{line}{text}")))
            .then_some("`!` and `^` repeat earlier commands in changed form")
    }
}

/// Returns whether an interactive shell would expand its history in this text.
fn recalls(text: &str) -> bool {
    let quick = text.split(['\n', '\r']).any(|line| line.starts_with('^'));
    let mut after = text.split('!').skip(1);
    quick || after.any(|rest| !rest.is_empty() && !rest.starts_with([' ', '\t', '\n', '\r', '=', '(']))
}

/// Returns whether a word resolves to a program that runs its input, although its name does not tell.
fn is_another(name: &str, path: &str) -> bool {
    let runs = |name: &str| walk::is_shell(&walk::name(name)) || invocation::is_reader(name);
    runs(path) && !runs(name)
}

/// A command that changes how a terminal processes keys.
fn setter(simple: &Simple) -> Option<String> {
    let name = walk::name(simple.argv.first().and_then(Argument::known)?);
    // Options that only query, or only decide whether keys are echoed.
    let plain = |argument: &Argument| {
        let known = argument.known();
        matches!(known, Some("size" | "speed" | "-a" | "--all" | "-g" | "--save" | "echo" | "-echo"))
    };
    let plain = name == "stty" && simple.argv.iter().skip(1).all(plain);
    (SETTERS.contains(&name.as_str()) && !plain).then_some(name)
}

fn pager(simple: &Simple) -> Option<String> {
    let name = walk::name(simple.argv.first().and_then(Argument::known)?);
    (PAGERS.contains(&name.as_str()) && !reads_program(simple)).then_some(name)
}

#[cfg(test)]
mod tests;
