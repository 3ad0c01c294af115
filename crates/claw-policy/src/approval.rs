//! Decides whether a planned call may run: allow, ask or deny.
//!
//! The caller is already authorised to use the tool; this judges the effects of one call. It decides from the
//! plan and from what the ports saw, and does nothing itself.

mod command;
mod config;
mod grantable_directories;
pub mod remembered;
mod strictest_rule;
mod web_address;

use std::path::Path;

use claw_core::port::{Access, Root, Scope};
use claw_core::tool::{Ask, Effect, Effects, Sight, Target, ToolError};

pub use self::command::{AnalysedAsk, Analysis, Security, command, programs};
pub use self::config::{ApprovalConfig, AskMode, OutsideRule};
pub use self::grantable_directories::Grantable;
pub use self::strictest_rule::{EffectRule, Narrowing};
pub use self::web_address::WebApprovals;

/// The decision on a call, with the rule behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It may run.
    Allow,
    /// A person decides.
    Ask {
        /// The rule that asks, and why.
        reason: String,
    },
    /// It may not run.
    Deny {
        /// The rule that denies, and why.
        reason: String,
        /// Advice on what to try instead.
        advice: Option<String>,
        /// The setting by which a person would allow it; `None` where no setting does.
        setting: Option<String>,
    },
}

impl Judgement {
    fn deny(reason: String) -> Self {
        Self::Deny { reason, advice: None, setting: None }
    }

    /// Denied as the port would refuse it.
    fn refused(error: ToolError) -> Self {
        Self::Deny { reason: error.message, advice: error.advice, setting: error.setting }
    }

    /// Says what to try instead.
    fn try_instead(mut self, text: &str) -> Self {
        if let Self::Deny { advice, .. } = &mut self {
            *advice = Some(text.to_owned());
        }
        self
    }

    /// Names the setting by which a person would allow it.
    fn allowed_by(mut self, text: impl Into<String>) -> Self {
        if let Self::Deny { setting, .. } = &mut self {
            *setting = Some(text.into());
        }
        self
    }
}

/// The circumstances a plan is judged in.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances<'a> {
    /// Effects that the tool may have at most.
    pub ceiling: Effects,
    /// Effects of these that the policy allows this caller.
    pub left: Effects,
    /// The directory that the plan's paths start from.
    pub directory: &'a Path,
    /// Files that the caller may reach, including the directories that a person is asked about.
    pub scope: &'a Scope,
    /// Roots of the scope that a person has yet to grant.
    pub asked: &'a [Root],
    /// Commands of this caller run in a sandbox.
    pub sandboxed: bool,
    /// The plan's asks, each with its analysis.
    pub analysis: &'a Analysis,
    /// Observations of the plan's targets.
    pub sights: &'a [Sight],
}

impl Circumstances<'_> {
    /// Effects that the policy has removed and that only a sandbox could prevent.
    fn unenforced(&self) -> Effects {
        let kept_away = Effects::of(&[Effect::Write, Effect::Network]).common(self.ceiling);
        if self.sandboxed { Effects::NONE } else { kept_away.without(self.left) }
    }

    /// Commands run in a sandbox whose mounts are missing: it does not hold what they may change.
    fn is_loose(&self) -> bool {
        self.sights.iter().any(|sight| sight.target == Target::Sandbox && sight.writable)
    }
}

