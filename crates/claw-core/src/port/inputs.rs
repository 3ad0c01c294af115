//! Input of the person behind a call, asked for by the server that a tool speaks to.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::tool::ToolError;

/// Asks the person behind a call for input, as an approval that is answered with values.
#[async_trait]
pub trait Inputs: Send + Sync {
    /// Asks, and waits for the answer. A question that nobody can be asked, or that nobody answers in time, is
    /// [`InputAnswer::Cancelled`].
    async fn ask(&self, request: InputRequest) -> Result<InputAnswer, ToolError>;
}

/// A server's request for input. Its words are the server's and are never trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct InputRequest {
    /// The name of the MCP server that asks.
    pub server: String,
    /// The server's words.
    pub message: String,
    /// The kind of input.
    #[serde(flatten)]
    pub form: InputForm,
}

/// The kind of input that a server asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "mode", rename_all = "lowercase")]
pub enum InputForm {
    /// Values for named fields.
    Form {
        /// JSON Schema of the values: an object whose properties are the fields.
        schema: Value,
    },
    /// A visit to a page. The address is shown and never opened by the program.
    Url {
        /// The address of the page.
        url: String,
    },
}

/// The person's answer to a request for input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputAnswer {
    /// The person gave these values; none for a page.
    Accepted(Map<String, Value>),
    /// The person said no.
    Declined,
    /// Nobody answered, or the person dismissed the question.
    Cancelled,
}
