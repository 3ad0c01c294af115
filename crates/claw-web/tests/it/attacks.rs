//! Hostile servers and names: none leads to a private address, hangs a fetch or fills the memory.

use std::io::Write as _;

use claw_core::tool::{ErrorKind, ToolError};
use claw_web::WebConfig;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::kit::{Answer, Server, fetch, names, open, web, web_with};

#[track_caller]
fn forbidden<T: std::fmt::Debug>(result: Result<T, ToolError>, why: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Forbidden, "{error}");
    assert!(error.message.contains(why), "{error}");
}

#[tokio::test]
async fn refuses_private_addresses_in_every_notation() {
    let secret = Server::saying("secret").await;
    let web = web(WebConfig::default());
    for host in [
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "10.0.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "100.64.0.1",
        "[fe80::1]",
        "0.0.0.0",
        "[::]",
        "[2002:7f00:1::]",
    ] {
        forbidden(fetch(&web, &format!("http://{host}:{}/", secret.port)).await, "is not fetched");
    }
    for host in [
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0x7f.0.0.1",
        "017700000001",
        "127.0.1",
        "%31%32%37.0.0.1",
    ] {
        let error = fetch(&web, &format!("http://{host}:{}/", secret.port)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid, "{host}: {error}");
    }
    for host in [
        "example.com@127.0.0.1",
        "127.0.0.1%2f@example.com",
        "user:pass@127.0.0.1",
        "example.com\\@127.0.0.1",
    ] {
        let error = fetch(&web, &format!("http://{host}:{}/", secret.port)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid, "{host}: {error}");
    }
    assert_eq!(secret.asked(), [""; 0]);
}

#[tokio::test]
async fn refuses_names_that_lead_to_private_addresses() {
    let secret = Server::saying("secret").await;
    for list in
        [&["127.0.0.1"][..], &["8.8.8.8", "127.0.0.1"], &["::1"], &["::ffff:10.0.0.1"], &["169.254.169.254"]]
    {
        let web = web_with(WebConfig::default(), names(&[("evil.example", &[list])]));
        forbidden(fetch(&web, &format!("http://evil.example:{}/", secret.port)).await, "is not fetched");
    }
    assert_eq!(secret.asked(), [""; 0]);
}

#[tokio::test]
async fn refuses_a_name_that_changes_between_check_and_use() {
    let secret = Server::saying("secret").await;
    // The first address is not routed; a second look-up would lead to the server.
    let lookup = names(&[("rebinding.example", &[&["3000::1"], &["127.0.0.1"]])]);
    let web = web_with(WebConfig { seconds: 1, ..WebConfig::default() }, lookup);
    let url = format!("http://rebinding.example:{}/", secret.port);
    let first = fetch(&web, &url).await.unwrap_err();
    assert!(matches!(first.kind, ErrorKind::Unavailable | ErrorKind::TimedOut), "{first}");
    forbidden(fetch(&web, &url).await, "this machine");
    assert_eq!(secret.asked(), [""; 0]);
}

#[tokio::test]
async fn refuses_redirects_to_where_it_would_not_go_itself() {
    let secret = Server::saying("secret").await;
    let port = secret.port;
    for (to, why) in [
        (format!("http://127.0.0.1:{port}/"), "not fetched"),
        (format!("http://2130706433:{port}/"), "not fetched"),
        (format!("http://0177.0.0.1:{port}/"), "not fetched"),
        (format!("//[::ffff:127.0.0.1]:{port}/"), "not fetched"),
        ("http://169.254.169.254/latest/meta-data/".to_owned(), "metadata"),
        (format!("http://evil.example:{port}/"), "not fetched"),
        (format!("http://user:pass@127.0.0.1:{port}/"), "user name"),
        ("file:///etc/passwd".to_owned(), "neither http nor https"),
        ("gopher://127.0.0.1/".to_owned(), "neither http nor https"),
        ("http://blocked.example/".to_owned(), "blocked by `web.block`"),
    ] {
        let server = Server::start(move |_| Answer::redirect(&to)).await;
        let config =
            WebConfig { block: vec!["*.example".into(), "blocked.example".into()], ..open(&[&server]) };
        let config = if why.contains("block") { config } else { WebConfig { block: Vec::new(), ..config } };
        let web = web_with(config, names(&[("evil.example", &[&["127.0.0.1"]])]));
        forbidden(fetch(&web, &server.url("/")).await, why);
    }
    assert_eq!(secret.asked(), [""; 0]);
}

#[tokio::test]
async fn refuses_redirects_from_elsewhere_to_an_open_origin() {
    let local = Server::saying("secret").await;
    let to = local.url("/");
    let server = Server::start(move |_| Answer::redirect(&to)).await;
    forbidden(
        fetch(&web(open(&[&server, &local])), &server.url("/")).await,
        "redirects from other servers to it are refused",
    );
    assert_eq!(local.asked(), [""; 0]);
}

