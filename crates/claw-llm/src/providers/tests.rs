use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::{Fault, Models as _};
use secrecy::SecretString;

use super::Providers;
use crate::api_keys::{KeyPlace, Keys};
use crate::config::ModelsConfig;

/// Has the keys whose variables are listed.
struct Has(&'static [&'static str]);

#[async_trait]
impl Keys for Has {
    async fn key(&self, tenant: &TenantId, place: &KeyPlace) -> Result<Option<SecretString>, String> {
        match place {
            KeyPlace::Env(name) => Ok(self.0.contains(&name.as_str()).then(|| "a-key".into())),
            KeyPlace::Secret(name) if tenant.as_str() == "main" => Err(format!("`{name}` cannot be opened")),
            KeyPlace::Secret(_) => Ok(Some("a-key".into())),
        }
    }
}

fn config(text: &str) -> ModelsConfig {
    toml::from_str(text).unwrap()
}

fn providers(text: &str, keys: &'static [&'static str]) -> Providers {
    Providers::new(config(text), Path::new("/nowhere"), Arc::new(Has(keys))).unwrap()
}

/// The model that answers, or the error.
async fn who(
    text: &str,
    keys: &'static [&'static str],
    provider: Option<&str>,
    model: Option<&str>,
) -> String {
    match providers(text, keys).model(&TenantId::main(), provider, model).await {
        Ok(model) => format!("{}/{}", model.card().provider, model.card().model),
        Err(error) => {
            assert_eq!(error.fault, Fault::NotSetUp);
            error.to_string()
        }
    }
}

#[tokio::test]
async fn refuses_the_demo_in_the_place_of_a_model_that_is_named() {
    let told = who("", &[], None, Some("nope/x")).await;
    assert!(
        told.starts_with("nope/x: not set up: there is no provider `nope`; there are `anthropic`, "),
        "{told}"
    );
    let told = who("", &[], None, Some("antropic/x")).await;
    assert!(told.contains("did you mean `anthropic`?"), "{told}");
    let told = who("", &[], None, Some("gpt-5")).await;
    assert!(told.contains("no provider is set up; set the key of one"), "{told}");
    for (provider, model) in [(None, "demo/nope"), (Some("demo"), "nope")] {
        let told = who("", &[], provider, Some(model)).await;
        assert!(
            told.contains("the demo plays a script and has no model `nope`; name another provider"),
            "{told}"
        );
    }
    // The demo answers if it is named, and a router's models have slashes of their own.
    assert_eq!(who("", &[], None, Some("demo/demo")).await, "demo/demo");
    assert_eq!(who("", &["OPENROUTER_API_KEY"], None, Some("nope/x")).await, "openrouter/nope/x");
}

#[tokio::test]
async fn a_key_decides_who_answers_and_the_demo_does_without() {
    assert_eq!(who("", &[], None, None).await, "demo/demo");
    assert_eq!(who("model = 'x'", &[], None, None).await, "demo/demo");
    assert_eq!(who("", &["OPENAI_API_KEY"], None, None).await, "openai/gpt-5");
    let both = &["OPENAI_API_KEY", "ANTHROPIC_API_KEY"];
    assert_eq!(who("", both, None, None).await, "anthropic/claude-sonnet-4-5");
    assert_eq!(who("provider = 'openai'\nmodel = 'o9'", both, None, None).await, "openai/o9");
    assert_eq!(who("", both, Some("openai"), Some("a/b")).await, "openai/a/b");
    assert_eq!(who("", both, None, Some("openai/x")).await, "openai/x");
    assert_eq!(who("", both, None, Some("meta/x")).await, "anthropic/meta/x");
    let own = "[providers.mine]\nkind = 'openai'\nbase_url = 'http://localhost:1/v1'\nmodel = 'm'";
    assert_eq!(who(own, both, None, None).await, "mine/m");
    assert_eq!(who("", &[], Some("ollama"), Some("llama3")).await, "ollama/llama3");
}

#[tokio::test]
async fn the_demo_says_that_it_is_one() {
    let model = providers("", &[]).model(&TenantId::main(), None, None).await.unwrap();
    assert!(model.card().demo);
    let model = providers("", &["OPENAI_API_KEY"]).model(&TenantId::main(), None, None).await.unwrap();
    assert!(!model.card().demo);
}

#[tokio::test]
async fn what_is_not_set_up_is_told_with_what_to_do() {
    let told = who("", &[], Some("openai"), None).await;
    assert_eq!(told, "openai/gpt-5: not set up: it has no key; set the variable `OPENAI_API_KEY`");
    let told = who("", &[], Some("opnai"), Some("x")).await;
    assert!(
        told.starts_with(
            "opnai/x: not set up: there is no provider `opnai`; did you mean `openai`? there are `anthropic`, "
        ),
        "{told}"
    );
    let told = who("", &[], Some("ollama"), None).await;
    assert!(told.contains("set `models.providers.ollama.model`"), "{told}");
    let sealed =
        "[providers.p]\nkind = 'gemini'\nbase_url = 'https://x.example'\nmodel = 'm'\nkey_secret = ['s']";
    assert_eq!(who(sealed, &[], None, None).await, "p/m: not set up: `s` cannot be opened");
    let other = TenantId::new("other").unwrap();
    assert!(providers(sealed, &[]).model(&other, None, None).await.is_ok(), "keys are the tenant's");
}

