//! Settings for shell commands: their rules, their network access, and the handling of their changes.

use std::collections::HashMap;
use std::sync::Arc;

use claw_core::port::ApplyMode;
use claw_core::tool::Caller;
use claw_core::{AgentId, TenantId};
use claw_policy::shell::Rules;

/// Settings for the shell commands of all agents. Can be replaced while calls run.
#[derive(Debug, Clone, Default)]
pub struct CommandRules {
    /// Settings of agents without their own.
    pub all: Arc<AgentCommands>,
    /// Settings of single agents, in place of `all`.
    pub agents: HashMap<(TenantId, AgentId), Arc<AgentCommands>>,
}

/// Settings for the shell commands of one agent.
#[derive(Debug, Clone, Default)]
pub struct AgentCommands {
    /// Rules that deny commands or ask about them.
    pub rules: Rules,
    /// Commands have network access without requesting it.
    pub network: bool,
    /// The time at which changes are applied to the workspace.
    pub apply: ApplyMode,
}

impl CommandRules {
    /// The rules of the caller's agent.
    pub fn of(&self, caller: &Caller) -> Arc<AgentCommands> {
        if self.agents.is_empty() {
            return Arc::clone(&self.all);
        }
        let key = (caller.tenant.clone(), caller.agent.clone());
        Arc::clone(self.agents.get(&key).unwrap_or(&self.all))
    }
}
