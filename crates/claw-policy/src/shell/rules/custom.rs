//! Rules of administrators, and the built-in rules that are switched off.
//!
//! A rule comes with examples that it must and must not match; they are tried when it is loaded. If a rule
//! fails one, the whole configuration is refused.

use std::collections::BTreeMap;

use claw_core::port::ApplyMode;
use claw_core::tool::{Effect, Effects};
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Seen;
use super::table::{RULES, Rule, find};
use crate::shell::verdict::{Argument, Decision};
use crate::shell::walk::Walker;
use claw_core::did_you_mean::nearest;

/// Rules for shell commands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ShellConfig {
    /// Rules that are switched off, each with the reason: `"destructive.rm-recursive" = "a throw-away box"`.
    /// A group's name switches off the whole group.
    pub off: BTreeMap<String, String>,
    /// Rules that ask a person instead of denying, each with the reason: `"destructive.rm-recursive" = "my own machine"`.
    /// A group's name lowers the whole group.
    pub ask: BTreeMap<String, String>,
    /// Further rules.
    pub rules: BTreeMap<String, CustomRule>,
    /// Commands have network access without asking each time. Left out: they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<bool>,
    /// The time at which a command's changes are applied to the workspace. Left out: when it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply: Option<ApplyMode>,
}

impl ShellConfig {
    /// Merges both; the other one wins where both set the same name.
    pub fn and(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.off.extend(other.off.clone());
        both.ask.extend(other.ask.clone());
        both.rules.extend(other.rules.clone());
        both.network = other.network.or(both.network);
        both.apply = other.apply.or(both.apply);
        both
    }
}

/// A rule of an administrator. It matches a simple command that fulfils every given condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CustomRule {
    /// `ask` or `deny`.
    pub verdict: CustomVerdict,
    /// The reason, for people and models.
    pub reason: String,
    /// Names of programs, without directories. Left out: any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
    /// Regular expressions; each must match some argument of the command as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Paths: an argument or redirection must be one of them or below one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Effects, one of which the command must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
    /// Commands that the rule must match.
    pub matches: Vec<String>,
    /// Commands that the rule must not match.
    pub passes: Vec<String>,
}

/// The decision of an administrator's rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CustomVerdict {
    /// A person decides.
    Ask,
    /// It may not run.
    Deny,
}

/// The reason why rules do not load.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{place}`: {message}")]
pub struct RuleError {
    /// The configuration key, below `shell`.
    pub place: String,
    /// The problem, and what to try.
    pub message: String,
}

/// Loaded rules.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    off: Vec<String>,
    asking: Vec<String>,
    custom: Vec<Compiled>,
}

#[derive(Debug, Clone)]
struct Compiled {
    id: String,
    rule: CustomRule,
    arguments: Vec<Regex>,
    effects: Effects,
}

impl Rules {
    /// Compiles rules and tries their examples.
    pub fn compile(config: &ShellConfig) -> Result<Self, RuleError> {
        let mut rules = Self::default();
        for (key, named, list) in
            [("off", &config.off, &mut rules.off), ("ask", &config.ask, &mut rules.asking)]
        {
            for (id, reason) in named {
                let place = format!("{key}.\"{id}\"");
                let known = RULES.iter().filter(|rule| rule.can_be_off());
                let names = known.flat_map(|rule| [rule.id, rule.group()]);
                if !names.clone().any(|name| name == id) {
                    let hint = nearest(id, names).map(|near| format!("; did you mean `{near}`?"));
                    let hint = hint.unwrap_or_else(|| "; see `docs/shell.md` for the rules".to_owned());
                    let message = format!("no rule that can be changed has this name{hint}");
                    return Err(RuleError { place, message });
                }
                if reason.trim().is_empty() {
                    let message = format!("a reason is missing; say why it is {key}");
                    return Err(RuleError { place, message });
                }
                list.push(id.clone());
            }
        }
        for (id, rule) in &config.rules {
            let compiled = compile(id, rule)?;
            try_examples(&compiled)?;
            rules.custom.push(compiled);
        }
        Ok(rules)
    }

