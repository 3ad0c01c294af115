//! Requests to servers that a tool's owner named.

use async_trait::async_trait;
use serde_json::Value;

use crate::id::TenantId;
use crate::tool::{Origin, SecretVariables, Secrets, ToolError};

/// Requests to the servers that the plan names.
#[async_trait]
pub trait Http: Send + Sync {
    /// Sends one request.
    async fn send(&self, request: &HttpRequest) -> Result<HttpAnswer, ToolError>;
}

/// Sends a deployment's requests to other servers.
#[async_trait]
pub trait HttpHost: Send + Sync {
    /// Sends one request for a tenant. It goes to the request's origin and follows no redirect to another
    /// one; header values are added to `secrets` before they are used.
    async fn send(
        &self,
        tenant: &TenantId,
        request: &HttpRequest,
        secrets: &Secrets,
    ) -> Result<HttpAnswer, ToolError>;
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// The method, upper case.
    pub method: String,
    /// The whole address.
    pub url: String,
    /// The server that the address leads to.
    pub origin: Origin,
    /// Headers with secret values.
    pub headers: SecretVariables,
    /// The JSON body; `None` sends none.
    pub body: Option<Value>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The body as text.
    pub body: String,
}
