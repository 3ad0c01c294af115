//! Logins by OAuth at remote MCP servers.

use claw_core::port::UnixMillis;
use claw_core::store::{McpOAuth, McpServer, McpTransport};
use claw_core::{ServerName, UserId};
use claw_mcp::{LoginView, LoginWish, McpError, ServerReport};

use super::hint;
use crate::app::access::{Permission, Visitor};
use crate::app::words::time;
use crate::app::{App, Error};

/// The use of the tools that a server lists after a login.
///
/// Definitions are accepted for the whole tenant, and a server may show others to each user: only those that an
/// administrator's login sees are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListedTools {
    /// They are stored and reported.
    Stored,
    /// They are only reported.
    Reported,
}

impl ListedTools {
    /// Returns the use after a login of this visitor.
    pub fn of(visitor: &Visitor) -> Self {
        if visitor.has(Permission::ManageMcp) { Self::Stored } else { Self::Reported }
    }
}

impl App {
    /// Begins a login at a server; returns the address to open in a browser. A login begun earlier is
    /// discarded.
    pub async fn begin_mcp_login(&self, name: &ServerName, wish: LoginWish) -> Result<String, Error> {
        let server = self.mcp_server(name).await?.server;
        let begun = self.mcp_hub()?.begin_login(self.tenant(), &server, wish).await;
        begun.map_err(|error| failed(&error))
    }

    /// Finishes a login with the address that the browser was sent to, then connects and reads the tools that the server
    /// lists.
    pub async fn finish_mcp_login(
        &self,
        name: &ServerName,
        user: Option<&UserId>,
        callback: &str,
        listed: ListedTools,
    ) -> Result<ServerReport, Error> {
        let server = self.mcp_server(name).await?.server;
        let finished = self.mcp_hub()?.finish_login(self.tenant(), &server, user, callback).await;
        finished.map_err(|error| failed(&error))?;
        match listed {
            ListedTools::Stored => self.probe_mcp_server(name, user).await,
            ListedTools::Reported => self.report_of(&server, user).await,
        }
    }

    /// Removes a login; returns `false` if there is none.
    pub async fn end_mcp_login(&self, name: &ServerName, user: Option<&UserId>) -> Result<bool, Error> {
        let server = self.mcp_server(name).await?.server;
        let ended = self.mcp_hub()?.end_login(self.tenant(), &server, user).await;
        ended.map_err(|error| failed(&error))
    }

    /// Returns the state of a user's login; `None` if there is none.
    pub async fn mcp_login(
        &self,
        server: &McpServer,
        user: Option<&UserId>,
    ) -> Result<Option<LoginView>, Error> {
        let view = self.mcp_hub()?.login_view(self.tenant(), server, user).await;
        view.map_err(|error| failed(&error))
    }

    /// Checks that the visitor may log in at a server, and returns the user of the login: an administrator
    /// logs in for all, or each user for themselves.
    pub async fn may_log_in(&self, visitor: &Visitor, name: &ServerName) -> Result<Option<UserId>, Error> {
        visitor.may(Permission::RequestMcp)?;
        let server = self.of_tenant(&visitor.tenant).mcp_server(name).await?.server;
        if !is_per_user(&server) {
            visitor.may(Permission::ManageMcp)?;
        }
        Ok(visitor.user.clone())
    }
}

/// Returns whether each user logs in to this server for themselves.
pub fn is_per_user(server: &McpServer) -> bool {
    match &server.transport {
        McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) => {
            endpoint.oauth.as_ref().is_some_and(|oauth| oauth.per_user)
        }
        McpTransport::Stdio(_) => false,
    }
}

/// Returns whether a server wants a login before it lists its tools.
pub(super) fn wants_login(server: &McpServer) -> bool {
    match &server.transport {
        McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) => endpoint.oauth.is_some(),
        McpTransport::Stdio(_) => false,
    }
}

fn failed(error: &McpError) -> Error {
    Error::failed(error.to_string())
}

/// Returns advice for a server that cannot be reached.
pub(super) fn advice(server: &McpServer) -> String {
    match wants_login(server) {
        true => format!("log in with `clawsmith mcp login {}`", server.name),
        false => hint(server),
    }
}

/// A login in words, for a person.
pub fn login_words(name: &ServerName, oauth: &McpOAuth, login: Option<&LoginView>) -> String {
    let whose = if oauth.per_user { "yours" } else { "shared by all users" };
    let Some(login) = login else { return format!("none; `clawsmith mcp login {name}` logs in") };
    let mut words = vec![whose.to_owned()];
    if !login.scopes.is_empty() {
        words.push(format!("scopes {}", login.scopes.join(" ")));
    }
    match (login.renewable, login.expires) {
        (true, _) => words.push("renewed automatically".to_owned()),
        (false, Some(ends)) => words.push(format!("until {}", time(UnixMillis(ends as i64 * 1000)))),
        (false, None) => {}
    }
    words.join("; ")
}
