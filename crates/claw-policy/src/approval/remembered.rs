//! Rules that a person gave with an approval: their coverage, and matching them with scripts.
//!
//! A rule is narrow: programs by path and file identity, arguments as they were. A program that an agent can
//! overwrite is never covered: it may be another one when it runs. A script is covered only if each of its
//! simple commands is; one that cannot be split into such commands is covered only as the exact text that was
//! approved. Parts known only at run time, and denied commands, are never covered.
//!
//! A rule for a directory or a host says which; the widths of a yes are offered by [`suggest`].

use std::path::PathBuf;

use claw_core::port::Access;
use claw_core::store::RuleWidth;
use claw_core::tool::{Effect, Effects, Script, Sight, Target};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::shell::{Argument, Decision, Simple, Verdict, has_pipe, is_builtin, is_plain};

/// A remembered rule as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleContent {
    /// Commands.
    Commands(Remembered),
    /// A directory outside the workspace and all below it, for file tools and commands. Files in it that hold secrets by
    /// their names stay covered.
    Directory {
        /// Its real path.
        path: PathBuf,
        /// The access to it.
        access: Access,
    },
    /// Every address of a host.
    Host {
        /// A name or a literal address, lower case.
        host: String,
    },
}

impl RuleContent {
    /// The commands that it covers; `None` for a rule about something else.
    pub fn into_commands(self) -> Option<Remembered> {
        match self {
            Self::Commands(commands) => Some(commands),
            Self::Directory { .. } | Self::Host { .. } => None,
        }
    }
}

impl std::fmt::Display for RuleContent {
    /// The calls that it covers, in a line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Commands(commands) => commands.fmt(f),
            Self::Directory { path, access } => {
                let what = if *access == Access::Write { "reading and writing" } else { "reading" };
                let path = path.display();
                write!(
                    f,
                    "{what} `{path}` and everything below it, except files whose names suggest that they hold \
                     secrets"
                )
            }
            Self::Host { host } => write!(f, "fetching any address of `{host}`"),
        }
    }
}

/// Commands that a remembered rule covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remembered {
    /// The commands that it covers; for a whole script, the programs that it runs.
    pub commands: Vec<Covered>,
    /// The exact script, if it is more than plain commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Whole>,
    /// The directory in which commands that do more than read may be started.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// The rules of `shell` that asked and need not ask again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waives: Vec<SmolStr>,
    /// Covers requests for network access too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
}

/// A covered simple command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Covered {
    /// Path of the program; the name alone for a shell builtin.
    pub program: String,
    /// Identity of the program's file; `None` for a shell builtin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The registered program whose credentials it gets; `None` if it runs without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<SmolStr>,
    /// The arguments, in order.
    pub arguments: Vec<Shape>,
    /// Effects that it may have at most.
    pub effects: Effects,
}

/// The condition on an argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Equal to this text.
    Is(String),
    /// A relative path that does not lead upwards.
    Path,
}

/// A script with everything besides its text that decides what it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Whole {
    /// The text.
    pub text: String,
    /// The working directory.
    pub directory: String,
    /// Environment variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(String, String)>,
    /// Standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
}

impl Whole {
    fn of(script: &Script) -> Self {
        Self {
            text: script.text.clone(),
            directory: script.directory.clone(),
            env: script.env.clone(),
            input: script.input.clone(),
        }
    }
}

/// A script with its analysis.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// The script.
    pub script: &'a Script,
    /// The verdict of the rules.
    pub verdict: &'a Verdict,
    /// Observations of the ports. Without them, programs are compared by name only, which shows the form of a
    /// rule but lets nothing run.
    pub sights: Option<&'a [Sight]>,
    /// The registered program whose credentials it would get.
    pub credential: Option<&'a str>,
}

/// Indices of the rules that together cover the script; `None` if they do not.
pub fn covering(rules: &[&Remembered], judged: &Judged<'_>) -> Option<Vec<usize>> {
    let Judged { script, verdict, .. } = *judged;
    if verdict.decision == Decision::Deny || verdict.commands.is_empty() {
        return None;
    }
    let mut used: Vec<usize> = Vec::new();
    match is_apart(script, verdict) {
        true => {
            for simple in &verdict.commands {
                if judged.is_free(simple) {
                    continue;
                }
                used.push(rules.iter().position(|rule| {
                    rule.script.is_none()
                        && waives(rule, judged)
                        && (simple.effects.read_only() || rule.directory == script.directory)
                        && rule.commands.iter().any(|covered| covered.covers(simple, judged))
                })?);
            }
        }
        false => used.push(rules.iter().position(|rule| {
            rule.script.as_ref() == Some(&Whole::of(script))
                && waives(rule, judged)
                && verdict.commands.iter().all(|simple| {
                    judged.is_free(simple)
                        || rule.commands.iter().any(|covered| covered.covers(simple, judged))
                })
        })?),
    }
    used.sort_unstable();
    used.dedup();
    // Only free commands were found, so nothing was asked about either.
    (verdict.decision == Decision::Allow && !script.network || !used.is_empty()).then_some(used)
}

