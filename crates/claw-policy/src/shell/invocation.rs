//! A command with its environment variables and its input.
//!
//! Variables are judged as assignments before the command, and input as if it were a here-document after it:
//! a shell that reads it runs it, so it is judged as a script.

use super::verdict::{Argument, Decision, Finding, Simple, Span, Verdict};
use super::{Rules, analyse, rules};

/// A command to be started.
#[derive(Debug, Clone, Copy, Default)]
pub struct Invocation<'a> {
    /// The text for the shell.
    pub text: &'a str,
    /// Environment variables.
    pub env: &'a [(String, String)],
    /// The standard input.
    pub input: Option<&'a str>,
}

impl Invocation<'_> {
    /// Judges the command.
    pub fn analyse(&self, rules: &Rules) -> Verdict {
        let mut prefix = String::new();
        for (name, value) in self.env {
            if !is_name(name) {
                // Bash imports functions from variables with other names.
                return refused(self.text, name);
            }
            prefix.push_str(&format!("export {name}={}\n", quoted(value)));
        }
        let Some(input) = self.input else {
            let text = format!("{prefix}{}", self.text);
            return settle(analyse(&text, rules), prefix.len(), self.text.len());
        };
        // Alone, so that a text that would end the group early is found to be invalid.
        let alone = settle(analyse(&format!("{prefix}{}", self.text), rules), prefix.len(), self.text.len());
        let unread = |finding: &Finding| matches!(finding.rule.as_str(), "unknown.syntax" | "unknown.size");
        if alone.findings.iter().any(unread) {
            return alone;
        }
        let mark = mark(self.text, input);
        let start = prefix.len() + 2;
        let text = format!("{prefix}{{ {}\n}} <<'{mark}'\n{input}\n{mark}\n", self.text);
        let mut verdict = settle(analyse(&text, rules), start, self.text.len());
        // Without input there is nothing to run.
        for simple in verdict.commands.iter().filter(|simple| !input.is_empty() && reads_program(simple)) {
            let part = self.text.get(simple.span.start..simple.span.end).unwrap_or(self.text);
            verdict.findings.extend(finding("unknown.input", simple.span, part.to_owned(), None));
        }
        verdict.findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
        verdict.decision = verdict.findings.first().map_or(Decision::Allow, |finding| finding.verdict);
        verdict
    }
}

/// The verdict with positions relative to the command's own text; the text before it is left out.
fn settle(mut verdict: Verdict, start: usize, length: usize) -> Verdict {
    let shifted = |span: Span| Span {
        start: span.start.saturating_sub(start).min(length),
        end: span.end.saturating_sub(start).min(length),
    };
    verdict.commands.retain(|simple| simple.span.end > start);
    verdict.commands.iter_mut().for_each(|simple| simple.span = shifted(simple.span));
    verdict.findings.iter_mut().for_each(|finding| finding.span = shifted(finding.span));
    verdict
}

fn refused(text: &str, name: &str) -> Verdict {
    let span = Span { start: 0, end: text.len() };
    let reason = format!("`{}` is not a valid variable name", name.escape_debug());
    let findings: Vec<Finding> =
        finding("environment.injection", span, name.to_owned(), Some(reason)).into_iter().collect();
    Verdict { decision: Decision::Deny, findings, commands: Vec::new(), reads: Vec::new() }
}

pub(super) fn finding(id: &str, span: Span, part: String, reason: Option<String>) -> Option<Finding> {
    let rule = rules::find(id)?;
    let reason = reason.unwrap_or_else(|| rule.person.to_owned());
    let advice = rule.model.to_owned();
    Some(Finding { rule: rule.id.into(), verdict: rule.decision, span, part, reason, advice })
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "'\\''"))
}

/// A word that is not a line of either text.
fn mark(text: &str, input: &str) -> String {
    let mut mark = "CLAWSMITH_INPUT".to_owned();
    while text.contains(&mark) || input.contains(&mark) {
        mark.push('_');
    }
    mark
}

