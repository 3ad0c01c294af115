//! Rules that are given with a yes: making them, showing what they cover, ending them.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use claw_core::RuleId;
use claw_core::port::{Clock as _, UnixMillis};
use claw_core::store::{Approval, Entry, EntryEvent, NewRule, Rule, RuleScope, StoreError};
use claw_core::tool::Script;
use claw_host::SystemClock;
use claw_policy::approval::remembered::{Judged, Remembered, covering};
use claw_policy::shell::{Invocation, Rules};
use claw_registry::CallScrubber;
use claw_store::Backend;
use serde_json::Value;

use super::{of_store, unusable};
use crate::cli::Session;
use crate::command::ledger::time;
use crate::config::Loaded;
use crate::failure::{Failure, Outcome};
use crate::output::{Cell, Table};

/// How many lines of the ledger are looked through for commands that a rule would have covered.
const LOOKED_THROUGH: usize = 5_000;
/// How many of them are shown.
const SHOWN: usize = 5;

/// For whom a rule holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Scope {
    /// The agent that asks, in this conversation.
    #[default]
    Session,
    /// The agent that asks, in all its conversations.
    Agent,
    /// Every agent of the tenant.
    Tenant,
}

/// What kind of yes it is.
#[derive(Debug, Args)]
pub(crate) struct Kind {
    /// Do not ask about such a call again: remember the rule that `approvals show` shows.
    #[arg(long)]
    always: bool,
    /// For whom the rule holds.
    #[arg(long, value_enum, default_value_t, requires = "always")]
    scope: Scope,
    /// How long it holds, such as `30m`, `12h` or `7d` [default: until it is revoked].
    #[arg(long, value_name = "TIME", requires = "always", value_parser = duration)]
    expires: Option<Duration>,
}

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "write a number and `m`, `h` or `d`, such as `12h`".to_owned();
    let unit = match text.chars().last() {
        Some('m') => 60,
        Some('h') => 60 * 60,
        Some('d') => 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    let count: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    match count.checked_mul(unit) {
        Some(seconds @ 1..=315_360_000) => Ok(Duration::from_secs(seconds)),
        _ => Err("use more than 0 and at most 3650d".to_owned()),
    }
}

impl Kind {
    /// The rule that goes with the yes, where there is to be one.
    pub(super) fn rule(
        &self,
        approval: &Approval,
        by: &str,
        now: UnixMillis,
    ) -> Result<Option<NewRule>, Failure> {
        if !self.always {
            return Ok(None);
        }
        let rule = new_rule(approval, self.scope, by, now).map_err(|why| {
            Failure::failed(format!("no rule can be given for this call: {why}"))
                .hint(format!("clawsmith approvals approve {}", approval.id))
        })?;
        Ok(Some(NewRule { expires: self.expires.map(|time| now.plus(time)), ..rule }))
    }
}

/// The rule that a yes for good to this question gives, or why there is none.
pub(crate) fn new_rule(
    approval: &Approval,
    scope: Scope,
    by: &str,
    now: UnixMillis,
) -> Result<NewRule, String> {
    let request = &approval.request;
    let Some(suggestion) = &request.remember else {
        return Err("nothing is remembered of calls like it".to_owned());
    };
    let Some(rule) = &suggestion.rule else { return Err(suggestion.text.clone()) };
    let (agent, session) = (request.agent.clone(), request.session.clone());
    Ok(NewRule {
        id: RuleId::new(),
        tenant: request.tenant.clone(),
        scope: match scope {
            Scope::Session => RuleScope::Session { agent, session },
            Scope::Agent => RuleScope::Agent { agent },
            Scope::Tenant => RuleScope::Tenant,
        },
        tool: request.tool.clone(),
        rule: rule.clone(),
        text: suggestion.text.clone(),
        by: by.to_owned(),
        approval: Some(approval.id),
        created: now,
        expires: None,
    })
}

/// What a yes for good to a question would be remembered as, with the commands of before that it would have covered.
pub(super) async fn preview(
    store: &Arc<dyn Backend>,
    approval: &Approval,
) -> Result<Vec<(&'static str, String)>, StoreError> {
    let Some(suggestion) = &approval.request.remember else { return Ok(Vec::new()) };
    let Some(rule) = &suggestion.rule else {
        return Ok(vec![("always", format!("not possible: {}", suggestion.text))]);
    };
    let mut lines = vec![("always", format!("would cover {}", suggestion.text))];
    if let Ok(rule) = serde_json::from_value::<Remembered>(rule.clone()) {
        let past = past(store, approval, &rule).await?;
        let shown = past
            .iter()
            .take(SHOWN)
            .map(|command| ("", format!("it would have covered `{command}`, which ran before")));
        lines.extend(shown);
        match past.len().saturating_sub(SHOWN) {
            0 if past.is_empty() => {
                lines.push(("", "it would have covered none of the commands that ran before".to_owned()));
            }
            0 => {}
            more => lines.push(("", format!("and {more} more"))),
        }
    }
    Ok(lines)
}

