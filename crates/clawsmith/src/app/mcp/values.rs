//! Sealed values of MCP servers: kept, opened, forgotten, and removed from what servers say.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::Clock as _;
use claw_core::store::{McpGrant, McpServer, McpTransport, SecretPlace, StoreError};
use claw_core::{AgentId, SecretName, ServerName, TenantId};
use claw_host::SystemClock;
use claw_mcp::{McpSecrets, SecretKind, ServerReport, secret_name};
use claw_net::Url;
use claw_store::Vault;
use claw_store::encryption::KeySource;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::OnceCell;

use crate::app::{App, Error};
use crate::config::Surroundings;

/// The shortest sealed value, in bytes, that is searched for in a server's text.
const SHORTEST_HIDDEN: usize = 8;

/// Sealed values of a server, by their owners.
#[derive(Debug, Clone, Copy)]
pub(super) enum ValuesOf<'a> {
    /// The tenant's, and those of all agents.
    Everyone,
    /// Those that agents have of their own.
    Agents,
    /// Those of one agent.
    Agent(&'a AgentId),
}

/// Parses a name and its value; without a value it comes from the environment.
pub fn given_value(around: &Surroundings, text: &str) -> Result<(String, SecretString), Error> {
    if let Some((name, value)) = text.split_once('=') {
        return Ok((name.to_owned(), value.to_owned().into()));
    }
    match around.variable(text).and_then(|value| value.to_str()) {
        Some(value) => Ok((text.to_owned(), value.to_owned().into())),
        None => Err(Error::invalid(format!("the environment variable `{text}` is not set"))
            .hint(format!("set it, or write `{text}=VALUE`"))),
    }
}

impl App {
    /// Seals the values of a server's variables or headers.
    pub(super) async fn keep_values(
        &self,
        server: &McpServer,
        values: Vec<(String, SecretString)>,
    ) -> Result<(), Error> {
        if values.is_empty() {
            return Ok(());
        }
        let kind = match server.transport {
            McpTransport::Stdio(_) => SecretKind::Env,
            McpTransport::Http(_) | McpTransport::Sse(_) => SecretKind::Header,
        };
        let vault = self.vault().await?;
        for (name, value) in values {
            let name =
                secret_name(&server.name, kind, &name).map_err(|error| Error::invalid(error.to_string()))?;
            let place = SecretPlace { tenant: self.tenant().clone(), agent: None, name };
            vault.put_secret(&place, &value, SystemClock.now()).await?;
        }
        Ok(())
    }

    /// The given values and those sealed for the tenant, the longest first.
    async fn hidden(&self, given: &[(String, SecretString)]) -> Result<Vec<String>, Error> {
        let given = given.iter().map(|(_, value)| value.expose_secret().trim().to_owned());
        let values: Vec<String> = given.chain(self.sealed(self.tenant()).await?).collect();
        // A header holds its scheme before its secret, such as `Bearer`.
        let secrets = values.iter().filter_map(|value| value.split_whitespace().last()).map(str::to_owned);
        let mut hidden: Vec<String> =
            values.iter().cloned().chain(secrets).filter(|value| value.len() >= SHORTEST_HIDDEN).collect();
        hidden.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Ok(hidden)
    }

    /// Removes the given values, and those sealed for the tenant, from a server's text.
    pub(super) async fn without_secrets(
        &self,
        text: &str,
        given: &[(String, SecretString)],
    ) -> Result<String, Error> {
        Ok(without(text, &self.hidden(given).await?))
    }

    /// Removes them from all that a server says of itself and of its tools.
    pub(super) async fn scrubbed(
        &self,
        mut report: ServerReport,
        given: &[(String, SecretString)],
    ) -> Result<ServerReport, Error> {
        let hidden = self.hidden(given).await?;
        for text in [&mut report.server, &mut report.instructions].into_iter().flatten() {
            *text = without(text, &hidden);
        }
        // A definition that repeats a secret is not the one that the server lists, so its tool cannot be called.
        for definition in report.tools.values_mut() {
            let scrubbed = without(&definition.to_string(), &hidden);
            *definition = serde_json::from_str(&scrubbed).unwrap_or_default();
        }
        Ok(report)
    }

    /// Refuses another address or program for a server while agents have values of their own: those were given for
    /// the old one.
    pub(super) async fn check_own_values(
        &self,
        server: &McpServer,
        before: Option<&McpServer>,
    ) -> Result<(), Error> {
        if keeps_place(server, before) {
            return Ok(());
        }
        let grants = self.store.mcp_grants(self.tenant()).await?;
        let has_own = |grant: &&McpGrant| {
            let own = &grant.config_overrides;
            grant.server == server.name && !(own.env.is_empty() && own.headers.is_empty())
        };
        let owners: Vec<String> =
            grants.iter().filter(has_own).map(|grant| format!("`{}`", grant.subject)).collect();
        if owners.is_empty() {
            return Ok(());
        }
        let (name, owners) = (&server.name, owners.join(", "));
        Err(Error::invalid(format!(
            "MCP server `{name}`: its address or program would change, and grants have values for the old one: {owners}"
        ))
        .hint(
            "revoke those grants, and give the values anew once it is changed; a stored secret is not sent to \
             another address or program",
        ))
    }

