//! Exhausted keys, and fallback models.

use std::path::Path;
use std::sync::Arc;

use claw_core::TenantId;
use claw_core::port::{Fault, Models as _};
use claw_llm::{ModelConfig, ProviderConfig, ProviderKind, Providers};
use claw_testkit::models::{Manners, ModelServer};

use crate::kit::{KINDS, Table, ask, asked, config, model_of};

const HELLO: &str = "[[turn]]\ndo = [{ say = 'hello' }]";

fn refusing(keys: &[(&str, u16)]) -> Manners {
    let refused_keys = keys.iter().map(|(key, status)| ((*key).to_owned(), *status)).collect();
    Manners { refused_keys, ..Manners::default() }
}

fn used(server: &ModelServer) -> Vec<String> {
    server.asked().into_iter().filter_map(|asked| asked.key).collect()
}

#[tokio::test]
async fn the_next_key_is_used_where_one_is_refused_or_used_up() {
    for kind in KINDS {
        let server = ModelServer::start(HELLO, refusing(&[("wrong", 401), ("spent", 429)])).await;
        let mut config = config(kind, &server);
        config.providers.get_mut("p").unwrap().key_env = ["A", "B", "NONE", "C"].map(str::to_owned).into();
        let keys = Arc::new(Table([("A", "wrong"), ("B", "spent"), ("C", "good")].into()));
        let providers = Providers::new(config, Path::new("."), keys).unwrap();
        for _ in 0..2 {
            let model = providers.model(&TenantId::main(), None, None).await.unwrap();
            assert!(ask(&*model, &asked("go")).await.0.is_ok());
        }
        assert_eq!(used(&server), ["wrong", "spent", "good", "good"], "{kind:?}");
    }
}

#[tokio::test]
async fn a_spent_key_is_tried_again_where_all_others_are_wrong() {
    let server = ModelServer::start(HELLO, refusing(&[("wrong", 403), ("spent", 429)])).await;
    let mut config = config(ProviderKind::OpenAi, &server);
    config.providers.get_mut("p").unwrap().key_env = ["A", "B"].map(str::to_owned).into();
    let (answer, _) = ask(&*model_of(config, &[("A", "spent"), ("B", "wrong")]).await, &asked("go")).await;
    assert_eq!(answer.unwrap_err().fault, Fault::RateLimited { retry_after: None });
    assert_eq!(used(&server), ["spent", "wrong", "spent", "wrong", "spent", "wrong"]);
}

#[tokio::test]
async fn keys_are_in_no_message() {
    for kind in KINDS {
        let server = ModelServer::start(HELLO, refusing(&[("hunter2-secret", 401)])).await;
        let model = model_of(config(kind, &server), &[("KEY", "hunter2-secret\n")]).await;
        let error = ask(&*model, &asked("go")).await.0.unwrap_err();
        assert!(!format!("{error:?} {error}").contains("hunter2"), "{error}");
        assert!(error.message.contains("no more with the key [REDACTED]"), "{error}");
        assert_eq!(used(&server), ["hunter2-secret"]);
    }
    let keys = Arc::new(Table([("KEY", "hunter2")].into()));
    let server = ModelServer::start(HELLO, Manners::default()).await;
    let providers = Providers::new(config(ProviderKind::OpenAi, &server), Path::new("."), keys).unwrap();
    assert!(!format!("{providers:?}").contains("hunter2"));
}

#[tokio::test]
async fn the_chain_goes_over_providers_until_one_answers() {
    let down = "[[turn]]\ndo = [{ say = 'hel' }, { fail = 'connection' }]";
    let locked = "[[turn]]\ndo = [{ fail = 'unauthorised' }]";
    let [first, second, third] = [
        ModelServer::start(down, Manners::default()).await,
        ModelServer::start(locked, Manners::default()).await,
        ModelServer::start(HELLO, Manners::default()).await,
    ];
    let mut config = config(ProviderKind::Anthropic, &first);
    for (name, kind, server) in
        [("second", ProviderKind::OpenAi, &second), ("third", ProviderKind::Gemini, &third)]
    {
        let provider = ProviderConfig {
            kind: Some(kind),
            base_url: Some(server.base_url(kind)),
            ..ProviderConfig::default()
        };
        config.providers.insert(name.to_owned(), provider);
    }
    config.fallback = ["second/a", "openai/not-set-up", "p/m", "third/b/c"].map(str::to_owned).into();
    let model = model_of(config.clone(), &[("KEY", "k")]).await;
    assert_eq!((model.card().provider.as_str(), model.card().model.as_str()), ("p", "m"));
    let (answer, heard) = ask(&*model, &asked("go")).await;
    let answer = answer.unwrap();
    assert_eq!((answer.provider.as_str(), answer.model.as_str()), ("third", "b/c"));
    assert_eq!(heard.last().unwrap(), "text hello");
    assert_eq!([&first, &second, &third].map(|server| server.asked().len()), [3, 1, 1]);

    // A model's own fallbacks take precedence over the common ones.
    let own = ModelConfig { fallback: Some(Vec::new()), ..ModelConfig::default() };
    config.providers.get_mut("p").unwrap().models.insert("m".to_owned(), own);
    let (answer, _) = ask(&*model_of(config, &[("KEY", "k")]).await, &asked("go")).await;
    assert_eq!(answer.unwrap_err().fault, Fault::Connection);
    assert_eq!(third.asked().len(), 1);
}
