//! Permissions: what a key may do over a network, by its scopes and the role of its user.

use claw_core::store::{AccessRole, KeyScope};

/// An operation over a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Act for other users of the tenant, and name the channel and chat that a call comes from.
    ActForUsers,
    /// See which tools an agent has.
    ReadTools,
    /// Call tools.
    CallTools,
    /// Read one's own sessions and runs, and follow them.
    ReadSessions,
    /// Send messages, and stop one's own runs.
    WriteSessions,
    /// See pending approvals.
    ReadApprovals,
    /// Answer approvals.
    AnswerApprovals,
    /// See agents.
    ReadAgents,
    /// See and search skills.
    ReadSkills,
    /// Accept, grant and remove skills.
    ManageSkills,
    /// Read the ledger, usage and changes that can be undone.
    ReadLedger,
    /// Search and read memory: one's own, the agent's, the tenant's.
    ReadMemory,
    /// Write and remove one's own memory documents.
    WriteMemory,
    /// Write and remove memory documents of agents and of the tenant.
    WriteSharedMemory,
    /// See the rules of the deployment, and the effect of other rules.
    ReadPolicy,
    /// Add, change and remove agents and their context files.
    WriteAgents,
    /// See settings of tools, providers, programs and the names of secrets.
    ReadSettings,
    /// Change settings of tools, secrets and the tenant's rules.
    WriteSettings,
    /// See and revoke remembered rules.
    ManageRules,
    /// See the state of the deployment: metrics.
    ReadMetrics,
    /// See and change keys, users and tenants.
    ManageAccess,
    /// See, define and change custom tools, if [`App::may_define_tools`](crate::app::App::may_define_tools) allows the visitor.
    DefineTools,
    /// Read the ledger entries, usage and changes of all users of the tenant.
    ReadTenantLedger,
    /// Check the tenant's whole ledger.
    VerifyLedger,
    /// Undo changes of all users of the tenant.
    UndoForTenant,
    /// See the approvals of all users of the tenant.
    ReadTenantApprovals,
    /// Answer the approvals of all users of the tenant, grant directories with an answer, and remember rules for more than a
    /// session or in the session of a group.
    AnswerForTenant,
    /// See the runs of all users of the tenant.
    ReadTenantRuns,
    /// Stop the runs of all users of the tenant.
    StopTenantRuns,
    /// Follow the events of all sessions of the tenant.
    FollowTenant,
    /// Ask for access to an MCP server.
    RequestMcp,
    /// See and change MCP servers, and who may use them.
    ManageMcp,
    /// Define servers that start programs on this machine or reach private addresses, and credentialed programs.
    DefinePrograms,
}

impl Permission {
    /// Every permission.
    pub const ALL: [Self; 33] = [
        Self::ActForUsers,
        Self::ReadTools,
        Self::CallTools,
        Self::ReadSessions,
        Self::WriteSessions,
        Self::ReadApprovals,
        Self::AnswerApprovals,
        Self::ReadAgents,
        Self::ReadSkills,
        Self::ManageSkills,
        Self::ReadLedger,
        Self::ReadMemory,
        Self::WriteMemory,
        Self::WriteSharedMemory,
        Self::ReadPolicy,
        Self::WriteAgents,
        Self::ReadSettings,
        Self::WriteSettings,
        Self::ManageRules,
        Self::ReadMetrics,
        Self::ManageAccess,
        Self::DefineTools,
        Self::ReadTenantLedger,
        Self::VerifyLedger,
        Self::UndoForTenant,
        Self::ReadTenantApprovals,
        Self::AnswerForTenant,
        Self::ReadTenantRuns,
        Self::StopTenantRuns,
        Self::FollowTenant,
        Self::RequestMcp,
        Self::ManageMcp,
        Self::DefinePrograms,
    ];

