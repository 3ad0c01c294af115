use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use claw_net::{Client, HeaderValue, Lookup, Method, NetError, Options, Origin, Request, Url, header};

use crate::server::{Server, client, get};

/// Each lookup of a name gives the next of these answers; the last one repeats.
fn lookup(answers: &[&[&str]]) -> (Lookup, Arc<AtomicUsize>) {
    let answers: Vec<Vec<IpAddr>> =
        answers.iter().map(|list| list.iter().map(|address| address.parse().unwrap()).collect()).collect();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let lookup: Lookup = Arc::new(move |_| {
        let n = counted.fetch_add(1, Ordering::SeqCst);
        let answer = answers[n.min(answers.len() - 1)].clone();
        Box::pin(async move { Ok(answer) })
    });
    (lookup, asked)
}

#[track_caller]
fn not_public<T: std::fmt::Debug>(result: Result<T, NetError>) -> String {
    match result.unwrap_err() {
        NetError::NotPublic { why, .. } => why.to_owned(),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn refuses_loopback_in_every_spelling() {
    let server = Server::saying("secret").await;
    let client = client(&[]);
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "localhost",
        "LOCALHOST",
        "%6cocalhost",
        "127.0.0.1.",
    ] {
        let url = format!("http://{host}:{}/", server.port);
        not_public(client.send(get(&url)).await);
    }
    assert_eq!(server.asked(), [""; 0]);
}

#[tokio::test]
async fn refuses_metadata_services() {
    let client = client(&[]);
    for host in ["169.254.169.254", "[fd00:ec2::254]", "[::ffff:a9fe:a9fe]", "100.100.100.200", "2852039166"]
    {
        not_public(client.send(get(&format!("http://{host}/latest/meta-data/"))).await);
    }
}

#[tokio::test]
async fn refuses_names_that_lead_to_private_addresses() {
    let server = Server::saying("secret").await;
    for answer in
        [&["127.0.0.1"][..], &["3000::1", "127.0.0.1"], &["::1"], &["10.0.0.1"], &["::ffff:127.0.0.1"]]
    {
        let (lookup, _) = lookup(&[answer]);
        let client = Client::new(Options { lookup, ..Options::default() });
        not_public(client.send(get(&format!("http://evil.example:{}/", server.port))).await);
    }
    assert_eq!(server.asked(), [""; 0]);
}

#[tokio::test]
async fn refuses_a_name_that_changes_between_check_and_use() {
    let server = Server::saying("secret").await;
    // Nothing is routed to the first address; a second lookup would lead to the server.
    let (lookup, asked) = lookup(&[&["3000::1"], &["127.0.0.1"]]);
    let connect = std::time::Duration::from_millis(300);
    let client = Client::new(Options { lookup, connect, ..Options::default() });
    let url = format!("http://rebinding.example:{}/", server.port);
    let error = client.send(get(&url)).await.unwrap_err();
    assert!(matches!(error, NetError::Connection { .. } | NetError::TimedOut { .. }), "{error}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(not_public(client.send(get(&url)).await), "this machine");
    assert_eq!(server.asked(), [""; 0]);
}

#[tokio::test]
async fn a_named_origin_is_that_scheme_host_and_port() {
    let (server, other) = (Server::saying("here").await, Server::saying("secret").await);
    let client = client(&[&server]);
    let mut response = client.send(Request::new(Method::GET, server.url())).await.unwrap();
    assert_eq!(response.bytes().await.unwrap(), "here");
    not_public(client.send(Request::new(Method::GET, other.url())).await);
    not_public(client.send(get(&format!("https://127.0.0.1:{}/", server.port))).await);
    not_public(client.send(get(&format!("http://localhost:{}/", server.port))).await);
    assert_eq!(other.asked(), [""; 0]);
}

#[tokio::test]
async fn refuses_redirects_to_private_addresses() {
    let secret = Server::saying("secret").await;
    for status in [301, 302, 303, 307, 308] {
        let server = Server::redirecting(status, secret.url().as_str()).await;
        not_public(client(&[&server]).send(Request::new(Method::GET, server.url()).redirects(5)).await);
    }
    let server = Server::redirecting(302, &format!("//localhost:{}/", secret.port)).await;
    not_public(client(&[&server]).send(Request::new(Method::GET, server.url()).redirects(5)).await);
    assert_eq!(secret.asked(), [""; 0]);
}

#[tokio::test]
async fn refuses_redirects_from_elsewhere_to_a_named_origin() {
    let local = Server::saying("secret").await;
    let server = Server::redirecting(302, local.url().as_str()).await;
    let client = client(&[&server, &local]);
    let error = client.send(Request::new(Method::GET, server.url()).redirects(5)).await.unwrap_err();
    assert!(error.to_string().contains("redirects from other servers to it are refused"), "{error}");
    assert_eq!(local.asked(), [""; 0]);
}

#[tokio::test]
async fn refuses_redirects_to_other_schemes() {
    for to in ["file:///etc/passwd", "gopher://127.0.0.1/", "ftp://example.com/", "http://u:p@example.com/"] {
        let server = Server::redirecting(302, to).await;
        let error =
            client(&[&server]).send(Request::new(Method::GET, server.url()).redirects(5)).await.unwrap_err();
        assert!(matches!(error, NetError::BadUrl { .. }), "{to}: {error}");
    }
}

#[tokio::test]
async fn redirects_are_not_followed_unasked_nor_for_ever() {
    let server = Server::redirecting(302, "/again").await;
    let client = client(&[&server]);
    assert_eq!(client.send(Request::new(Method::GET, server.url())).await.unwrap().status(), 302);
    let error = client.send(Request::new(Method::GET, server.url()).redirects(3)).await.unwrap_err();
    assert!(error.to_string().contains("3 redirects were followed"), "{error}");
    assert_eq!(server.asked().len(), 1 + 4);
}

#[tokio::test]
async fn credentials_stay_within_an_origin() {
    let key = |value| HeaderValue::from_static(value);
    let first = Server::redirecting(302, "/next").await;
    let client = client(&[&first]);
    let request = Request::new(Method::POST, first.url())
        .header(header::AUTHORIZATION, key("Bearer hunter2"))
        .header(header::CONTENT_TYPE, key("application/json"))
        .body("{}")
        .redirects(1);
    let _ = client.send(request).await.unwrap_err();
    let asked = first.asked();
    assert!(asked[1].starts_with("get /next http/1.1"), "{asked:?}");
    assert!(asked[1].contains("hunter2") && !asked[1].contains("content-type"), "same origin: {asked:?}");
}

#[tokio::test]
async fn refuses_to_send_a_body_on_to_another_origin() {
    let server = Server::redirecting(307, "http://elsewhere.example/").await;
    let request = Request::new(Method::POST, server.url()).body("words").redirects(5);
    let error = client(&[&server]).send(request).await.unwrap_err();
    assert!(error.to_string().contains("sent to another origin"), "{error}");
}

#[tokio::test]
async fn keys_are_in_no_message() {
    let client = client(&[]);
    let url = Url::parse("http://127.0.0.1:1/path?key=hunter2").unwrap();
    let request = Request::new(Method::POST, url)
        .header(header::AUTHORIZATION, HeaderValue::from_static("Bearer hunter2"))
        .body("hunter2");
    assert!(!format!("{request:?}").contains("hunter2"));
    let error = client.send(request).await.unwrap_err();
    assert!(!format!("{error:?} {error}").contains("hunter2"));

    let server = Server::start(crate::server::Then::Reset(String::new())).await;
    let url = Url::parse(&format!("{}?key=hunter2", server.url())).unwrap();
    let error = crate::server::client(&[&server]).send(Request::new(Method::GET, url)).await.unwrap_err();
    assert!(matches!(error, NetError::Connection { .. }), "{error}");
    assert!(!format!("{error:?} {error}").contains("hunter2"));
}

#[test]
fn origins_are_written_in_full_or_refused() {
    let check = |text: &str, expected: Option<&str>| {
        assert_eq!(
            text.parse::<Origin>().ok().map(|origin| origin.to_string()).as_deref(),
            expected,
            "{text}"
        );
    };
    check("http://localhost:11434", Some("http://localhost:11434"));
    check("HTTPS://Example.COM/", Some("https://example.com:443"));
    check("http://2130706433", Some("http://127.0.0.1:80"));
    for wrong in
        ["localhost:11434", "ftp://a", "http://", "http://a/b", "http://a?b", "http://u@a", "", "http://a#b"]
    {
        check(wrong, None);
    }
}