    pub(crate) fn is_off(&self, rule: &Rule) -> bool {
        rule.can_be_off() && self.off.iter().any(|off| off == rule.id || off == rule.group())
    }

    /// The decision of a rule: one that denies asks where the configuration says so.
    pub(crate) fn decision(&self, rule: &Rule) -> Decision {
        let is_lowered =
            rule.can_be_off() && self.asking.iter().any(|asking| asking == rule.id || asking == rule.group());
        if is_lowered { rule.decision.min(Decision::Ask) } else { rule.decision }
    }
}

fn compile(id: &str, rule: &CustomRule) -> Result<Compiled, RuleError> {
    let error = |key: &str, message: String| RuleError { place: format!("rules.{id}{key}"), message };
    if find(id).is_some() || RULES.iter().any(|own| own.group() == id) {
        return Err(error("", "Clawsmith has a rule or group of this name; choose another".to_owned()));
    }
    if rule.programs.is_empty()
        && rule.arguments.is_empty()
        && rule.paths.is_empty()
        && rule.effects.is_empty()
    {
        return Err(error("", "it has no condition; give programs, arguments, paths or effects".to_owned()));
    }
    for (key, list) in [(".matches", &rule.matches), (".passes", &rule.passes)] {
        if list.is_empty() {
            return Err(error(key, "there is no example; give at least one".to_owned()));
        }
    }
    if rule.reason.trim().is_empty() {
        return Err(error(".reason", "a reason is missing; it is shown to people and models".to_owned()));
    }
    let arguments = rule.arguments.iter().map(|pattern| {
        Regex::new(&format!("^(?:{pattern})$"))
            .map_err(|_| error(".arguments", format!("`{pattern}` is not a regular expression")))
    });
    let arguments = arguments.collect::<Result<_, _>>()?;
    Ok(Compiled { id: id.to_owned(), rule: rule.clone(), arguments, effects: Effects::of(&rule.effects) })
}

fn try_examples(compiled: &Compiled) -> Result<(), RuleError> {
    let alone = Rules { custom: vec![compiled.clone()], ..Rules::default() };
    let matched = |command: &String| {
        let verdict = crate::shell::analyse(command, &alone);
        verdict.findings.iter().any(|finding| finding.rule == compiled.id)
    };
    let (rule, id) = (&compiled.rule, &compiled.id);
    if let Some(command) = rule.matches.iter().find(|command| !matched(command)) {
        let message = format!("the rule does not match `{command}`, which it must");
        return Err(RuleError { place: format!("rules.{id}.matches"), message });
    }
    if let Some(command) = rule.passes.iter().find(|command| matched(command)) {
        let message = format!("the rule matches `{command}`, which it must not");
        return Err(RuleError { place: format!("rules.{id}.passes"), message });
    }
    Ok(())
}

/// Applies the rules of administrators to a simple command.
pub(super) fn judge(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    let rules = walker.rules;
    let effects = walker.commands.last().map_or(Effects::NONE, |simple| simple.effects);
    for compiled in &rules.custom {
        if compiled.matches(seen, effects) {
            let decision = match compiled.rule.verdict {
                CustomVerdict::Ask => Decision::Ask,
                CustomVerdict::Deny => Decision::Deny,
            };
            walker.custom_hit(&compiled.id, decision, &compiled.rule.reason);
        }
    }
}

impl Compiled {
    fn matches(&self, seen: &Seen<'_>, effects: Effects) -> bool {
        let rule = &self.rule;
        // An unknown argument may be any.
        let argument = |pattern: &Regex| {
            seen.arguments().iter().any(|argument| match argument.known() {
                Some(text) => pattern.is_match(text),
                None => argument.may_be_option(),
            })
        };
        let places =
            || seen.arguments().iter().chain(&seen.place.writes).chain(&seen.place.reads).map(Argument::text);
        let below = |path: &String| {
            let path = path.trim_end_matches('/');
            places().any(|place| {
                place.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        (rule.programs.is_empty() || rule.programs.iter().any(|program| program == seen.name))
            && self.arguments.iter().all(argument)
            && (rule.paths.is_empty() || rule.paths.iter().any(below))
            && (rule.effects.is_empty() || !self.effects.common(effects).is_empty())
    }
}
