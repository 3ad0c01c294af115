//! Access over a network: the owner of a key, its permissions, and the caller of its calls.
//!
//! A front end shows a key to the [`Door`] and gets a [`Visitor`]. One table, [`Permission::needs`], says
//! what a visitor may do; [`App::caller_of`], never the request, decides as whom a visitor calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use claw_agent::Peer;
use claw_core::port::{Clock as _, UnixMillis};
use claw_core::store::{
    AccessRole, Admitted, ApiKey, Key, KeyLimits, KeyScope, KeyScopes, NewKey, Tenant, TenantChange, Topic,
    User, UserChange,
};
use claw_core::tool::{Caller, Digest};
use claw_core::{AgentId, JobId, KeyId, SessionKey, TenantId, UserId};
use claw_host::SystemClock;
use claw_store::Backend;
use tokio::sync::watch;

use super::{App, Error};

/// The time for which a valid key is cached. A change of access is noticed sooner.
const REMEMBERED: Duration = Duration::from_secs(1);
/// The most keys that are remembered.
const MOST_REMEMBERED: usize = 10_000;
/// The channel of calls that come over a network.
pub const CHANNEL: &str = "http";

/// An operation over a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
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
    /// See, define and change custom tools, if [`App::may_define_tools`] allows the visitor.
    DefineTools,
    /// Act as another user, in another channel or in a group.
    ActForOthers,
    /// Ask for access to an MCP server.
    RequestMcp,
    /// See and change MCP servers, and who may use them.
    ManageMcp,
    /// Define servers that start programs on this machine or reach private addresses.
    DefinePrograms,
}

impl Permission {
    /// Every permission.
    pub const ALL: [Self; 25] = [
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
        Self::ActForOthers,
        Self::RequestMcp,
        Self::ManageMcp,
        Self::DefinePrograms,
    ];

    /// Whether this concerns single agents, so that a key that is limited to some may have it for those. Everything else
    /// concerns the whole tenant, and a limited key has none of it.
    pub const fn is_of_agents(self) -> bool {
        match self {
            Self::ReadTools
            | Self::CallTools
            | Self::ReadSessions
            | Self::WriteSessions
            | Self::ReadApprovals
            | Self::AnswerApprovals
            | Self::ReadAgents
            | Self::ReadSkills
            | Self::ReadLedger
            | Self::ReadMemory
            | Self::WriteMemory => true,
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
            | Self::ActForOthers
            | Self::RequestMcp
            | Self::ManageMcp
            | Self::DefinePrograms => false,
        }
    }