    /// Removes the sealed values of a server.
    pub(super) async fn forget_values(&self, name: &ServerName, of: ValuesOf<'_>) -> Result<(), Error> {
        let prefix = format!("mcp.{name}.");
        for card in self.store.secrets(self.tenant()).await? {
            let is_meant = match of {
                ValuesOf::Everyone => true,
                ValuesOf::Agents => card.place.agent.is_some(),
                ValuesOf::Agent(agent) => card.place.agent.as_ref() == Some(agent),
            };
            if is_meant && card.place.name.as_str().starts_with(&prefix) {
                self.store.remove_secret(&card.place).await?;
            }
        }
        Ok(())
    }
}

fn without(text: &str, hidden: &[String]) -> String {
    hidden.iter().fold(text.to_owned(), |text, value| text.replace(value.as_str(), "[REDACTED]"))
}

/// The place that a server's values are sent to: the origin of its address, or its program with the arguments.
fn goes_to(server: &McpServer) -> (String, Vec<String>) {
    match &server.transport {
        McpTransport::Stdio(program) => (program.command.clone(), program.args.clone()),
        McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) => {
            // Read as the connection reads it: `https:///a.example` is the host `a.example` too.
            let origin = Url::parse(&endpoint.url).map(|url| url.origin().ascii_serialization());
            (origin.unwrap_or_else(|_| endpoint.url.clone()), Vec::new())
        }
    }
}

/// Returns whether values of the server are sent where those of the one before it were.
pub(super) fn keeps_place(server: &McpServer, before: Option<&McpServer>) -> bool {
    before.is_some_and(|before| goes_to(before) == goes_to(server))
}

/// Refuses names without values. An already sealed value is sent only where it went before: to the same
/// origin, or to the same program with the same arguments.
pub(super) fn check_values(
    server: &McpServer,
    values: &[(String, SecretString)],
    before: Option<&McpServer>,
) -> Result<(), Error> {
    let names = |server: &McpServer| match &server.transport {
        McpTransport::Stdio(program) => program.env.clone(),
        McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) => endpoint.headers.clone(),
    };
    let known = before.filter(|_| keeps_place(server, before)).map(names).unwrap_or_default();
    let has_value = |name: &String| values.iter().any(|(given, _)| given == name) || known.contains(name);
    match names(server).iter().find(|name| !has_value(name)) {
        None => Ok(()),
        Some(name) => Err(Error::invalid(format!("MCP server `{}`: `{name}` has no value", server.name))
            .hint("give its value again; a stored secret is not sent to another address or program")),
    }
}

/// Opens the sealed values of servers, with keys that are read when first needed.
pub(super) struct SealedValues {
    pub(super) store: Arc<dyn claw_core::store::Store>,
    pub(super) keys: KeySource,
    pub(super) vault: OnceCell<Vault>,
}

#[async_trait]
impl McpSecrets for SealedValues {
    async fn secret(
        &self,
        tenant: &TenantId,
        agent: Option<&AgentId>,
        name: &SecretName,
    ) -> Result<Option<SecretString>, StoreError> {
        let open = || Vault::open(Arc::clone(&self.store), self.keys.clone());
        let vault = self.vault.get_or_try_init(open).await?;
        let place = |agent: Option<&AgentId>| SecretPlace {
            tenant: tenant.clone(),
            agent: agent.cloned(),
            name: name.clone(),
        };
        if agent.is_some()
            && let Some(own) = vault.secret(&place(agent)).await?
        {
            return Ok(Some(own));
        }
        vault.secret(&place(None)).await
    }

    async fn seal(
        &self,
        tenant: &TenantId,
        name: &SecretName,
        value: Option<&SecretString>,
    ) -> Result<(), StoreError> {
        let place = SecretPlace { tenant: tenant.clone(), agent: None, name: name.clone() };
        let Some(value) = value else { return self.store.remove_secret(&place).await.map(drop) };
        let open = || Vault::open(Arc::clone(&self.store), self.keys.clone());
        let vault = self.vault.get_or_try_init(open).await?;
        vault.put_secret(&place, value, SystemClock.now()).await
    }
}

#[cfg(test)]
mod tests {
    use claw_core::store::McpEndpoint;

    use super::*;

    fn server(url: &str) -> McpServer {
        let endpoint = McpEndpoint { url: url.to_owned(), headers: Vec::new(), private: false, oauth: None };
        McpServer::new(ServerName::new("crm").unwrap(), McpTransport::Http(endpoint))
    }

    #[track_caller]
    fn check(before: &str, after: &str, expected: bool) {
        let (old, new) = (server(before), server(after));
        assert_eq!(keeps_place(&new, Some(&old)), expected, "{before} {after}");
    }

    #[test]
    fn another_host_is_another_place_however_it_is_spelled() {
        check("https://crm.example/mcp", "https://CRM.example:443/other", true);
        for (before, after) in [
            ("https://crm.example", "https://evil.example"),
            ("https://crm.example", "http://crm.example"),
            ("https://crm.example", "https://crm.example:8443"),
            ("https://crm.example", "https://crm.example@evil.example"),
            ("https:///crm.example/", "https:///evil.example/"),
            ("https://\t/crm.example/", "https://\t/evil.example/"),
        ] {
            check(before, after, false);
        }
        assert!(!keeps_place(&server("https://crm.example"), None));
    }
}
