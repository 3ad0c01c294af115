use std::time::Duration;

use claw_net::{Client, Method, NetError, Options, Request, Times};

use crate::server::{Server, Then, client};

const SHORT: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(600);

async fn ask(then: Then, change: impl FnOnce(Request) -> Request) -> Result<Vec<u8>, NetError> {
    let server = Server::start(then).await;
    let request = change(Request::new(Method::GET, server.url()));
    let mut response = client(&[&server]).send(request).await?;
    Ok(response.bytes().await?.to_vec())
}

#[track_caller]
fn timed_out(result: Result<Vec<u8>, NetError>, expected: &str) {
    match result.unwrap_err() {
        NetError::TimedOut { what, limit, .. } => assert_eq!((what, limit), (expected, SHORT)),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_not_waited_for() {
    let times = Times { first_byte: SHORT, idle: LONG, whole: None };
    timed_out(ask(Then::Hang, |request| request.times(times)).await, "answer");
}

#[tokio::test]
async fn a_server_that_says_no_more_is_not_waited_for() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_owned();
    let times = Times { first_byte: LONG, idle: SHORT, whole: None };
    timed_out(ask(Then::AnswerAndHang(head.clone()), |request| request.times(times)).await, "send more");
    let times = Times { first_byte: LONG, idle: LONG, whole: Some(SHORT) };
    timed_out(ask(Then::AnswerAndHang(head), |request| request.times(times)).await, "send everything");
    timed_out(ask(Then::Hang, |request| request.times(times)).await, "send everything");
}

#[tokio::test]
async fn a_flood_is_cut_off() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
    let piece = format!("400\r\n{}\r\n", "x".repeat(0x400));
    let flood = Then::Flood(head, piece);
    let error = ask(flood, |request| request.most_bytes(100_000)).await.unwrap_err();
    assert!(matches!(error, NetError::TooLarge { most: 100_000, .. }), "{error}");
    let exact = Then::Answer("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello".to_owned());
    assert_eq!(ask(exact, |request| request.most_bytes(5)).await.unwrap(), b"hello");
}

#[tokio::test]
async fn what_is_not_http_is_said_to_be() {
    let error = ask(Then::Answer("SSH-2.0-OpenSSH_9.9\r\n".to_owned()), |request| request).await.unwrap_err();
    assert!(matches!(error, NetError::Garbled { .. }), "{error}");
}

#[tokio::test]
async fn a_broken_connection_is_said_to_be() {
    for then in [
        Then::Answer("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_owned()),
        Then::Reset("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_owned()),
        Then::Reset(String::new()),
        Then::Answer(String::new()),
    ] {
        let error = ask(then, |request| request).await.unwrap_err();
        assert!(matches!(error, NetError::Connection { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_port_without_a_server_is_said_to_be() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    drop(listener);
    let named = [url.parse().unwrap()].into();
    let client = Client::new(Options { named, ..Options::default() }).unwrap();
    let error = client.send(crate::server::get(&url)).await.unwrap_err();
    assert!(matches!(error, NetError::Connection { .. }), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn a_name_without_address_is_said_to_be() {
    let lookup: claw_net::Lookup =
        std::sync::Arc::new(|_| Box::pin(async { Err(std::io::Error::other("no such name")) }));
    let client = Client::new(Options { lookup, ..Options::default() }).unwrap();
    let error = client.send(crate::server::get("http://nowhere.example/")).await.unwrap_err();
    assert_eq!(error.to_string(), "`nowhere.example` has no address: no such name");
}
