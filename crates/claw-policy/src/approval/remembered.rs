//! Rules that a person gave with a yes: what one covers, and whether a script is covered by some.
//!
//! A rule is narrow: programs by where they are and which file that is, arguments as they were. A program that an agent
//! can write is covered by none: it may be another one when it runs. A script is covered
//! only if every simple command of it is; what cannot be taken apart into such commands is covered only as the very
//! text that was approved. What is known only at run time, and what rules deny, is covered by nothing.
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
        /// What may be done in it.
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
    /// What it covers, in a line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Commands(commands) => commands.fmt(f),
            Self::Directory { path, access } => {
                let what = if *access == Access::Write { "reading and writing" } else { "reading" };
                let path = path.display();
                write!(f, "{what} `{path}` and all below it, but for files that hold secrets by their names")
            }
            Self::Host { host } => write!(f, "fetching any address of `{host}`"),
        }
    }
}

/// Commands that a remembered rule covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remembered {
    /// The commands it covers; for a whole script, the programs that it runs.
    pub commands: Vec<Covered>,
    /// The very script, where it is more than plain commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Whole>,
    /// Where commands that do more than read were started, and may be started again.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// The rules of `shell` that asked, and need not ask again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waives: Vec<SmolStr>,
    /// Whether it carries the wish for the network.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Covered {
    /// Where the program is; the name alone for what the shell does itself.
    pub program: String,
    /// Which file that is; none for what the shell does itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The registered program whose credentials it is given; none for one that runs without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<SmolStr>,
    /// The arguments, one by one.
    pub arguments: Vec<Shape>,
    /// The most it may do.
    pub effects: Effects,
}

/// What an argument must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// This text.
    Is(String),
    /// A path that is relative and does not lead upwards.
    Path,
}

/// A script with everything beside its text that decides what it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Whole {
    /// The text.
    pub text: String,
    /// Where it starts.
    pub directory: String,
    /// Its variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(String, String)>,
    /// What it reads.
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

/// A script with what was found out about it.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// The script.
    pub script: &'a Script,
    /// What the rules say.
    pub verdict: &'a Verdict,
    /// What the ports saw. Without it programs are compared by their names alone, which shows what a rule is like
    /// and lets nothing run.
    pub sights: Option<&'a [Sight]>,
    /// The registered program whose credentials it would be given.
    pub credential: Option<&'a str>,
}

/// Which of the rules cover the script, by their places in the list; `None` where they do not.
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
    // Nothing but what is free was found, so nothing asked either.
    (verdict.decision == Decision::Allow && !script.network || !used.is_empty()).then_some(used)
}

/// Whether a rule lets pass what asked, all of it.
fn waives(rule: &Remembered, judged: &Judged<'_>) -> bool {
    let waived = |id: &SmolStr| is_waivable(id) && rule.waives.contains(id);
    judged.verdict.findings.iter().all(|finding| waived(&finding.rule))
        && (rule.network || !judged.script.network)
}

/// What is known only at run time, or changes what the words of a command mean, is asked each time.
fn is_waivable(rule: &str) -> bool {
    !rule.starts_with("unknown.") && !rule.starts_with("environment.")
}

/// Whether a script can be taken apart: nothing beside its text, and nothing in that but plain commands. What is fed
/// to a command that does more than read is part of what it does, so there the script is taken as a whole.
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
    /// Whether a command needs no rule. One that gets credentials always does.
    fn is_free(&self, simple: &Simple) -> bool {
        self.credential.is_none() && is_free(simple)
    }
}

/// What the shell does itself and changes nothing by.
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

/// All words of a command, where all are known.
fn words(simple: &Simple) -> Option<Vec<&str>> {
    simple.argv.iter().map(Argument::known).collect()
}

fn name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Where a program is and which file that is; none where that is not known for certain.
fn found(program: &str, judged: &Judged<'_>, sights: &[Sight]) -> Option<(String, Option<String>)> {
    if is_builtin(program) && judged.credential.is_none() {
        return Some((program.to_owned(), None));
    }
    // What a relative path means depends on where the commands before have gone.
    if program.contains('/') && !program.starts_with('/') && judged.verdict.commands.len() > 1 {
        return None;
    }
    let of = |sight: &&Sight| matches!(&sight.target, Target::Program { name, .. } if name == program);
    // Between the look and the run whoever can write there puts another in its place.
    let sight = sights.iter().find(of).filter(|sight| !sight.writable)?;
    Some((sight.path.clone()?, Some(sight.identity.clone()?)))
}

/// Returns whether the agent can put another program in the place of this one.
fn is_writable(program: &str, sights: &[Sight]) -> bool {
    let is_it = |sight: &Sight| matches!(&sight.target, Target::Program { name, .. } if name == program);
    sights.iter().any(|sight| is_it(sight) && sight.writable)
}

/// Whether an argument is a path that stays below where the command runs.
fn is_path(argument: &str) -> bool {
    let looks = argument.contains(['/', '.']);
    let stays = !argument.starts_with(['/', '-', '~', '+', '@', ':']) && !argument.contains("://");
    looks && stays && argument.split('/').all(|part| part != "..") && !argument.contains(char::is_control)
}

/// Programs that run what they are given: with no arguments they run anything.
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
        return Err("what it does depends on what is known only when it runs");
    }
    let waives: Vec<SmolStr> = verdict.findings.iter().map(|finding| finding.rule.clone()).collect();
    let whole = !is_apart(script, verdict);
    let in_workspace = Effects::of(&[Effect::Read, Effect::Write]);
    let mut commands = Vec::new();
    for simple in verdict.commands.iter().filter(|simple| !judged.is_free(simple)) {
        let words = words(simple).ok_or("some of its arguments are known only when it runs")?;
        let (program, arguments) = words.split_first().ok_or("it redirects without a command")?;
        if arguments.is_empty() && is_runner(program) {
            return Err(
                "it starts an interpreter or a wrapper with nothing to run, which could run anything",
            );
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
        return Err("there is nothing in it that would be asked again");
    }
    let (script, directory) = (whole.then(|| Whole::of(script)), script.directory.clone());
    Ok(Remembered { commands, script, directory, waives, network: judged.script.network })
}

impl std::fmt::Display for Remembered {
    /// What it covers, in a line.
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
