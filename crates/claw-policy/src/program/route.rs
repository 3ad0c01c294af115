//! The route of a command: to the shell, to a registered program with its credentials, or a refusal.
//!
//! A program with credentials runs alone, without a shell and with exactly the words that were judged. So a
//! shell command is routed to it only if the command is one such program with words that are all known.
//! Beside anything else it is refused: it would run without its credentials, and nobody would see why it
//! fails.

use std::sync::Arc;

use claw_core::port::ProgramRun;
use claw_core::store::ProgramCard;
use claw_core::tool::{Argv, Script};

use super::ArgumentRules;
use crate::shell::{Argument, Simple, Verdict, is_single};

/// The route of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Route {
    /// To the shell, without credentials.
    #[default]
    Shell,
    /// To a registered program, with its credentials and without a shell.
    Program(ProgramRun),
    /// Refused.
    Refused {
        /// The reason.
        reason: String,
        /// Advice on what to try instead.
        advice: String,
    },
}

impl Route {
    /// The program of the route, with its arguments.
    pub const fn program(&self) -> Option<&ProgramRun> {
        match self {
            Self::Program(run) => Some(run),
            Self::Shell | Self::Refused { .. } => None,
        }
    }

    fn refused(reason: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::Refused { reason: reason.into(), advice: advice.into() }
    }

    /// The route of a script with this verdict.
    pub fn of_script(script: &Script, verdict: &Verdict, programs: &[Arc<ProgramCard>]) -> Self {
        let first = |simple: &Simple| simple.argv.first().and_then(Argument::known).map(ToOwned::to_owned);
        let registered = |word: &String| find(word, programs);
        let found = verdict.commands.iter().filter_map(first).find_map(|word| registered(&word));
        let Some(program) = found else { return Self::Shell };
        let name = &program.place.name;
        let alone = format!("call `credentialed_exec` with `{name}` and its arguments, and nothing else");
        // Every field has to be considered: the program does not get what the shell would do with it.
        let Script { text, directory, env, input, network: _, apart, timeout_secs, terminal, dry_run } =
            script;
        let beside = match verdict.commands.as_slice() {
            [_] if !is_single(text) => Some("more than one plain command"),
            [_] if !env.is_empty() => Some("its own environment variables"),
            [_] if input.is_some() => Some("standard input"),
            [_] if *terminal => Some("a terminal"),
            [_] if *dry_run => Some("`dry_run`, which it does not support"),
            [_] => None,
            _ => Some("other commands"),
        };
        if let Some(beside) = beside {
            let reason = format!(
                "`{name}` runs with credentials, so it must be called alone and without a shell; this call also has {beside}"
            );
            return Self::refused(reason, alone);
        }
        let words = verdict.commands.iter().flat_map(|simple| &simple.argv);
        let Some(words) = words.map(|word| word.known().map(ToOwned::to_owned)).collect::<Option<Vec<_>>>()
        else {
            let reason = format!(
                "`{name}` runs with credentials and without a shell, but only a shell could compute some of \
                 its arguments"
            );
            return Self::refused(
                reason,
                format!("write the arguments out, and quote literal text; or {alone}"),
            );
        };
        let argv = Argv { argv: words, directory: directory.clone(), env: Vec::new(), credentials: true };
        match Self::of_argv(&argv, programs) {
            Self::Program(run) => Self::Program(ProgramRun {
                apart: *apart,
                timeout_secs: timeout_secs.unwrap_or(u32::MAX).min(run.timeout_secs),
                ..run
            }),
            other => other,
        }
    }

    /// The route of a program that is to get its credentials.
    pub fn of_argv(argv: &Argv, programs: &[Arc<ProgramCard>]) -> Self {
        let Argv { argv, directory, env, credentials: _ } = argv;
        let Some((word, arguments)) = argv.split_first() else {
            return Self::refused("no program is named", known(programs));
        };
        let Some(program) = find(word, programs) else {
            let reason = format!("no program `{}` is registered for this agent", word.escape_debug());
            return Self::refused(reason, known(programs));
        };
        let (name, settings) = (&program.place.name, &program.settings);
        if !settings.enabled {
            return Self::refused(
                format!("`{name}` is disabled"),
                "do it another way; a person can enable it",
            );
        }
        if !env.is_empty() {
            let reason = format!("`{name}` gets only the environment variables that it was registered with");
            return Self::refused(reason, "leave them out");
        }
        if arguments.iter().any(|argument| argument.contains('\0')) {
            return Self::refused("an argument contains a NUL character", "take it out");
        }
        let rules = match ArgumentRules::compile(&settings.deny_args, &settings.deny_verbose) {
            Ok(rules) => rules,
            Err(bad) => {
                return Self::refused(
                    format!("`{name}` cannot be used: {bad}"),
                    "a person has to add it again",
                );
            }
        };
        if let Some(denied) = rules.check(arguments) {
            let list = denied.which.name();
            let reason = format!(
                "`{name}` may not be called like this: `{}` in `{list}` matches from argument {} on",
                denied.pattern, denied.at
            );
            return Self::refused(
                reason,
                "do it another way; arguments that show or change logins are never allowed",
            );
        }
        Self::Program(ProgramRun {
            program: Arc::clone(program),
            word: word.clone(),
            arguments: arguments.to_vec(),
            directory: directory.clone(),
            apart: false,
            timeout_secs: settings.timeout_secs,
        })
    }
}

/// The registered program that a word in command position names, by any path.
fn find<'a>(word: &str, programs: &'a [Arc<ProgramCard>]) -> Option<&'a Arc<ProgramCard>> {
    let name = word.rsplit('/').next().unwrap_or(word);
    programs.iter().find(|program| program.place.name.as_str() == name)
}

fn known(programs: &[Arc<ProgramCard>]) -> String {
    let names: Vec<String> = programs
        .iter()
        .filter(|program| program.settings.enabled)
        .map(|program| format!("`{}`", program.place.name))
        .collect();
    match names.is_empty() {
        true => "no program is registered; use `exec`, which runs programs without credentials".to_owned(),
        false => format!(
            "the registered programs are {}; `exec` runs others, without credentials",
            names.join(", ")
        ),
    }
}

/// A program and its arguments as an equivalent shell line.
pub fn as_script(argv: &Argv) -> Script {
    let quoted = |word: &String| format!("'{}'", word.replace('\'', "'\\''"));
    Script {
        text: argv.argv.iter().map(quoted).collect::<Vec<_>>().join(" "),
        directory: argv.directory.clone(),
        env: argv.env.clone(),
        ..Script::default()
    }
}

#[cfg(test)]
mod tests;
