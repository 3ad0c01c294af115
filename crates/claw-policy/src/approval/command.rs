//! Whether a shell script may run: what the analysis says, under how much security.

use std::borrow::Cow;
use std::sync::Arc;

use claw_core::port::Access;
use claw_core::store::ProgramCard;
use claw_core::tool::{Ask, Effect, Effects, Input, Plan, Script};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApprovalConfig, Circumstances, Judgement};
use crate::program::{Route, as_script};
use crate::shell::{Argument, Decision, Finding, Invocation, Rules, Verdict, is_builtin};

/// Which commands run that no rule denies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Security {
    /// None.
    Deny,
    /// Those of which every part is covered by a rule that somebody gave with a yes; others are asked.
    Allowlist,
    /// All that the rules of `shell` neither deny nor ask.
    #[default]
    Full,
}

/// What is known of a plan's commands before anything is looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Analysis {
    /// What the rules say about each command of the plan, in order: each script, each program with credentials, each
    /// text that it types.
    pub verdicts: Vec<Verdict>,
    /// Which way each of them goes.
    pub routes: Vec<Route>,
    /// Whether the caller's commands reach other machines without asking.
    pub network: bool,
    /// Whether remembered rules cover each of them, in order; those not named are not covered.
    pub covered: Vec<bool>,
}

/// The command that an ask is for: a script, or a program with credentials as a script that means the same.
pub fn command(ask: &Ask) -> Option<Cow<'_, Script>> {
    match ask {
        Ask::Script(script) => Some(Cow::Borrowed(script)),
        Ask::Argv(argv) if argv.credentials => Some(Cow::Owned(as_script(argv))),
        _ => None,
    }
}

/// Whether a part of a plan is analysed: there is a verdict for each, in order.
pub fn is_analysed(ask: &Ask) -> bool {
    matches!(ask, Ask::Input(_)) || command(ask).is_some()
}

/// What was found out about one command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Analysed<'a> {
    pub(super) verdict: &'a Verdict,
    pub(super) route: &'a Route,
    pub(super) covered: bool,
}

impl Analysis {
    /// Analyses every command of a plan, for a caller who may use these programs with their credentials, and what it
    /// types into commands: `typed` judges that, knowing what they are.
    pub fn of(
        plan: &Plan,
        rules: &Rules,
        network: bool,
        programs: &[Arc<ProgramCard>],
        typed: impl Fn(&Input, &Rules) -> Option<Verdict>,
    ) -> Self {
        let mut analysis = Self { network, ..Self::default() };
        for ask in &plan.asks {
            let (verdict, route) = match (ask, command(ask)) {
                // Nobody knows the command: then the place of its verdict stays, and it is asked.
                (Ask::Input(input), _) => (typed(input, rules).unwrap_or_else(unknown), Route::Shell),
                (_, None) => continue,
                (_, Some(script)) => {
                    let verdict = invocation(&script).analyse(rules);
                    let route = match ask {
                        Ask::Argv(argv) => Route::of_argv(argv, programs),
                        _ => Route::of_script(&script, &verdict, programs),
                    };
                    (verdict, route)
                }
            };
            analysis.verdicts.push(verdict);
            analysis.routes.push(route);
        }
        analysis
    }

    /// What was found out about each command.
    pub(super) fn commands(&self) -> impl Iterator<Item = Analysed<'_>> {
        let covered = self.covered.iter().copied().chain(std::iter::repeat(false));
        let each = self.verdicts.iter().zip(&self.routes).zip(covered);
        each.map(|((verdict, route), covered)| Analysed { verdict, route, covered })
    }

    /// Whether it makes a difference if remembered rules cover the commands of a plan.
    pub fn depends_on_rules(&self, plan: &Plan, security: Security) -> bool {
        let wished = |ask: &Ask| matches!(ask, Ask::Script(script) if script.network && !self.network);
        let asked = self.verdicts.iter().any(|verdict| verdict.decision == Decision::Ask);
        !self.verdicts.is_empty()
            && (asked || security == Security::Allowlist || plan.asks.iter().any(wished))
    }

    /// What the commands would do, of what is left to the caller: the rest is kept away by the sandbox.
    pub fn effects(&self, sandboxed: bool, left: Effects) -> Effects {
        let all = self.verdicts.iter().fold(Effects::NONE, |all, verdict| all.and(verdict.effects()));
        let all = match sandboxed && !self.network {
            true => all.without(Effects::of(&[Effect::Network])),
            false => all,
        };
        // Its login is to another machine, and its sandbox lets it go there.
        let all = match self.routes.iter().any(|route| route.program().is_some()) {
            true => all.and(Effects::of(&[Effect::Network])),
            false => all,
        };
        all.common(left)
    }
}

