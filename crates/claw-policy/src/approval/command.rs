//! Decides whether a shell script may run, from its analysis and the configured security.

use std::borrow::Cow;
use std::sync::Arc;

use claw_core::port::{Access, ProgramRun, WorkspaceAccess};
use claw_core::store::ProgramCard;
use claw_core::tool::{Ask, Effect, Effects, Input, Plan, Script};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApprovalConfig, Circumstances, Judgement};
use crate::program::{Route, as_script};
use crate::scrub::is_settings_file;
use crate::shell::{Argument, Decision, Finding, Invocation, RULES, Rules, Simple, Verdict, is_builtin};

/// The commands that run if no rule denies them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Security {
    /// None.
    Deny,
    /// Commands whose every part is covered by a remembered rule; others need approval.
    Allowlist,
    /// All that the rules of `shell` neither deny nor ask about.
    #[default]
    Full,
}

/// A plan to be judged: its asks in order, each with its analysis.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Analysis {
    /// Effects that the plan states.
    pub effects: Effects,
    /// Every ask of the plan, in order.
    pub asks: Vec<AnalysedAsk>,
    /// The caller's commands have network access without requesting it.
    pub network: bool,
}

/// An ask of a plan, with its verdict and its route. Everything known of an ask is kept here, so that asks
/// cannot be confused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnalysedAsk {
    /// The ask.
    pub ask: Ask,
    /// The rules' verdict on a script, a program or typed text; `None` for other asks.
    pub verdict: Option<Verdict>,
    /// The route of a command; [`Route::Shell`] for other asks.
    pub route: Route,
    /// Remembered rules cover the command.
    pub covered: bool,
}

/// The command of an ask: a script, or a program as an equivalent script.
pub fn command(ask: &Ask) -> Option<Cow<'_, Script>> {
    match ask {
        Ask::Script(script) => Some(Cow::Borrowed(script)),
        Ask::Argv(argv) => Some(Cow::Owned(as_script(argv))),
        _ => None,
    }
}

impl AnalysedAsk {
    /// The registered program of the ask, which gets its credentials.
    pub const fn login(&self) -> Option<&ProgramRun> {
        self.route.program()
    }

    fn of(
        ask: &Ask,
        rules: &Rules,
        programs: &[Arc<ProgramCard>],
        typed: impl Fn(&Input, &Rules) -> Option<Verdict>,
    ) -> Self {
        let (verdict, route) = match (ask, command(ask)) {
            // If the running command is unknown, a person is asked.
            (Ask::Input(input), _) => (Some(typed(input, rules).unwrap_or_else(unknown)), Route::Shell),
            (_, None) => (None, Route::Shell),
            (_, Some(script)) => {
                let verdict = invocation(&script).analyse(rules);
                let route = match ask {
                    Ask::Argv(argv) if argv.credentials => Route::of_argv(argv, programs),
                    // The tool's owner named the program; it runs as it is.
                    Ask::Argv(_) => Route::Shell,
                    _ => Route::of_script(&script, &verdict, programs),
                };
                (Some(verdict), route)
            }
        };
        Self { ask: ask.clone(), verdict, route, covered: false }
    }
}

impl Analysis {
    /// Analyses every ask of a plan, for a caller who may use these programs with their credentials. `typed`
    /// judges text for a running command, and returns `None` if there is no such command.
    pub fn of(
        plan: &Plan,
        rules: &Rules,
        network: bool,
        programs: &[Arc<ProgramCard>],
        typed: impl Fn(&Input, &Rules) -> Option<Verdict>,
    ) -> Self {
        let asks = plan.asks.iter().map(|ask| AnalysedAsk::of(ask, rules, programs, &typed)).collect();
        let given = plan.given.as_ref().is_some_and(|given| given.network);
        Self { effects: plan.effects, asks, network: network || given }
    }

    /// The verdicts, in the order of the asks that have one.
    fn verdicts(&self) -> impl Iterator<Item = &Verdict> {
        self.asks.iter().filter_map(|ask| ask.verdict.as_ref())
    }

    /// Returns whether both lead to the same programs with the same credentials.
    pub fn has_routes_of(&self, other: &Self) -> bool {
        self.asks.len() == other.asks.len()
            && self.asks.iter().zip(&other.asks).all(|(a, b)| a.ask == b.ask && a.route == b.route)
    }

