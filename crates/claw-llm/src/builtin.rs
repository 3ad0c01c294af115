//! Built-in tables of providers and models. Configuration overrides them.

use claw_core::port::Prices;

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

/// Properties of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Traits {
    pub(crate) context: u64,
    pub(crate) output: u64,
    pub(crate) images: bool,
    pub(crate) prices: Prices,
}

/// Models by prefix of their name; the longest prefix wins. Prices are in US cents per million tokens:
/// uncached input, output, cache reads, cache writes.
const MODELS: &[(&str, u64, u64, bool, [u64; 4])] = &[
    ("claude-opus-4", 200_000, 32_000, true, [1_500, 7_500, 150, 1_875]),
    ("claude-opus-4-5", 200_000, 64_000, true, [500, 2_500, 50, 625]),
    ("claude-sonnet-4", 200_000, 64_000, true, [300, 1_500, 30, 375]),
    ("claude-haiku-4-5", 200_000, 64_000, true, [100, 500, 10, 125]),
    ("claude-", 200_000, 8_192, true, [0; 4]),
    ("gpt-5", 400_000, 128_000, true, [125, 1_000, 13, 0]),
    ("gpt-5-mini", 400_000, 128_000, true, [25, 200, 3, 0]),
    ("gpt-4.1", 1_047_576, 32_768, true, [200, 800, 50, 0]),
    ("gpt-4o", 128_000, 16_384, true, [250, 1_000, 125, 0]),
    ("gpt-4o-mini", 128_000, 16_384, true, [15, 60, 8, 0]),
    ("gemini-2.5-pro", 1_048_576, 65_536, true, [125, 1_000, 13, 0]),
    ("gemini-2.5-flash", 1_048_576, 65_536, true, [30, 250, 3, 0]),
    ("gemini-", 1_048_576, 65_536, true, [0; 4]),
    ("deepseek-", 128_000, 8_192, false, [28, 42, 3, 0]),
    ("grok-4", 256_000, 32_000, true, [300, 1_500, 75, 0]),
    ("mistral-", 128_000, 32_000, true, [40, 200, 0, 0]),
];

/// Properties of the model with this name. An unknown model gets modest limits and no price.
pub(crate) fn traits(model: &str) -> Traits {
    // Routers prefix the maker's name.
    let name = model.rsplit('/').next().unwrap_or(model);
    let found =
        MODELS.iter().filter(|(prefix, ..)| name.starts_with(prefix)).max_by_key(|(prefix, ..)| prefix.len());
    let Some((_, context, output, images, cents)) = found else {
        return Traits { context: 128_000, output: 8_192, images: false, prices: Prices::default() };
    };
    let [input, written, cache_read, cache_write] = cents.map(|cents| cents * 10_000);
    let prices = Prices { input, output: written, cache_read, cache_write };
    Traits { context: *context, output: *output, images: *images, prices }
}