/// The targets that the ports should look at before the plan is judged.
pub fn targets(analysis: &Analysis) -> Vec<Target> {
    let mut targets = Vec::new();
    for analysed in &analysis.asks {
        match &analysed.ask {
            // The host of programs with credentials looks at these.
            _ if analysed.login().is_some() => {}
            Ask::Script(script) => {
                targets.push(Target::Sandbox);
                let names = analysed.verdict.as_ref().map(programs).unwrap_or_default();
                let directory = &script.directory;
                targets.extend(
                    names.into_iter().map(|name| Target::Program { name, directory: directory.clone() }),
                );
            }
            Ask::Argv(argv) if argv.credentials => {}
            Ask::Argv(argv) => {
                targets.push(Target::Sandbox);
                if let Some(name) = argv.argv.first() {
                    let directory = argv.directory.clone();
                    targets.push(Target::Program { name: name.clone(), directory });
                }
            }
            // Its programs are those of an existing sandbox.
            Ask::Input(input) => targets.push(Target::Process { process: input.process.clone() }),
            Ask::Write { path } => targets.push(Target::File { path: path.clone() }),
            Ask::Fetch { origin, .. } => targets.push(Target::Host { host: origin.host.to_string() }),
            Ask::Publish { path } => targets.push(Target::Skill { path: path.clone() }),
            Ask::Session { session, .. } => targets.push(Target::Session { session: session.clone() }),
            Ask::Reach { .. } | Ask::Host { .. } | Ask::Opaque => {}
        }
    }
    targets
}

/// Judges a plan. The strictest judgement of any part wins.
pub fn judge(config: &ApprovalConfig, circumstances: &Circumstances<'_>) -> Judgement {
    let analysis = circumstances.analysis;
    let effects = analysis.stated_effects(circumstances.ceiling);
    if let Some(reason) = beyond_ceiling(effects, circumstances) {
        return Judgement::deny(reason);
    }
    let mut asked = None;
    let of_commands = analysis.command_effects(circumstances.sandboxed, circumstances.left);
    let is_answered = config.is_asked_by_mode() && analysis.is_covered();
    let rules = effects.and(of_commands).iter();
    for (effect, (rule, by)) in rules.filter_map(|effect| Some((effect, config.of_effect(effect)?))) {
        match rule {
            EffectRule::Allow => {}
            EffectRule::Ask if effect == Effect::Execute && is_answered => {}
            EffectRule::Ask => {
                asked.get_or_insert_with(|| format!("{by} says ask"));
            }
            EffectRule::Deny if by.starts_with("the mode") => {
                let advice = "describe what you would do; only the person can change the mode";
                let denied = Judgement::deny(format!("{by} says deny")).try_instead(advice);
                return denied.allowed_by("`/mode configured`, or `--mode configured`, leaves the mode");
            }
            EffectRule::Deny => {
                let denied = Judgement::deny(format!("{by} says deny"));
                return denied.allowed_by(format!("{by} = \"ask\" asks you instead"));
            }
        }
    }
    for analysed in &analysis.asks {
        let judgement = match (&analysed.ask, command(&analysed.ask)) {
            (Ask::Input(_), _) => command::judge_input(config, analysed, circumstances),
            (_, Some(script)) => command::judge(config, &script, analysed, circumstances),
            (Ask::Fetch { origin, url }, None) => {
                match web_address::judge(&config.web, &origin.host, url, circumstances.sights) {
                    Judgement::Ask { .. } if analysed.covered => Judgement::Allow,
                    judgement => judgement,
                }
            }
            (ask, None) => judge_ask(ask, config.publish, circumstances),
        };
        match judgement {
            Judgement::Allow => {}
            Judgement::Ask { reason } => asked = asked.or(Some(reason)),
            deny @ Judgement::Deny { .. } => return deny,
        }
    }
    if config.ask == AskMode::Always && !effects.read_only() {
        asked.get_or_insert_with(|| "`approvals.ask` is `always`".to_owned());
    }
    match asked {
        None => Judgement::Allow,
        Some(reason) if config.ask == AskMode::Off => {
            let denied = Judgement::deny(format!("{reason}, and `approvals.ask` is `off`"));
            denied.allowed_by("`approvals.ask = \"on-miss\"` asks you instead")
        }
        Some(reason) => Judgement::Ask { reason },
    }
}

fn beyond_ceiling(effects: Effects, circumstances: &Circumstances<'_>) -> Option<String> {
    let beyond = effects.without(circumstances.ceiling);
    if !beyond.is_empty() {
        return Some(format!("the call would have effects that its tool does not declare: {beyond}"));
    }
    let taken = effects.without(circumstances.left);
    (!taken.is_empty()).then(|| format!("the policy removes these effects for this caller: {taken}"))
}

