//! Rules that a person gave with an approval: those that cover a call, and the rule that approving it would
//! create.

use claw_core::RuleId;
use claw_core::store::{Rule, RuleWidth, StoreError, Suggestion, Suggestions};
use claw_core::tool::{Ask, Script, Sight};
use claw_policy::approval::remembered::{self, Judged as Commands, Remembered, RuleContent};
use claw_policy::approval::{self as policy, AnalysedAsk, Judgement};
use serde_json::Value;

use super::{Judged, Trip, summary};
use crate::scrub::CallScrubber;

impl Trip<'_> {
    /// Judges the call, also by remembered rules. A call that rules allow is counted to them first; if one
    /// was revoked at the same moment, the call does not pass.
    pub(super) async fn decide(&mut self, judged: &mut Judged) -> Judgement {
        let mut used = self.covering(judged).await;
        used.extend(self.directory_rules(&judged.analysis, &judged.place));
        let judgement = self.verdict(judged, &judged.analysis);
        if judgement != Judgement::Allow || used.is_empty() || self.count(&used).await {
            return judgement;
        }
        self.granted.clear();
        self.scope.take();
        judged.analysis = std::mem::take(&mut judged.analysis).with_all_covered(false);
        self.verdict(judged, &judged.analysis)
    }

    /// The remembered rules that hold for the caller now; none where they cannot be read.
    pub(super) async fn remembered(&self) -> Vec<(RuleId, RuleContent)> {
        let Some(store) = &self.executor.0.rules else { return Vec::new() };
        let (caller, now) = (self.offer.caller(), self.offer.0.registry.world().clock.now());
        match store.rules(&caller.tenant, &caller.agent, &caller.session, now).await {
            Ok(rules) => rules.into_iter().filter_map(readable).collect(),
            Err(error) => {
                tracing::error!(%error, "remembered rules could not be read, so none applies");
                Vec::new()
            }
        }
    }

    /// Finds the rules that cover the commands and the hosts of a call, where that makes a difference.
    async fn covering(&self, judged: &mut Judged) -> Vec<RuleId> {
        let (security, by_mode) = self.with_approvals(|rules| (rules.security, rules.is_asked_by_mode()));
        let is_of_use =
            judged.analysis.depends_on_rules(security) || by_mode && judged.analysis.has_commands();
        if self.executor.0.rules.is_none() || !is_of_use {
            return Vec::new();
        }
        let (mut rules, mut hosts) = (Vec::new(), Vec::new());
        for (id, content) in self.remembered().await {
            match content {
                RuleContent::Commands(rule) if !rule.commands.is_empty() => rules.push((id, rule)),
                RuleContent::Host { host } => hosts.push((id, host)),
                RuleContent::Commands(_) | RuleContent::Directory { .. } => {}
            }
        }
        let list: Vec<&Remembered> = rules.iter().map(|(_, rule)| rule).collect();
        let mut used = Vec::new();
        let Judged { analysis, sights, .. } = judged;
        for analysed in &mut analysis.asks {
            if let Ask::Fetch { origin, .. } = &analysed.ask {
                let by = hosts.iter().find(|(_, host)| *host == origin.host);
                analysed.covered = by.is_some();
                used.extend(by.map(|(id, _)| *id));
                continue;
            }
            // Rules do not cover typed text.
            let by = policy::command(&analysed.ask)
                .and_then(|script| remembered::covering(&list, &commands(analysed, &script, sights)?));
            // Where a mode asks before each command, one that needs no rule was not answered either.
            let by = by.filter(|used| !by_mode || !used.is_empty());
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
                    tracing::error!(%error, rule = %id, "the use of a remembered rule could not be counted, so the rule does not apply");
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
fn readable(rule: Rule) -> Option<(RuleId, RuleContent)> {
    match serde_json::from_value(rule.new.rule) {
        Ok(content) => Some((rule.new.id, content)),
        Err(error) => {
            tracing::warn!(%error, rule = %rule.new.id, "a remembered rule cannot be read, so it does not apply");
            None
        }
    }
}

/// Describes a rule and the sandbox that limits it: the sandbox's mounts decide which effects a command has.
fn held(rule: &RuleContent, judged: &Judged) -> String {
    match judged.sights.iter().find_map(summary::place) {
        Some(place) if matches!(rule, RuleContent::Commands(_)) => format!("{rule}; in {place}"),
        _ => rule.to_string(),
    }
}

impl Trip<'_> {
    /// The rules that a yes to this call could be remembered as; `None` where nothing is remembered of such calls.
    pub(super) fn suggestions(&self, judged: &Judged, scrubber: &CallScrubber) -> Option<Suggestions> {
        let rules = match self.asked.as_slice() {
            [] => contents(judged)?,
            [root] => Ok(vec![(
                RuleWidth::Directory,
                RuleContent::Directory { path: root.path.clone(), access: root.access },
            )]),
            _ => Err("the call needs several directories; grant them one by one"),
        };
        let suggested = rules.and_then(|rules| {
            let suggestion = |(width, content): (RuleWidth, RuleContent)| {
                let rule = serde_json::to_value(&content).unwrap_or(Value::Null);
                match rule.is_object() && scrubber.json(&rule) == rule {
                    true => Ok(Suggestion { width, rule, text: held(&content, judged) }),
                    false => Err("the rule would hold a secret"),
                }
            };
            rules.into_iter().map(suggestion).collect::<Result<Vec<_>, _>>()
        });
        Some(match suggested {
            Ok(rules) => Suggestions { rules, impossible: None },
            Err(why) => Suggestions::impossible(why),
        })
    }
}

/// The rules for a call that runs one script or fetches one address, and does nothing else.
fn contents(judged: &Judged) -> Option<Result<Vec<(RuleWidth, RuleContent)>, &'static str>> {
    let is_path = |analysed: &&AnalysedAsk| !matches!(analysed.ask, Ask::Reach { .. });
    let asks: Vec<&AnalysedAsk> = judged.analysis.asks.iter().filter(is_path).collect();
    let [only] = asks.as_slice() else { return None };
    if let Ask::Fetch { origin, .. } = &only.ask {
        return Some(Ok(vec![(RuleWidth::Host, RuleContent::Host { host: origin.host.to_string() })]));
    }
    let script = policy::command(&only.ask)?;
    let rules = remembered::suggest(&commands(only, &script, &judged.sights)?);
    Some(
        rules.map(|rules| {
            rules.into_iter().map(|(width, rule)| (width, RuleContent::Commands(rule))).collect()
        }),
    )
}