    /// Whether this concerns single agents, so that a key that is limited to some may have it for those. Everything else
    /// concerns the whole tenant, and a limited key has none of it.
    pub const fn is_of_agents(self) -> bool {
        match self {
            Self::ActForUsers
            | Self::ReadTools
            | Self::CallTools
            | Self::ReadSessions
            | Self::WriteSessions
            | Self::ReadApprovals
            | Self::AnswerApprovals
            | Self::ReadAgents
            | Self::ReadSkills
            | Self::ReadLedger
            | Self::ReadMemory
            | Self::WriteMemory
            | Self::ReadTenantLedger
            | Self::UndoForTenant
            | Self::ReadTenantApprovals
            | Self::AnswerForTenant
            | Self::ReadTenantRuns
            | Self::StopTenantRuns => true,
            Self::ManageSkills
            | Self::WriteSharedMemory
            | Self::ReadPolicy
            | Self::WriteAgents
            | Self::ReadSettings
            | Self::WriteSettings
            | Self::ManageRules
            | Self::ReadMetrics
            | Self::ManageAccess
            | Self::DefineTools
            | Self::VerifyLedger
            | Self::FollowTenant
            | Self::RequestMcp
            | Self::ManageMcp
            | Self::DefinePrograms => false,
        }
    }

    /// The scope that a key needs and the role that its user needs: both.
    pub const fn needs(self) -> (KeyScope, AccessRole) {
        match self {
            Self::ActForUsers => (KeyScope::ActForUsers, AccessRole::Admin),
            Self::ReadTools | Self::ReadSkills => (KeyScope::ReadTools, AccessRole::Viewer),
            Self::CallTools => (KeyScope::CallTools, AccessRole::Operator),
            Self::ReadSessions => (KeyScope::ReadSessions, AccessRole::Viewer),
            Self::WriteSessions => (KeyScope::WriteSessions, AccessRole::Operator),
            Self::ReadApprovals => (KeyScope::ReadApprovals, AccessRole::Viewer),
            Self::AnswerApprovals => (KeyScope::AnswerApprovals, AccessRole::Operator),
            Self::ReadAgents => (KeyScope::ReadAgents, AccessRole::Viewer),
            Self::ReadLedger => (KeyScope::ReadLedger, AccessRole::Operator),
            Self::ReadMemory => (KeyScope::ReadMemory, AccessRole::Viewer),
            Self::WriteMemory => (KeyScope::WriteMemory, AccessRole::Operator),
            Self::WriteSharedMemory => (KeyScope::WriteMemory, AccessRole::Admin),
            Self::RequestMcp => (KeyScope::CallTools, AccessRole::Operator),
            Self::ReadPolicy | Self::ReadSettings => (KeyScope::ReadSettings, AccessRole::Admin),
            Self::WriteAgents => (KeyScope::WriteAgents, AccessRole::Admin),
            Self::WriteSettings => (KeyScope::WriteSettings, AccessRole::Admin),
            Self::ManageRules => (KeyScope::AnswerApprovals, AccessRole::Admin),
            Self::ReadMetrics => (KeyScope::ReadMetrics, AccessRole::Viewer),
            Self::DefinePrograms => (KeyScope::Admin, AccessRole::Owner),
            Self::ReadTenantLedger | Self::VerifyLedger => (KeyScope::ReadLedger, AccessRole::Admin),
            Self::UndoForTenant => (KeyScope::CallTools, AccessRole::Admin),
            Self::ReadTenantApprovals => (KeyScope::ReadApprovals, AccessRole::Admin),
            Self::AnswerForTenant => (KeyScope::AnswerApprovals, AccessRole::Admin),
            Self::ReadTenantRuns | Self::FollowTenant => (KeyScope::ReadSessions, AccessRole::Admin),
            Self::StopTenantRuns => (KeyScope::WriteSessions, AccessRole::Admin),
            Self::ManageSkills | Self::ManageAccess | Self::DefineTools | Self::ManageMcp => {
                (KeyScope::Admin, AccessRole::Admin)
            }
        }
    }
}

#[cfg(test)]
mod tests;
