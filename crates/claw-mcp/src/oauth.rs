//! Logins by OAuth 2.1: begun by a person, finished with the address that their browser was redirected to,
//! and stored sealed. Codes, refresh tokens and client secrets are never sent to another authorization server than the one
//! at which the person began the login.

mod credential_store;
mod discovery;
mod error_text;
mod guarded;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use claw_core::store::{McpEndpoint, McpOAuth, McpServer, McpTransport};
use claw_core::tool::Digest;
use claw_core::{SecretName, ServerName, TenantId, UserId};
use rmcp::transport::auth::{
    AuthError, AuthorizationCallback, AuthorizationManager, OAuthClientConfig, StoredAuthorizationState,
    StoredCredentials,
};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use self::credential_store::{OneState, SealedLogin};
use self::discovery::{AuthorizationServer, challenge, manager};
use self::error_text::{refusal, registration, words};
use crate::error::McpError;
use crate::secrets::{McpSecrets, SecretKind, secret_name};

/// The longest a login may take from its begin to its end.
const LONGEST_LOGIN: Duration = Duration::from_secs(15 * 60);
/// The name by which we register with an authorization server.
const CLIENT_NAME: &str = "Clawsmith";
/// The login that serves all who have access.
const SHARED: &str = "shared";

/// A login to begin.
#[derive(Debug, Default)]
pub struct LoginWish {
    /// The user of the login, if each has their own.
    pub user: Option<UserId>,
    /// The address that the browser is sent to at the end.
    pub redirect: String,
    /// Scopes to request, besides those of the server, its settings and an earlier login.
    pub scopes: Vec<String>,
    /// The secret of a client that was registered beforehand.
    pub client_secret: Option<SecretString>,
}

/// The state of a login, for display. It has no secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoginView {
    /// The user of the login; `None` for the one that serves all.
    pub user: Option<UserId>,
    /// The rights that were granted.
    pub scopes: Vec<String>,
    /// Seconds since 1970 at which the access token ends, if it does.
    pub expires: Option<u64>,
    /// The token is renewed without a person.
    pub renewable: bool,
}

/// The place of a login: its server and its user.
#[derive(Clone)]
pub(crate) struct LoginPlace {
    pub(crate) secrets: Arc<dyn McpSecrets>,
    pub(crate) tenant: TenantId,
    pub(crate) server: ServerName,
    pub(crate) user: Option<UserId>,
    /// Allows one refresh of a login at a time.
    pub(crate) refreshing: Arc<tokio::sync::Mutex<()>>,
    /// Rises when a secret of any process changed.
    pub(crate) changes: watch::Receiver<u64>,
}

/// A client at an authorization server.
#[derive(Clone, Serialize, Deserialize)]
struct ClientRecord {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    redirect: String,
}

/// The parts of a login besides its tokens.
#[derive(Clone, Serialize, Deserialize)]
struct LoginBase {
    /// The address of the server that the login is for. Its tokens go nowhere else.
    url: String,
    /// The server's login challenge, which names its authorization server.
    challenge: String,
    /// The authorization server at the begin of the login. A stored login without one is unreadable.
    authorization_server: AuthorizationServer,
    client: ClientRecord,
}

/// A login as it is sealed.
#[derive(Clone, Serialize, Deserialize)]
struct LoginRecord {
    base: LoginBase,
    #[serde(default)]
    user: Option<UserId>,
    credentials: StoredCredentials,
}

/// A begun login, as it is sealed.
#[derive(Serialize, Deserialize)]
struct PendingLogin {
    base: LoginBase,
    state: StoredAuthorizationState,
}

impl LoginPlace {
    fn name(&self, kind: SecretKind) -> Result<SecretName, McpError> {
        let whose = match &self.user {
            None => SHARED.to_owned(),
            Some(user) => {
                let digest = Digest::of_bytes(user.as_str().as_bytes()).to_string();
                digest.trim_start_matches("sha256:").chars().take(32).collect()
            }
        };
        secret_name(&self.server, kind, &whose)
    }

    async fn read<T: for<'de> Deserialize<'de>>(&self, kind: SecretKind) -> Result<Option<T>, McpError> {
        let sealed = self.secrets.secret(&self.tenant, None, &self.name(kind)?).await?;
        // An unreadable login counts as missing: the person logs in again.
        Ok(sealed.and_then(|text| serde_json::from_str(text.expose_secret()).ok()))
    }

    async fn write(&self, kind: SecretKind, record: &impl Serialize) -> Result<(), McpError> {
        let text = serde_json::to_string(record).map_err(|error| self.failed(error.to_string()))?;
        Ok(self.secrets.seal(&self.tenant, &self.name(kind)?, Some(&text.into())).await?)
    }

    async fn forget(&self, kind: SecretKind) -> Result<(), McpError> {
        Ok(self.secrets.seal(&self.tenant, &self.name(kind)?, None).await?)
    }

    fn failed(&self, why: impl Into<String>) -> McpError {
        McpError::Login { server: self.server.to_string(), why: why.into() }
    }