fn judge_ask(ask: &Ask, publishing: EffectRule, circumstances: &Circumstances<'_>) -> Judgement {
    match ask {
        Ask::Script(_) | Ask::Input(_) | Ask::Argv(_) => Judgement::Ask {
            reason: "no rule covers the program, so it is unknown what it would do".to_owned(),
        },
        Ask::Write { path } => {
            match circumstances.scope.resolve_text(circumstances.directory, path, Access::Write) {
                Ok(_) if is_of_git(leads_to(path, circumstances.sights).unwrap_or(path)) => Judgement::Ask {
                    reason: format!("`{path}` belongs to git, and git runs programs that such files name"),
                },
                Ok(target) => judge_reach(path, &target, Access::Write, circumstances),
                Err(error) => Judgement::refused(error),
            }
        }
        Ask::Reach { path, write } => {
            let access = if *write { Access::Write } else { Access::Read };
            match circumstances.scope.resolve_text(circumstances.directory, path, access) {
                Ok(target) => judge_reach(path, &target, access, circumstances),
                // A command would run without the path that it needs.
                Err(error) if circumstances.analysis.has_commands() => Judgement::refused(error),
                // The files port refuses it, as it does what is missing.
                Err(_) => Judgement::Allow,
            }
        }
        Ask::Publish { path } => {
            let reached = circumstances.scope.resolve_text(circumstances.directory, path, Access::Read);
            match (reached, publishing) {
                (Err(error), _) => Judgement::refused(error),
                (Ok(_), EffectRule::Allow) => Judgement::Allow,
                (Ok(_), EffectRule::Ask) => Judgement::Ask {
                    reason: "other agents follow a published skill, and `approvals.publish` says ask"
                        .to_owned(),
                },
                (Ok(_), EffectRule::Deny) => Judgement::deny("`approvals.publish` says deny".to_owned())
                    .allowed_by("`approvals.publish = \"ask\"` asks you instead"),
            }
        }
        Ask::Session { session, .. } => {
            let of_session = |sight: &&Sight| matches!(&sight.target, Target::Session { session: seen } if seen == session);
            match circumstances.sights.iter().find(of_session).and_then(|sight| sight.path.as_deref()) {
                Some(workspace) => Judgement::Ask {
                    reason: format!("session `{session}` works in another workspace, `{workspace}`"),
                },
                None => Judgement::Allow,
            }
        }
        Ask::Host { .. } | Ask::Fetch { .. } | Ask::Opaque => Judgement::Allow,
    }
}

/// Judges a path within the scope: one in a directory that a person has yet to grant is asked about.
fn judge_reach(path: &str, target: &Path, access: Access, circumstances: &Circumstances<'_>) -> Judgement {
    let root = circumstances.scope.root_around(target);
    match root.filter(|root| circumstances.asked.contains(root)) {
        Some(root) => {
            let what = if access == Access::Write { "change" } else { "read" };
            let directory = root.path.display();
            let reason =
                format!("`{path}` is outside the workspace; approving lets the call {what} `{directory}`");
            Judgement::Ask { reason }
        }
        None => Judgement::Allow,
    }
}

/// The real path of a path in the plan, if it was seen.
pub fn leads_to<'a>(path: &str, sights: &'a [Sight]) -> Option<&'a str> {
    let of_path = |sight: &&Sight| matches!(&sight.target, Target::File { path: seen } if seen == path);
    sights.iter().find(of_path)?.path.as_deref()
}

/// Returns whether a file belongs to a git repository itself: its configuration and hooks name programs that
/// git runs for the next user, outside of any sandbox. `.git` itself may be a file that says where they are.
fn is_of_git(path: &str) -> bool {
    Path::new(path).components().any(|part| part.as_os_str().eq_ignore_ascii_case(".git"))
}

#[cfg(test)]
mod tests;
