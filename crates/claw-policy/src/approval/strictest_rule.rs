//! The rule of an effect, of the configuration and the modes in force: the strictest counts.

use std::collections::BTreeMap;

use claw_core::tool::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::ApprovalConfig;

/// The rule for calls with an effect, in the order of strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EffectRule {
    /// Let them run.
    Allow,
    /// Ask a person.
    Ask,
    /// Refuse them.
    Deny,
}

/// Stricter rules of a mode that a person chose. The strictest of all modes' rules and the configured one holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Narrowing {
    /// The mode's name.
    pub mode: SmolStr,
    /// The mode's rules.
    pub effects: BTreeMap<Effect, EffectRule>,
}

impl ApprovalConfig {
    /// The rule of an effect, and where it comes from; `None` if there is none.
    pub fn of_effect(&self, effect: Effect) -> Option<(EffectRule, String)> {
        let configured = self.effects.get(&effect).map(|rule| (*rule, None));
        let narrowed = self.narrowing.iter().filter_map(|narrowing| {
            narrowing.effects.get(&effect).map(|rule| (*rule, Some(narrowing.mode.as_str())))
        });
        // Of two that are as strict, the configured one is named.
        let (rule, mode) = narrowed.chain(configured).max_by_key(|(rule, _)| *rule)?;
        Some((
            rule,
            match mode {
                Some(mode) => format!("the mode `{mode}`"),
                None => format!("`approvals.effects.{effect}`"),
            },
        ))
    }

    /// Whether a mode asks before commands, and no configured rule does. A remembered answer of the person who chose the
    /// mode settles that question.
    pub fn is_asked_by_mode(&self) -> bool {
        let of_commands = self.of_effect(Effect::Execute);
        of_commands.is_some_and(|(rule, by)| rule == EffectRule::Ask && by.starts_with("the mode"))
    }

    /// The same, narrowed by one mode more.
    #[must_use]
    pub fn narrowed(mut self, narrowing: Narrowing) -> Self {
        self.narrowing.push(narrowing);
        self
    }

    /// Whether a rule denies that anything is written.
    pub fn denies_writing(&self) -> bool {
        self.of_effect(Effect::Write).is_some_and(|(rule, _)| rule == EffectRule::Deny)
    }
}