/// The commands that ran and that a rule would have covered, each once, the latest first. Programs count by name;
/// what needs no rule is left out.
async fn past(
    store: &Arc<dyn Backend>,
    approval: &Approval,
    rule: &Remembered,
) -> Result<Vec<String>, StoreError> {
    let request = &approval.request;
    let entries = store.recent(&request.tenant, LOOKED_THROUGH).await?;
    let mut found: Vec<String> = Vec::new();
    for Entry { record, .. } in
        entries.iter().rev().filter(|entry| entry.record.tool == request.tool.as_str())
    {
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

/// The remembered rules of an agent that together cover a command, programs by name; none where they do not.
pub(crate) async fn matching(
    store: &Arc<dyn Backend>,
    loaded: &Loaded,
    (agent, command): (&str, &str),
    judged_by: &Rules,
) -> Result<Vec<Rule>, StoreError> {
    let now = SystemClock.now();
    let mut rules = store.all_rules(&loaded.config.tenant).await?;
    rules.retain(|rule| {
        let its = rule.new.scope.agent().is_none_or(|its| its.as_str() == agent);
        its && rule.state(now) == "live"
    });
    let read = |rule: &Rule| serde_json::from_value::<Remembered>(rule.new.rule.clone()).ok();
    let rules: Vec<(Rule, Remembered)> =
        rules.into_iter().filter_map(|rule| read(&rule).map(|read| (rule, read))).collect();
    let list: Vec<&Remembered> = rules.iter().map(|(_, read)| read).collect();
    let script = Script { text: command.to_owned(), directory: ".".to_owned(), ..Script::default() };
    let verdict = claw_policy::shell::analyse(command, judged_by);
    let used =
        covering(&list, &Judged { script: &script, verdict: &verdict, sights: None, credential: None });
    Ok(used.unwrap_or_default().into_iter().filter_map(|at| Some(rules.get(at)?.0.clone())).collect())
}

/// Which rules are shown.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Also those that hold no more.
    #[arg(long)]
    all: bool,
}

impl List {
    pub(super) fn run(&self, session: &mut Session, loaded: &Loaded, scrubber: &CallScrubber) -> Outcome {
        let now = SystemClock.now();
        let rules = of_store(session, loaded, async |store| {
            store.all_rules(&loaded.config.tenant).await.map(Some).map_err(unusable)
        })?;
        let mut rules = rules.unwrap_or_default();
        rules.retain(|rule| self.all || rule.state(now) == "live");
        if session.out.json {
            let shown = |rule: &Rule| {
                let mut shown = serde_json::to_value(rule)?;
                shown["state"] = rule.state(now).into();
                Ok::<_, Failure>(scrubber.json(&shown))
            };
            let rules = rules.iter().map(shown).collect::<Result<Vec<_>, _>>()?;
            session.out.json(&rules)?;
            return Ok(ExitCode::SUCCESS);
        }
        if rules.is_empty() {
            session.out.line("no rule is remembered")?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut table = Table::new(["id", "state", "for", "tool", "covers", "uses", "until", "by"]);
        for rule in &rules {
            let until = rule.new.expires.map_or_else(|| "for good".to_owned(), time);
            table.row([
                Cell::strong(rule.new.id),
                Cell::new(rule.state(now)),
                Cell::new(&rule.new.scope),
                Cell::new(&rule.new.tool),
                Cell::strong(scrubber.text(&rule.new.text)),
                Cell::new(rule.uses),
                Cell::quiet(until),
                Cell::quiet(&rule.new.by),
            ]);
        }
        session.out.table(&table)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Which rule ends.
#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// Its id, or the beginning of one where only one rule begins so.
    id: String,
}

impl Revoke {
    pub(super) fn run(&self, session: &mut Session, loaded: &Loaded) -> Outcome {
        let tenant = &loaded.config.tenant;
        let beginning = self.id.to_lowercase();
        let revoked = of_store(session, loaded, async |store| {
            let mut rules = store.all_rules(tenant).await.map_err(unusable)?;
            rules.retain(|rule| !beginning.is_empty() && rule.new.id.to_string().starts_with(&beginning));
            if rules.len() > 1 {
                return Err(Failure::usage(format!("`{}` begins the ids of {} rules", self.id, rules.len()))
                    .hint("clawsmith approvals rules, and give more of the id"));
            }
            let Some(rule) = rules.pop() else { return Ok(None) };
            store.revoke_rule(tenant, rule.new.id, SystemClock.now()).await.map(Some).map_err(unusable)
        })?;
        let Some(rule) = revoked else {
            return Err(
                Failure::usage(format!("there is no rule `{}`", self.id)).hint("clawsmith approvals rules")
            );
        };
        match session.out.json {
            true => session.out.json(&serde_json::json!({ "id": rule.new.id, "revoked": rule.revoked }))?,
            false => session.out.line(format_args!("revoked: {} ({})", rule.new.text, rule.new.id))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
