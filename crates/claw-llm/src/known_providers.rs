//! Providers that are known by name. Configuration overrides them.

use crate::config::ProviderKind;

/// A provider that is known by name.
#[derive(Debug, Clone, Copy)]
pub struct Provider {
    /// The provider's name.
    pub name: &'static str,
    /// Wire format.
    pub kind: ProviderKind,
    /// Base URL; empty for the demo.
    pub base_url: &'static str,
    /// Environment variables that may hold its key. Empty if it needs none: such a provider is used only if
    /// it is named.
    pub key_env: &'static [&'static str],
    /// The default model. Empty if it depends on what is installed.
    pub model: &'static str,
}

/// The providers that are known by name, in the order in which one with a key is chosen.
pub const PROVIDERS: &[Provider] = &[
    known(
        "anthropic",
        ProviderKind::Anthropic,
        "https://api.anthropic.com",
        &["ANTHROPIC_API_KEY"],
        "claude-sonnet-4-5",
    ),
    known("openai", ProviderKind::OpenAi, "https://api.openai.com/v1", &["OPENAI_API_KEY"], "gpt-5"),
    known(
        "gemini",
        ProviderKind::Gemini,
        "https://generativelanguage.googleapis.com/v1beta",
        &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        "gemini-2.5-flash",
    ),
    open("openrouter", "https://openrouter.ai/api/v1", &["OPENROUTER_API_KEY"], "openrouter/auto"),
    open("deepseek", "https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"], "deepseek-chat"),
    open("groq", "https://api.groq.com/openai/v1", &["GROQ_API_KEY"], "llama-3.3-70b-versatile"),
    open("mistral", "https://api.mistral.ai/v1", &["MISTRAL_API_KEY"], "mistral-medium-latest"),
    open("xai", "https://api.x.ai/v1", &["XAI_API_KEY"], "grok-4"),
    open("minimax", "https://api.minimax.io/v1", &["MINIMAX_API_KEY"], "MiniMax-M2"),
    open(
        "dashscope",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        &["DASHSCOPE_API_KEY"],
        "qwen-plus",
    ),
    open("ollama", "http://localhost:11434/v1", &[], ""),
    open("vllm", "http://localhost:8000/v1", &[], ""),
    open("llamacpp", "http://localhost:8080/v1", &[], ""),
    known(DEMO, ProviderKind::Scripted, "", &[], DEMO),
];

/// The provider and the model that need no setup.
pub(crate) const DEMO: &str = "demo";

const fn known(
    name: &'static str,
    kind: ProviderKind,
    base_url: &'static str,
    key_env: &'static [&'static str],
    model: &'static str,
) -> Provider {
    Provider { name, kind, base_url, key_env, model }
}

const fn open(
    name: &'static str,
    base_url: &'static str,
    key_env: &'static [&'static str],
    model: &'static str,
) -> Provider {
    known(name, ProviderKind::OpenAi, base_url, key_env, model)
}
