//! Visitors: clients that presented a valid key, and the callers they act as.

use std::sync::Arc;

use claw_agent::Peer;
use claw_core::store::{AccessRole, Admitted, KeyLimits, KeyScope, KeyScopes, User};
use claw_core::tool::{Caller, PeerKind};
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
    /// The name of the key's own user, if the key acts for another one; `None` if it acts for its own.
    pub by: Option<String>,
}

impl Visitor {
    /// The visitor that acts for this user of the same tenant: with the lower of both roles, and with the key's scopes and
    /// limits.
    pub(super) fn acting_for(&self, user: &User) -> Self {
        let (by, role) = (Some(self.name()), self.role.min(user.role));
        Self { user: Some(user.id.clone()), role, by, ..self.clone() }
    }

    /// Checks that the key may act for this user: acting for somebody with a higher role would show the messages, memory and
    /// logins of that person.
    pub(super) fn may_act_as(&self, user: &User) -> Result<(), Error> {
        if user.role <= self.role {
            return Ok(());
        }
        let (id, role, own) = (&user.id, user.role, self.role);
        let what = format!("the user `{id}` has the role `{role}`, and the key's user has the role `{own}`");
        Err(Error::invalid(what)
            .hint(format!(
                "act for users up to the role `{own}`, or use a key of a user with the role `{role}`"
            ))
            .refusing())
    }

    /// The user that the key acts for, if that is not its own.
    pub fn acts_for(&self) -> Option<&UserId> {
        self.by.as_ref().and(self.user.as_ref())
    }

    /// Checks that the visitor may name the channel and the chat that a call comes from, and then their names.
    pub fn may_name(&self, place: &CallPlace<'_>) -> Result<(), Error> {
        // A key that acts for somebody has the permission, whoever that is.
        if self.by.is_none() {
            self.may(Permission::ActForUsers)?;
        }
        place.check()
    }

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
            return Err(Error::invalid("a restricted key cannot change keys, users or tenants")
                .hint("use a key without `--agent` and `--per-minute`")
                .refusing());
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
        session_of(self, agent, &CallPlace::default(), Some(session))
    }

    /// The key of a session of the visitor's own in this place, by a name; that of the group in a group.
    pub fn session_named(
        &self,
        agent: Option<&str>,
        place: &CallPlace<'_>,
        name: &str,
    ) -> Result<String, Error> {
        let agent =
            AgentId::new(agent.unwrap_or("default")).map_err(|error| Error::invalid(error.to_string()))?;
        Ok(place.session(self, &agent, Some(name))?.to_string())
    }

    /// The name of the user, as their sessions have it.
    pub fn name(&self) -> String {
        self.user.as_ref().map_or_else(|| format!("key:{}", self.key), ToString::to_string)
    }

    /// The name that answers and changes are recorded with: that of the user and, if the key acts for another, of the key's
    /// own user.
    pub fn signature(&self) -> String {
        match &self.by {
            Some(by) => format!("{}, by {by}", self.name()),
            None => self.name(),
        }
    }
}

impl From<Admitted> for Visitor {
    fn from(Admitted { key, tenant, user, scopes, limits }: Admitted) -> Self {
        let (user, role) = match user {
            Some((user, role)) => (Some(user), role),
            None if scopes.allow(KeyScope::Admin) => (None, AccessRole::Admin),
            None => (None, AccessRole::Operator),
        };
        Self { key, tenant, user, role, scopes, limits, by: None }
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

/// The channel and the chat that a call comes from.
#[derive(Debug, Clone, Default)]
pub struct CallPlace<'a> {
    /// The channel; `None` means [`CHANNEL`].
    pub channel: Option<&'a str>,
    /// The chat within the channel.
    pub chat: Option<&'a str>,
    /// One person or several.
    pub peer: PeerKind,
}

impl CallPlace<'_> {
    /// The longest name of a channel, in bytes.
    const LONGEST_CHANNEL: usize = 64;
    /// The longest id of a chat, in bytes: it is a part of the session's key, in which a character may take three times as many.
    const LONGEST_CHAT: usize = 64;
    /// The channel of the terminal of this machine, which no request can name.
    const TERMINAL: &'static str = "cli";

    fn channel(&self) -> &str {
        self.channel.unwrap_or(CHANNEL)
    }

