//! The steps a policy takes, in their order.

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
    /// The stored agent's `allow`, where it only narrows.
    StoredAgentAllow,
    /// The stored agent's `by_provider.{provider}.allow`, where it only narrows.
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

/// What a step does with tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Keeps what a profile includes.
    Profile,
    /// Keeps what a list names.
    Allow,
    /// Removes what a list names.
    Deny,
    /// Adds what a list names.
    AlsoAllow,
}

impl Step {
    /// How many there are.
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

    /// What it does with tools.
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

    /// What listings call it.
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
    /// What the entries of its list mean.
    pub const fn list_use(self) -> Use {
        match self {
            Self::Deny => Use::Deny,
            Self::Profile | Self::Allow | Self::AlsoAllow => Use::Allow,
        }
    }

    /// Whether a standing tool passes by.
    pub const fn spares_standing(self) -> bool {
        matches!(self, Self::Profile | Self::Allow)
    }
}
