//! Approvals: the calls that wait for a person's answer, and the rules remembered with a yes.
//!
//! A call asks in one process and is answered in another: the store carries both.

use std::time::Duration;

use claw_core::port::{Clock as _, UnixMillis};
use claw_core::store::{
    Answer, Approval, ApprovalState, Entry, EntryEvent, NewRule, Rule, RuleScope, RuleWidth, StoreError,
    Suggestion,
};
use claw_core::tool::Script;
use claw_core::{ApprovalId, RuleId};
use claw_host::SystemClock;
use claw_policy::approval::remembered::{Judged, Remembered, RuleContent, covering};
use claw_policy::shell::{Invocation, Rules};
use serde_json::Value;

use super::{App, Error, InputValues};

/// The length of an unambiguous prefix of an id: its whole time, to the millisecond.
const CLEAR: usize = "019b7611-3c00".len();
/// The longest reason of a no, in characters.
const LONGEST_REASON: usize = 500;
/// The number of ledger entries searched for commands that a rule would have covered.
const SEARCHED: usize = 5_000;

/// The number of past commands shown that a rule would have covered.
const SHOWN: usize = 5;

/// The callers that a remembered rule covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RuleFor {
    /// The agent that asks, in this session.
    #[default]
    Session,
    /// The agent that asks, in all its sessions.
    Agent,
    /// Every agent of the tenant.
    Tenant,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The call is refused.
    Deny {
        /// The reason, which the model is told.
        reason: Option<String>,
    },
    /// The call may run, once and as it was shown.
    Once,
    /// The call may run, and a rule is remembered.
    Always {
        /// The callers that the rule covers.
        scope: RuleFor,
        /// The rule's lifetime; `None` means until it is revoked.
        lasts: Option<Duration>,
        /// One of the widths that the approval offers; `None` for the narrowest.
        width: Option<RuleWidth>,
    },
    /// A request for input gets these values.
    Values(InputValues),
    /// A request for input is dismissed: neither given nor declined.
    Dismiss,
}

/// An answered approval.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The approval after the answer.
    pub approval: Approval,
    /// The rule that was remembered with it.
    pub rule: Option<NewRule>,
}

/// The rules that a yes could be remembered as.
#[derive(Debug, Clone)]
pub struct RulePreview {
    /// Why no rule is possible; `None` if one is.
    pub impossible: Option<String>,
    /// The rules, the narrowest first.
    pub rules: Vec<WidthPreview>,
}

impl RulePreview {
    /// The rules in lines for a person, and past commands that each would have covered.
    pub fn lines(&self) -> Vec<String> {
        if let Some(why) = &self.impossible {
            return vec![format!("not possible: {why}")];
        }
        let mut lines = Vec::new();
        for WidthPreview { width, covers, past } in &self.rules {
            lines.push(format!("--width {width} would cover {covers}"));
            let Some(past) = past else { continue };
            let shown = past.iter().take(SHOWN);
            lines.extend(
                shown.map(|command| format!("  it would have covered `{command}`, which ran before")),
            );
            match past.len().saturating_sub(SHOWN) {
                0 if past.is_empty() => {
                    lines.push("  it would have covered none of the commands that ran before".to_owned());
                }
                0 => {}
                more => lines.push(format!("  and {more} more")),
            }
        }
        lines
    }
}

/// A rule that a yes could be remembered as.
#[derive(Debug, Clone)]
pub struct WidthPreview {
    /// How much it covers.
    pub width: RuleWidth,
    /// The calls that the rule would cover, in words.
    pub covers: String,
    /// Commands that ran before and that it would have covered, the latest first; `None` for a rule that is not about
    /// commands.
    pub past: Option<Vec<String>>,
}

impl App {
    /// The approvals that wait for an answer, oldest first.
    pub async fn pending_approvals(&self) -> Result<Vec<Approval>, Error> {
        self.store.pending(self.tenant(), SystemClock.now()).await.map_err(unusable)
    }

