//! The container image and the systemd unit of `deploy/`.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::Home;

/// The user of the image.
const USER: u32 = 65532;
const IMAGE: &str = "clawsmith-test/gateway:built";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn binary() -> &'static Path {
    assert_cmd::cargo::cargo_bin!("clawsmith")
}

fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}: {}{}", output.status, text(&output.stdout), text(&output.stderr))
}

/// An engine, asked by its HTTP interface.
struct Engine(String);

impl Engine {
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--unix-socket", &self.0, "--request", method]);
        if let Some(body) = body {
            command.args(["--header", "Content-Type: application/json", "--data", &body.to_string()]);
        }
        let answered = command.arg(format!("http://engine{path}")).output().unwrap();
        assert!(answered.status.success(), "{}", shown(&answered));
        serde_json::from_slice(&answered.stdout).unwrap_or(Value::Null)
    }
}

/// A container that is removed with this value.
struct Container<'a> {
    engine: &'a Engine,
    id: String,
}

impl Container<'_> {
    /// Asks the gateway from inside the container's network, where it listens on loopback.
    fn curl(&self, more: &[&str]) -> Output {
        let state = self.engine.ask("GET", &format!("/containers/{}/json", self.id), None);
        let pid = state["State"]["Pid"].as_u64().unwrap_or_default();
        assert_ne!(pid, 0, "the container runs: {state}");
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &pid.to_string(), "curl", "--silent", "--show-error"]);
        command.args(more).output().unwrap()
    }
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        self.engine.ask("DELETE", &format!("/containers/{}?force=true&v=true", self.id), None);
    }
}

#[test]
fn the_image_is_built_from_scratch_and_serves_a_call() {
    let Some(socket) = crate::docker::socket() else { return };
    let engine = Engine(socket.clone());
    let built = Command::new(repository().join("scripts/build-image.sh"))
        .args(["--tag", IMAGE, "--binary"])
        .arg(binary())
        .env("DOCKER_HOST", format!("unix://{socket}"))
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", shown(&built));
    let image = engine.ask("GET", &format!("/images/{IMAGE}/json"), None);
    assert_eq!(image["Config"]["User"], format!("{USER}:{USER}"), "{image}");
    println!("image: {} MB with this binary", image["Size"].as_u64().unwrap_or_default() / 1_000_000);

    // The key is made beforehand, in the data directory that the container gets.
    let home = Home::new();
    let data = home.path().join("data");
    let key = home.run_with(
        &[("CLAWSMITH_DATA_DIR", data.to_str().unwrap())],
        &["api-keys", "create", "--user", "ann"],
    );
    assert_eq!(key.code, 0, "{}", key.shown());
    let key = key.stdout.trim().to_owned();
    let mut paths = vec![data.clone()];
    while let Some(path) = paths.pop() {
        chown(&path, Some(USER), Some(USER)).unwrap();
        paths.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
    }
    // The container's user must find the way to it.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(home.path(), open).unwrap();
    let body = json!({
        "Image": IMAGE,
        "HostConfig": {
            "Binds": [format!("{}:/var/lib/clawsmith", data.display())], "NetworkMode": "none",
            "ReadonlyRootfs": true, "Tmpfs": { "/tmp": "" }, "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
        },
    });
    let created = engine.ask("POST", "/containers/create", Some(&body));
    let container = Container { engine: &engine, id: created["Id"].as_str().unwrap().to_owned() };
    engine.ask("POST", &format!("/containers/{}/start", container.id), None);
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let health = container.curl(&["http://127.0.0.1:7373/health"]);
        if String::from_utf8_lossy(&health.stdout).contains("\"ok\"") {
            break;
        }
        assert!(Instant::now() < deadline, "{}", shown(&health));
        std::thread::sleep(Duration::from_millis(100));
    }
    let bearer = format!("Authorization: Bearer {key}");
    let write = json!({ "tool": "write_file", "args": { "path": "a.txt", "content": "from a container" } });
    let called = container.curl(&[
        "--header",
        &bearer,
        "--header",
        "Content-Type: application/json",
        "--data",
        &write.to_string(),
        "http://127.0.0.1:7373/v1/tools/invoke",
    ]);
    assert!(String::from_utf8_lossy(&called.stdout).contains("\"ok\":true"), "{}", shown(&called));
    let file = data.join("workspaces/main/default/user-ann/a.txt");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "from a container");
}

#[test]
fn the_unit_is_one_that_systemd_takes() {
    let Ok(analyze) = Command::new("systemd-analyze").arg("--version").output() else {
        eprintln!("skipped: there is no systemd-analyze");
        return;
    };
    assert!(analyze.status.success(), "{}", shown(&analyze));
    let directory = tempfile::tempdir().unwrap();
    let unit = std::fs::read_to_string(repository().join("deploy/clawsmith.service")).unwrap();
    let unit = unit.replace("/usr/bin/clawsmith", binary().to_str().unwrap());
    // The user is made when the unit is installed.
    let unit = unit.replace("User=clawsmith\nGroup=clawsmith\n", "");
    let path = directory.path().join("clawsmith.service");
    std::fs::write(&path, unit).unwrap();
    let verified = Command::new("systemd-analyze").arg("verify").arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&verified.stderr);
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("clawsmith.service")).collect();
    assert!(verified.status.success() && ours.is_empty(), "{}", shown(&verified));
}

/// The Compose file as its services and networks, read by a library of another language.
fn compose() -> Option<Value> {
    let Some(python) = std::env::var_os("CLAWSMITH_TEST_PYTHON") else {
        eprintln!("skipped: CLAWSMITH_TEST_PYTHON names no Python with the clients; run `make test`");
        return None;
    };
    let read = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let file = repository().join("deploy/compose.yaml");
    let ran = Command::new(python).args(["-c", read]).arg(file).output().unwrap();
    assert!(ran.status.success(), "{}", shown(&ran));
    Some(serde_json::from_slice(&ran.stdout).unwrap())
}

#[test]
fn the_compose_file_starts_a_gateway_that_accepts_its_own_settings() {
    let Some(compose) = compose() else { return };
    let gateway = &compose["services"]["gateway"];
    assert_eq!(gateway["image"], "clawsmith:latest");
    assert_eq!(gateway["ports"], json!(["127.0.0.1:7373:7373"]), "the port is open to this machine alone");
    assert_eq!((&gateway["read_only"], &gateway["cap_drop"]), (&json!(true), &json!(["ALL"])));
    let network = &compose["networks"]["inside"]["ipam"]["config"][0];
    assert_eq!(gateway["environment"]["CLAWSMITH_GATEWAY__PROXIES"], network["gateway"]);
    let volumes = compose["volumes"].as_object().unwrap();
    for service in ["gateway", "database"] {
        for volume in compose["services"][service]["volumes"].as_array().unwrap() {
            let name = volume.as_str().unwrap().split(':').next().unwrap();
            assert!(volumes.contains_key(name), "{service}: {volume}");
        }
    }
    // Its variables are settings that there are, with values that can be.
    let home = Home::with_config("");
    let variables: Vec<(String, String)> = gateway["environment"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| name.starts_with("CLAWSMITH_"))
        .map(|(name, value)| {
            (
                name.clone(),
                value
                    .as_str()
                    .unwrap()
                    .replace("${POSTGRES_PASSWORD:?choose a password for the database}", "pw"),
            )
        })
        .collect();
    assert!(variables.len() >= 3, "{variables:?}");
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let ran = home.run_with(&variables, &["config", "check"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
}
