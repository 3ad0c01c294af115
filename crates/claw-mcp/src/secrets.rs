//! Sealed values of servers: variables, headers and logins, and their names among the secrets.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::store::StoreError;
use claw_core::{AgentId, SecretName, ServerName, TenantId};
use secrecy::SecretString;

use crate::connection::Target;
use crate::error::McpError;

/// Opens the sealed values of servers.
#[async_trait]
pub trait McpSecrets: Send + Sync {
    /// Returns a secret: the agent's own if it has one of that name, else the tenant's.
    async fn secret(
        &self,
        tenant: &TenantId,
        agent: Option<&AgentId>,
        name: &SecretName,
    ) -> Result<Option<SecretString>, StoreError>;

    /// Seals a secret of the tenant, replacing the stored one; `None` removes it.
    async fn seal(
        &self,
        tenant: &TenantId,
        name: &SecretName,
        value: Option<&SecretString>,
    ) -> Result<(), StoreError>;
}

/// The use of a server's sealed value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretKind {
    /// A variable of its program.
    Env,
    /// A header of its requests.
    Header,
    /// A login by OAuth with its tokens.
    Login,
    /// A begun login.
    PendingLogin,
}

/// Returns the name of the secret that holds a variable or header of a server.
pub fn secret_name(server: &ServerName, kind: SecretKind, name: &str) -> Result<SecretName, McpError> {
    let kind = match kind {
        SecretKind::Env => "env",
        SecretKind::Header => "header",
        SecretKind::Login => "login",
        SecretKind::PendingLogin => "pending-login",
    };
    SecretName::new(format!("mcp.{server}.{kind}.{name}")).map_err(|_| McpError::Settings {
        server: server.to_string(),
        why: format!("`{name}` cannot name a {kind}; use letters, digits, `_` and `-`"),
    })
}

/// Opens the values of a connection.
pub(crate) struct Opener(pub(crate) Arc<dyn McpSecrets>);

impl Opener {
    pub(crate) async fn value(
        &self,
        target: &Target,
        kind: SecretKind,
        name: &str,
    ) -> Result<Option<SecretString>, McpError> {
        let name = secret_name(&target.server.name, kind, name)?;
        Ok(self.0.secret(&target.tenant, target.agent.as_ref(), &name).await?)
    }
}