    /// Finds an approval by its id, or a pending one by the beginning of its id. `None` if there is none; an
    /// error if several match.
    pub async fn find_approval(&self, id: &str) -> Result<Option<Approval>, Error> {
        if let Ok(id) = id.parse::<ApprovalId>() {
            return self.store.approval(self.tenant(), id).await.map_err(unusable);
        }
        let mut pending = self.pending_beginning(id).await?;
        match pending.len() {
            0 | 1 => Ok(pending.pop()),
            count => Err(Error::invalid(format!("`{id}` matches {count} approvals"))
                .hint("clawsmith approvals list, and give more of the id")),
        }
    }

    async fn pending_beginning(&self, beginning: &str) -> Result<Vec<Approval>, Error> {
        let beginning = beginning.to_lowercase();
        let mut pending = self.pending_approvals().await?;
        pending.retain(|approval| !beginning.is_empty() && approval.id.to_string().starts_with(&beginning));
        Ok(pending)
    }

    /// Refuses a beginning of an id that is too short to approve: it may match another approval than the one
    /// that a person saw.
    async fn must_be_clear(&self, id: &str) -> Result<(), Error> {
        if id.len() >= CLEAR {
            return Ok(());
        }
        let pending = self.pending_beginning(id).await?;
        if pending.is_empty() {
            return Ok(());
        }
        let begin: Vec<String> =
            pending.iter().map(|one| format!("\n  {}  `{}`", one.id, one.request.tool)).collect();
        Err(Error::invalid(format!(
            "`{id}` is too short to approve: give at least {CLEAR} characters of the id. These approvals \
             match:{}",
            begin.concat()
        ))
        .hint("clawsmith approvals show ID, then clawsmith approvals approve ID"))
    }

    /// Answers the approval that `id` names, in the name of `by`; `None` if there is none.
    pub async fn answer(&self, id: &str, verdict: Verdict, by: &str) -> Result<Option<Answered>, Error> {
        if !matches!(verdict, Verdict::Deny { .. } | Verdict::Dismiss) {
            self.must_be_clear(id).await?;
        }
        match self.find_approval(id).await? {
            Some(found) => self.answer_found(&found, verdict, by).await.map(Some),
            None => Ok(None),
        }
    }

    /// Answers an approval that was found before.
    pub async fn answer_found(
        &self,
        found: &Approval,
        verdict: Verdict,
        by: &str,
    ) -> Result<Answered, Error> {
        let (at, tenant) = (SystemClock.now(), self.tenant());
        let is_input = found.request.input.is_some();
        let (approve, reason, values) = match &verdict {
            Verdict::Deny { reason } => (false, reason.clone(), None),
            Verdict::Once if is_input => {
                (true, None, Some(self.input_values(found, InputValues::default())?))
            }
            Verdict::Values(given) => (true, None, Some(self.input_values(found, given.clone())?)),
            Verdict::Once | Verdict::Always { .. } => (true, None, None),
            Verdict::Dismiss if is_input => {
                let approval = self.store.close(tenant, found.id, ApprovalState::Cancelled).await;
                return Ok(Answered { approval: approval.map_err(unusable)?, rule: None });
            }
            Verdict::Dismiss => {
                return Err(Error::invalid("only a request for input can be dismissed")
                    .hint(format!("clawsmith approvals deny {}", found.id)));
            }
        };
        // The model is told, and so are the ledger and everybody who looks at the approval.
        let scrubber = self.scrubber(tenant).await?;
        let reason = reason
            .map(|reason| scrubber.said(reason.trim()).chars().take(LONGEST_REASON).collect::<String>());
        let reason = reason.filter(|reason| !reason.is_empty());
        let answer = Answer { approve, by: by.to_owned(), at, reason, values };
        let rule = match verdict {
            Verdict::Always { scope, lasts, width } => {
                Some(given_rule(found, WantedRule { scope, lasts, width }, by, at)?)
            }
            Verdict::Deny { .. } | Verdict::Once | Verdict::Values(_) | Verdict::Dismiss => None,
        };
        let answered = match rule.clone() {
            Some(rule) => self.store.answer_with_rule(tenant, found.id, answer, rule).await,
            None => self.store.answer(tenant, found.id, answer).await,
        };
        let approval = answered.map_err(|error| match error {
            StoreError::ApprovalState { id, state } => {
                Error::failed(format!("approval `{id}` is already {state}; an answer is final"))
                    .hint(format!("clawsmith approvals show {id}"))
            }
            error => unusable(error),
        })?;
        Ok(Answered { approval, rule })
    }

