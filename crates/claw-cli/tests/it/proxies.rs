//! Proxies: connections are taken from those that are named, and they alone are believed where a client is.

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use crate::gateway::{ECHO, Gateway, request};
use crate::harness::Home;

/// Sends an invalid key that claims to come from elsewhere; returns the line of the log about it.
fn logged(home: &Home, gateway: &Gateway<'_>) -> String {
    let claim = [("x-forwarded-for", "203.0.113.9")];
    gateway.send("GET /v1/tools", "claw_nothing", &claim, "").check(401, "bad_key");
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let log = std::fs::read_to_string(home.path().join("log")).unwrap();
        if let Some(line) = log.lines().find(|line| line.contains("invalid key")) {
            return line.to_owned();
        }
        assert!(Instant::now() < deadline, "{log}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn start<'a>(home: &'a Home, listen: &str) -> Gateway<'a> {
    let script = home.write("script.toml", ECHO);
    let log = std::fs::File::create(home.path().join("log")).unwrap();
    let mut command = home.process(&["serve", "--json", "--listen", listen, "--script"]);
    Gateway::spawn(home, command.arg(script).stderr(log))
}

#[test]
fn a_forwarded_address_is_believed_from_named_proxies_alone() {
    let home = Home::with_config("[gateway]\nproxies = [\"127.0.0.1\"]\n");
    let line = logged(&home, &start(&home, "127.0.0.1:0"));
    assert!(line.contains("203.0.113.9"), "{line}");
    let home = Home::with_config("[gateway]\nproxies = [\"192.0.2.7\"]\n");
    let line = logged(&home, &start(&home, "127.0.0.1:0"));
    assert!(line.contains("127.0.0.1") && !line.contains("203.0.113.9"), "{line}");
}

#[test]
fn connections_from_elsewhere_than_a_named_proxy_are_closed() {
    // The address that this machine has on its network.
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    if socket.connect("192.0.2.1:9").is_err() {
        eprintln!("skipped: this machine has no address but loopback");
        return;
    }
    let own = socket.local_addr().unwrap().ip();
    let ask = |home: &Home, host: &str| {
        let gateway = start(home, "0.0.0.0:0");
        let port = gateway.address.rsplit_once(':').unwrap().1.to_owned();
        let mut stream = TcpStream::connect(format!("{host}:{port}")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let _ = stream.write_all(request("agents.example.org", "GET /health", "", &[], "").as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    };
    let config =
        |proxy: &str| format!("[gateway]\nhosts = [\"agents.example.org\"]\nproxies = [\"{proxy}\"]\n");
    let home = Home::with_config(&config("192.0.2.7"));
    assert_eq!(ask(&home, &own.to_string()), "", "nothing is answered");
    assert!(ask(&home, "127.0.0.1").contains("200 OK"));
    let home = Home::with_config(&config(&own.to_string()));
    assert!(ask(&home, &own.to_string()).contains("200 OK"), "a named proxy is answered");
}
