//! Rules that a person gave with a yes: what is covered by one is not asked again.
//!
//! What a rule covers is its own business and JSON to the store, which knows for whom it holds, until when,
//! and whether it was revoked.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Answer, Approval, Changes, NewApproval, StoreError};
use crate::id::{AgentId, ApprovalId, RuleId, SessionKey, TenantId, ToolName};
use crate::port::UnixMillis;

/// For whom a rule holds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "scope", rename_all = "lowercase")]
pub enum RuleScope {
    /// One agent in one conversation.
    Session {
        /// Which agent.
        agent: AgentId,
        /// Which conversation.
        session: SessionKey,
    },
    /// One agent, in all its conversations.
    Agent {
        /// Which agent.
        agent: AgentId,
    },
    /// Every agent of the tenant.
    Tenant,
}

impl RuleScope {
    /// The kind of scope as a word.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Session { .. } => "session",
            Self::Agent { .. } => "agent",
            Self::Tenant => "tenant",
        }
    }

    /// The agent that it is about.
    pub const fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::Session { agent, .. } | Self::Agent { agent } => Some(agent),
            Self::Tenant => None,
        }
    }

    /// The conversation that it is about.
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
    /// Whose data it is.
    pub tenant: TenantId,
    /// For whom it holds.
    #[serde(flatten)]
    pub scope: RuleScope,
    /// Which tool it is about.
    pub tool: ToolName,
    /// What it covers, as whoever judges a call by it reads it.
    pub rule: Value,
    /// What it covers, as a person reads it.
    pub text: String,
    /// Who gave it.
    pub by: String,
    /// The question it was given with; `None` where it was written down by itself.
    pub approval: Option<ApprovalId>,
    /// When it was given.
    pub created: UnixMillis,
    /// From when on it holds no more; `None` where it has no end.
    pub expires: Option<UnixMillis>,
}

impl NewRule {
    /// Why this rule cannot be given with a yes to this question; it must not reach past who asked.
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
    /// What was given.
    #[serde(flatten)]
    pub new: NewRule,
    /// How often a call was let pass by it.
    pub uses: u64,
    /// When one was last.
    pub last_used: Option<UnixMillis>,
    /// When it was revoked; `None` where it was not.
    pub revoked: Option<UnixMillis>,
}

impl Rule {
    /// `live`, `expired` or `revoked`.
    pub fn state(&self, now: UnixMillis) -> &'static str {
        match (self.revoked, self.new.expires) {
            (Some(_), _) => "revoked",
            (None, Some(expires)) if expires <= now => "expired",
            _ => "live",
        }
    }
}

/// Keeps remembered rules; that one was given or revoked is told as
/// [`Topic::Approvals`](super::Topic::Approvals), that one was used is not.
#[async_trait]
pub trait Rules: Changes {
    /// Stores a rule. One whose id was put before is left as it is.
    async fn put_rule(&self, new: NewRule) -> Result<(), StoreError>;
    /// Answers a question with yes and stores the rule that was given with it, both or neither: where the
    /// question cannot be answered any more, because it expired, for one, there is no rule either. Refused
    /// where the answer is no, where the rule does not [fit](NewRule::misfit) the question, and where its id
    /// is taken. The rule is stored as given with this question.
    async fn answer_with_rule(
        &self,
        tenant: &TenantId,
        id: ApprovalId,
        answer: Answer,
        rule: NewRule,
    ) -> Result<Approval, StoreError>;
    /// The rules that hold for this agent in this conversation at `now`, oldest first.
    async fn rules(
        &self,
        tenant: &TenantId,
        agent: &AgentId,
        session: &SessionKey,
        now: UnixMillis,
    ) -> Result<Vec<Rule>, StoreError>;
    /// Every rule of a tenant, oldest first, those that hold no more included.
    async fn all_rules(&self, tenant: &TenantId) -> Result<Vec<Rule>, StoreError>;
    /// Ends a rule. The first time stands; [`StoreError::RuleState`] where there is none of that id.
    async fn revoke_rule(&self, tenant: &TenantId, id: RuleId, at: UnixMillis) -> Result<Rule, StoreError>;
    /// Counts that a call was let pass by a rule. [`StoreError::RuleState`], and nothing counted, where it
    /// holds no more at `now`: the call must not pass by it.
    async fn use_rule(&self, tenant: &TenantId, id: RuleId, now: UnixMillis) -> Result<Rule, StoreError>;
}
