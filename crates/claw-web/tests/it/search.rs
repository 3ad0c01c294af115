//! Each provider's format on a local server: failover, limits, broken answers, merged results.

use std::sync::Arc;

use claw_core::TenantId;
use claw_core::port::{Freshness, SearchAnswer, SearchRequest, WebHost as _};
use claw_core::tool::{ErrorKind, Secrets, ToolError};
use claw_web::{SearchConfig, SearchProvider, SearchProviderConfig, WebAccess, WebConfig, WebParts};
use serde_json::json;

use crate::kit::{Answer, FixedKeys, Server, names, surfer};

use SearchProvider::{Brave, Duckduckgo, Exa, Searxng, Tavily};

const KEYS: &[(&str, &str)] = &[
    ("BRAVE_API_KEY", "brave-key-0123"),
    ("EXA_API_KEY", "exa-key-0123"),
    ("TAVILY_API_KEY", "tavily-key-0123"),
];

/// Answers like each provider, by the path.
fn honest(request: &str) -> Answer {
    let json = |value: serde_json::Value| Answer::page("application/json", value.to_string());
    let line = request.lines().next().unwrap_or_default();
    if line.contains("/brave/res/v1/web/search") {
        return json(json!({ "query": {}, "web": { "results": [
            { "title": "One &amp; <strong>only</strong>", "url": "https://one.example/", "description": "First <b>hit</b>", "age": "2 days ago" },
            { "title": "Two", "url": "https://two.example/b", "description": "Second" },
            { "title": "Bad", "url": "javascript:alert(1)", "description": "x" },
        ] } }));
    }
    if line.contains("/exa/search") {
        return json(json!({ "results": [
            { "title": "Two", "url": "https://www.two.example/b/", "text": "A longer second excerpt", "publishedDate": "2026-11-02" },
            { "title": null, "url": "https://three.example/", "highlights": ["Third"] },
        ] }));
    }
    if line.contains("/tavily/search") {
        return json(
            json!({ "results": [{ "title": "T", "url": "https://t.example/", "content": "Tavily" }] }),
        );
    }
    if line.contains("/searxng/search") {
        return json(
            json!({ "results": [{ "title": "S", "url": "https://s.example/", "content": "Searx" }] }),
        );
    }
    if line.contains("/ddg/html/") {
        return Answer::html(
            "<div class='result result--ad'><a class=result__a href='https://ad.example/'>Ad</a></div>\
             <div class='result'><h2><a class=result__a href='//duckduckgo.com/l/?uddg=https%3A%2F%2Fd.example%2Fx%3Fy%3D1&rut=1'>\
             Duck</a></h2><a class=result__snippet>About <b>ducks</b></a></div>",
        );
    }
    Answer::with(404, &[], "")
}

struct Setting {
    order: Vec<SearchProvider>,
    merge: u32,
    keys: Vec<(&'static str, &'static str)>,
}

impl Setting {
    fn of(order: &[SearchProvider]) -> Self {
        Self { order: order.to_vec(), merge: 1, keys: KEYS.to_vec() }
    }

    fn web(&self, server: &Server) -> WebAccess {
        let path = |provider| match provider {
            Brave => "/brave",
            Exa => "/exa",
            Tavily => "/tavily",
            Searxng => "/searxng",
            Duckduckgo => "/ddg",
        };
        let provider = |provider: &SearchProvider| {
            let base_url = Some(server.url(path(*provider)));
            (
                *provider,
                SearchProviderConfig { base_url, cost_micros: 5_000, ..SearchProviderConfig::default() },
            )
        };
        let providers = SearchProvider::ALL.iter().map(provider).collect();
        let search = SearchConfig { order: self.order.clone(), merge: self.merge, seconds: 2, providers };
        let keys = Arc::new(FixedKeys(self.keys.iter().copied().collect()));
        let parts = WebParts { lookup: names(&[]), ..WebParts::new(keys) };
        WebAccess::new(&WebConfig { search, ..WebConfig::default() }, parts).unwrap()
    }
}

fn query() -> SearchRequest {
    SearchRequest { query: "river boats".into(), count: 5, ..SearchRequest::default() }
}

async fn search(web: &WebAccess, request: &SearchRequest) -> Result<SearchAnswer, ToolError> {
    web.search(&surfer("main"), request, &Secrets::default()).await
}

fn urls(answer: &SearchAnswer) -> Vec<&str> {
    answer.results.iter().map(|result| result.url.as_str()).collect()
}

