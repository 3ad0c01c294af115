//! Limits of what one key has open at a time: requests, streams included, and WebSocket connections.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::gateway::{ECHO, Gateway};
use crate::harness::Home;

const CONFIG: &str = "[gateway]\nrequests_per_key = 2\nwebsockets_per_key = 1\n";

/// Sends a request and reads the head of its answer; the connection stays open.
fn open(gateway: &Gateway<'_>, path: &str, key: &str, more: &str) -> (String, BufReader<TcpStream>) {
    let mut stream = gateway.connect();
    let host = &gateway.address;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n{more}\r\n")
        .unwrap();
    let (mut reader, mut head) = (BufReader::new(stream), String::new());
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    (head, reader)
}

#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_key_has_so_many_requests_open_and_others_are_not_concerned() {
    let home = Home::with_config(CONFIG);
    let gateway = Gateway::start(&home, ECHO);
    let (ann, other, ben) = (gateway.key("ann", &[]), gateway.key("ann", &[]), gateway.key("ben", &[]));
    let session = gateway.chat(&ann, "one", None).header("x-clawsmith-session").unwrap().to_owned();
    let events = format!("/v1/sessions/{session}/events");
    let follow = || {
        let (head, stream) = open(&gateway, &events, &ann, "");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        stream
    };
    let (first, second) = (follow(), follow());
    let refused = gateway.get("/v1/sessions", &ann).check(429, "this key has 2 requests open");
    assert!(refused.header("retry-after").is_some(), "{}", refused.head);
    let said = refused.json();
    assert_eq!(said["code"], "too_many_requests_open");
    assert_eq!(said["setting"], "gateway.requests_per_key");
    assert!(said["hint"].as_str().unwrap().contains("wait until one has ended"), "{said}");
    gateway.chat(&ann, "two", None).check(429, "too_many_requests_open");
    gateway.get("/v1/sessions", &other).check(200, "");
    gateway.get("/v1/sessions", &ben).check(200, "");
    gateway.get("/health", "").check(200, "");
    drop(first);
    until("the place is free again", || gateway.get("/v1/sessions", &ann).status == 200);
    drop(second);
    // Requests that have ended, refused ones too, hold nothing.
    for _ in 0..10 {
        gateway.get("/v1/runs/none", &ann).check(404, "");
    }
}

#[test]
fn a_key_has_so_many_websockets_open() {
    let home = Home::with_config(CONFIG);
    let gateway = Gateway::start(&home, ECHO);
    let (ann, ben) = (gateway.key("ann", &[]), gateway.key("ben", &[]));
    let upgrade = "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let connect = |key: &str| open(&gateway, "/v1/ws", key, upgrade);
    let (head, first) = connect(&ann);
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    let (head, _) = connect(&ann);
    assert!(head.starts_with("HTTP/1.1 429"), "{head}");
    let (head, _of_ben) = connect(&ben);
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    // A connection counts as itself, and not among the requests.
    for _ in 0..3 {
        gateway.get("/v1/sessions", &ann).check(200, "");
    }
    drop(first);
    until("the place is free again", || connect(&ann).0.starts_with("HTTP/1.1 101"));
}
