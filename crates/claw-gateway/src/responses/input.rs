//! The input of a response: a text or items, as the messages of a question.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::client_tools::ToolCall;
use crate::error::ApiError;
use crate::question::{Content, ContentPart, ImageUrl, Said};

/// A text, or messages.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Given {
    Text(String),
    Items(Vec<Item>),
}

/// A message, a call that was handed to the client, or the result of one.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Item {
    /// `message`, `function_call` or `function_call_output`; other items of an answer are left out.
    #[serde(rename = "type")]
    kind: Option<String>,
    role: Option<String>,
    content: Option<ItemContent>,
    /// The call, of a `function_call` and its `function_call_output`.
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    output: Option<ItemContent>,
}

/// A text, or texts and images.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum ItemContent {
    Text(String),
    Parts(Vec<ItemPart>),
}

/// A text or an image.
#[derive(Debug, Deserialize, JsonSchema)]
struct ItemPart {
    /// `input_text`, `output_text` or `input_image`.
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    /// A data URL.
    image_url: Option<String>,
}

impl Given {
    /// The messages of the question.
    pub(super) fn said(self) -> Result<Vec<Said>, ApiError> {
        match self {
            Self::Text(text) => {
                let content = Some(Content::Text(text));
                Ok(vec![Said { role: "user".to_owned(), content, ..Said::default() }])
            }
            Self::Items(items) => {
                items.into_iter().filter_map(|item| item.said().transpose()).collect::<Result<_, _>>()
            }
        }
    }
}

impl Item {
    /// The item as a message; `None` for one that only the agent knows about.
    fn said(self) -> Result<Option<Said>, ApiError> {
        let said = match self.kind.as_deref().unwrap_or("message") {
            "message" => {
                let (role, content) =
                    (self.role.unwrap_or_else(|| "user".to_owned()), self.content.map(Into::into));
                Said { role, content, ..Said::default() }
            }
            "function_call" => {
                let id = self.call_id.unwrap_or_default();
                let call =
                    ToolCall::with_id(id, self.name.unwrap_or_default(), self.arguments.unwrap_or_default());
                Said { role: "assistant".to_owned(), tool_calls: Some(vec![call]), ..Said::default() }
            }
            "function_call_output" => Said {
                role: "tool".to_owned(),
                content: self.output.map(Into::into),
                tool_call_id: self.call_id,
                ..Said::default()
            },
            // Clients send back the whole output of an answer.
            "mcp_call" | "reasoning" => return Ok(None),
            kind => {
                let kind: String = kind.chars().take(50).collect();
                return Err(ApiError::invalid(format!("items of the type `{kind}` are not supported")).hint(
                    "send messages, and a `function_call_output` for each call that was handed to you",
                ));
            }
        };
        Ok(Some(said))
    }
}

impl From<ItemContent> for Content {
    fn from(content: ItemContent) -> Self {
        match content {
            ItemContent::Text(text) => Self::Text(text),
            ItemContent::Parts(parts) => Self::Parts(parts.into_iter().map(ItemPart::part).collect()),
        }
    }
}

impl ItemPart {
    fn part(self) -> ContentPart {
        let kind = match self.kind.as_str() {
            "input_text" | "output_text" => "text".to_owned(),
            "input_image" => "image_url".to_owned(),
            _ => self.kind,
        };
        ContentPart { kind, text: self.text, image_url: self.image_url.map(|url| ImageUrl { url }) }
    }
}