    /// Returns whether it matters if remembered rules cover the commands.
    pub fn depends_on_rules(&self, security: Security) -> bool {
        let wishes = |ask: &AnalysedAsk| matches!(&ask.ask, Ask::Script(script) if script.network);
        let asked = self.verdicts().any(|verdict| verdict.decision == Decision::Ask);
        let wished = !self.network && self.asks.iter().any(wishes);
        let fetches = self.asks.iter().any(|ask| matches!(ask.ask, Ask::Fetch { .. }));
        fetches || self.verdicts().next().is_some() && (asked || security == Security::Allowlist || wished)
    }

    /// Whether a command would run.
    pub fn has_commands(&self) -> bool {
        self.verdicts().next().is_some()
    }

    /// Returns whether a command prints a file that is known as configuration: `cat .env`, `tee < .env`.
    pub fn prints_settings(&self) -> bool {
        self.verdicts().any(prints_settings)
    }

    /// Whether the plan runs commands and nothing else, and remembered rules cover all of them.
    pub fn is_covered(&self) -> bool {
        let is_path = |ask: &&AnalysedAsk| matches!(ask.ask, Ask::Reach { .. });
        let mut others = self.asks.iter().filter(|ask| !is_path(ask));
        let is_covered = |ask: &AnalysedAsk| ask.covered && command(&ask.ask).is_some();
        self.has_commands() && others.all(is_covered)
    }

    /// The same, as if remembered rules covered every command, or none.
    #[must_use]
    pub fn with_all_covered(mut self, covered: bool) -> Self {
        for ask in &mut self.asks {
            ask.covered = covered;
        }
        self
    }

    /// Effects of the plan, including those that its asks imply.
    pub(super) fn stated_effects(&self, ceiling: Effects) -> Effects {
        self.asks.iter().fold(self.effects, |all, analysed| all.and(analysed.ask.effects(ceiling)))
    }

    /// The way in which the commands see the workspace: commands that can only read cannot change it.
    pub fn access(&self) -> WorkspaceAccess {
        let reads =
            |verdict: &Verdict| !verdict.commands.is_empty() && verdict.commands.iter().all(only_reads);
        let may_write = |asked: &AnalysedAsk| match asked.ask {
            Ask::Script(_) | Ask::Argv(_) | Ask::Input(_) => !asked.verdict.as_ref().is_some_and(reads),
            Ask::Write { .. }
            | Ask::Publish { .. }
            | Ask::Reach { .. }
            | Ask::Host { .. }
            | Ask::Fetch { .. }
            | Ask::Session { .. }
            | Ask::Opaque => false,
        };
        match self.asks.iter().any(may_write) {
            true => WorkspaceAccess::Layer,
            false => WorkspaceAccess::ReadOnly,
        }
    }

    /// Effects of a simple command as limited by its sandbox, whatever its text says: if the workspace is
    /// writable, every command of a script can write to it. Without a sandbox, none of the allowed effects is
    /// prevented.
    pub fn held_effects(&self, simple: &Simple, sandboxed: bool, left: Effects) -> Effects {
        let wishes = |ask: &AnalysedAsk| matches!(&ask.ask, Ask::Script(script) if script.network);
        let asks = &self.asks;
        let reaches = self.network || asks.iter().any(|ask| wishes(ask) || ask.login().is_some());
        let writes =
            asks.iter().any(|ask| ask.login().is_some()) || self.access() != WorkspaceAccess::ReadOnly;
        let mut held = Effects::NONE;
        if !sandboxed || writes {
            held = held.and(Effects::of(&[Effect::Write]));
        }
        if !sandboxed || reaches {
            held = held.and(Effects::of(&[Effect::Network]));
        }
        let of_mounts = Effects::of(&[Effect::Write, Effect::Network]);
        simple.effects.without(of_mounts).and(held.common(left))
    }

