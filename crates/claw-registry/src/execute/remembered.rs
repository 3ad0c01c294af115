//! Rules that somebody gave with a yes: which of them cover a call, and what a yes to it would be remembered as.

use claw_core::RuleId;
use claw_core::store::{Rule, StoreError, Suggestion};
use claw_core::tool::{Ask, Script};
use claw_policy::approval::Judgement;
use claw_policy::approval::remembered::{self, Judged as Commands, Remembered};
use serde_json::Value;

use super::{Judged, Trip};
use crate::scrub::CallScrubber;

impl Trip<'_> {
    /// The judgement, by rules that were given before too. A call that passes by some is counted to them first; where
    /// one was revoked at the same moment, it does not pass.
    pub(super) async fn decide(&self, judged: &mut Judged) -> Judgement {
        let used = self.covering(judged).await;
        let judgement = self.verdict(judged, &judged.commands);
        if judgement != Judgement::Allow || used.is_empty() || self.count(&used).await {
            return judgement;
        }
        judged.commands.covered.clear();
        self.verdict(judged, &judged.commands)
    }

    /// Finds the rules that cover the commands of a call, where that makes a difference.
    async fn covering(&self, judged: &mut Judged) -> Vec<RuleId> {
        let Some(store) = &self.executor.0.rules else { return Vec::new() };
        let security = self.executor.0.approvals.load().security;
        if !judged.commands.depends_on_rules(&judged.plan, security) {
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
        let mut covered = Vec::with_capacity(judged.commands.verdicts.len());
        let mut verdicts = judged.commands.verdicts.iter();
        for ask in &judged.plan.asks {
            let by = match ask {
                Ask::Script(script) => verdicts.next().and_then(|verdict| {
                    let commands = Commands { script, verdict, sights: Some(&judged.sights) };
                    remembered::covering(&list, &commands)
                }),
                // No rule speaks of what is typed.
                Ask::Input(_) => verdicts.next().and(None),
                _ => continue,
            };
            covered.push(by.is_some());
            used.extend(by.unwrap_or_default().into_iter().map(|at| rules[at].0));
        }
        judged.commands.covered = covered;
        used.sort_unstable();
        used.dedup();
        used
    }

    /// Counts a call to the rules that let it pass; false where one of them holds no more.
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

fn scripts(judged: &Judged) -> impl Iterator<Item = &Script> {
    judged.plan.asks.iter().filter_map(|ask| match ask {
        Ask::Script(script) => Some(script),
        _ => None,
    })
}

/// A stored rule; one that cannot be read covers nothing.
fn readable(rule: Rule) -> Option<(RuleId, Remembered)> {
    match serde_json::from_value(rule.new.rule) {
        Ok(remembered) => Some((rule.new.id, remembered)),
        Err(error) => {
            tracing::warn!(%error, rule = %rule.new.id, "a remembered rule cannot be read and holds no more");
            None
        }
    }
}

/// What a yes to this call would be remembered as: for a call that runs one script and does nothing else.
pub(super) fn suggestion(judged: &Judged, scrubber: &CallScrubber) -> Option<Suggestion> {
    let mut scripts = scripts(judged);
    let (script, verdict) = (scripts.next()?, judged.commands.verdicts.first()?);
    if scripts.next().is_some() || judged.plan.asks.len() > 1 {
        return None;
    }
    let commands = Commands { script, verdict, sights: Some(&judged.sights) };
    let suggested = remembered::suggest(&commands).and_then(|rule| {
        let value = serde_json::to_value(&rule).unwrap_or(Value::Null);
        match value.is_object() && scrubber.json(&value) == value {
            true => Ok((value, rule.to_string())),
            false => Err("it holds a secret, which is not kept"),
        }
    });
    Some(match suggested {
        Ok((rule, text)) => Suggestion { rule: Some(rule), text },
        Err(why) => Suggestion { rule: None, text: why.to_owned() },
    })
}
