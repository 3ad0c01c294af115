//! Configured endpoints over real sockets: requests, responses, and refusals.

use std::collections::BTreeMap;
use std::sync::Arc;

use claw_core::TenantId;
use claw_core::port::{EndpointHost as _, EndpointRequest};
use claw_core::tool::{ErrorKind, Secrets};
use claw_llm::{ConfiguredEndpoints, EndpointConfig, ProviderKind};
use claw_testkit::models::{Manners, ModelServer};
use serde_json::{Value, json};

use crate::kit::Table;

const SCRIPT: &str = r#"
    [[turn]]
    when.said = "fail"
    do = [{ fail = "unavailable", message = "come back later" }]

    [[turn]]
    do = [{ say = "You said: {{said}}" }]
"#;

async fn server() -> ModelServer {
    let refused_keys = vec![("k-refused".to_owned(), 401)];
    ModelServer::start(SCRIPT, Manners { unstreamed: true, refused_keys, ..Manners::default() }).await
}

/// An endpoint that asks a question in a chat of one message.
fn asking(server: &ModelServer) -> EndpointConfig {
    let body = json!({
        "model": "m",
        "stream": false,
        "messages": [{ "role": "user", "content": "about {{topic}}: {{question}}" }],
        "metadata": { "tags": "{{tags}}" },
    });
    EndpointConfig {
        base_url: server.base_url(ProviderKind::OpenAi),
        body: body.as_object().cloned(),
        read: Some("/choices/0/message/content".to_owned()),
        headers: [("x-title".to_owned(), "clawsmith".to_owned())].into(),
        key_env: vec!["NONE".to_owned(), "KEY".to_owned()],
        ..EndpointConfig::default()
    }
}

fn endpoints(config: EndpointConfig, key: &'static str) -> Result<ConfiguredEndpoints, String> {
    let config = BTreeMap::from([("ask".to_owned(), config)]);
    let keys = Arc::new(Table([("KEY", key)].into()));
    ConfiguredEndpoints::new(&config, keys).map_err(|error| error.to_string())
}

fn request(values: Value) -> EndpointRequest {
    let values = values.as_object().cloned().unwrap();
    EndpointRequest { endpoint: "ask".to_owned(), values, ..EndpointRequest::default() }
}

fn full() -> EndpointRequest {
    request(json!({ "topic": "crabs", "question": "{{tags}}", "tags": ["a", 2] }))
}

/// The answer's value, or the kind of failure and the text that the model reads.
async fn send(
    endpoints: &ConfiguredEndpoints,
    request: &EndpointRequest,
) -> Result<Value, (ErrorKind, String)> {
    let sent = endpoints.send(&TenantId::main(), request, &Secrets::default()).await;
    sent.map(|answer| answer.value).map_err(|error| (error.kind, error.for_model()))
}

#[tokio::test]
async fn sends_its_body_with_the_values_and_reads_its_field() {
    let server = server().await;
    let endpoints = endpoints(asking(&server), "k-1234567890").unwrap();
    let card = &endpoints.list()[0];
    assert_eq!((card.name.as_str(), card.origin.host.as_str()), ("ask", "127.0.0.1"));
    assert_eq!(card.values.as_deref(), Some(&["question", "tags", "topic"].map(str::to_owned)[..]));
    let secrets = Secrets::default();
    let answer = endpoints.send(&TenantId::main(), &full(), &secrets).await.unwrap();
    assert_eq!((answer.status, answer.value), (200, json!("You said: about crabs: {{tags}}")));
    assert_eq!(secrets.reveal(), ["k-1234567890"], "the key is scrubbed from what the call gives");
    let asked = server.asked().pop().unwrap();
    assert_eq!((asked.path.as_str(), asked.key.as_deref()), ("/v1/chat/completions", Some("k-1234567890")));
    assert_eq!(asked.body["metadata"], json!({ "tags": ["a", 2] }));
    assert!(asked.headers.contains(&("x-title".to_owned(), "clawsmith".to_owned())), "{:?}", asked.headers);
    let whole = EndpointRequest { read: Some(String::new()), ..full() };
    assert_eq!(send(&endpoints, &whole).await.unwrap()["choices"][0]["message"]["role"], "assistant");
}