#[tokio::test]
async fn a_known_providers_key_goes_nowhere_else() {
    let moved = "[providers.openai]\nbase_url = 'https://proxy.example/v1'";
    let list = providers(moved, &["OPENAI_API_KEY"]).list(&TenantId::main()).await;
    let card = list.iter().find(|card| card.name == "openai").unwrap();
    assert_eq!((&card.keys, card.needs_key), (&Ok(0), false));
    let card = list.iter().find(|card| card.name == "anthropic").unwrap();
    assert_eq!((&card.keys, card.is_ready()), (&Ok(0), false));
}

#[tokio::test]
async fn what_is_known_of_a_model_gives_way_to_what_is_written() {
    let text = "[providers.anthropic.models.claude-sonnet-4-5]\ncontext = 1000\nimages = false\nprices = { input = 0.25, output = 1.005 }";
    let providers = providers(text, &["ANTHROPIC_API_KEY"]);
    let model = providers.model(&TenantId::main(), None, None).await.unwrap();
    let card = model.card();
    assert_eq!((card.context, card.output, card.images), (1000, 1000, false));
    assert_eq!((card.prices.input, card.prices.output, card.prices.cache_read), (250_000, 1_005_000, 0));
    let model = providers.model(&TenantId::main(), None, Some("claude-opus-4-5-20251101")).await.unwrap();
    assert_eq!(model.card().prices.output, 25_000_000);
    let model = providers.model(&TenantId::main(), None, Some("unheard-of")).await.unwrap();
    assert_eq!((model.card().context, model.card().prices.output), (128_000, 0));
}

#[track_caller]
fn refuses(text: &str, expected: &str) {
    let error = Providers::new(config(text), Path::new("/nowhere"), Arc::new(Has(&[]))).unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn a_wrong_configuration_is_refused_with_its_key() {
    refuses("provider = 'x'", "`provider`: there is no provider `x`");
    refuses("fallback = ['gpt-5']", "`fallback`: `gpt-5` is not a model name");
    refuses("fallback = ['x/y']", "`fallback`: there is no provider `x`");
    refuses("[providers.openai.models.a]\nfallback = ['x/y']", "`providers.openai.models.a.fallback`");
    refuses("[providers.mine]", "`providers.mine.kind`: is missing");
    refuses("[providers.mine]\nkind = 'openai'", "`providers.mine.base_url`: is missing");
    refuses("[providers.openai]\nkind = 'gemini'", "`providers.openai.base_url`: is missing");
    for url in ["x", "ftp://a/", "http://u:p@a/", "https://a/?key=b"] {
        refuses(&format!("[providers.ollama]\nbase_url = '{url}'"), "`providers.ollama.base_url`");
    }
    refuses(
        "[providers.p]\nkind = 'openai'\nbase_url = 'http://a.example/v1'\nkey_env = ['K']",
        "without encryption",
    );
    refuses(
        "[providers.openai.headers]\nAuthorization = 'x'",
        "`providers.openai.headers.Authorization`: cannot",
    );
    refuses("[providers.openai.headers]\n'a b' = 'x'", "is not a valid header name");
    refuses("[providers.openai]\nscript = 'x.toml'", "needs the kind `scripted`");
    refuses(
        "[providers.s]\nkind = 'scripted'\nscript = 'x.toml'",
        "script `/nowhere/x.toml`: cannot be read",
    );
    refuses("[providers.openai.models.a]\nprices = { input = -1.0 }", "a price is from 0");
    refuses("[providers.openai.models.a]\nprices = { input = nan }", "a price is from 0");
    refuses("[providers.'a/b']\nkind = 'scripted'", "contain `/`");
}

#[test]
fn only_what_is_near_by_name_may_be_near() {
    let near = |text: &str| {
        let providers = super::resolve::providers(&config(text), Path::new(".")).unwrap();
        let mut near: Vec<_> = providers.values().filter_map(|provider| provider.near()).collect();
        near.sort();
        near.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let usual = ["http://localhost:8000", "http://localhost:8080", "http://localhost:11434"];
    assert_eq!(near(""), usual);
    let at = |url: &str, more: &str| {
        near(&format!("[providers.mine]\nkind = 'openai'\nbase_url = '{url}'\n{more}"))
            .into_iter()
            .find(|origin| !usual.contains(&origin.as_str()))
    };
    assert_eq!(at("http://192.168.1.5:1234/v1", "").as_deref(), Some("http://192.168.1.5:1234"));
    assert_eq!(at("http://[::1]:9/v1", "").as_deref(), Some("http://[::1]:9"));
    assert_eq!(at("https://models.corp.example/v1", ""), None);
    assert_eq!(at("https://1.1.1.1/v1", ""), None);
    let named = at("https://models.corp.example/v1", "private = true");
    assert_eq!(named.as_deref(), Some("https://models.corp.example:443"));
}
