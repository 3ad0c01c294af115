//! Lists, the cache, and the requests sent.

use claw_core::TenantId;
use claw_core::port::{Surfer, WebHost as _};
use claw_core::tool::ErrorKind;
use claw_web::WebConfig;

use crate::kit::{Answer, Server, fetch, fetch_as, open, surfer, web};

const PAGE: &str = "<html><head><title>Boats</title></head><body><article><h1>Boats</h1><p>The river has carried boats since \
                    the town was founded, and people still meet at its bank.</p></article></body></html>";

#[tokio::test]
async fn asks_for_markdown_and_says_who_it_is() {
    let server = Server::saying(PAGE).await;
    let page = fetch(&web(open(&[&server])), &server.url("/a?b=c")).await.unwrap();
    assert_eq!((page.title.as_deref(), page.kind, page.status), (Some("Boats"), "html", 200));
    assert!(page.text.contains("The river has carried boats"), "{}", page.text);
    let asked = server.asked()[0].to_lowercase();
    assert!(asked.starts_with("get /a?b=c http/1.1"), "{asked}");
    for part in [
        "accept: text/markdown",
        "accept-encoding: gzip, br, deflate",
        "user-agent: mozilla/5.0 (compatible; clawsmith/",
    ] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
    assert!(!asked.contains("cookie") && !asked.contains("referer"), "{asked}");
}

#[tokio::test]
async fn follows_redirects_and_says_where_they_ended() {
    let server = Server::start(|request| match request.starts_with("GET /old") {
        true => Answer::redirect("/new?x=1"),
        false => Answer::html(PAGE),
    })
    .await;
    let page = fetch(&web(open(&[&server])), &server.url("/old")).await.unwrap();
    assert_eq!(page.url, server.url("/new?x=1"));
}

#[tokio::test]
async fn keeps_pages_for_their_tenant() {
    let server = Server::saying(PAGE).await;
    let web = web(open(&[&server]));
    assert!(!fetch(&web, &server.url("/")).await.unwrap().cached);
    assert!(fetch(&web, &server.url("/#part")).await.unwrap().cached);
    let other = Surfer { tenant: TenantId::new("other").unwrap(), ..surfer("main") };
    assert!(!fetch_as(&web, &other, &server.url("/"), &[]).await.unwrap().cached);
    assert_eq!(server.asked().len(), 2);
    let uncached = crate::kit::web(WebConfig { cache_minutes: 0, ..open(&[&server]) });
    for _ in 0..2 {
        assert!(!fetch(&uncached, &server.url("/")).await.unwrap().cached);
    }
}

#[tokio::test]
async fn lists_of_deployment_tenant_and_agent_add_up() {
    let server = Server::saying(PAGE).await;
    let url = server.url("/");
    let refused = |result: Result<_, claw_core::tool::ToolError>, list: &str| {
        let error: claw_core::tool::ToolError = result.map(|_: claw_core::port::WebPage| ()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Forbidden, "{error}");
        assert!(error.message.contains(list), "{error}");
    };
    let blocked = web(WebConfig { block: vec!["127.0.0.1".into()], ..open(&[&server]) });
    refused(fetch(&blocked, &url).await, "`web.block`");
    let allowing = web(WebConfig { allow: vec!["*.example.com".into()], ..open(&[&server]) });
    refused(fetch(&allowing, &url).await, "not in `web.allow`");
    let web = web(open(&[&server]));
    // A page that is cached for one agent is still refused to another.
    assert!(fetch(&web, &url).await.is_ok());
    refused(fetch_as(&web, &surfer("careful"), &url, &[]).await, "`block_hosts`");
    refused(fetch_as(&web, &surfer("main"), &url, &["127.0.0.1"]).await, "`settings.web_fetch.block`");
    let broken = fetch_as(&web, &surfer("main"), &url, &["http://x"]).await.unwrap_err();
    assert_eq!(broken.kind, ErrorKind::Unavailable, "{broken}");
    assert_eq!(server.asked().len(), 1);
    // Another tenant's agent of that name has no such list.
    let theirs = Surfer { tenant: TenantId::new("other").unwrap(), ..surfer("careful") };
    assert!(fetch_as(&web, &theirs, &url, &[]).await.is_ok());
}

#[tokio::test]
async fn a_session_knows_the_hosts_it_fetched_from() {
    let server = Server::saying(PAGE).await;
    let web = web(open(&[&server]));
    let ana = surfer("main");
    assert!(!web.knows(&ana, "127.0.0.1"));
    fetch(&web, &server.url("/")).await.unwrap();
    assert!(web.knows(&ana, "127.0.0.1"));
    let other = Surfer { session: claw_core::SessionKey::new("cli:bo").unwrap(), ..ana };
    assert!(!web.knows(&other, "127.0.0.1"));
}

#[tokio::test]
async fn names_what_is_no_text() {
    let server = Server::start(|request| match request.split(' ').nth(1) {
        Some("/x.pdf") => Answer::page("application/pdf", "%PDF-1.7 ..."),
        Some("/x.png") => Answer::page("image/png", [0x89, b'P', b'N', b'G', 0]),
        _ => Answer::page("application/json", "{\"a\":1}"),
    })
    .await;
    let web = web(open(&[&server]));
    assert!(
        fetch(&web, &server.url("/x.pdf")).await.unwrap_err().message.contains("only a sandboxed process")
    );
    assert!(
        fetch(&web, &server.url("/x.png"))
            .await
            .unwrap()
            .text
            .contains("an image `x.png`: image/png, 5 bytes")
    );
    assert_eq!(fetch(&web, &server.url("/data")).await.unwrap().text, "{\n  \"a\": 1\n}");
}

#[test]
fn refuses_configurations_that_cannot_be_meant() {
    for (config, key) in [
        (
            WebConfig { private_origins: vec!["127.0.0.1:80".into()], ..WebConfig::default() },
            "private_origins",
        ),
        (WebConfig { allow: vec!["http://a".into()], ..WebConfig::default() }, "allow"),
        (WebConfig { block: vec!["a*b".into()], ..WebConfig::default() }, "block"),
    ] {
        let parts = claw_web::WebParts::new(std::sync::Arc::new(crate::kit::FixedKeys::default()));
        assert_eq!(claw_web::WebAccess::new(&config, parts).err().unwrap().key, key);
    }
}