    /// The rules that a yes could be remembered as; `None` where nothing is remembered of such calls.
    pub async fn preview_rule(&self, approval: &Approval) -> Result<Option<RulePreview>, Error> {
        let Some(suggestions) = &approval.request.remember else { return Ok(None) };
        let mut rules = Vec::new();
        for Suggestion { width, rule, text } in &suggestions.rules {
            let commands = serde_json::from_value::<RuleContent>(rule.clone()).ok();
            let past = match commands.and_then(RuleContent::into_commands) {
                Some(rule) => Some(self.covered_before(approval, &rule).await.map_err(unusable)?),
                None => None,
            };
            rules.push(WidthPreview { width: *width, covers: text.clone(), past });
        }
        Ok(Some(RulePreview { impossible: suggestions.impossible.clone(), rules }))
    }

    /// The commands that ran and that a rule would have covered, each once, the latest first. Programs count by name;
    /// commands that need no rule are left out.
    async fn covered_before(
        &self,
        approval: &Approval,
        rule: &Remembered,
    ) -> Result<Vec<String>, StoreError> {
        let request = &approval.request;
        let entries = self.store.recent(&request.tenant, SEARCHED).await?;
        let mut found: Vec<String> = Vec::new();
        let of_tool = |entry: &&Entry| entry.record.tool == request.tool.as_str();
        for Entry { record, .. } in entries.iter().rev().filter(of_tool) {
            let EntryEvent::Intent { args, .. } = &record.event else { continue };
            if let Some(script) = script_of(args)
                && !found.contains(&script.text)
                && is_covered(&[rule], &script, &Rules::default())
            {
                found.push(script.text);
            }
        }
        Ok(found)
    }

    /// Returns the remembered rules, including ended ones.
    pub async fn rules(&self) -> Result<Vec<Rule>, Error> {
        self.store.all_rules(self.tenant()).await.map_err(unusable)
    }

    /// Returns the remembered rules of an agent that together cover a command, programs by name; empty if
    /// they do not.
    pub async fn rules_covering(
        &self,
        agent: &str,
        command: &str,
        judged_by: &Rules,
    ) -> Result<Vec<Rule>, Error> {
        let now = SystemClock.now();
        let mut rules = self.rules().await?;
        rules.retain(|rule| {
            let its = rule.new.scope.agent().is_none_or(|its| its.as_str() == agent);
            its && rule.state(now) == "live"
        });
        let read = |rule: &Rule| {
            serde_json::from_value::<RuleContent>(rule.new.rule.clone())
                .ok()
                .and_then(RuleContent::into_commands)
        };
        let rules: Vec<(Rule, Remembered)> =
            rules.into_iter().filter_map(|rule| read(&rule).map(|read| (rule, read))).collect();
        let list: Vec<&Remembered> = rules.iter().map(|(_, read)| read).collect();
        let script = Script { text: command.to_owned(), directory: ".".to_owned(), ..Script::default() };
        let verdict = claw_policy::shell::analyse(command, judged_by);
        let judged = Judged { script: &script, verdict: &verdict, sights: None, credential: None };
        let used = covering(&list, &judged).unwrap_or_default();
        Ok(used.into_iter().filter_map(|at| Some(rules.get(at)?.0.clone())).collect())
    }

