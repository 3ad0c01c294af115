//! Servers that configuration names, and what is sent to them.

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::id::TenantId;
use crate::tool::{Origin, Secrets, ToolError};

/// The configured endpoints, as far as the plan names them.
#[async_trait]
pub trait Endpoints: Send + Sync {
    /// All of them, by name.
    async fn list(&self) -> Result<Vec<EndpointCard>, ToolError>;
    /// Sends one request.
    async fn send(&self, request: &EndpointRequest) -> Result<EndpointAnswer, ToolError>;
}

/// The endpoints of a deployment.
#[async_trait]
pub trait EndpointHost: Send + Sync {
    /// All of them, by name.
    fn list(&self) -> Vec<EndpointCard>;
    /// Sends one request for a tenant. Keys are added to `secrets` before they are used.
    async fn send(
        &self,
        tenant: &TenantId,
        request: &EndpointRequest,
        secrets: &Secrets,
    ) -> Result<EndpointAnswer, ToolError>;
}

/// What may be known of an endpoint: never its keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndpointCard {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// Where it is.
    pub origin: Origin,
    /// The names that its body has places for; `None` where a call brings the whole body.
    pub values: Option<Vec<String>>,
}

/// What is sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EndpointRequest {
    /// To which endpoint.
    pub endpoint: String,
    /// What goes into the places of its body.
    pub values: Map<String, Value>,
    /// The whole body, for an endpoint that has none of its own.
    pub body: Option<Map<String, Value>>,
    /// The field to read of the answer, as a JSON pointer; the endpoint's where none is given.
    pub read: Option<String>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EndpointAnswer {
    /// The status.
    pub status: u16,
    /// The field that was read, or all of it.
    pub value: Value,
}