    /// The scope that a key needs and the role that its user needs: both.
    pub const fn needs(self) -> (KeyScope, AccessRole) {
        match self {
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
            Self::ManageSkills
            | Self::ManageAccess
            | Self::DefineTools
            | Self::ActForOthers
            | Self::ManageMcp => (KeyScope::Admin, AccessRole::Admin),
        }
    }
}

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

    /// Whether something of this agent and user is shown to the visitor: an administrator sees all of the tenant, others
    /// their own, and a key that is limited to agents nothing of any other.
    pub fn sees(&self, agent: &AgentId, user: Option<&UserId>) -> bool {
        self.may_use(agent).is_ok() && (self.role >= AccessRole::Admin || user == self.user.as_ref())
    }

    /// Checks that the visitor may grant this role, or a key of a user who has it: nobody grants more than
    /// they have, and a limited key grants nothing.
    pub fn may_give(&self, role: AccessRole) -> Result<(), Error> {
        if self.limits != KeyLimits::default() {
            return Err(Error::invalid("a key with limits cannot change who may come in").refusing());
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
            Some(_) => {
                Err(Error::invalid("this key is limited to some agents, and this is about all of them")
                    .hint("use a key without `--agent`")
                    .refusing())
            }
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

/// Checks keys, and caches valid ones for a moment. Cheap to share.
pub struct Door {
    store: Arc<dyn Backend>,
    known: Mutex<Known>,
}

struct Known {
    visitors: HashMap<Digest, (Instant, Arc<Visitor>)>,
    /// The keys with a rate limit, each with the time at which its requests so far would have been made at
    /// that rate.
    rates: HashMap<KeyId, Instant>,
    changes: watch::Receiver<u64>,
}

impl Door {
    /// Returns the visitor of this key; `None` if the key is invalid.
    pub async fn admit(&self, key: &str) -> Result<Option<Arc<Visitor>>, Error> {
        let Ok(key) = key.parse::<ApiKey>() else { return Ok(None) };
        let hash = key.hash();
        if let Some(visitor) = self.known(&hash) {
            return Ok(Some(visitor));
        }
        let admitted = self.store.authenticate(&hash, SystemClock.now()).await;
        let Some(admitted) = admitted? else { return Ok(None) };
        let visitor = Arc::new(Visitor::from(admitted));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.visitors.len() >= MOST_REMEMBERED {
            known.visitors.clear();
        }
        known.visitors.insert(hash, (Instant::now(), Arc::clone(&visitor)));
        Ok(Some(visitor))
    }

    /// Counts a request of a key with a rate limit; the error is the time to wait if it has made too many. A
    /// whole minute's requests may come at once.
    pub fn count(&self, visitor: &Visitor) -> Result<(), Duration> {
        let Some(per_minute) = visitor.limits.per_minute else { return Ok(()) };
        let (minute, now) = (Duration::from_secs(60), Instant::now());
        let each = minute / per_minute.max(1);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.rates.len() >= MOST_REMEMBERED {
            known.rates.retain(|_, until| *until > now);
        }
        let until = known.rates.entry(visitor.key).or_insert(now);
        let next = (*until).max(now) + each;
        let ahead = next.duration_since(now);
        if ahead > minute {
            return Err(ahead - minute);
        }
        *until = next;
        Ok(())
    }

    fn known(&self, hash: &Digest) -> Option<Arc<Visitor>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.changes.has_changed().unwrap_or(true) {
            known.changes.mark_unchanged();
            known.visitors.clear();
        }
        let (since, visitor) = known.visitors.get(hash)?;
        (since.elapsed() < REMEMBERED).then(|| Arc::clone(visitor))
    }
}

/// A key to create.
#[derive(Debug, Clone)]
pub struct KeyRequest {
    /// The user that it belongs to.
    pub user: UserId,
    /// The role that the user gets if there is no such user yet.
    pub role: AccessRole,
    /// The key's purpose, for display.
    pub label: String,
    /// The key's scopes.
    pub scopes: KeyScopes,
    /// The key's lifetime; `None` means no expiry.
    pub lasts: Option<Duration>,
    /// The key's limits.
    pub limits: KeyLimits,
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
    /// A door of this deployment, for all its tenants.
    pub fn door(&self) -> Door {
        let changes = self.store.changes(Topic::Access);
        Door {
            store: Arc::clone(&self.store),
            known: Mutex::new(Known { visitors: HashMap::new(), rates: HashMap::new(), changes }),
        }
    }

    /// Creates a key of this tenant, and its user if missing. The key itself is returned once and stored
    /// nowhere.
    pub async fn create_key(&self, request: KeyRequest) -> Result<(ApiKey, NewKey), Error> {
        let now = SystemClock.now();
        let mut random = [0; 32];
        rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty())
            .ok()
            .filter(|count| *count == random.len())
            .ok_or_else(|| Error::failed("the system gave no random bytes").hint("try again"))?;
        let key = ApiKey::from_random(random);
        let (tenant, user) = (self.tenant().clone(), request.user);
        if self.store.user(&tenant, &user).await?.is_none() {
            let (id, name, role) = (user.clone(), user.to_string(), request.role);
            let added = User { tenant: tenant.clone(), id, name, role, created: now, disabled: false };
            self.store.add_user(added).await?;
        }
        let new = NewKey {
            id: KeyId::new(),
            hash: key.hash(),
            tenant,
            user: Some(user),
            label: request.label,
            scopes: request.scopes,
            created: now,
            expires: request.lasts.map(|lasts| now.plus(lasts)),
            limits: request.limits,
        };
        self.store.add_key(new.clone()).await?;
        Ok((key, new))
    }

    /// The keys of this tenant, oldest first.
    pub async fn api_keys(&self) -> Result<Vec<Key>, Error> {
        Ok(self.store.keys(self.tenant()).await?)
    }

    /// Revokes the key of this id, or the one whose id begins with it.
    pub async fn revoke_key(&self, id: &str) -> Result<Key, Error> {
        let keys = self.api_keys().await?;
        let beginning = id.to_lowercase();
        let found: Vec<&Key> =
            keys.iter().filter(|key| key.new.id.to_string().starts_with(&beginning)).collect();
        let hint = "clawsmith api-keys list";
        let key = match (beginning.is_empty(), &found[..]) {
            (false, [key]) => key.new.id,
            (true, _) | (false, []) => {
                return Err(Error::not_found(format!("there is no key `{id}`")).hint(hint));
            }
            (false, several) => {
                let message = format!("`{id}` begins the ids of {} keys", several.len());
                return Err(Error::invalid(message).hint(hint));
            }
        };
        let revoked = self.store.revoke_key(self.tenant(), key, SystemClock.now()).await?;
        revoked.ok_or_else(|| Error::not_found(format!("there is no key `{id}`")).hint(hint))
    }

    /// Creates a key for a visitor who manages access: for a user whose role is not above the visitor's.
    pub async fn create_key_for(
        &self,
        visitor: &Visitor,
        request: KeyRequest,
    ) -> Result<(ApiKey, NewKey), Error> {
        let user = self.store.user(self.tenant(), &request.user).await?;
        visitor.may_give(user.map_or(request.role, |user| user.role))?;
        self.create_key(request).await
    }

    /// Checks that a visitor who manages access may revoke a key: its user's role is not above the visitor's.
    pub async fn may_revoke(&self, visitor: &Visitor, id: KeyId) -> Result<(), Error> {
        let keys = self.api_keys().await?;
        let Some(key) = keys.iter().find(|key| key.new.id == id) else { return Ok(()) };
        let user = match &key.new.user {
            Some(user) => self.store.user(self.tenant(), user).await?,
            None => None,
        };
        visitor.may_give(user.map_or(AccessRole::Owner, |user| user.role))
    }

    /// Changes a user for a visitor who manages access: nobody is raised above the visitor's role, and nobody
    /// above it is changed.
    pub async fn edit_user_for(
        &self,
        visitor: &Visitor,
        id: &UserId,
        change: UserChange,
    ) -> Result<User, Error> {
        if let Some(user) = self.store.user(self.tenant(), id).await? {
            visitor.may_give(user.role.max(change.role.unwrap_or(user.role)))?;
        }
        self.edit_user(id, change).await
    }

    /// Checks that a visitor may see and change tenants: the owner of the deployment, in its own tenant.
    pub fn may_manage_tenants(&self, visitor: &Visitor) -> Result<(), Error> {
        visitor.may(Permission::ManageAccess)?;
        visitor.may_give(AccessRole::Owner)?;
        if visitor.tenant == *self.setup().tenant() {
            return Ok(());
        }
        Err(Error::invalid("tenants are for the owner of the deployment to see and change").refusing())
    }

    /// Checks that a visitor may see the metrics, which cover all tenants: the visitor must belong to the
    /// deployment's own tenant.
    pub fn may_read_metrics(&self, visitor: &Visitor) -> Result<(), Error> {
        visitor.may(Permission::ReadMetrics)?;
        if visitor.tenant == *self.setup().tenant() {
            return Ok(());
        }
        Err(Error::invalid("metrics are of the whole deployment, and for its own tenant alone").refusing())
    }

    /// The users of this tenant.
    pub async fn users(&self) -> Result<Vec<User>, Error> {
        Ok(self.store.users(self.tenant()).await?)
    }

    /// Adds a user to this tenant.
    pub async fn add_user(&self, id: UserId, name: Option<String>, role: AccessRole) -> Result<User, Error> {
        let name = name.unwrap_or_else(|| id.to_string());
        let (tenant, created) = (self.tenant().clone(), SystemClock.now());
        let user = User { tenant, id, name, role, created, disabled: false };
        match self.store.add_user(user.clone()).await? {
            true => Ok(user),
            false => Err(Error::conflict(format!("there is a user `{}` already", user.id))
                .hint(format!("clawsmith users edit {}", user.id))),
        }
    }

    /// Changes a user of this tenant. All keys of a disabled user are rejected, in every process, at once.
    pub async fn edit_user(&self, id: &UserId, change: UserChange) -> Result<User, Error> {
        let changed = self.store.change_user(self.tenant(), id, change).await?;
        changed
            .ok_or_else(|| Error::not_found(format!("there is no user `{id}`")).hint("clawsmith users list"))
    }

    /// All tenants of the deployment.
    pub async fn tenants(&self) -> Result<Vec<Tenant>, Error> {
        Ok(self.store.tenants().await?)
    }

    /// Adds a tenant, whose data is separate from that of all others.
    pub async fn add_tenant(&self, id: TenantId, name: Option<String>) -> Result<Tenant, Error> {
        let name = name.unwrap_or_else(|| id.to_string());
        let tenant =
            Tenant { id, name, created: SystemClock.now(), disabled: false, policy: serde_json::Value::Null };
        match self.store.add_tenant(tenant.clone()).await? {
            true => Ok(tenant),
            false => Err(Error::conflict(format!("there is a tenant `{}` already", tenant.id))
                .hint("clawsmith tenants list")),
        }
    }

    /// Changes a tenant. All keys of a disabled tenant are rejected.
    pub async fn edit_tenant(&self, id: &TenantId, change: TenantChange) -> Result<Tenant, Error> {
        let changed = self.store.change_tenant(id, change).await?;
        changed.ok_or_else(|| {
            Error::not_found(format!("there is no tenant `{id}`")).hint("clawsmith tenants list")
        })
    }

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
    .hint("leave it out for a fresh one"))
}

fn shortened(text: &str) -> String {
    text.chars().take(100).collect()
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door").finish_non_exhaustive()
    }
}

/// Returns whether a key is neither revoked nor expired.
pub fn is_good(key: &Key, now: UnixMillis) -> bool {
    key.revoked.is_none() && key.new.expires.is_none_or(|expires| expires > now)
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
