//! Tools of a run's client: declared with its message, called by the model, made by the client.
//!
//! Nothing of them is executed here. A run whose model calls one ends, and the results come with the client's next message.
//! They are text of others: fenced as data, and the session counts as one that has read untrusted text.

use std::sync::Arc;

use claw_core::ToolName;
use claw_core::message::{Args, Part, ToolResult, Wanted, fenced};
use claw_core::port::Choice;
use claw_core::tool::{Block, Spec};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool that the client makes itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientTool {
    /// Its name; none of ours.
    pub name: ToolName,
    /// Its description for the model.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of its arguments; an object.
    pub parameters: Value,
}

/// The tools of a run's client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientTools {
    /// The tools.
    pub tools: Vec<ClientTool>,
    /// The model's freedom to call them.
    #[serde(default)]
    pub choice: ClientChoice,
}

/// A model's freedom to call tools of the client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientChoice {
    /// The model decides.
    #[default]
    Auto,
    /// It must call tools until it has called one of the client's.
    Required,
    /// It must call this one.
    Named(ToolName),
}

impl ClientTools {
    /// Returns whether the client has no tools.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Returns whether a tool of this name is the client's.
    pub fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name.as_str() == name)
    }

    /// Adds the client's tools to ours. The client's are checked against ours when its message is accepted; of a name that
    /// became ours since, the client's stays, so that no call of it is ever made here.
    pub(crate) fn add_to(&self, tools: &mut Vec<Spec>) {
        tools.retain(|spec| !self.has(spec.name.as_str()));
        tools.extend(self.tools.iter().map(|tool| Spec {
            name: tool.name.clone(),
            description: tool.description.as_str().into(),
            parameters: Arc::new(tool.parameters.clone()),
        }));
    }

    /// The model's permission to call tools.
    pub(crate) fn choice(&self) -> Choice {
        match &self.choice {
            ClientChoice::Auto => Choice::Free,
            ClientChoice::Required => Choice::Any,
            ClientChoice::Named(name) => Choice::Tool(name.clone()),
        }
    }

    /// Splits calls into those that are handed to the client and the others. A call whose arguments are not JSON is no use to
    /// the client: the model is told.
    pub(crate) fn split(&self, calls: Vec<Wanted>) -> (Vec<Wanted>, Vec<Wanted>) {
        calls.into_iter().partition(|wanted| self.has(&wanted.tool) && matches!(wanted.args, Args::Json(_)))
    }
}

/// Makes the result of a call out of the client's text, which is fenced as data.
pub fn client_result(wanted: &Wanted, text: &str) -> Part {
    let content = vec![Block::Text { text: fenced(text, wanted.call, &wanted.tool) }];
    let Wanted { call, model_id, tool, .. } = wanted.clone();
    Part::Result(ToolResult { call, model_id, tool, content, failed: false })
}
