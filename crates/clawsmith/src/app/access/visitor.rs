//! Visitors: clients that presented a valid key, and the callers they act as.

use std::sync::Arc;

use claw_agent::Peer;
use claw_core::store::{AccessRole, Admitted, KeyLimits, KeyScope, KeyScopes};
use claw_core::tool::Caller;
use claw_core::{AgentId, JobId, KeyId, SessionKey, TenantId, UserId};

use super::{CHANNEL, Permission};
use crate::app::{App, Error};

/// A client that presented a valid key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visitor {
    /// The key.
    pub key: KeyId,
    /// The tenant that the key leads into.
    pub tenant: TenantId,
    /// The user that the key belongs to; `None` for a program that acts for no user.
    pub user: Option<UserId>,
    /// The role of the user. A key without a user has that of an operator, or of an admin with the scope `admin`.
    pub role: AccessRole,
    /// The scopes of the key.
    pub scopes: KeyScopes,
    /// Limits of the key.
    pub limits: KeyLimits,
}

impl Visitor {
    /// Checks that the visitor has a permission. The error names what is missing.
    pub fn may(&self, permission: Permission) -> Result<(), Error> {
        let (scope, role) = permission.needs();
        if !self.scopes.allow(scope) {
            return Err(Error::invalid(format!("this key does not have the scope `{scope}`"))
                .hint("use a key that has it: `clawsmith api-keys create --scope`")
                .refusing());
        }
        if self.role < role {
            return Err(Error::invalid(format!(
                "this needs the role `{role}`, and the key's user has the role `{}`",
                self.role
            ))
            .hint("ask an administrator")
            .refusing());
        }
        if !permission.is_of_agents() {
            self.is_for_all_agents()?;
        }
        Ok(())
    }

    /// Whether the visitor has a permission.
    pub fn has(&self, permission: Permission) -> bool {
        self.may(permission).is_ok()
    }

    /// Whether something of this agent and user is shown to the visitor: their own or, with the permission `of_all`, that of
    /// everyone in the tenant. A key that is limited to agents is shown nothing of any other.
    pub fn sees(&self, of_all: Permission, agent: &AgentId, user: Option<&UserId>) -> bool {
        self.may_use(agent).is_ok() && (user == self.user.as_ref() || self.has(of_all))
    }

    /// Checks that the visitor may grant this role, or a key of a user who has it: nobody grants more than
    /// they have, and a limited key grants nothing.
    pub fn may_give(&self, role: AccessRole) -> Result<(), Error> {
        if self.limits != KeyLimits::default() {
            return Err(Error::invalid("a restricted key cannot change keys, users or tenants").refusing());
        }
        if role > self.role {
            return Err(Error::invalid(format!(
                "this concerns the role `{role}`, and the key's user has the role `{}`",
                self.role
            ))
            .hint("ask somebody who has it")
            .refusing());
        }
        Ok(())
    }

    /// Checks that the key is not limited to some agents: what follows is about all of them.
    pub fn is_for_all_agents(&self) -> Result<(), Error> {
        match &self.limits.agents {
            None => Ok(()),
            Some(_) => Err(Error::invalid(
                "this key is restricted to some agents, but this request concerns all agents",
            )
            .hint("use a key without `--agent`")
            .refusing()),
        }
    }

    /// Checks that this agent may be used with the key.
    pub fn may_use(&self, agent: &AgentId) -> Result<(), Error> {
        match &self.limits.agents {
            Some(agents) if !agents.contains(agent) => {
                Err(Error::invalid(format!("this key cannot be used with the agent `{agent}`"))
                    .hint("use a key that can: `clawsmith api-keys create --agent`")
                    .refusing())
            }
            _ => Ok(()),
        }
    }

    /// Returns the session of this key, if it is one of the visitor's own with this agent.
    pub fn own_session(&self, agent: &AgentId, session: &str) -> Result<SessionKey, Error> {
        session_of(self, agent, Some(session))
    }

    /// The key of a session of the visitor's own, by a name.
    pub fn session_named(&self, agent: Option<&str>, name: &str) -> Result<String, Error> {
        let agent =
            AgentId::new(agent.unwrap_or("default")).map_err(|error| Error::invalid(error.to_string()))?;
        let user = self.name();
        let key = claw_agent::key(&agent, CHANNEL, Peer::Direct { user: &user, chat: Some(name) });
        key.map(|key| key.to_string()).map_err(|error| Error::invalid(error.to_string()))
    }