    /// Returns advice for a person who has to log in.
    fn missing(&self) -> String {
        format!("nobody is logged in; log in with `clawsmith mcp login {}`", self.server)
    }

    /// Returns the state of the login; `None` if there is none.
    pub(crate) async fn view(&self) -> Result<Option<LoginView>, McpError> {
        let Some(record) = self.read::<LoginRecord>(SecretKind::Login).await? else { return Ok(None) };
        let tokens = serde_json::to_value(&record.credentials.token_response).unwrap_or_default();
        let lasts = tokens.get("expires_in").and_then(serde_json::Value::as_u64);
        Ok(Some(LoginView {
            user: record.user,
            scopes: record.credentials.granted_scopes,
            expires: lasts.zip(record.credentials.token_received_at).map(|(lasts, at)| at + lasts),
            renewable: tokens.get("refresh_token").is_some(),
        }))
    }

    /// Removes the login; returns `false` if there is none.
    pub(crate) async fn end(&self) -> Result<bool, McpError> {
        let was_there = self.view().await?.is_some();
        self.forget(SecretKind::Login).await?;
        self.forget(SecretKind::PendingLogin).await?;
        Ok(was_there)
    }

    /// Begins a login; returns the address that the person opens in a browser.
    pub(crate) async fn begin(&self, endpoint: &McpEndpoint, wish: LoginWish) -> Result<String, McpError> {
        let told = |error: AuthError| self.failed(words(&error));
        if !wish.redirect.starts_with("http://") && !wish.redirect.starts_with("https://") {
            return Err(self.failed("the redirect address must begin with http:// or https://"));
        }
        let settings = endpoint.oauth.clone().unwrap_or_default();
        let challenge = challenge(endpoint).await.map_err(|why| self.failed(why))?;
        let (mut manager, metadata) = manager(endpoint, &challenge).await.map_err(told)?;
        let mut scopes = manager.select_initial_scopes(&[]).await;
        let before = self.read::<LoginRecord>(SecretKind::Login).await?;
        let before = before.filter(|record| record.base.url == endpoint.url);
        let known = before.map(|record| record.credentials.granted_scopes).unwrap_or_default();
        for scope in settings.scopes.into_iter().chain(wish.scopes).chain(known) {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        let offline = metadata.scopes_supported.iter().flatten().any(|scope| scope == "offline_access");
        if offline && !scopes.is_empty() && !scopes.iter().any(|scope| scope == "offline_access") {
            scopes.push("offline_access".to_owned());
        }
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let takes_documents = metadata.additional_fields.get("client_id_metadata_document_supported")
            == Some(&serde_json::Value::Bool(true));
        let client = match settings.client_id {
            // The address of a client's metadata is an id only for servers that read it.
            Some(id) if !id.starts_with("https://") || takes_documents => {
                let secret = wish.client_secret.map(|secret| secret.expose_secret().to_owned());
                ClientRecord { id, secret, redirect: wish.redirect }
            }
            _ => {
                let made = manager.register_client(CLIENT_NAME, &wish.redirect, &scopes).await;
                let made = made.map_err(|error| self.failed(registration(&error)))?;
                ClientRecord { id: made.client_id, secret: made.client_secret, redirect: wish.redirect }
            }
        };
        manager.configure_client(client.config()).map_err(told)?;
        let states = OneState::default();
        manager.set_state_store(states.clone());
        let url = manager.get_authorization_url(&scopes).await.map_err(told)?;
        let state = states.take().ok_or_else(|| self.failed("the login has no state"))?;
        let authorization_server = AuthorizationServer::of(&metadata);
        let base = LoginBase { url: endpoint.url.clone(), challenge, authorization_server, client };
        let pending = PendingLogin { base, state };
        self.write(SecretKind::PendingLogin, &pending).await?;
        Ok(url)
    }

    /// Finishes the begun login, with the address that the browser was redirected to.
    pub(crate) async fn finish(&self, endpoint: &McpEndpoint, callback: &str) -> Result<(), McpError> {
        let told = |error: AuthError| self.failed(words(&error));
        let Some(pending) = self.read::<PendingLogin>(SecretKind::PendingLogin).await? else {
            return Err(self.failed("no login was started"));
        };
        let age = now().saturating_sub(pending.state.created_at);
        if age > LONGEST_LOGIN.as_secs() || pending.base.url != endpoint.url {
            return Err(self.failed("the login was started too long ago; start it again"));
        }
        if let Some(refusal) = refusal(callback) {
            return Err(self.failed(refusal));
        }
        let callback = AuthorizationCallback::from_redirect_url(callback).map_err(told)?;
        if callback.csrf_token != pending.state.csrf_token {
            return Err(self.failed("this address belongs to another login; start again"));
        }
        // In any case, an address can be used only once.
        self.forget(SecretKind::PendingLogin).await?;
        let PendingLogin { base, state } = pending;
        let (verifier, secret) = (state.pkce_verifier.clone(), base.client.secret.clone());
        let mut manager = self.manager_of(endpoint, &base).await.map_err(|why| self.failed(why))?;
        manager.configure_client(base.client.config()).map_err(told)?;
        manager.set_state_store(OneState::of(state));
        manager.set_credential_store(SealedLogin::new(self.clone(), base));
        let AuthorizationCallback { code, csrf_token, issuer, .. } = callback;
        let exchanged = manager.exchange_code_for_token_with_issuer(&code, &csrf_token, issuer.as_deref());
        // A server may repeat what it was sent.
        let hidden = [Some(code.clone()), Some(verifier), secret];
        exchanged.await.map(drop).map_err(|error| {
            let mut why = words(&error);
            for value in hidden.iter().flatten().filter(|value| value.len() >= 4) {
                why = why.replace(value.as_str(), "[REDACTED]");
            }
            self.failed(why)
        })
    }

    /// Opens the login for a connection; the error says what to do.
    pub(crate) async fn open(&self, endpoint: &McpEndpoint) -> Result<Arc<Login>, String> {
        let record = self.read::<LoginRecord>(SecretKind::Login).await.map_err(|error| error.to_string())?;
        let record = record.ok_or_else(|| self.missing())?;
        if record.base.url != endpoint.url {
            return Err(format!(
                "the stored login is for another address of the server; log in with `clawsmith mcp login {}`",
                self.server
            ));
        }
        let told = |error: AuthError| words(&error);
        let mut manager = self.manager_of(endpoint, &record.base).await?;
        let config = record.base.client.config();
        manager.set_credential_store(SealedLogin::new(self.clone(), record.base));
        if !manager.initialize_from_store().await.map_err(told)? {
            return Err(self.missing());
        }
        manager.configure_client(config).map_err(told)?;
        Ok(Arc::new(Login { manager, server: self.server.clone() }))
    }

    /// Returns a manager for a begun or stored login. Refused if the MCP server leads to another authorization server now: it
    /// would get the secrets of the login.
    async fn manager_of(
        &self,
        endpoint: &McpEndpoint,
        base: &LoginBase,
    ) -> Result<AuthorizationManager, String> {
        let found = manager(endpoint, &base.challenge).await;
        let (manager, metadata) = found.map_err(|error| words(&error))?;
        if AuthorizationServer::of(&metadata) == base.authorization_server {
            return Ok(manager);
        }
        let advice = format!("log in again with `clawsmith mcp login {}`", self.server);
        Err(format!("the server no longer names the authorization server of the login; {advice}"))
    }
}

impl LoginBase {
    /// Returns whether two logins are for the same address and from the same authorization server.
    fn is_at(&self, other: &Self) -> bool {
        self.url == other.url && self.authorization_server == other.authorization_server
    }
}

impl ClientRecord {
    fn config(&self) -> OAuthClientConfig {
        let config = OAuthClientConfig::new(&self.id, &self.redirect);
        match &self.secret {
            Some(secret) => config.with_client_secret(secret),
            None => config,
        }
    }
}

/// A login that a connection uses.
pub(crate) struct Login {
    manager: AuthorizationManager,
    server: ServerName,
}

impl Login {
    /// Returns the token for the next request, refreshed if it is about to expire.
    pub(crate) async fn token(&self) -> Result<String, String> {
        self.manager.get_access_token().await.map_err(|error| self.told(&error))
    }