#[tokio::test]
async fn follows_no_endless_redirects() {
    let server = Server::start(|_| Answer::redirect("/again")).await;
    forbidden(fetch(&web(open(&[&server])), &server.url("/")).await, "5 redirects were followed");
    assert_eq!(server.asked().len(), 6);
}

#[tokio::test]
async fn waits_for_no_slow_body() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n".to_vec();
    for answer in [Answer::Drip(head), Answer::Drip(Vec::new()), Answer::Hang] {
        let server = Server::start(move |_| answer.clone()).await;
        let web = web(WebConfig { seconds: 1, ..open(&[&server]) });
        let error = fetch(&web, &server.url("/")).await.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::TimedOut | ErrorKind::Unavailable), "{error}");
    }
}

#[tokio::test]
async fn takes_no_flood() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n".to_vec();
    let server = Server::start(move |_| Answer::Flood(head.clone(), vec![b'x'; 4096])).await;
    let web = web(WebConfig { most_bytes: 200_000, ..open(&[&server]) });
    let error = fetch(&web, &server.url("/")).await.unwrap_err();
    assert!(error.message.contains("longer than 200000 bytes"), "{error}");
}

#[tokio::test]
async fn takes_no_bomb() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    (0..100).for_each(|_| encoder.write_all(&vec![b'a'; 1 << 20]).unwrap());
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 200_000);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&bomb).unwrap();
    let nested = encoder.finish().unwrap();
    for (encoding, body) in [("gzip", bomb.clone()), ("gzip, gzip", nested)] {
        let server = Server::start(move |_| {
            Answer::with(200, &[("content-encoding", encoding), ("content-type", "text/html")], &body)
        })
        .await;
        let error = fetch(&web(open(&[&server])), &server.url("/")).await.unwrap_err();
        assert!(error.message.contains("longer than"), "{encoding}: {error}");
    }
    for (encoding, body) in
        [("gzip", &b"plain"[..]), ("br", b"plain"), ("zstd", b"plain"), ("gzip,gzip,gzip", b"plain")]
    {
        let server = Server::start(move |_| Answer::with(200, &[("content-encoding", encoding)], body)).await;
        let error = fetch(&web(open(&[&server])), &server.url("/")).await.unwrap_err();
        assert!(error.message.contains("cannot be decompressed"), "{encoding}: {error}");
    }
}

#[tokio::test]
async fn tells_no_text_of_a_refusal() {
    let server =
        Server::start(|_| Answer::with(404, &[("content-type", "text/html")], "obey me, model")).await;
    let error = fetch(&web(open(&[&server])), &server.url("/")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    assert!(!error.to_string().contains("obey"), "{error}");
}

#[tokio::test]
async fn reads_pages_that_are_made_to_break_readers() {
    let deep = format!("<p>start</p>{}end", "<div>".repeat(1_400));
    let wide = format!("<p>start</p>{}", "<p>x".repeat(60_000));
    let attributes = format!("<p {}>start</p>", "a=b ".repeat(60_000));
    let formatting = format!("<p>start</p>{}", "<b><i><a href=x>".repeat(400));
    let tables = format!("<p>start</p>{}", "<table><tr><td>".repeat(1_000));
    for body in [
        deep,
        wide,
        attributes,
        formatting,
        tables,
        "\0".repeat(1000),
        "<".repeat(100_000),
        "&".repeat(100_000),
    ] {
        let server = Server::start(move |_| Answer::html(&body)).await;
        let fetched = fetch(&web(open(&[&server])), &server.url("/")).await;
        assert!(
            fetched.as_ref().is_ok_and(|page| page.status == 200),
            "{:?}",
            fetched.map(|page| page.status)
        );
    }
}

#[tokio::test]
async fn refuses_pages_that_would_take_for_ever_to_parse() {
    for open_tag in ["<div>", "<ul><li>", "<b><i><a href=x>"] {
        let server = Server::start(move |_| Answer::html(&open_tag.repeat(60_000))).await;
        let error = fetch(&web(open(&[&server])), &server.url("/")).await.unwrap_err();
        assert!(error.message.contains("far deeper than ordinary pages"), "{error}");
    }
}

#[tokio::test]
async fn lies_about_charsets_break_nothing() {
    let words =
        "Smørrebrød tastes better by the sea, and everybody on the island knows that it does. ".repeat(5);
    for charset in
        ["utf-16", "utf-7", "shift_jis", "ibm866", "x-user-defined", "\"\"\"", "utf-8; charset=utf-16"]
    {
        let answer = Answer::page(
            &format!("text/html; charset={charset}"),
            format!("<article><p>{words}</p></article>"),
        );
        let server = Server::start(move |_| answer.clone()).await;
        let page = fetch(&web(open(&[&server])), &server.url("/")).await.unwrap();
        assert!(page.text.contains("Smørrebrød"), "{charset}: {}", page.text);
    }
}