    /// The name that answers and changes are recorded with.
    pub fn name(&self) -> String {
        self.user.as_ref().map_or_else(|| format!("key:{}", self.key), ToString::to_string)
    }
}

impl From<Admitted> for Visitor {
    fn from(Admitted { key, tenant, user, scopes, limits }: Admitted) -> Self {
        let (user, role) = match user {
            Some((user, role)) => (Some(user), role),
            None if scopes.allow(KeyScope::Admin) => (None, AccessRole::Admin),
            None => (None, AccessRole::Operator),
        };
        Self { key, tenant, user, role, scopes, limits }
    }
}

/// A visitor's request to call a tool or to send a message.
#[derive(Debug, Clone, Default)]
pub struct CallerWish<'a> {
    /// The agent; `None` means the deployment's `default`.
    pub agent: Option<&'a str>,
    /// A session of the visitor's own to continue; `None` begins a new one.
    pub session: Option<&'a str>,
}

impl App {
    /// Builds the caller that a visitor acts as: tenant and user are the key's, the workspace is the agent's own for that
    /// user, and the channel is never `cli`. A session that is named must be the visitor's own.
    pub async fn caller_of(&self, visitor: &Visitor, wish: &CallerWish<'_>) -> Result<Caller, Error> {
        let app = self.of_tenant(&visitor.tenant);
        let name = wish.agent.unwrap_or("default");
        let agent = AgentId::new(name).map_err(|error| Error::invalid(format!("`{name}`: {error}")))?;
        if name != "default" {
            app.must_have_agent(name).await?;
        }
        let session = session_of(visitor, &agent, wish.session)?;
        let mut caller = Caller::new(agent, session, "/");
        caller.tenant = visitor.tenant.clone();
        caller.user = visitor.user.clone();
        caller.channel = CHANNEL.into();
        self.setup().config().sandbox.sandboxing().apply(&mut caller);
        caller.workspace = self.setup().managed_workspace(&caller)?;
        caller.config = Arc::new(self.setup().config().tool_settings());
        Ok(caller)
    }
}

/// Returns the named session, if it is the visitor's own; a new one if none is named.
fn session_of(visitor: &Visitor, agent: &AgentId, named: Option<&str>) -> Result<SessionKey, Error> {
    visitor.may_use(agent)?;
    let user = visitor.name();
    let key = |chat: Option<&str>| claw_agent::key(agent, CHANNEL, Peer::Direct { user: &user, chat });
    let invalid = |error: claw_core::InvalidId| Error::invalid(error.to_string());
    let Some(named) = named else {
        return key(Some(&JobId::new().to_string())).map_err(invalid);
    };
    let own = key(None).map_err(invalid)?;
    let rest = named.strip_prefix(own.as_str());
    if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':')) {
        return SessionKey::new(named).map_err(invalid);
    }
    Err(Error::invalid(format!(
        "there is no session `{}` of yours with the agent `{agent}`",
        shortened(named)
    ))
    .hint("leave it out to start a new one"))
}

fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visitor(user: &str) -> Visitor {
        Visitor {
            key: KeyId::new(),
            tenant: TenantId::main(),
            user: Some(UserId::new(user).unwrap()),
            role: AccessRole::Viewer,
            scopes: "tools:read tools:call".parse().unwrap(),
            limits: KeyLimits::default(),
        }
    }

    #[test]
    fn a_session_of_somebody_else_is_refused() {
        let agent = AgentId::new("a").unwrap();
        let ann = visitor("ann");
        let own = session_of(&ann, &agent, None).unwrap();
        assert!(own.as_str().starts_with("agent:a:http:direct:ann:"), "{own}");
        assert_eq!(session_of(&ann, &agent, Some(own.as_str())).unwrap(), own);
        for foreign in [
            "agent:a:http:direct:annabel",
            "agent:a:http:direct:ben:1",
            "agent:b:http:direct:ann:1",
            "agent:a:cli:direct:ann",
            "agent:a:http:group:ann",
            "cli:ann",
            "",
        ] {
            assert!(session_of(&ann, &agent, Some(foreign)).is_err(), "{foreign}");
        }
    }

    #[test]
    fn a_scope_without_the_role_and_a_role_without_the_scope_are_not_enough() {
        let viewer = visitor("ann");
        assert!(viewer.may(Permission::ReadTools).is_ok());
        let error = viewer.may(Permission::CallTools).unwrap_err();
        assert!(error.message().contains("needs the role `operator`"), "{error}");
        let error = viewer.may(Permission::ReadLedger).unwrap_err();
        assert!(error.message().contains("does not have the scope `ledger:read`"), "{error}");
    }
}