    /// Revokes the rule that an id, or the beginning of one, names; `None` if there is none.
    pub async fn revoke_rule(&self, id: &str) -> Result<Option<Rule>, Error> {
        let beginning = id.to_lowercase();
        let mut rules = self.rules().await?;
        rules.retain(|rule| !beginning.is_empty() && rule.new.id.to_string().starts_with(&beginning));
        if rules.len() > 1 {
            return Err(Error::invalid(format!("`{id}` matches {} rules", rules.len()))
                .hint("clawsmith approvals rules, and give more of the id"));
        }
        let Some(rule) = rules.pop() else { return Ok(None) };
        let revoked = self.store.revoke_rule(self.tenant(), rule.new.id, SystemClock.now()).await;
        revoked.map(Some).map_err(unusable)
    }
}

/// The rule that a person wants to be remembered.
struct WantedRule {
    scope: RuleFor,
    /// Its lifetime; `None` means no expiry.
    lasts: Option<Duration>,
    /// `None` means the narrowest.
    width: Option<RuleWidth>,
}

fn given_rule(
    approval: &Approval,
    WantedRule { scope, lasts, width }: WantedRule,
    by: &str,
    now: UnixMillis,
) -> Result<NewRule, Error> {
    let request = &approval.request;
    let none = |why: &str| {
        Error::failed(format!("no rule can be remembered for this call: {why}"))
            .hint(format!("clawsmith approvals approve {}", approval.id))
    };
    let suggestions = request.remember.as_ref();
    let suggestions = suggestions.ok_or_else(|| none("calls like it cannot be remembered"))?;
    let Some(narrowest) = suggestions.rules.first() else {
        return Err(none(suggestions.impossible.as_deref().unwrap_or("it cannot be remembered")));
    };
    let is_wanted = |suggestion: &&Suggestion| width.is_none_or(|width| width == suggestion.width);
    let suggestion = suggestions.rules.iter().find(is_wanted).ok_or_else(|| {
        let widths: Vec<&str> = suggestions.rules.iter().map(|rule| rule.width.name()).collect();
        let wanted = width.unwrap_or(narrowest.width);
        Error::invalid(format!("no rule of width `{wanted}` is offered for this call"))
            .hint(format!("one of: {}", widths.join(", ")))
    })?;
    let (agent, session) = (request.agent.clone(), request.session.clone());
    Ok(NewRule {
        id: RuleId::new(),
        tenant: request.tenant.clone(),
        scope: match scope {
            RuleFor::Session => RuleScope::Session { agent, session },
            RuleFor::Agent => RuleScope::Agent { agent },
            RuleFor::Tenant => RuleScope::Tenant,
        },
        tool: request.tool.clone(),
        rule: suggestion.rule.clone(),
        text: suggestion.text.clone(),
        by: by.to_owned(),
        approval: Some(approval.id),
        created: now,
        expires: lasts.map(|time| now.plus(time)),
    })
}

/// The script that a call with these arguments ran.
fn script_of(args: &Value) -> Option<Script> {
    let text = |name: &str| args.get(name).and_then(Value::as_str).map(str::to_owned);
    let env = args.get("env").and_then(Value::as_array).into_iter().flatten();
    let env = env.filter_map(Value::as_str).filter_map(|pair| pair.split_once('='));
    Some(Script {
        text: text("command")?,
        directory: text("directory").unwrap_or_else(|| ".".to_owned()),
        env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        input: text("stdin"),
        network: args.get("network").and_then(Value::as_bool).unwrap_or(false),
        ..Script::default()
    })
}

fn is_covered(rules: &[&Remembered], script: &Script, judged_by: &Rules) -> bool {
    let invocation = Invocation { text: &script.text, env: &script.env, input: script.input.as_deref() };
    let verdict = invocation.analyse(judged_by);
    covering(rules, &Judged { script, verdict: &verdict, sights: None, credential: None })
        .is_some_and(|used| !used.is_empty())
}

fn unusable(error: StoreError) -> Error {
    Error::failed("approvals cannot be read or answered").because(error).hint("clawsmith db status")
}