    /// Checks the names of a place that a request gives.
    fn check(&self) -> Result<(), Error> {
        if let Some(channel) = self.channel {
            if channel.trim().eq_ignore_ascii_case(Self::TERMINAL) {
                let what = "the channel `cli` belongs to the terminal of this machine and cannot be claimed";
                return Err(Error::invalid(what).hint("name the channel of the message").refusing());
            }
            let is_plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
            if channel.is_empty() || channel.len() > Self::LONGEST_CHANNEL || !channel.bytes().all(is_plain) {
                let most = Self::LONGEST_CHANNEL;
                return Err(Error::invalid("`channel` is not a valid name")
                    .hint(format!("use 1 to {most} small letters, digits, `-` and `_`")));
            }
        }
        let most = Self::LONGEST_CHAT;
        if let Some(chat) = self.chat.filter(|chat| chat.len() > most) {
            return Err(Error::invalid(format!(
                "`chatId` has {} bytes; at most {most} are accepted",
                chat.len()
            ))
            .hint("use a shorter id, such as a digest of this one"));
        }
        if self.chat.is_some_and(|chat| chat.is_empty() || chat.chars().any(char::is_control)) {
            return Err(Error::invalid("`chatId` is not a valid name")
                .hint(format!("use 1 to {most} bytes without control characters")));
        }
        if self.peer == PeerKind::Group && self.chat.is_none() {
            return Err(Error::invalid("`peerKind` is `group`, but `chatId` is missing")
                .hint("name the group's chat"));
        }
        Ok(())
    }

    /// The key of the session that an agent has with the visitor here, or with the group; by a name for one of several.
    fn session(&self, visitor: &Visitor, agent: &AgentId, named: Option<&str>) -> Result<SessionKey, Error> {
        let user = visitor.name();
        let peer = match (self.peer, self.chat) {
            (PeerKind::Group, Some(chat)) => Peer::Group { chat },
            _ => Peer::Direct { user: &user, chat: named },
        };
        claw_agent::key(agent, self.channel(), peer).map_err(|error| {
            Error::invalid(format!("there can be no such session: {error}"))
                .hint("use shorter names for the agent, the channel and the chat")
        })
    }
}

impl App {
    /// Builds the caller that a visitor acts as: tenant and user are the key's, the workspace is the agent's own for that
    /// user, and the channel is never `cli`. A session that is named must be the visitor's own.
    pub async fn caller_of(&self, visitor: &Visitor, wish: &CallerWish<'_>) -> Result<Caller, Error> {
        self.caller_in(visitor, wish, &CallPlace::default()).await
    }

    /// Builds the same caller for a call that comes from a named place, whose session is that of the place. Only a visitor who
    /// may act for others names one, and the channel is never `cli`.
    pub async fn caller_at(
        &self,
        visitor: &Visitor,
        wish: &CallerWish<'_>,
        place: &CallPlace<'_>,
    ) -> Result<Caller, Error> {
        visitor.may_name(place)?;
        self.caller_in(visitor, wish, place).await
    }

    async fn caller_in(
        &self,
        visitor: &Visitor,
        wish: &CallerWish<'_>,
        place: &CallPlace<'_>,
    ) -> Result<Caller, Error> {
        let app = self.of_tenant(&visitor.tenant);
        let name = wish.agent.unwrap_or("default");
        let agent = AgentId::new(name).map_err(|error| Error::invalid(format!("`{name}`: {error}")))?;
        if name != "default" {
            app.must_have_agent(name).await?;
        }
        let session = session_of(visitor, &agent, place, wish.session)?;
        let mut caller = Caller::new(agent, session, "/");
        caller.tenant = visitor.tenant.clone();
        caller.user = visitor.user.clone();
        caller.channel = place.channel().into();
        caller.chat_id = place.chat.map(Into::into);
        caller.peer_kind = place.peer;
        self.setup().config().sandbox.sandboxing().apply(&mut caller);
        caller.workspace = self.setup().managed_workspace(&caller)?;
        caller.config = Arc::new(self.setup().config().tool_settings());
        Ok(caller)
    }
}

