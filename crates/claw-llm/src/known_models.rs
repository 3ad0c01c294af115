//! Well-known models: context window, output limit, and prices. Configuration overrides them.

use claw_core::port::Prices;

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