    /// Effects of the commands among those allowed to the caller: the sandbox prevents the others.
    pub fn command_effects(&self, sandboxed: bool, left: Effects) -> Effects {
        let all = self.verdicts().fold(Effects::NONE, |all, verdict| all.and(verdict.effects()));
        let all = match sandboxed && !self.network {
            true => all.without(Effects::of(&[Effect::Network])),
            false => all,
        };
        // A program with credentials connects to another machine, and its sandbox allows that.
        let all = match self.asks.iter().any(|ask| ask.login().is_some()) {
            true => all.and(Effects::of(&[Effect::Network])),
            false => all,
        };
        all.common(left)
    }
}

/// Programs that write no file, whatever their arguments. One with an option that names a file to write is none of them: it
/// runs on a layer, and nobody has to know the option.
const READERS: &[&str] = &[
    "[",
    "basename",
    "cat",
    "cd",
    "cmp",
    "comm",
    "cut",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "expr",
    "false",
    "fgrep",
    "fold",
    "grep",
    "head",
    "id",
    "jq",
    "ls",
    "md5sum",
    "nl",
    "od",
    "paste",
    "printf",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "seq",
    "sha1sum",
    "sha256sum",
    "sleep",
    "stat",
    "tac",
    "tail",
    "test",
    "tr",
    "true",
    "type",
    "uname",
    "wc",
    "which",
    "whoami",
];
/// Commands of git that write no file unless an option says so.
const GIT_READERS: &[&str] = &[
    "blame",
    "cat-file",
    "describe",
    "diff",
    "grep",
    "log",
    "ls-files",
    "rev-parse",
    "shortlog",
    "show",
    "status",
];

/// Returns whether a simple command can only read. In doubt it runs on a layer, where it can do both.
fn only_reads(simple: &Simple) -> bool {
    let Some((program, arguments)) = simple.argv.split_first() else { return false };
    if simple.effects.has(Effect::Write) {
        return false;
    }
    let Some(program) = program.known() else { return false };
    let known: Option<Vec<&str>> = arguments.iter().map(Argument::known).collect();
    match (program, known) {
        ("git", Some(words)) => {
            let writes = |word: &&str| word.starts_with("--out") || word.starts_with("-o");
            words.first().is_some_and(|command| GIT_READERS.contains(command)) && !words.iter().any(writes)
        }
        (program, _) => READERS.contains(&program),
    }
}

/// Programs that print files and can do more.
const PRINTERS: &[&str] =
    &["awk", "bat", "batcat", "gawk", "less", "mawk", "more", "rg", "sed", "sort", "strings", "uniq", "yq"];

/// Returns whether a command prints a configuration file: one that it names, one that a redirection gives it, or one
/// that the script names elsewhere while the command's own files are known only at run time (`find -name .env -exec
/// cat {} +`).
fn prints_settings(verdict: &Verdict) -> bool {
    let names = |simple: &Simple| simple.argv.iter().skip(1).any(is_settings);
    let named = verdict.commands.iter().any(names);
    let prints = |simple: &Simple| prints(simple) && (names(simple) || named && has_unknown_files(simple));
    verdict.reads.iter().any(is_settings) || verdict.commands.iter().any(prints)
}

/// Returns whether an argument names a configuration file, as a pattern or after a revision of git too.
fn is_settings(argument: &Argument) -> bool {
    let text = argument.to_string();
    is_settings_file(text.rsplit(':').next().unwrap_or(&text).trim_end_matches('*'))
}

/// Returns whether the program of a simple command prints files.
fn prints(simple: &Simple) -> bool {
    let Some((program, arguments)) = simple.argv.split_first() else { return false };
    let program = program.known().and_then(|program| program.rsplit('/').next());
    program.is_some_and(|name| {
        let of_git = || arguments.iter().filter_map(Argument::known).any(|word| GIT_READERS.contains(&word));
        READERS.contains(&name) || PRINTERS.contains(&name) || name == "git" && of_git()
    })
}

/// Returns whether a simple command gets its files at run time: from a variable, or from `find` or `xargs`.
fn has_unknown_files(simple: &Simple) -> bool {
    let is_unknown = |argument: &Argument| argument.known().is_none_or(|text| text.contains("{}"));
    simple.argv.iter().skip(1).any(is_unknown)
}

fn unknown() -> Verdict {
    Verdict { decision: Decision::Ask, findings: Vec::new(), commands: Vec::new(), reads: Vec::new() }
}