#[tokio::test]
async fn takes_a_whole_body_where_it_has_none() {
    let server = server().await;
    let free = endpoints(EndpointConfig { body: None, ..asking(&server) }, "k-1234567890").unwrap();
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "{{x}}" }] });
    let whole = EndpointRequest { body: body.as_object().cloned(), ..request(json!({})) };
    assert_eq!(send(&free, &whole).await.unwrap(), "You said: {{x}}");
    assert_eq!(server.asked()[0].body, body, "as it was given");
    let (kind, told) = send(&free, &request(json!({}))).await.unwrap_err();
    assert_eq!(
        (kind, told.contains("pass all that is to be sent as `body`")),
        (ErrorKind::Invalid, true),
        "{told}"
    );
    let (_, told) = send(&free, &EndpointRequest { body: whole.body.clone(), ..full() }).await.unwrap_err();
    assert!(told.contains("has no places for `values`"), "{told}");
    let (_, told) = send(&endpoints(asking(&server), "k-1234567890").unwrap(), &whole).await.unwrap_err();
    assert!(told.contains("has a body of its own; pass `values` with `question`, `tags`, `topic`"), "{told}");
    assert_eq!(server.asked().len(), 1, "nothing was sent of what was refused");
}

#[tokio::test]
async fn says_what_was_wrong() {
    let server = server().await;
    let ask = endpoints(asking(&server), "k-1234567890").unwrap();
    let check =
        async |endpoints: &ConfiguredEndpoints, request: EndpointRequest, kind: ErrorKind, part: &str| {
            let (got, told) = send(endpoints, &request).await.unwrap_err();
            assert!(got == kind && told.contains(part), "{got:?}: {told}");
        };
    let other = EndpointRequest { endpoint: "other".to_owned(), ..full() };
    check(&ask, other, ErrorKind::NotFound, "there is no endpoint `other`; there are `ask`").await;
    check(&ask, request(json!({ "topic": "x" })), ErrorKind::Invalid, "lacks `question`, `tags`").await;
    let nowhere = EndpointRequest { read: Some("/nope".to_owned()), ..full() };
    check(&ask, nowhere, ErrorKind::Failed, "has no `/nope`; it has `/choices`").await;
    let odd = EndpointRequest { read: Some("choices".to_owned()), ..full() };
    check(&ask, odd, ErrorKind::Invalid, "`choices` is not a JSON pointer").await;
    let fail = request(json!({ "topic": "x", "question": "fail", "tags": [] }));
    check(&ask, fail, ErrorKind::Failed, "answered 503").await;
    let refused = endpoints(asking(&server), "k-refused").unwrap();
    check(&refused, full(), ErrorKind::Failed, "answered 401").await;
    let keyless = EndpointConfig { key_env: vec!["NONE".to_owned()], ..asking(&server) };
    let keyless = endpoints(keyless, "").unwrap();
    check(&keyless, full(), ErrorKind::Unavailable, "it has no key; set the variable `NONE`").await;
    let sealed = EndpointConfig { key_env: vec![], key_secret: vec!["S".to_owned()], ..asking(&server) };
    check(&endpoints(sealed, "").unwrap(), full(), ErrorKind::Unavailable, "sealed with another key").await;
    let lost = EndpointConfig { path: "/nowhere".to_owned(), ..asking(&server) };
    check(&endpoints(lost, "k-1234567890").unwrap(), full(), ErrorKind::Failed, "answered 404").await;
}

#[tokio::test]
async fn refuses_a_name_that_leads_to_this_machine() {
    let server = server().await;
    // `localhost` is known to be private; another name for it is not.
    let config = EndpointConfig {
        base_url: server.base_url(ProviderKind::OpenAi).replace("127.0.0.1", "localhost.localdomain"),
        key_env: vec![],
        ..asking(&server)
    };
    let (_, told) = send(&endpoints(config, "").unwrap(), &full()).await.unwrap_err();
    assert_eq!(server.asked(), [], "{told}");
}

#[test]
fn refuses_a_configuration_that_would_give_keys_away() {
    #[track_caller]
    fn check(change: impl FnOnce(&mut EndpointConfig), expected: &str) {
        let mut config =
            EndpointConfig { base_url: "https://example.com/v1".to_owned(), ..EndpointConfig::default() };
        change(&mut config);
        let told = endpoints(config, "").map(|_| ()).unwrap_err();
        assert!(told.contains(expected), "{told}");
    }
    check(|config| config.base_url = String::new(), "`ask.base_url`");
    check(|config| config.base_url = "file:///etc".to_owned(), "neither http nor https");
    check(|config| config.base_url = "https://u:p@example.com".to_owned(), "put keys into `key_env`");
    check(
        |config| {
            config.base_url = "http://example.com".to_owned();
            config.key_env = vec!["KEY".to_owned()];
        },
        "without encryption",
    );
    check(
        |config| drop(config.headers.insert("Authorization".into(), "x".into())),
        "`ask.headers.Authorization`",
    );
    check(|config| config.key_header = Some("no header".to_owned()), "`ask.key_header`");
    check(|config| config.read = Some("choices".to_owned()), "`ask.read`");
}
