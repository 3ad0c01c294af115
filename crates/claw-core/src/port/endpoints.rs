//! Configured endpoints, and requests to them.

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::id::TenantId;
use crate::tool::{Origin, Secrets, ToolError};

/// The configured endpoints that the plan names.
#[async_trait]
pub trait Endpoints: Send + Sync {
    /// Returns all of them, by name.
    async fn list(&self) -> Result<Vec<EndpointCard>, ToolError>;
    /// Sends one request.
    async fn send(&self, request: &EndpointRequest) -> Result<EndpointAnswer, ToolError>;
}

/// The endpoints of a deployment.
#[async_trait]
pub trait EndpointHost: Send + Sync {
    /// Returns all of them, by name.
    fn list(&self) -> Vec<EndpointCard>;
    /// Sends one request for a tenant. Keys are added to `secrets` before they are used.
    async fn send(
        &self,
        tenant: &TenantId,
        request: &EndpointRequest,
        secrets: &Secrets,
    ) -> Result<EndpointAnswer, ToolError>;
}

/// The public part of an endpoint's configuration, without its keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndpointCard {
    /// Its name.
    pub name: String,
    /// Its purpose.
    pub about: String,
    /// Its origin.
    pub origin: Origin,
    /// The placeholders in its body; `None` if the call supplies the whole body.
    pub values: Option<Vec<String>>,
}

/// A request to an endpoint.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EndpointRequest {
    /// The name of the endpoint.
    pub endpoint: String,
    /// The values for the placeholders of its body.
    pub values: Map<String, Value>,
    /// The whole body, for an endpoint that configures none.
    pub body: Option<Map<String, Value>>,
    /// The field of the answer to read, as a JSON pointer; `None` for the endpoint's own.
    pub read: Option<String>,
}

/// The answer of an endpoint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EndpointAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The field that was read, or the whole answer.
    pub value: Value,
}