/// Returns whether a rule waives all findings that asked.
fn waives(rule: &Remembered, judged: &Judged<'_>) -> bool {
    let waived = |id: &SmolStr| is_waivable(id) && rule.waives.contains(id);
    judged.verdict.findings.iter().all(|finding| waived(&finding.rule))
        && (rule.network || !judged.script.network)
}

/// Returns whether a rule of `shell` can be waived. Values known only at run time, and changes to the meaning
/// of words, are asked about each time.
fn is_waivable(rule: &str) -> bool {
    !rule.starts_with("unknown.") && !rule.starts_with("environment.")
}

/// Returns whether a script can be judged command by command: it is text only, without variables and input,
/// and consists of plain commands. Input to a command that does more than read is part of its effect, so such
/// a script is covered only as a whole.
fn is_apart(script: &Script, verdict: &Verdict) -> bool {
    let only_reads = |simple: &Simple| {
        let name = simple.argv.first().and_then(Argument::known);
        simple.effects.read_only() && name.is_some_and(|name| !is_runner(name))
    };
    script.env.is_empty()
        && script.input.is_none()
        && is_plain(&script.text)
        && (verdict.commands.iter().all(only_reads) || !has_pipe(&script.text))
}

impl Judged<'_> {
    /// Returns whether a command needs no rule. One that gets credentials always needs one.
    fn is_free(&self, simple: &Simple) -> bool {
        self.credential.is_none() && is_free(simple)
    }
}

/// Returns whether a command is a shell builtin without effects.
fn is_free(simple: &Simple) -> bool {
    const FREE: &[&str] = &[":", "[", "echo", "false", "printf", "pwd", "test", "true"];
    let known = simple.argv.iter().all(|argument| argument.known().is_some());
    let name = simple.argv.first().and_then(Argument::known);
    known && simple.effects.read_only() && name.is_some_and(|name| FREE.contains(&name))
}

impl Covered {
    fn covers(&self, simple: &Simple, judged: &Judged<'_>) -> bool {
        let Some(words) = words(simple) else { return false };
        let Some((program, arguments)) = words.split_first() else { return false };
        let same = match judged.sights {
            Some(sights) => found(program, judged, sights)
                .is_some_and(|(path, identity)| path == self.program && identity == self.identity),
            None => name(program) == name(&self.program),
        };
        same && self.credential.as_deref() == judged.credential
            && simple.effects.within(self.effects)
            && arguments.len() == self.arguments.len()
            && arguments.iter().zip(&self.arguments).all(|(argument, shape)| shape.fits(argument))
    }
}

impl Shape {
    fn fits(&self, argument: &str) -> bool {
        match self {
            Self::Is(text) => argument == text,
            Self::Path => is_path(argument),
        }
    }
}

/// All words of a command, if all are known.
fn words(simple: &Simple) -> Option<Vec<&str>> {
    simple.argv.iter().map(Argument::known).collect()
}

fn name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Path and identity of a program; `None` if they are not known for certain.
fn found(program: &str, judged: &Judged<'_>, sights: &[Sight]) -> Option<(String, Option<String>)> {
    if is_builtin(program) && judged.credential.is_none() {
        return Some((program.to_owned(), None));
    }
    // The meaning of a relative path depends on the directory that earlier commands changed to.
    if program.contains('/') && !program.starts_with('/') && judged.verdict.commands.len() > 1 {
        return None;
    }
    let of = |sight: &&Sight| matches!(&sight.target, Target::Program { name, .. } if name == program);
    // An agent that can write there could replace the program between the look and the run.
    let sight = sights.iter().find(of).filter(|sight| !sight.writable)?;
    Some((sight.path.clone()?, Some(sight.identity.clone()?)))
}

/// Returns whether the agent can replace this program.
fn is_writable(program: &str, sights: &[Sight]) -> bool {
    let is_it = |sight: &Sight| matches!(&sight.target, Target::Program { name, .. } if name == program);
    sights.iter().any(|sight| is_it(sight) && sight.writable)
}

