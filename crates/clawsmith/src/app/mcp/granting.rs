//! Granting an MCP server to an agent or a user, with the values that an agent has of its own, and revoking it.

use claw_core::ServerName;
use claw_core::port::Clock as _;
use claw_core::store::{McpGrant, McpSubject, McpTransport, SecretPlace};
use claw_host::SystemClock;
use claw_mcp::{SecretKind, secret_name};
use secrecy::SecretString;

use super::values::ValuesOf;
use super::{DEFAULT_AGENT, TIMES};
use crate::app::{App, Error};

impl App {
    /// Grants access to an agent or a user, replacing its grant. An agent may have variables or headers of
    /// its own, with these values.
    pub async fn grant_mcp(
        &self,
        grant: &McpGrant,
        values: Vec<(String, SecretString)>,
    ) -> Result<(), Error> {
        self.mcp_server(&grant.server).await?;
        if grant.config_overrides.timeout_secs.is_some_and(|limit| !TIMES.contains(&limit)) {
            return Err(Error::invalid(format!(
                "grant of `{}` for MCP server `{}`: a call may take 1 to 3600 seconds",
                grant.subject, grant.server
            )));
        }
        self.check_subject(&grant.subject).await?;
        self.keep_own_values(grant, values).await?;
        Ok(self.store.put_mcp_grant(self.tenant(), grant, SystemClock.now()).await?)
    }

    /// Refuses an agent that the tenant does not have.
    pub(super) async fn check_subject(&self, subject: &McpSubject) -> Result<(), Error> {
        match subject {
            McpSubject::Agent(agent) if agent.as_str() != DEFAULT_AGENT => {
                self.must_have_agent(agent.as_str()).await
            }
            _ => Ok(()),
        }
    }

    /// Seals the values of variables or headers that an agent has of its own.
    async fn keep_own_values(
        &self,
        grant: &McpGrant,
        values: Vec<(String, SecretString)>,
    ) -> Result<(), Error> {
        let (server, overrides) = (&grant.server, &grant.config_overrides);
        if overrides.env.is_empty() && overrides.headers.is_empty() && values.is_empty() {
            return Ok(());
        }
        let McpSubject::Agent(agent) = &grant.subject else {
            return Err(Error::invalid("only an agent can have its own variables or headers")
                .hint("a server added with `--oauth --per-user` has a login for each user"));
        };
        let (kind, names, others, declared) = match self.mcp_server(server).await?.server.transport {
            McpTransport::Stdio(program) => {
                (SecretKind::Env, &overrides.env, &overrides.headers, program.env)
            }
            McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) => {
                (SecretKind::Header, &overrides.headers, &overrides.env, endpoint.headers)
            }
        };
        if let Some(name) = others.first() {
            return Err(Error::invalid(format!("`{name}`: a program has variables, an address has headers")));
        }
        // Another variable could make the program run something else, such as `LD_PRELOAD`.
        if let Some(name) = names.iter().find(|name| !declared.contains(name)) {
            return Err(Error::invalid(format!("MCP server `{server}` has no variable or header `{name}`"))
                .hint("an agent can have its own values only for names that the server was added with"));
        }
        let vault = self.vault().await?;
        for name in names {
            let secret =
                secret_name(server, kind, name).map_err(|error| Error::invalid(error.to_string()))?;
            let place =
                SecretPlace { tenant: self.tenant().clone(), agent: Some(agent.clone()), name: secret };
            match values.iter().find(|(given, _)| given == name) {
                Some((_, value)) => vault.put_secret(&place, value, SystemClock.now()).await?,
                None if vault.secret(&place).await?.is_some() => {}
                None => return Err(Error::invalid(format!("`{name}` has no value")).hint("give it")),
            }
        }
        Ok(())
    }

    /// Revokes the access of an agent or a user, with its own values. Takes effect with the next call.
    pub async fn revoke_mcp(&self, server: &ServerName, subject: &McpSubject) -> Result<(), Error> {
        match self.store.remove_mcp_grant(self.tenant(), server, subject).await? {
            true => {
                if let McpSubject::Agent(agent) = subject {
                    self.forget_values(server, ValuesOf::Agent(agent)).await?;
                }
                Ok(())
            }
            false => Err(Error::not_found(format!("`{subject}` has no grant for the MCP server `{server}`"))
                .hint(format!("`clawsmith mcp show {server}` lists its grants"))),
        }
    }
}