/// Interpreters that read a program if they are given none, with the options that give one.
const READERS: &[(&str, &[&str])] = &[
    ("python", &["-c", "-m"]),
    ("pypy", &["-c", "-m"]),
    ("perl", &["-e", "-E"]),
    ("ruby", &["-e"]),
    ("node", &["-e", "-p", "--eval", "--print"]),
    ("nodejs", &["-e", "-p", "--eval", "--print"]),
    ("deno", &[]),
    ("bun", &[]),
    ("php", &["-r", "-f"]),
    ("lua", &["-e"]),
    ("luajit", &["-e"]),
    ("tclsh", &[]),
    ("wish", &[]),
    ("expect", &["-c"]),
    ("osascript", &["-e"]),
    ("pwsh", &["-c", "-Command"]),
    ("R", &["-e"]),
    ("Rscript", &["-e"]),
    ("julia", &["-e", "-E"]),
    ("ghci", &[]),
    ("jshell", &[]),
    ("guile", &["-c"]),
    ("racket", &["-e"]),
    ("sbcl", &["--eval"]),
    ("iex", &[]),
    ("erl", &[]),
];
/// Programs whose language can run others, whatever arguments they get.
const TALKERS: &[&str] = &[
    "sqlite",
    "psql",
    "mysql",
    "mariadb",
    "gdb",
    "lldb",
    "ed",
    "ex",
    "vi",
    "vim",
    "nvim",
    "emacs",
    "ftp",
    "sftp",
    "mail",
    "mailx",
    "at",
    "batch",
    "crontab",
    "redis-cli",
    "mongosh",
    "gnuplot",
    "octave",
    "ssh",
    "telnet",
    "nc",
    "tmux",
    "screen",
    "script",
    "zellij",
    "ipython",
    "irb",
    "bpython",
];

/// Interpreters that continue reading with `-i`, whatever they are given.
const INTERACTIVE: &[&str] = &["python", "pypy", "node", "nodejs", "lua", "luajit", "ghci"];

/// Returns whether an interpreter's option takes the next argument, so that this is no program.
fn takes_value(name: &str, option: &str) -> bool {
    let taking: &[&str] = match name {
        "python" | "pypy" => &["-W", "-X", "--check-hash-based-pycs"],
        "perl" => &["-I", "-x", "-F", "-0"],
        "ruby" | "jruby" => &["-I", "-r", "-C", "-E", "-W", "-F", "--encoding", "--external-encoding"],
        "node" | "nodejs" => {
            &["-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions"]
        }
        "php" => &["-c", "-d", "-z"],
        "lua" | "luajit" => &["-l", "-j", "-O"],
        "deno" | "bun" => &["--preload", "-r", "--config", "-c"],
        _ => &[],
    };
    taking.contains(&option)
}

/// A program's name without its directory and version.
fn bare(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
}

/// Returns whether a program is an interpreter, or one that runs others when it is told to.
pub(super) fn is_reader(program: &str) -> bool {
    let name = bare(program);
    TALKERS.contains(&name) || READERS.iter().any(|(reader, _)| *reader == name)
}

/// Returns whether a command runs its input as a program in a language that is not analysed.
pub(super) fn reads_program(simple: &Simple) -> bool {
    let Some(program) = simple.argv.first().and_then(Argument::known) else { return false };
    let name = bare(program);
    if TALKERS.contains(&name) {
        return true;
    }
    let Some((_, options)) = READERS.iter().find(|(reader, _)| *reader == name) else { return false };
    // The given program runs first, and the input after it.
    let goes_on = |text: &str| {
        text == "--interactive" || (text.starts_with('-') && !text.starts_with("--") && text.contains('i'))
    };
    if INTERACTIVE.contains(&name) && simple.argv.iter().skip(1).filter_map(Argument::known).any(goes_on) {
        return true;
    }
    // A program given in another way: as a file, or by an option. Words after it are its arguments, and a
    // word after an option may be that option's value.
    let mut arguments = simple.argv.iter().skip(1);
    while let Some(argument) = arguments.next() {
        // A word known only at run time may be an option.
        let Some(text) = argument.known() else { return true };
        match text {
            "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0" => return true,
            "--" => return arguments.next().is_none_or(|file| file.known() == Some("-")),
            text if options.iter().any(|option| text.starts_with(option)) => return false,
            text if takes_value(name, text) => _ = arguments.next(),
            text if text.starts_with('-') => {}
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests;
