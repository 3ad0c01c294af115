//! The steps of a policy, in their order.

use serde::Serialize;

use crate::entry::Use;

/// The steps, in the order they are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Step {
    /// `tools.profile`
    Profile,
    /// `tools.by_provider.{provider}.profile`, which replaces the former.
    ProviderProfile,
    /// `tools.allow`
    GlobalAllow,
    /// `tools.by_provider.{provider}.allow`
    ProviderAllow,
    /// `agents.{agent}.allow`
    AgentAllow,
    /// `agents.{agent}.by_provider.{provider}.allow`
    AgentProviderAllow,
    /// `tools.groups.{chat}.allow`
    GroupAllow,
    /// `tools.deny`
    GlobalDeny,
    /// `agents.{agent}.deny`
    AgentDeny,
    /// `tools.also_allow`
    GlobalAlsoAllow,
    /// `agents.{agent}.also_allow`
    AgentAlsoAllow,
    /// The stored agent's `allow`, which only narrows.
    StoredAgentAllow,
    /// The stored agent's `by_provider.{provider}.allow`, which only narrows.
    StoredAgentProviderAllow,
    /// The stored agent's `deny`.
    StoredAgentDeny,
    /// The tenant's `allow`.
    TenantAllow,
    /// The tenant's `deny`.
    TenantDeny,
    /// `tools.subagents.deny`
    SubagentDeny,
    /// `tools.subagents.leaf_deny`
    LeafDeny,
    /// The allow list that came with the message.
    RequestAllow,
}

/// The kind of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Keeps the tools of a profile.
    Profile,
    /// Keeps the tools that a list names.
    Allow,
    /// Removes the tools that a list names.
    Deny,
    /// Adds the tools that a list names.
    AlsoAllow,
}

impl Step {
    /// Number of steps.
    pub const COUNT: usize = 19;

    /// All steps in order.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Profile,
        Self::ProviderProfile,
        Self::GlobalAllow,
        Self::ProviderAllow,
        Self::AgentAllow,
        Self::AgentProviderAllow,
        Self::GroupAllow,
        Self::GlobalDeny,
        Self::AgentDeny,
        Self::GlobalAlsoAllow,
        Self::AgentAlsoAllow,
        Self::StoredAgentAllow,
        Self::StoredAgentProviderAllow,
        Self::StoredAgentDeny,
        Self::TenantAllow,
        Self::TenantDeny,
        Self::SubagentDeny,
        Self::LeafDeny,
        Self::RequestAllow,
    ];

    /// The kind of the step.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Profile | Self::ProviderProfile => Kind::Profile,
            Self::GlobalAllow
            | Self::ProviderAllow
            | Self::AgentAllow
            | Self::AgentProviderAllow
            | Self::GroupAllow
            | Self::StoredAgentAllow
            | Self::StoredAgentProviderAllow
            | Self::TenantAllow
            | Self::RequestAllow => Kind::Allow,
            Self::GlobalDeny
            | Self::AgentDeny
            | Self::StoredAgentDeny
            | Self::TenantDeny
            | Self::SubagentDeny
            | Self::LeafDeny => Kind::Deny,
            Self::GlobalAlsoAllow | Self::AgentAlsoAllow => Kind::AlsoAllow,
        }
    }

    /// The step's name in listings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Profile => "profile",
            Self::ProviderProfile => "provider profile",
            Self::GlobalAllow => "global allow",
            Self::ProviderAllow => "provider allow",
            Self::AgentAllow => "agent allow",
            Self::AgentProviderAllow => "agent and provider allow",
            Self::GroupAllow => "group allow",
            Self::GlobalDeny => "global deny",
            Self::AgentDeny => "agent deny",
            Self::GlobalAlsoAllow => "global also_allow",
            Self::AgentAlsoAllow => "agent also_allow",
            Self::StoredAgentAllow => "stored agent allow",
            Self::StoredAgentProviderAllow => "stored agent and provider allow",
            Self::StoredAgentDeny => "stored agent deny",
            Self::TenantAllow => "tenant allow",
            Self::TenantDeny => "tenant deny",
            Self::SubagentDeny => "subagent deny",
            Self::LeafDeny => "leaf deny",
            Self::RequestAllow => "request allow",
        }
    }
}

impl Kind {
    /// The use of the step's list.
    pub const fn list_use(self) -> Use {
        match self {
            Self::Deny => Use::Deny,
            Self::Profile | Self::Allow | Self::AlsoAllow => Use::Allow,
        }
    }

    /// Returns whether standing tools are exempt.
    pub const fn spares_standing(self) -> bool {
        matches!(self, Self::Profile | Self::Allow)
    }
}
