//! Finding the authorization server of an MCP server, and recognizing it later.

use std::sync::Arc;
use std::time::Duration;

use claw_core::store::McpEndpoint;
use claw_net::{HeaderMap, HeaderName, HeaderValue, Method, Request, Times, header};
use rmcp::transport::auth::{AuthError, AuthorizationManager, AuthorizationMetadata};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::guarded::{GuardedOAuth, reach};
use crate::transport::Remote;

/// The authorization server of a login. Codes, refresh tokens and client secrets are sent to its token endpoint alone:
/// the MCP server is asked for its authorization server at each connection, and may name another one later.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AuthorizationServer {
    /// The issuer; `None` for a server without metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    issuer: Option<String>,
    token_endpoint: String,
}

impl AuthorizationServer {
    pub(super) fn of(metadata: &AuthorizationMetadata) -> Self {
        Self { issuer: metadata.issuer.clone(), token_endpoint: metadata.token_endpoint.clone() }
    }
}

/// A manager for a server's logins, with the metadata of the authorization server that its challenge leads to.
pub(super) async fn manager(
    endpoint: &McpEndpoint,
    challenge: &str,
) -> Result<(AuthorizationManager, AuthorizationMetadata), AuthError> {
    let http = GuardedOAuth { private: endpoint.private.then(|| reach(&endpoint.url)).flatten() };
    let url = endpoint.url.as_str();
    let mut manager = AuthorizationManager::new_with_oauth_http_client(url, Arc::new(http)).await?;
    let challenge = Some(challenge).filter(|challenge| !challenge.is_empty());
    let metadata = manager.resolve_metadata_from_challenge(challenge).await?.metadata;
    manager.set_metadata(metadata.clone());
    Ok((manager, metadata))
}

/// Returns a server's login challenge: the header with which it refuses a request without a login. Empty if
/// it has none.
///
/// Some servers let a client introduce itself and refuse later requests, so several are tried.
pub(super) async fn challenge(endpoint: &McpEndpoint) -> Result<String, String> {
    let remote = Remote::new(endpoint, HeaderMap::new())?;
    let us = json!({ "name": "clawsmith", "version": env!("CARGO_PKG_VERSION") });
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": us,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": us });
    let tries = [
        ("initialize", hello, "2025-11-25"),
        ("tools/list", json!({}), "2025-11-25"),
        ("tools/list", json!({ "_meta": meta }), "2026-07-28"),
    ];
    let mut session = None;
    for (method, params, version) in tries {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let accept = HeaderValue::from_static("application/json, text/event-stream");
        let mut request = Request::new(Method::POST, remote.url.clone())
            .header(header::ACCEPT, accept)
            .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(HeaderName::from_static("mcp-protocol-version"), HeaderValue::from_static(version))
            .header(HeaderName::from_static("mcp-method"), HeaderValue::from_static(method))
            .body(message)
            .times(Times { whole: Some(Duration::from_secs(30)), ..Times::default() });
        if let Some(session) = &session {
            request = request.header(HeaderName::from_static("mcp-session-id"), HeaderValue::clone(session));
        }
        let answer = remote.client.send(request).await.map_err(|error| error.to_string())?;
        if answer.status() == 401 {
            let challenge = answer.header("www-authenticate").unwrap_or_default();
            return Ok(challenge.chars().take(4_096).collect());
        }
        session = session.or_else(|| answer.headers().get("mcp-session-id").cloned());
    }
    Ok(String::new())
}
