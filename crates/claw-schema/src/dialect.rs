//! Schemas in the dialect of each provider.
//!
//! Providers support different parts of JSON Schema and reject requests with other keywords, so that one odd
//! schema of one MCP server can fail every call. A schema is first made plain (references inlined, `allOf`
//! merged, the root an object) and then rendered with the keywords that the provider knows.
//!
//! - All dialects but the strict one accept at least the values that the original accepts: constraints that a
//!   provider cannot express are left to the validation of arguments. Two intentions are read into a schema
//!   all the same. A schema with `properties` and no `type` means an object. If alternatives at the root are
//!   folded into one object, a field that only one of them names means that field in all of them.
//! - [`Dialect::OpenAiStrict`] accepts at most the values that the original accepts, once the fields are
//!   dropped that are null because strict schemas know no optional fields. A schema without a strict form is
//!   sent as for [`Dialect::OpenAi`] with `strict: false`, and [`strict`] returns the reason.
//! - The same schema always gives the same bytes. Schemas of any depth and size give one of bounded depth and
//!   size.

mod estimate;
mod gemini;
mod merge;
mod plain;
mod reference;
mod render;
mod strict;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use claw_core::tool::Spec;

pub use estimate::estimate_tokens;
pub use reference::resolve;
pub use strict::{NotStrict, strict};

/// The form in which a provider takes tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Dialect {
    /// Plain JSON Schema under `input_schema`.
    #[default]
    Default,
    /// OpenAI and compatible providers.
    OpenAi,
    /// OpenAI with arguments that are guaranteed to match the schema.
    OpenAiStrict,
    /// Anthropic.
    Anthropic,
    /// Gemini, from Google AI or Vertex: a subset of OpenAPI 3.0.
    Gemini,
    /// xAI: as OpenAI, without lengths, counts, patterns and formats.
    XAi,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 6] =
        [Self::Default, Self::OpenAi, Self::OpenAiStrict, Self::Anthropic, Self::Gemini, Self::XAi];

    /// Returns the dialect of a provider, by its name in the configuration, in any case.
    pub fn for_provider(name: &str) -> Self {
        match name.trim().to_ascii_lowercase().as_str() {
            "openai" | "openai-codex" | "azure" | "azure-openai" | "openrouter" | "groq" | "deepseek"
            | "mistral" | "together" | "fireworks" | "cerebras" | "perplexity" | "cohere" | "ollama"
            | "lmstudio" | "vllm" | "llamacpp" | "litellm" | "moonshot" | "kimi" | "minimax"
            | "dashscope" | "qwen" | "bailian" | "zai" | "zhipu" | "github-copilot" | "nvidia"
            | "huggingface" | "vercel-ai-gateway" | "novita" | "siliconflow" | "byteplus" => Self::OpenAi,
            "openai-strict" => Self::OpenAiStrict,
            "anthropic" | "claude" | "claude-cli" | "bedrock" | "amazon-bedrock" | "anthropic-vertex" => {
                Self::Anthropic
            }
            "google"
            | "google-generative-ai"
            | "google-vertex"
            | "gemini"
            | "gemini-cli"
            | "google-gemini-cli"
            | "google-antigravity"
            | "vertex" => Self::Gemini,
            "xai" | "x-ai" | "grok" => Self::XAi,
            _ => Self::Default,
        }
    }

    /// Returns the schema of arguments in this dialect.
    pub fn schema(self, schema: &Value) -> Value {
        match self {
            Self::OpenAiStrict => strict(schema).unwrap_or_else(|_| Self::OpenAi.schema(schema)),
            Self::Gemini => gemini::render(schema),
            Self::Default | Self::Anthropic => render::render(&render::FULL, schema),
            Self::OpenAi => render::render(&render::OPENAI, schema),
            Self::XAi => render::render(&render::XAI, schema),
        }
    }

    /// Returns one tool in this dialect.
    pub fn tool(self, spec: &Spec) -> Value {
        let (name, description) = (&spec.name, &spec.description);
        match self {
            Self::OpenAiStrict => {
                let (parameters, is_strict) = match strict(&spec.parameters) {
                    Ok(parameters) => (parameters, true),
                    Err(_) => (Self::OpenAi.schema(&spec.parameters), false),
                };
                json!({ "type": "function", "function": {
                    "name": name, "description": description, "parameters": parameters, "strict": is_strict,
                } })
            }
            Self::OpenAi | Self::XAi => {
                let parameters = self.schema(&spec.parameters);
                json!({ "type": "function", "function": {
                    "name": name, "description": description, "parameters": parameters,
                } })
            }
            Self::Gemini => gemini::declaration(spec),
            Self::Default | Self::Anthropic => {
                let schema = self.schema(&spec.parameters);
                json!({ "name": name, "description": description, "input_schema": schema })
            }
        }
    }

    /// Returns all tools in this dialect, in the order given.
    pub fn tools(self, specs: &[Spec]) -> Vec<Value> {
        specs.iter().map(|spec| self.tool(spec)).collect()
    }
}