fn unknown() -> Verdict {
    Verdict { decision: Decision::Ask, findings: Vec::new(), commands: Vec::new() }
}

fn invocation(script: &Script) -> Invocation<'_> {
    Invocation { text: &script.text, env: &script.env, input: script.input.as_deref() }
}

/// The words in command position that are known, each once, in order. What the shell does itself is no program.
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

/// Judges one command.
pub(super) fn judge(
    config: &ApprovalConfig,
    script: &Script,
    analysed: Option<Analysed<'_>>,
    circumstances: &Circumstances<'_>,
) -> Judgement {
    if config.security == Security::Deny {
        let advice = Some("use the tools for files instead of commands".to_owned());
        return Judgement::Deny {
            reason: "`approvals.security` is `deny`, so no command runs".to_owned(),
            advice,
        };
    }
    if let Err(error) =
        circumstances.scope.resolve_text(circumstances.directory, &script.directory, Access::Read)
    {
        return Judgement::Deny { reason: error.message, advice: error.advice };
    }
    let unenforced = circumstances.unenforced();
    if !unenforced.is_empty() {
        let reason =
            format!("the policy takes `{unenforced}` away, which only a sandbox can, and the sandbox is off");
        return Judgement::Deny {
            reason,
            advice: Some("use the tools for files instead of commands".to_owned()),
        };
    }
    let Some(Analysed { verdict, route, covered }) = analysed else {
        return Judgement::Ask { reason: "the command was not analysed".to_owned() };
    };
    let login = route.program().is_some();
    if verdict.decision == Decision::Deny {
        let advice = verdict.finding().map(|finding| finding.advice.clone());
        return Judgement::Deny { reason: named(verdict.finding()), advice };
    }
    if let Route::Refused { reason, advice } = route {
        return Judgement::Deny { reason: reason.clone(), advice: Some(advice.clone()) };
    }
    if login && !circumstances.left.has(Effect::Network) {
        let reason = "the policy takes `network` away, which a program with credentials needs";
        return Judgement::deny(reason.to_owned());
    }
    match verdict.decision {
        _ if covered => Judgement::Allow,
        Decision::Ask | Decision::Deny => Judgement::Ask { reason: named(verdict.finding()) },
        Decision::Allow if script.network && !circumstances.commands.network && !login => {
            Judgement::Ask { reason: "the command wants the network (`network: true`)".to_owned() }
        }
        Decision::Allow if config.security == Security::Allowlist => Judgement::Ask {
            reason: "`approvals.security` is `allowlist`, and no rule covers the command".to_owned(),
        },
        Decision::Allow => Judgement::Allow,
    }
}

/// Judges what is typed into a command that runs. Remembered rules do not speak of it.
pub(super) fn judge_input(
    config: &ApprovalConfig,
    analysed: Option<Analysed<'_>>,
    circumstances: &Circumstances<'_>,
) -> Judgement {
    let at = Script { directory: ".".to_owned(), ..Script::default() };
    judge(config, &at, analysed.map(|analysed| Analysed { covered: false, ..analysed }), circumstances)
}

/// A rule, what it has against the command, and where.
fn named(finding: Option<&Finding>) -> String {
    finding.map_or_else(|| "no rule says why".to_owned(), Finding::to_string)
}
