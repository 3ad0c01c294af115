//! How shell commands are judged: by which rules, and whether they reach other machines unasked.

use std::collections::HashMap;
use std::sync::Arc;

use claw_core::port::ApplyMode;
use claw_core::tool::Caller;
use claw_core::{AgentId, TenantId};
use claw_policy::shell::Rules;

/// How the commands of all agents are judged. Changeable while calls run.
#[derive(Debug, Clone, Default)]
pub struct CommandRules {
    /// What holds where nothing is said about an agent.
    pub all: Arc<AgentCommands>,
    /// What holds for one agent instead.
    pub agents: HashMap<(TenantId, AgentId), Arc<AgentCommands>>,
}

/// How the commands of one agent are judged.
#[derive(Debug, Clone, Default)]
pub struct AgentCommands {
    /// What is denied or asked.
    pub rules: Rules,
    /// Whether they reach other machines without asking for it.
    pub network: bool,
    /// When their changes are brought into the workspace.
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