    /// Replaces a refused token: by that of another process if there is one, else by a refreshed one.
    pub(crate) async fn renewed(&self, refused: &str) -> Result<String, String> {
        let renew = async {
            let stored = self.manager.get_access_token().await?;
            if stored != refused {
                return Ok(stored);
            }
            self.manager.refresh_token().await?;
            self.manager.get_access_token().await
        };
        renew.await.map_err(|error| self.told(&error))
    }

    fn told(&self, error: &AuthError) -> String {
        match error {
            AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_) => {
                format!("the login has ended; log in again with `clawsmith mcp login {}`", self.server)
            }
            error => format!("the login cannot be renewed: {}", words(error)),
        }
    }

    /// Returns advice if the server wants more scopes than the login has.
    pub(crate) fn wants(&self, scope: &str) -> String {
        let server = &self.server;
        match scope.split_whitespace().next() {
            Some(_) => {
                let scopes: Vec<String> =
                    scope.split_whitespace().map(|scope| format!("--scope {scope}")).collect();
                format!("the login lacks scopes; `clawsmith mcp login {server} {}`", scopes.join(" "))
            }
            None => format!("the login lacks a permission; log in again with `clawsmith mcp login {server}`"),
        }
    }
}

/// The settings of a server that is logged in to, with its address.
pub(crate) fn endpoint_of(server: &McpServer) -> Option<(&McpEndpoint, &McpOAuth)> {
    match &server.transport {
        McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) => {
            Some((endpoint, endpoint.oauth.as_ref()?))
        }
        McpTransport::Stdio(_) => None,
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests;
