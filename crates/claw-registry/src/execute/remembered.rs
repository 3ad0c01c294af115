//! Rules that a person gave with an approval: those that cover a call, and the rule that approving it would
//! create.

use claw_core::RuleId;
use claw_core::store::{Rule, StoreError, Suggestion};
use claw_core::tool::{Script, Sight};
use claw_policy::approval::remembered::{self, Judged as Commands, Remembered};
use claw_policy::approval::{self as policy, AnalysedAsk, Judgement};
use serde_json::Value;

use super::{Judged, Trip, question};
use crate::scrub::CallScrubber;

impl Trip<'_> {
    /// Judges the call, also by remembered rules. A call that rules allow is counted to them first; if one
    /// was revoked at the same moment, the call does not pass.
    pub(super) async fn decide(&self, judged: &mut Judged) -> Judgement {
        let used = self.covering(judged).await;
        let judgement = self.verdict(judged, &judged.analysis);
        if judgement != Judgement::Allow || used.is_empty() || self.count(&used).await {
            return judgement;
        }
        judged.analysis = std::mem::take(&mut judged.analysis).with_all_covered(false);
        self.verdict(judged, &judged.analysis)
    }

    /// Finds the rules that cover the commands of a call, if that makes a difference.
    async fn covering(&self, judged: &mut Judged) -> Vec<RuleId> {
        let Some(store) = &self.executor.0.rules else { return Vec::new() };
        let security = self.executor.0.approvals.load().security;
        if !judged.analysis.depends_on_rules(security) {
            return Vec::new();
        }
        let (caller, now) = (self.offer.caller(), self.offer.0.registry.world().clock.now());
        let rules = match store.rules(&caller.tenant, &caller.agent, &caller.session, now).await {
            Ok(rules) => rules,
            Err(error) => {
                tracing::error!(%error, "remembered rules could not be read, so none holds");
                return Vec::new();
            }
        };
        let mut rules: Vec<(RuleId, Remembered)> = rules.into_iter().filter_map(readable).collect();
        rules.retain(|(_, rule)| !rule.commands.is_empty());
        let list: Vec<&Remembered> = rules.iter().map(|(_, rule)| rule).collect();
        let mut used = Vec::new();
        let Judged { analysis, sights, .. } = judged;
        for analysed in &mut analysis.asks {
            // Rules do not cover typed text.
            let by = policy::command(&analysed.ask)
                .and_then(|script| remembered::covering(&list, &commands(analysed, &script, sights)?));
            analysed.covered = by.is_some();
            used.extend(by.unwrap_or_default().into_iter().map(|at| rules[at].0));
        }
        used.sort_unstable();
        used.dedup();
        used
    }

    /// Counts a call to the rules that allowed it; returns false if one of them is no longer valid.
    async fn count(&self, used: &[RuleId]) -> bool {
        let Some(store) = &self.executor.0.rules else { return false };
        let (tenant, now) = (&self.offer.caller().tenant, self.offer.0.registry.world().clock.now());
        for id in used {
            match store.use_rule(tenant, *id, now).await {
                Ok(_) => {}
                Err(StoreError::RuleState { .. }) => return false,
                Err(error) => {
                    tracing::error!(%error, rule = %id, "a remembered rule could not be counted, so it does not hold");
                    return false;
                }
            }
        }
        true
    }
}

/// A command of the plan with its analysis.
fn commands<'a>(analysed: &'a AnalysedAsk, script: &'a Script, sights: &'a [Sight]) -> Option<Commands<'a>> {
    let credential = analysed.login().map(|run| run.program.place.name.as_str());
    Some(Commands { script, verdict: analysed.verdict.as_ref()?, sights: Some(sights), credential })
}

/// Parses a stored rule; an invalid one covers nothing.
fn readable(rule: Rule) -> Option<(RuleId, Remembered)> {
    match serde_json::from_value(rule.new.rule) {
        Ok(remembered) => Some((rule.new.id, remembered)),
        Err(error) => {
            tracing::warn!(%error, rule = %rule.new.id, "a remembered rule cannot be read and holds no more");
            None
        }
    }
}

/// Describes a rule and the sandbox that limits it: the sandbox's mounts decide which effects a command has.
fn held(rule: &Remembered, judged: &Judged) -> String {
    match judged.sights.iter().find_map(question::place) {
        Some(place) => format!("{rule}; in {place}"),
        None => rule.to_string(),
    }
}

/// The rule that approving this call would create: only for a call that runs one script and does nothing
/// else.
pub(super) fn suggestion(judged: &Judged, scrubber: &CallScrubber) -> Option<Suggestion> {
    let [only] = judged.analysis.asks.as_slice() else { return None };
    let script = policy::command(&only.ask)?;
    let commands = commands(only, &script, &judged.sights)?;
    let suggested = remembered::suggest(&commands).and_then(|rule| {
        let value = serde_json::to_value(&rule).unwrap_or(Value::Null);
        match value.is_object() && scrubber.json(&value) == value {
            true => Ok((value, held(&rule, judged))),
            false => Err("it holds a secret, which is not kept"),
        }
    });
    Some(match suggested {
        Ok((rule, text)) => Suggestion { rule: Some(rule), text },
        Err(why) => Suggestion { rule: None, text: why.to_owned() },
    })
}
