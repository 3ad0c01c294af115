//! Reaching a server once: its program or address, its values and its login.

use claw_core::AgentId;
use claw_core::port::{RunContext, WorkspaceAccess};
use claw_core::store::{McpEndpoint, McpTransport};
use claw_core::tool::{Digest, Effects, Progress, Secrets};
use claw_net::{HeaderMap, HeaderName, HeaderValue, Url};
use rmcp::model::ProtocolVersion;
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use secrecy::ExposeSecret as _;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::PoisonError;
use tokio_util::sync::CancellationToken;

use super::{Dialled, OpenedValues, Target};
use crate::handler::Watcher;
use crate::secrets::SecretKind;
use crate::transport::{
    GuardedHttp, LARGEST_MESSAGE, Remote, SendError, SseWorker, StdioChild, WatchedOutput, start,
};

/// The shortest value, in bytes, that is searched for in a server's definitions.
const SHORTEST_HIDDEN: usize = 8;

/// Why a server could not be reached.
#[derive(Debug, thiserror::Error)]
pub(super) enum DialError {
    #[error("{0}")]
    Settings(String),
    /// The server answered, and not as the lifecycle wants.
    #[error("{0}")]
    Lifecycle(String),
}

impl From<ClientInitializeError> for DialError {
    fn from(error: ClientInitializeError) -> Self {
        // A server that wants a login wants it in every lifecycle.
        if let Some(why) = login_wanted(&error) {
            return Self::Settings(why);
        }
        Self::Lifecycle(deepest(&error))
    }
}