/// Returns whether an argument is a path below the working directory.
fn is_path(argument: &str) -> bool {
    let looks = argument.contains(['/', '.']);
    let stays = !argument.starts_with(['/', '-', '~', '+', '@', ':']) && !argument.contains("://");
    looks && stays && argument.split('/').all(|part| part != "..") && !argument.contains(char::is_control)
}

/// Programs that run their arguments or their input: without arguments they run anything.
const RUNNERS: &[&str] = &[
    "awk", "bash", "bun", "busybox", "command", "dash", "deno", "doas", "env", "eval", "exec", "find",
    "fish", "ksh", "lua", "nice", "node", "nohup", "parallel", "perl", "php", "python", "ruby", "script",
    "setsid", "sh", "source", "ssh", "stdbuf", "sudo", "time", "timeout", "watch", "xargs", "zsh", ".",
];

fn is_runner(program: &str) -> bool {
    let name = name(program).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    RUNNERS.contains(&name) || name == "."
}

/// The rules that a yes for good could give, the narrowest first, or why there can be none.
pub fn suggest(judged: &Judged<'_>) -> Result<Vec<(RuleWidth, Remembered)>, &'static str> {
    let exact = suggested(judged, RuleWidth::Exact)?;
    let wider = suggested(judged, RuleWidth::Paths)?;
    let mut rules = vec![(RuleWidth::Exact, exact)];
    if wider != rules[0].1 {
        rules.push((RuleWidth::Paths, wider));
    }
    Ok(rules)
}

fn suggested(judged: &Judged<'_>, width: RuleWidth) -> Result<Remembered, &'static str> {
    let Judged { script, verdict, .. } = *judged;
    let sights = judged.sights.unwrap_or_default();
    if verdict.decision == Decision::Deny {
        return Err("a rule denies it");
    }
    if verdict.findings.iter().any(|finding| !is_waivable(&finding.rule)) {
        return Err("what it does is known only at run time");
    }
    let waives: Vec<SmolStr> = verdict.findings.iter().map(|finding| finding.rule.clone()).collect();
    let whole = !is_apart(script, verdict);
    let in_workspace = Effects::of(&[Effect::Read, Effect::Write]);
    let mut commands = Vec::new();
    for simple in verdict.commands.iter().filter(|simple| !judged.is_free(simple)) {
        let words = words(simple).ok_or("some of its arguments are known only at run time")?;
        let (program, arguments) = words.split_first().ok_or("it redirects without a command")?;
        if arguments.is_empty() && is_runner(program) {
            return Err("it starts an interpreter or a wrapper without naming what to run");
        }
        if is_writable(program, sights) {
            return Err("the agent can change the program that it runs");
        }
        let (path, identity) =
            found(program, judged, sights).ok_or("it is not certain which program it would run")?;
        let plain = waives.is_empty() && !whole && judged.credential.is_none();
        let loose =
            width == RuleWidth::Paths && plain && simple.effects.within(in_workspace) && !is_runner(program);
        let shape = |argument: &&str| match loose && is_path(argument) {
            true => Shape::Path,
            false => Shape::Is((*argument).to_owned()),
        };
        let arguments = arguments.iter().map(shape).collect();
        let (credential, effects) = (judged.credential.map(SmolStr::new), simple.effects);
        let covered = Covered { program: path, identity, credential, arguments, effects };
        if !commands.contains(&covered) {
            commands.push(covered);
        }
    }
    if commands.is_empty() {
        return Err("nothing in it would need approval again");
    }
    let (script, directory) = (whole.then(|| Whole::of(script)), script.directory.clone());
    Ok(Remembered { commands, script, directory, waives, network: judged.script.network })
}

impl std::fmt::Display for Remembered {
    /// Writes the coverage in one line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.script {
            Some(whole) => write!(f, "exactly `{}`", whole.text.replace('\n', " \u{23ce} "))?,
            None => {
                for (i, covered) in self.commands.iter().enumerate() {
                    write!(f, "{}`{covered}`", if i == 0 { "" } else { ", " })?;
                }
            }
        }
        for rule in &self.waives {
            write!(f, ", though `{rule}` asks")?;
        }
        f.write_str(if self.network { ", with the network" } else { "" })
    }
}

impl std::fmt::Display for Covered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.program)?;
        for shape in &self.arguments {
            match shape {
                Shape::Path => f.write_str(" <any path of the workspace>")?,
                Shape::Is(text)
                    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c == '\'') =>
                {
                    write!(f, " '{}'", text.replace('\'', "'\\''").replace('\n', "\u{23ce}"))?;
                }
                Shape::Is(text) => write!(f, " {text}")?,
            }
        }
        if let Some(credential) = &self.credential {
            write!(f, " (with the credentials of {credential})")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