#[tokio::test]
async fn speaks_each_format() {
    for (provider, expected, title, excerpt) in [
        (Brave, &["https://one.example/", "https://two.example/b"][..], "One & only", "First hit"),
        (Exa, &["https://www.two.example/b/", "https://three.example/"], "Two", "A longer second excerpt"),
        (Tavily, &["https://t.example/"], "T", "Tavily"),
        (Searxng, &["https://s.example/"], "S", "Searx"),
        (Duckduckgo, &["https://d.example/x?y=1"], "Duck", "About ducks"),
    ] {
        let server = Server::start(honest).await;
        let web = Setting::of(&[provider]).web(&server);
        let answer = search(&web, &query()).await.unwrap();
        assert_eq!(urls(&answer), expected, "{provider:?}");
        assert_eq!((answer.results[0].title.as_str(), answer.results[0].excerpt.as_str()), (title, excerpt));
        assert_eq!(answer.providers, [provider.name()]);
        assert_eq!(answer.usage.unwrap().cost_micros, 5_000);
    }
}

#[tokio::test]
async fn sends_each_argument_as_the_provider_takes_it() {
    let request = SearchRequest {
        country: Some("de".into()),
        language: Some("en".into()),
        freshness: Some(Freshness::Week),
        ..query()
    };
    for (provider, parts) in [
        (
            Brave,
            &[
                "q=river+boats",
                "count=5",
                "country=DE",
                "search_lang=en",
                "freshness=pw",
                "x-subscription-token: brave-key-0123",
            ][..],
        ),
        (
            Exa,
            &[
                "\"query\":\"river boats\"",
                "\"numResults\":5",
                "startPublishedDate",
                "x-api-key: exa-key-0123",
            ],
        ),
        (
            Tavily,
            &[
                "\"query\":\"river boats\"",
                "\"time_range\":\"week\"",
                "authorization: Bearer tavily-key-0123",
            ],
        ),
        (Searxng, &["q=river+boats", "format=json", "language=en-DE", "time_range=week"]),
        (Duckduckgo, &["q=river+boats", "kl=de-en", "df=w"]),
    ] {
        let server = Server::start(honest).await;
        search(&Setting::of(&[provider]).web(&server), &request).await.unwrap();
        let asked = &server.asked()[0];
        parts.iter().for_each(|part| assert!(asked.contains(part), "{provider:?} {part}: {asked}"));
    }
}

#[tokio::test]
async fn goes_on_to_the_next_where_one_fails() {
    for (broken, why) in [
        (Answer::with(500, &[], ""), "answered with status 500"),
        (Answer::with(401, &[], ""), "refused the key"),
        (
            Answer::page("application/json", "{\"web\": {\"results\": 7}}"),
            "sent an invalid answer: it has no list at `/web/results`",
        ),
        (Answer::page("application/json", "<html>"), "not JSON"),
        (Answer::page("application/json", "{}"), "sent an invalid answer: it has no list at `/web/results`"),
        (Answer::page("application/json", "{\"web\":{\"results\":[]}}"), "found nothing"),
        (Answer::redirect("http://169.254.169.254/"), "status 302"),
        (Answer::Hang, "did not answer within"),
        (Answer::Bytes(b"nonsense".to_vec()), "did not answer in HTTP"),
    ] {
        let server = Server::start(move |request| match request.contains("/brave/") {
            true => broken.clone(),
            false => honest(request),
        })
        .await;
        let answer = search(&Setting::of(&[Brave, Searxng]).web(&server), &query()).await.unwrap();
        assert_eq!(urls(&answer), ["https://s.example/"], "{why}");
        assert!(answer.failed["brave"].contains(why), "{:?}", answer.failed);
    }
}

#[tokio::test]
async fn a_paid_search_that_finds_nothing_is_charged_to_its_provider() {
    let server = Server::start(|request| match request.contains("/brave/") {
        true => Answer::page("application/json", "{\"web\":{\"results\":[]}}"),
        false => honest(request),
    })
    .await;
    let alone = search(&Setting::of(&[Brave]).web(&server), &query()).await.unwrap();
    let charged = |usage: Option<claw_core::tool::Usage>| {
        let usage = usage.expect("the cost of a search");
        (usage.provider.to_string(), usage.cost_micros)
    };
    assert_eq!(charged(alone.usage), ("brave".to_owned(), 5_000));
    // Both were asked, and both charge.
    let after = search(&Setting::of(&[Brave, Tavily]).web(&server), &query()).await.unwrap();
    assert_eq!(after.providers, ["tavily"]);
    assert_eq!(charged(after.usage), ("brave+tavily".to_owned(), 10_000));
}