/// Returns why a server that wants a login could not be reached; `None` for other failures.
fn login_wanted(error: &ClientInitializeError) -> Option<String> {
    match error {
        ClientInitializeError::LegacyFallbackFailed { discover, fallback } => {
            login_wanted(discover).or_else(|| login_wanted(fallback))
        }
        ClientInitializeError::TransportError { error, .. } => match error.error.downcast_ref() {
            Some(StreamableHttpError::Client(SendError::Login(why))) => Some(why.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// The cause in a message of the protocol library, without its types and the step that it was at.
fn plain(message: &str) -> String {
    let cause = message.rsplit("] error: ").next().unwrap_or(message);
    let cause = cause.strip_prefix("Client error: ").unwrap_or(cause);
    cause.split(", when ").next().unwrap_or(cause).to_owned()
}

pub(super) async fn dial(target: &Target, watcher: &Watcher, legacy: bool) -> Result<Dialled, DialError> {
    let lifecycle = if legacy {
        ClientLifecycleMode::Initialize
    } else {
        ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        }
    };
    let settings = DialError::Settings;
    match &target.server.transport {
        McpTransport::Stdio(program) => {
            let env = target.open_values().await.map_err(settings)?;
            let child = start(&target.place, program, env, context(target)).await;
            let StdioChild { output, input, control, errors } =
                child.map_err(|error| DialError::Settings(error.message))?;
            let of_output = watcher.clone();
            let output = WatchedOutput::new(output, move |problem| of_output.note_unread(None, problem));
            let transport = AsyncRwTransport::new_client(output, input).with_max_line_length(LARGEST_MESSAGE);
            let served = watcher.clone().serve_with_lifecycle(transport, lifecycle).await;
            match served {
                Ok(service) => Ok(Dialled { service, child: Some((control, errors)) }),
                Err(error) => {
                    // Its last words say more than that it hung up.
                    let said = errors.borrow().trim().to_owned();
                    let DialError::Lifecycle(why) = DialError::from(error) else {
                        return Err(DialError::Lifecycle("it ended".to_owned()));
                    };
                    let said = if said.is_empty() { why } else { format!("{why}; it printed: {said}") };
                    Err(DialError::Lifecycle(said))
                }
            }
        }
        McpTransport::Http(endpoint) => {
            let remote = target.remote(endpoint).await.map_err(settings)?;
            let mut config = StreamableHttpClientTransportConfig::with_uri(endpoint.url.as_str());
            config.max_sse_event_size = LARGEST_MESSAGE;
            config.max_concurrent_requests = 256;
            // A server that started again may have other tools: they are listed before the next call.
            config.reinit_on_expired_session = false;
            let http = GuardedHttp { remote, watcher: watcher.clone() };
            let transport = StreamableHttpClientTransport::with_client(http, config);
            let service = watcher.clone().serve_with_lifecycle(transport, lifecycle).await?;
            Ok(Dialled { service, child: None })
        }
        McpTransport::Sse(endpoint) => {
            let remote = target.remote(endpoint).await.map_err(settings)?;
            let worker = SseWorker { remote, watcher: watcher.clone() };
            let service = watcher.clone().serve_with_lifecycle(worker, lifecycle).await?;
            Ok(Dialled { service, child: None })
        }
    }
}

fn context(target: &Target) -> RunContext {
    RunContext {
        workspace: target.place.workspace(&target.tenant, &target.server.name),
        // Servers share nothing with each other, nor do the connections of two agents.
        sandbox_key: format!(
            "mcp:{}:{}:{}",
            target.tenant,
            target.server.name,
            target.agent.as_ref().map_or("", AgentId::as_str)
        )
        .into(),
        sandboxed: target.place.sandboxed,
        effects: Effects::ALL,
        access: WorkspaceAccess::Direct,
        network: false,
        paths: Vec::new(),
        changeable: Vec::new(),
        readable: Vec::new(),
        granted: Vec::new(),
        home: None,
        hidden: Vec::new(),
        sights: Vec::new(),
        cancel: CancellationToken::new(),
        progress: Progress::silent(),
        secrets: Secrets::default(),
    }
}

impl Target {
    /// The directories that a program was granted, its own first, as `file` URLs. A server elsewhere has none.
    pub(super) fn roots(&self) -> Vec<String> {
        let McpTransport::Stdio(program) = &self.server.transport else { return Vec::new() };
        let own = self.place.workspace(&self.tenant, &self.server.name);
        let granted = program.write.iter().chain(&program.read).map(PathBuf::from);
        let paths = std::iter::once(own).chain(granted);
        paths.filter_map(|path| Url::from_file_path(path).ok()).map(String::from).collect()
    }

    /// Opens the values for a connection, and remembers which they are.
    async fn open_values(&self) -> Result<Vec<(String, String)>, String> {
        let at = self.place.secret_changes();
        let values = self.values().await?;
        let digest = Digest::of(&values);
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(OpenedValues { at, digest });
        Ok(values)
    }

    /// Returns whether a value was given anew since the connection was made. Without one there is none.
    pub(super) async fn has_old_values(&self) -> bool {
        let opened = || self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, at) = (*opened(), self.place.secret_changes());
        let Some(known) = known.filter(|known| known.at != at) else { return false };
        let now = self.values().await.map(|values| Digest::of(&values));
        if now.is_ok_and(|now| now == known.digest) {
            *opened() = Some(OpenedValues { at, ..known });
            return false;
        }
        true
    }

    /// Returns the values of variables or headers: the agent's own if it has one, else the server's.
    async fn values(&self) -> Result<Vec<(String, String)>, String> {
        let (kind, names) = match &self.server.transport {
            McpTransport::Stdio(program) => (SecretKind::Env, &program.env),
            McpTransport::Http(endpoint) | McpTransport::Sse(endpoint) => {
                (SecretKind::Header, &endpoint.headers)
            }
        };
        let mut values = Vec::with_capacity(names.len());
        for name in names {
            if let Some((_, value)) = self.given.iter().find(|(given, _)| given == name) {
                values.push((name.clone(), value.expose_secret().to_owned()));
                continue;
            }
            let value =
                self.place.secrets.value(self, kind, name).await.map_err(|error| error.to_string())?;
            let value = value.ok_or_else(|| {
                format!(
                    "the value of `{name}` is missing; add the server `{}` again with it",
                    self.server.name
                )
            })?;
            values.push((name.clone(), value.expose_secret().to_owned()));
        }
        Ok(values)
    }

    /// The secret parts of the values, as they look in JSON.
    pub(super) async fn hidden(&self) -> Vec<String> {
        // A header holds its scheme before its secret, such as `Bearer`.
        let values = self.values().await.unwrap_or_default();
        let secrets = values
            .iter()
            .filter_map(|(_, value)| value.split_whitespace().last())
            .filter(|value| value.len() >= SHORTEST_HIDDEN)
            .map(|value| serde_json::to_string(value).unwrap_or_default().trim_matches('"').to_owned());
        secrets.collect()
    }

    /// Stores the tools that the server lists, with the given values removed: a definition that repeats one
    /// then differs from what the server lists, so its tool cannot be called.
    pub(super) async fn listed(&self, tools: &BTreeMap<String, Value>) {
        let hidden = self.hidden().await;
        let scrubbed = |definition: &Value| {
            let mut text = definition.to_string();
            for value in &hidden {
                text = text.replace(value, "[REDACTED]");
            }
            serde_json::from_str(&text).unwrap_or_default()
        };
        if hidden.is_empty() {
            return self.place.list(self, tools).await;
        }
        let tools = tools.iter().map(|(name, definition)| (name.clone(), scrubbed(definition))).collect();
        self.place.list(self, &tools).await;
    }

    /// The way to the server, with its headers and the login.
    async fn remote(&self, endpoint: &McpEndpoint) -> Result<Remote, String> {
        let headers = self.headers().await?;
        let mut remote = Remote::new(endpoint, headers)?;
        if endpoint.oauth.is_some() {
            let place = self.place.login(&self.tenant, &self.server.name, self.user.as_ref());
            remote.login = Some(place.open(endpoint).await?);
        }
        Ok(remote)
    }

    async fn headers(&self) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in self.open_values().await? {
            let header = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| format!("`{name}` is not a valid header name"))?;
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| format!("the value of header `{name}` cannot be sent"))?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        Ok(headers)
    }
}

/// Returns the deepest cause of an error: the levels above it speak of the library's parts.
pub(super) fn deepest(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(cause) = deepest.source() {
        deepest = cause;
    }
    plain(&deepest.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_cause_and_no_types() {
        let library = "Send message error Transport [a::B<c::D>] error: Client error: refused (111), when send initialize";
        assert_eq!(plain(library), "refused (111)");
        assert_eq!(plain("it ended"), "it ended");
    }
}