/// Returns the named session, if it is the visitor's own in this place; a new one if none is named.
fn session_of(
    visitor: &Visitor,
    agent: &AgentId,
    place: &CallPlace<'_>,
    named: Option<&str>,
) -> Result<SessionKey, Error> {
    visitor.may_use(agent)?;
    let Some(named) = named else {
        return place.session(visitor, agent, Some(&JobId::new().to_string()));
    };
    let own = place.session(visitor, agent, None)?;
    let rest = named.strip_prefix(own.as_str());
    if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':')) {
        return SessionKey::new(named).map_err(|error| Error::invalid(error.to_string()));
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
            by: None,
        }
    }

    #[test]
    fn a_named_place_has_its_own_session_and_is_never_the_terminal() {
        let (agent, ann) = (AgentId::new("a").unwrap(), visitor("ann"));
        let direct = CallPlace { channel: Some("telegram"), chat: Some("7"), peer: PeerKind::Direct };
        let group = CallPlace { peer: PeerKind::Group, ..direct.clone() };
        let own = |place: &CallPlace<'_>, named: Option<&str>| {
            session_of(&ann, &agent, place, named).map(|key| key.to_string())
        };
        assert_eq!(own(&group, None).unwrap(), "agent:a:telegram:group:7");
        assert!(own(&direct, None).unwrap().starts_with("agent:a:telegram:direct:ann:"));
        assert!(own(&direct, Some("agent:a:telegram:direct:ann:1")).is_ok());
        for foreign in
            ["agent:a:http:direct:ann:1", "agent:a:telegram:direct:ben", "agent:a:telegram:group:7"]
        {
            assert!(own(&direct, Some(foreign)).is_err(), "{foreign}");
        }
        let channel = |name: &'static str| CallPlace { channel: Some(name), ..CallPlace::default() }.check();
        for name in ["cli", "CLI", " cli", "cli ", "", "a:b", "a b", "Telegram"] {
            assert!(channel(name).is_err(), "{name:?}");
        }
        assert!(channel("telegram").is_ok() && direct.check().is_ok() && group.check().is_ok());
        assert!(CallPlace { peer: PeerKind::Group, ..CallPlace::default() }.check().is_err());
        assert!(CallPlace { chat: Some("a\nb"), ..CallPlace::default() }.check().is_err());
        // The longest id fits a key, however it is escaped.
        let longest = ":".repeat(CallPlace::LONGEST_CHAT);
        let group = CallPlace { chat: Some(&longest), ..group };
        assert!(group.check().is_ok() && own(&group, None).is_ok());
        let longer = "x".repeat(CallPlace::LONGEST_CHAT + 1);
        let error = CallPlace { chat: Some(&longer), ..group }.check().unwrap_err();
        assert!(error.message().contains("`chatId` has 65 bytes; at most 64"), "{error}");
    }

    fn ben(role: AccessRole) -> User {
        User {
            tenant: TenantId::main(),
            id: UserId::new("ben").unwrap(),
            name: "Ben".into(),
            role,
            created: claw_core::port::UnixMillis(0),
            disabled: false,
        }
    }

    #[test]
    fn refuses_an_administrator_who_acts_for_an_owner() {
        let admin = Visitor { role: AccessRole::Admin, ..visitor("ann") };
        for role in [AccessRole::Viewer, AccessRole::Operator, AccessRole::Admin] {
            assert!(admin.may_act_as(&ben(role)).is_ok(), "{role}");
        }
        let error = admin.may_act_as(&ben(AccessRole::Owner)).unwrap_err();
        assert_eq!(error.kind(), crate::app::Kind::Refused);
        let says = "the user `ben` has the role `owner`, and the key's user has the role `admin`";
        assert!(error.message().contains(says) && error.advice().is_some(), "{error}");
    }

    #[test]
    fn who_acts_for_another_has_the_lower_of_both_roles() {
        let admin = Visitor { role: AccessRole::Admin, ..visitor("ann") };
        let of = |role| admin.acting_for(&ben(role));
        assert_eq!(of(AccessRole::Viewer).role, AccessRole::Viewer);
        assert_eq!(of(AccessRole::Owner).role, AccessRole::Admin);
        let ben = of(AccessRole::Operator);
        assert_eq!((ben.name(), ben.signature()), ("ben".to_owned(), "ben, by ann".to_owned()));
        assert_eq!((ben.acts_for().map(UserId::as_str), admin.acts_for()), (Some("ben"), None));
    }

    #[test]
    fn a_session_of_somebody_else_is_refused() {
        let agent = AgentId::new("a").unwrap();
        let ann = visitor("ann");
        let session_of = |named| session_of(&ann, &agent, &CallPlace::default(), named);
        let own = session_of(None).unwrap();
        assert!(own.as_str().starts_with("agent:a:http:direct:ann:"), "{own}");
        assert_eq!(session_of(Some(own.as_str())).unwrap(), own);
        for foreign in [
            "agent:a:http:direct:annabel",
            "agent:a:http:direct:ben:1",
            "agent:b:http:direct:ann:1",
            "agent:a:cli:direct:ann",
            "agent:a:http:group:ann",
            "cli:ann",
            "",
        ] {
            assert!(session_of(Some(foreign)).is_err(), "{foreign}");
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
