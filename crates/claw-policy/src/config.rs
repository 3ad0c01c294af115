//! The tool policy as people write it: plain lists of entries, checked when the policy is compiled.
//!
//! An entry is a tool's name (`exec`), a name with wildcards (`sessions_*`), a group (`group:fs`) or an
//! effect (`effect:write`). Nothing here decides anything; see [`pipeline`](crate::pipeline).

use std::collections::{BTreeMap, BTreeSet};

use claw_core::TenantId;
use claw_core::tool::Profile;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tools of each agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct PolicyConfig {
    /// The rules of all agents.
    pub tools: ToolsPolicy,
    /// The deployment's own tenant, which `agents` belong to.
    #[serde(skip)]
    pub tenant: TenantId,
    /// The rules of one agent of the deployment's own tenant, by its id.
    pub agents: BTreeMap<String, AgentTools>,
    /// The rules of tenants, from the store.
    #[serde(skip)]
    pub tenants: BTreeMap<TenantId, TenantTools>,
}

/// The rules of one tenant, on top of the deployment's: its deny lists add to them, its allow lists narrow
/// them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct TenantTools {
    /// Only these tools are kept, of those that the deployment keeps. Left out: all of them; an empty list: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// These tools are removed, besides those that the deployment removes.
    pub deny: Vec<String>,
    /// The rules of the tenant's stored agents, by id. They only narrow: `also_allow` has no effect here.
    #[serde(skip)]
    pub agents: BTreeMap<String, AgentTools>,
}

/// The name for all agents that a policy does not name.
pub const ANY_AGENT: &str = "default";

impl PolicyConfig {
    /// The agents that a policy can tell apart: those it names, and one for all others.
    pub fn agent_names(&self) -> BTreeSet<&str> {
        self.agents.keys().map(String::as_str).chain([ANY_AGENT]).collect()
    }

    /// The providers that the policy names.
    pub fn provider_names(&self) -> BTreeSet<&str> {
        let agents = self.agents.values().flat_map(|agent| agent.by_provider.keys());
        self.tools.by_provider.keys().chain(agents).map(String::as_str).collect()
    }

    /// The group chats that the policy names.
    pub fn chat_names(&self) -> BTreeSet<&str> {
        self.tools.groups.keys().map(String::as_str).collect()
    }
}

/// The tool policy of all agents.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct ToolsPolicy {
    /// The set of tools to start from.
    pub profile: Profile,
    /// Only these tools are kept. Left out: all of them; an empty list: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// These tools are removed. `effect:write` removes every tool that may write. A tool that works without writing
    /// stays, but can no longer write.
    pub deny: Vec<String>,
    /// These tools are added, even if the profile, `allow` or `deny` leaves them out. With `deny_wins`, `deny` still
    /// removes them.
    pub also_allow: Vec<String>,
    /// `also_allow` cannot bring back tools that a `deny` list names.
    pub deny_wins: bool,
    /// Rules for models of one provider, by the provider's name.
    pub by_provider: BTreeMap<String, ProviderTools>,
    /// Rules for one group chat, by the chat's id.
    pub groups: BTreeMap<String, GroupTools>,
    /// Tools that subagents do not get.
    pub subagents: SubagentTools,
}

/// The tools that agents get with models of one provider.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct ProviderTools {
    /// Replaces `tools.profile`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Only these tools are kept, of those that `tools.allow` keeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
}

/// The tools that agents get in one group chat.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct GroupTools {
    /// Only these tools are kept, of those that all other `allow` lists keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
}

/// The tools that subagents do not get, whatever the other lists say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct SubagentTools {
    /// Removed from every subagent.
    pub deny: Vec<String>,
    /// Also removed from a subagent that may not start other subagents.
    pub leaf_deny: Vec<String>,
}

impl SubagentTools {
    /// Tools about the installation, the parent's session and its memory, which subagents should not use.
    pub const DENY: [&'static str; 8] = [
        "gateway",
        "agents_list",
        "whatsapp_login",
        "session_status",
        "cron",
        "memory_search",
        "memory_get",
        "sessions_send",
    ];
    /// Tools that start agents or manage them.
    pub const LEAF_DENY: [&'static str; 6] =
        ["sessions_list", "sessions_history", "sessions_spawn", "spawn", "subagent", "subagents"];
}

impl Default for SubagentTools {
    fn default() -> Self {
        Self {
            deny: Self::DENY.map(str::to_owned).to_vec(),
            leaf_deny: Self::LEAF_DENY.map(str::to_owned).to_vec(),
        }
    }
}

/// The tool policy of one agent. It can narrow what `tools` gives, and add to it with `also_allow`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct AgentTools {
    /// Only these tools are kept, of those that `tools` keeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// These tools are removed, besides those in `tools.deny`.
    pub deny: Vec<String>,
    /// These tools are added, besides those in `tools.also_allow`.
    pub also_allow: Vec<String>,
    /// Rules for this agent with models of one provider, by the provider's name.
    pub by_provider: BTreeMap<String, AgentProviderTools>,
}

/// The tools that one agent gets with models of one provider.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "snake_case")]
pub struct AgentProviderTools {
    /// Only these tools are kept, of those that the agent's `allow` keeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
}

#[cfg(test)]
mod tests;