fn invocation(script: &Script) -> Invocation<'_> {
    Invocation { text: &script.text, env: &script.env, input: script.input.as_deref() }
}

/// The known words in command position, each once, in order, without shell builtins.
pub fn programs(verdict: &Verdict) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for simple in &verdict.commands {
        if let Some(name) = simple.argv.first().and_then(Argument::known)
            && !name.is_empty()
            && !is_builtin(name)
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_owned());
        }
    }
    names
}

/// Judges one command, given as an equivalent script.
pub(super) fn judge(
    config: &ApprovalConfig,
    script: &Script,
    analysed: &AnalysedAsk,
    circumstances: &Circumstances<'_>,
) -> Judgement {
    if config.security == Security::Deny {
        return Judgement::deny("`approvals.security` is `deny`, so no command runs".to_owned())
            .try_instead("use the file tools instead of commands")
            .allowed_by("`approvals.security = \"allowlist\"` asks you before each command");
    }
    if let Err(error) =
        circumstances.scope.resolve_text(circumstances.directory, &script.directory, Access::Read)
    {
        return Judgement::refused(error);
    }
    let unenforced = circumstances.unenforced();
    if !unenforced.is_empty() {
        let reason = format!(
            "the policy removes `{unenforced}`, which only a sandbox can enforce, and the sandbox is off"
        );
        return Judgement::deny(reason)
            .try_instead("use the file tools instead of commands")
            .allowed_by("`sandbox.mode = \"all\"` turns the sandbox on");
    }
    let AnalysedAsk { verdict, route, covered, .. } = analysed;
    let Some(verdict) = verdict else {
        return Judgement::Ask { reason: "the command was not analysed".to_owned() };
    };
    let login = analysed.login().is_some();
    if verdict.decision == Decision::Deny {
        let advice = verdict.finding().map(|finding| finding.advice.clone());
        let setting = verdict.finding().map(|finding| setting(&finding.rule));
        return Judgement::Deny { reason: named(verdict.finding()), advice, setting };
    }
    if let Route::Refused { reason, advice } = route {
        return Judgement::deny(reason.clone()).try_instead(advice);
    }
    if login && !circumstances.left.has(Effect::Network) {
        let reason = "the policy removes the effect `network`, which a program with credentials needs";
        return Judgement::deny(reason.to_owned());
    }
    match verdict.decision {
        _ if *covered => Judgement::Allow,
        Decision::Ask | Decision::Deny => Judgement::Ask { reason: named(verdict.finding()) },
        Decision::Allow if script.network && !circumstances.analysis.network && !login => {
            Judgement::Ask { reason: "the command requests network access (`network: true`)".to_owned() }
        }
        Decision::Allow
            if circumstances.is_loose() && circumstances.analysis.access() != WorkspaceAccess::ReadOnly =>
        {
            let reason = "the sandbox has no mounts here (`sandbox.allow_missing`): the command can change modes and times of \
                          files outside the workspace, and its changes cannot be undone";
            Judgement::Ask { reason: reason.to_owned() }
        }
        Decision::Allow if config.security == Security::Allowlist => Judgement::Ask {
            reason: "`approvals.security` is `allowlist`, and no rule covers the command".to_owned(),
        },
        Decision::Allow => Judgement::Allow,
    }
}

/// Judges text typed into a running command. Remembered rules do not cover it.
pub(super) fn judge_input(
    config: &ApprovalConfig,
    analysed: &AnalysedAsk,
    circumstances: &Circumstances<'_>,
) -> Judgement {
    let at = Script { directory: ".".to_owned(), ..Script::default() };
    judge(config, &at, &AnalysedAsk { covered: false, ..analysed.clone() }, circumstances)
}

/// The setting by which a person is asked about what a rule denies.
fn setting(rule: &str) -> String {
    match RULES.iter().any(|own| own.id == rule) {
        true => format!("`shell.ask.\"{rule}\" = \"a reason\"` asks you instead"),
        false => format!("`shell.rules.{rule}.verdict = \"ask\"` asks you instead"),
    }
}

/// The rule, its reason, and the part.
fn named(finding: Option<&Finding>) -> String {
    finding.map_or_else(|| "no rule says why".to_owned(), Finding::to_string)
}
