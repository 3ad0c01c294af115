//! `[approvals]`: when a person is asked, and for how long.

use std::collections::BTreeMap;

use claw_core::tool::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EffectRule, Narrowing, Security, WebApprovals};

/// Settings that decide whether a person is asked before a call runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalConfig {
    /// When approval is requested. With `off`, calls that would need approval are refused.
    pub ask: AskMode,
    /// Commands that run if no rule of `shell` denies them: none, those that remembered rules cover, or all.
    pub security: Security,
    /// Rules for calls with an effect: `allow`, `ask` or `deny`. Effects not named are allowed.
    pub effects: BTreeMap<Effect, EffectRule>,
    /// Rules for fetching addresses that may carry data out.
    pub web: WebApprovals,
    /// Rule for agents that publish a skill: `allow`, `ask` or `deny`.
    pub publish: EffectRule,
    /// Handling of a call that needs an ungranted path outside the workspace: `ask` the person at the terminal, or
    /// `deny`.
    pub outside: OutsideRule,
    /// Time to wait for an answer, in seconds.
    pub wait_secs: u32,
    /// Hours that an approval stays open if nobody watches; its run is parked meanwhile and blocks nobody.
    #[schemars(range(min = 1, max = 8760))]
    pub park_hours: u32,
    /// Modes of the process and of a run; no file has them.
    #[serde(skip)]
    pub narrowing: Vec<Narrowing>,
}

impl Default for ApprovalConfig {
    fn default() -> Self {
        Self {
            ask: AskMode::default(),
            security: Security::default(),
            effects: BTreeMap::new(),
            web: WebApprovals::default(),
            publish: EffectRule::Ask,
            outside: OutsideRule::default(),
            wait_secs: 120,
            park_hours: 24,
            narrowing: Vec::new(),
        }
    }
}

/// The setting for asking people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AskMode {
    /// Never: calls that would need approval are refused.
    Off,
    /// If a rule says so, or nothing shows that the call is harmless.
    #[default]
    OnMiss,
    /// Before every call that does more than read.
    Always,
}

/// Handling of a path outside the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OutsideRule {
    /// Ask the person at the terminal, where there is one.
    #[default]
    Ask,
    /// Refuse it.
    Deny,
}
