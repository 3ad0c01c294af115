//! Whether a shell script may run: what the analysis says, under how much security.

use claw_core::port::Access;
use claw_core::tool::{Ask, Effect, Effects, Input, Plan, Script};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApprovalConfig, Circumstances, Judgement};
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
    /// What the rules say about each script of the plan and each text that it types, in order.
    pub verdicts: Vec<Verdict>,
    /// Whether the caller's commands reach other machines without asking.
    pub network: bool,
    /// Whether remembered rules cover each of them, in order; those not named are not covered.
    pub covered: Vec<bool>,
}

impl Analysis {
    /// Analyses every script of a plan, and what it types into commands: `typed` judges that, knowing what they are.
    pub fn of(
        plan: &Plan,
        rules: &Rules,
        network: bool,
        typed: impl Fn(&Input, &Rules) -> Option<Verdict>,
    ) -> Self {
        let verdict = |ask: &Ask| match ask {
            Ask::Script(script) => Some(invocation(script).analyse(rules)),
            // Nobody knows the command: then the place of its verdict stays, and it is asked.
            Ask::Input(input) => Some(typed(input, rules).unwrap_or_else(unknown)),
            _ => None,
        };
        Self { verdicts: plan.asks.iter().filter_map(verdict).collect(), network, covered: Vec::new() }
    }

    /// Each script's verdict, and whether remembered rules cover it.
    pub(super) fn scripts(&self) -> impl Iterator<Item = (&Verdict, bool)> {
        let covered = self.covered.iter().copied().chain(std::iter::repeat(false));
        self.verdicts.iter().zip(covered)
    }

    /// Whether it makes a difference if remembered rules cover the scripts of a plan.
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

/// Judges one script.
pub(super) fn judge(
    config: &ApprovalConfig,
    script: &Script,
    analysed: Option<(&Verdict, bool)>,
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
    let Some((verdict, covered)) = analysed else {
        return Judgement::Ask { reason: "the command was not analysed".to_owned() };
    };
    match (verdict.decision, verdict.finding()) {
        (Decision::Deny, finding) => {
            let advice = finding.map(|finding| finding.advice.clone());
            Judgement::Deny { reason: named(finding), advice }
        }
        _ if covered => Judgement::Allow,
        (Decision::Ask, finding) => Judgement::Ask { reason: named(finding) },
        (Decision::Allow, _) if script.network && !circumstances.commands.network => {
            Judgement::Ask { reason: "the command wants the network (`network: true`)".to_owned() }
        }
        (Decision::Allow, _) if config.security == Security::Allowlist => Judgement::Ask {
            reason: "`approvals.security` is `allowlist`, and no rule covers the command".to_owned(),
        },
        (Decision::Allow, _) => Judgement::Allow,
    }
}

/// Judges what is typed into a command that runs. Remembered rules do not speak of it.
pub(super) fn judge_input(
    config: &ApprovalConfig,
    analysed: Option<(&Verdict, bool)>,
    circumstances: &Circumstances<'_>,
) -> Judgement {
    let at = Script { directory: ".".to_owned(), ..Script::default() };
    judge(config, &at, analysed.map(|(verdict, _)| (verdict, false)), circumstances)
}

/// A rule, what it has against the command, and where.
fn named(finding: Option<&Finding>) -> String {
    finding.map_or_else(|| "no rule says why".to_owned(), Finding::to_string)
}
