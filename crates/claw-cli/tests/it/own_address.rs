//! Agents of a gateway that try to reach the gateway itself: by fetching, by custom tools, by MCP and by commands.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::json;

use crate::gateway::{ECHO, Gateway};
use crate::harness::Home;

/// A port that nobody listens on now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The address that this machine has on its network; loopback's second one where it has none.
fn interface() -> String {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    match socket.connect("192.0.2.1:9") {
        Ok(()) => socket.local_addr().unwrap().ip().to_string(),
        Err(_) => "127.0.0.2".to_owned(),
    }
}

/// A gateway on all addresses, whose configuration names every one of its own addresses as an origin to be reached.
fn home_and_names(port: u16) -> (Home, Vec<String>) {
    let interface = interface();
    let hosts = ["127.0.0.1", "localhost", "127.0.0.2", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", &interface];
    let names: Vec<String> = hosts.iter().map(|host| format!("http://{host}:{port}")).collect();
    let origins = json!(names);
    let home = Home::with_config(&format!(
        "[gateway]\nproxies = [\"192.0.2.7\"]\nhosts = [\"agents.example.org\", {interface:?}]\n\
         [web]\nprivate_origins = {origins}\n[custom_tools]\nprivate_origins = {origins}\n\
         [shell]\nnetwork = true\n"
    ));
    (home, names)
}

fn start(home: &Home, port: u16) -> Gateway<'_> {
    let script = home.write("script.toml", ECHO);
    let mut command = home.process(&["serve", "--json", "--listen", &format!("0.0.0.0:{port}"), "--script"]);
    let mut gateway =
        Gateway::spawn(home, command.arg(script).stderr(File::create(home.path().join("log")).unwrap()));
    gateway.address = format!("127.0.0.1:{port}");
    gateway
}

const REFUSED: &str = "leads to this gateway itself";

#[test]
fn refuses_to_fetch_the_gateway_under_any_of_its_names() {
    let port = free_port();
    let (home, names) = home_and_names(port);
    let gateway = start(&home, port);
    let key = gateway.key("ann", &[]);
    gateway.get("/health", "").check(200, "ok");
    let named =
        ["https://agents.example.org/v1/tools".to_owned(), "http://agents.example.org.:80/".to_owned()];
    for name in names.iter().chain(&named) {
        let fetch = json!({ "tool": "web_fetch", "args": { "url": format!("{name}/health") } });
        gateway.invoke(&key, &fetch).check(200, REFUSED);
    }
    // Another server of this machine that the configuration names is reached, and cannot send a request on.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", other.local_addr().unwrap());
    home.configure(&format!("[web]\nprivate_origins = [{origin:?}, \"http://127.0.0.1:{port}\"]\n"));
    let server = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        let head = format!("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:{port}/health\r\n");
        stream.write_all(format!("{head}content-length: 0\r\nconnection: close\r\n\r\n").as_bytes()).unwrap();
    });
    let fetch = json!({ "tool": "web_fetch", "args": { "url": format!("{origin}/") } });
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let answer = gateway.invoke(&key, &fetch).check(200, "\"ok\":false");
        if answer.body.contains(REFUSED) {
            break;
        }
        // The new configuration does not hold yet.
        assert!(std::time::Instant::now() < deadline, "{}", answer.body);
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    server.join().unwrap();
}

#[test]
fn refuses_custom_tools_and_mcp_servers_at_the_gateway() {
    let port = free_port();
    let (home, names) = home_and_names(port);
    let gateway = start(&home, port);
    let owner = gateway.key("olga", &["--role", "owner", "--scope", "admin,tools:call"]);
    for (number, name) in names.iter().enumerate() {
        let tool = json!({
            "name": format!("back{number}"), "description": "Calls back.",
            "parameters": { "type": "object", "properties": {} },
            "http": { "method": "GET", "url": format!("{name}/health") },
        });
        gateway.post("/v1/tools/custom", &owner, &tool).check(201, "back");
        let call = json!({ "tool": format!("back{number}"), "args": {} });
        // An address that can be written shorter is refused as such.
        let why = if name.contains("ffff") { "is not on the tool's server" } else { REFUSED };
        gateway.invoke(&owner, &call).check(200, why);
        let server = json!({
            "name": format!("loop{number}"), "transport": "http", "url": format!("{name}/mcp"), "private": true,
            "headers": ["authorization"], "values": { "authorization": format!("Bearer {owner}") },
        });
        let added = gateway.post("/v1/mcp/servers", &owner, &server);
        assert!(added.status >= 400, "{name}: {}", added.body);
        // The reason names addresses of this machine, so it is in the log.
        let log = std::fs::read_to_string(home.path().join("log")).unwrap();
        let reason = log.rsplit(&format!("`loop{number}`")).next().unwrap();
        assert!(log.contains(&format!("`loop{number}`")) && reason.contains(REFUSED), "{name}: {log}");
    }
}

#[test]
fn refuses_the_gateway_to_commands_that_have_the_network() {
    let port = free_port();
    let (home, _) = home_and_names(port);
    let gateway = start(&home, port);
    let key = gateway.key("ann", &[]);
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let elsewhere = other.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\nconnection: close\r\n\r\nreached")
            .unwrap();
    });
    let reach = |host: &str, port: u16| {
        let command =
            format!("curl --silent --show-error --verbose --max-time 30 http://{host}:{port}/health");
        let call = json!({ "tool": "exec", "args": { "command": command } });
        gateway.invoke(&key, &call).check(200, "exit code").body
    };
    let body = reach("127.0.0.1", elsewhere);
    assert!(body.contains("reached"), "the network is there: {body}");
    server.join().unwrap();
    for host in ["127.0.0.1", "127.0.0.2", "0.0.0.0", "[::1]", "localhost", &interface()] {
        let body = reach(host, port);
        assert!(body.contains("Permission denied") && body.contains("exit code 7"), "{host}: {body}");
    }
    gateway.get("/health", "").check(200, "ok");
}