#[tokio::test]
async fn leaves_a_provider_alone_after_its_limit() {
    let server = Server::start(|request| match request.contains("/brave/") {
        true => Answer::with(429, &[], "slow down"),
        false => honest(request),
    })
    .await;
    let web = Setting::of(&[Brave, Tavily]).web(&server);
    for _ in 0..3 {
        assert_eq!(urls(&search(&web, &query()).await.unwrap()), ["https://t.example/"]);
    }
    let of_brave = server.asked().iter().filter(|request| request.contains("/brave/")).count();
    assert_eq!(of_brave, 1);
}

#[tokio::test]
async fn a_page_that_asks_for_a_person_counts_as_a_limit() {
    let server = Server::start(|_| Answer::html("<form id=challenge-form action=/anomaly.js>")).await;
    let error = search(&Setting::of(&[Duckduckgo]).web(&server), &query()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    assert!(error.message.contains("duckduckgo asks for a CAPTCHA"), "{error}");
}

#[tokio::test]
async fn merges_results_by_address() {
    let server = Server::start(honest).await;
    let setting = Setting { merge: 2, ..Setting::of(&[Brave, Exa, Tavily]) };
    let answer = search(&setting.web(&server), &query()).await.unwrap();
    assert_eq!(urls(&answer), ["https://two.example/b", "https://one.example/", "https://three.example/"]);
    assert_eq!(answer.results[0].providers, ["brave", "exa"]);
    assert_eq!(answer.results[0].excerpt, "A longer second excerpt");
    assert_eq!(answer.providers, ["brave", "exa"]);
    assert_eq!(answer.usage.unwrap().cost_micros, 10_000);
}

#[tokio::test]
async fn providers_without_a_key_are_skipped() {
    let server = Server::start(honest).await;
    let setting = Setting { keys: Vec::new(), ..Setting::of(&SearchProvider::ALL) };
    let answer = search(&setting.web(&server), &query()).await.unwrap();
    assert_eq!(answer.providers, ["searxng"]);
    let setting = Setting { keys: Vec::new(), ..Setting::of(&[Brave, Exa]) };
    let error = search(&setting.web(&server), &query()).await.unwrap_err();
    assert!(error.message.contains("no key is set for brave, exa"), "{error}");
}

#[tokio::test]
async fn a_key_of_the_tenant_comes_first_and_is_hidden() {
    let server = Server::start(honest).await;
    let keys = vec![("main:web-brave", "sealed-key-0123"), ("BRAVE_API_KEY", "env-key-0123")];
    let web = Setting { keys, ..Setting::of(&[Brave]) }.web(&server);
    let secrets = Secrets::default();
    web.search(&surfer("main"), &query(), &secrets).await.unwrap();
    assert!(server.asked()[0].contains("sealed-key-0123"));
    assert_eq!(secrets.len(), 1);
    let other = claw_core::port::Surfer { tenant: TenantId::new("other").unwrap(), ..surfer("main") };
    web.search(&other, &query(), &secrets).await.unwrap();
    assert!(server.asked()[1].contains("env-key-0123"));
}

#[tokio::test]
async fn a_tenant_orders_what_the_deployment_enables() {
    let server = Server::start(honest).await;
    let web = Setting::of(&[Brave, Tavily]).web(&server);
    let order = |order: &[&str]| order.iter().map(|name| (*name).to_owned()).collect();
    let answer =
        search(&web, &SearchRequest { order: order(&["tavily", "brave"]), ..query() }).await.unwrap();
    assert_eq!(answer.providers, ["tavily"]);
    let error = search(&web, &SearchRequest { order: order(&["exa"]), ..query() }).await.unwrap_err();
    assert!(error.message.contains("no search provider is enabled"), "{error}");
}

#[test]
fn refuses_to_send_a_key_without_encryption() {
    let settings = SearchProviderConfig {
        base_url: Some("http://api.example.com".into()),
        ..SearchProviderConfig::default()
    };
    let search = SearchConfig { providers: [(Brave, settings)].into(), ..SearchConfig::default() };
    let parts = WebParts::new(Arc::new(FixedKeys::default()));
    let error = WebAccess::new(&WebConfig { search, ..WebConfig::default() }, parts).err().unwrap();
    assert!(error.key == "search.providers.brave.base_url" && error.reason.contains("encryption"), "{error}");
}
