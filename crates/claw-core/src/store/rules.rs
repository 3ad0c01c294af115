//! Rules that a person gave with a yes: a call that a rule covers needs no further approval.
//!
//! The coverage of a rule is opaque JSON to the store, which knows only the rule's scope, its expiry, and
//! whether it was revoked.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Answer, Approval, Changes, NewApproval, StoreError};
use crate::id::{AgentId, ApprovalId, RuleId, SessionKey, TenantId, ToolName};
use crate::port::UnixMillis;

/// The scope of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "scope", rename_all = "lowercase")]
pub enum RuleScope {
    /// One agent in one session.
    Session {
        /// The agent.
        agent: AgentId,
        /// The session.
        session: SessionKey,
    },
    /// One agent in all its sessions.
    Agent {
        /// The agent.
        agent: AgentId,
    },
    /// Every agent of the tenant.
    Tenant,
}

impl RuleScope {
    /// Returns the kind of scope as a word.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Session { .. } => "session",
            Self::Agent { .. } => "agent",
            Self::Tenant => "tenant",
        }
    }

    /// Returns the agent it is limited to; `None` for all.
    pub const fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::Session { agent, .. } | Self::Agent { agent } => Some(agent),
            Self::Tenant => None,
        }
    }

    /// Returns the session it is limited to; `None` for all.
    pub const fn session(&self) -> Option<&SessionKey> {
        match self {
            Self::Session { session, .. } => Some(session),
            Self::Agent { .. } | Self::Tenant => None,
        }
    }
}

impl fmt::Display for RuleScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session { agent, session } => write!(f, "agent `{agent}` in `{session}`"),
            Self::Agent { agent } => write!(f, "agent `{agent}`"),
            Self::Tenant => f.write_str("every agent"),
        }
    }
}

/// A rule before it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewRule {
    /// Its id. The same id put again is the same rule.
    pub id: RuleId,
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// The scope.
    #[serde(flatten)]
    pub scope: RuleScope,
    /// The tool.
    pub tool: ToolName,
    /// The covered calls, in the form that the policy reads.
    pub rule: Value,
    /// The covered calls, for people.
    pub text: String,
    /// The person who gave it.
    pub by: String,
    /// The approval it was given with; `None` if it was created by itself.
    pub approval: Option<ApprovalId>,
    /// The time it was given.
    pub created: UnixMillis,
    /// The time of its expiry; `None` for never.
    pub expires: Option<UnixMillis>,
}

impl NewRule {
    /// Returns the reason why this rule cannot be given with a yes to this approval: its scope or tool is not
    /// the approval's. `None` if it can.
    pub fn misfit(&self, asked: &NewApproval) -> Option<&'static str> {
        let outside = self.scope.agent().is_some_and(|agent| *agent != asked.agent)
            || self.scope.session().is_some_and(|session| *session != asked.session);
        if self.tenant != asked.tenant || outside {
            return Some("the rule is for someone else than who asked; give it the asker's scope");
        }
        (self.tool != asked.tool).then_some("the rule is about another tool; give it the one that is asked")
    }
}

/// A stored rule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rule {
    /// The rule as it was given.
    #[serde(flatten)]
    pub new: NewRule,
    /// The number of calls that it allowed.
    pub uses: u64,
    /// The time of the last such call; `None` if there is none.
    pub last_used: Option<UnixMillis>,
    /// The time it was revoked; `None` if it was not.
    pub revoked: Option<UnixMillis>,
}

impl Rule {
    /// Returns `live`, `expired` or `revoked`.
    pub fn state(&self, now: UnixMillis) -> &'static str {
        match (self.revoked, self.new.expires) {
            (Some(_), _) => "revoked",
            (None, Some(expires)) if expires <= now => "expired",
            _ => "live",
        }
    }
}

/// Stores remembered rules; giving and revoking one is announced as
/// [`Topic::Approvals`](super::Topic::Approvals), using one is not.
#[async_trait]
pub trait Rules: Changes {
    /// Stores a rule. If its id exists, nothing changes.
    async fn put_rule(&self, new: NewRule) -> Result<(), StoreError>;
    /// Answers an approval with yes and stores the rule given with it, both or neither: if the approval can
    /// no longer be answered, because it expired for instance, the rule is not stored. Refused if the answer
    /// is no, if the rule does not [fit](NewRule::misfit) the approval, and if its id is taken. The stored
    /// rule names this approval.
    async fn answer_with_rule(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        answer: Answer,
        rule: NewRule,
    ) -> Result<Approval, StoreError>;
    /// Returns the live rules for this agent in this session at `now`, oldest first.
    async fn rules(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
        session: &SessionKey,
        now: UnixMillis,
    ) -> Result<Vec<Rule>, StoreError>;
    /// Returns every rule of a tenant, oldest first, including expired and revoked ones.
    async fn all_rules(&self, tenant: &TenantId) -> Result<Vec<Rule>, StoreError>;
    /// Revokes a rule. The first time stands; [`StoreError::RuleState`] if there is no rule with that id.
    async fn revoke_rule(&self, tenant: &TenantId, id: RuleId, at: UnixMillis) -> Result<Rule, StoreError>;
    /// Counts a call that a rule allows. [`StoreError::RuleState`], and nothing counted, if the rule is not
    /// live at `now`: the call must not pass.
    async fn use_rule(&self, tenant: &TenantId, id: RuleId, now: UnixMillis) -> Result<Rule, StoreError>;
}
