//! git with a login, in repositories whose configuration an agent wrote: no program named there runs, and the
//! token goes to no machine but its own. The servers are those of `openssl s_server`.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use claw_host::transaction::Transactions;
use claw_policy::program::preset;
use tempfile::TempDir;

use super::{Registered, TOKEN};

/// The first `git` in the path that commands have.
fn binary() -> PathBuf {
    let places = ["/usr/local/bin", "/usr/bin", "/bin"].map(|place| Path::new(place).join("git"));
    places.into_iter().find(|path| path.exists()).unwrap()
}

fn registered(variables: &[(&str, &str)]) -> Registered {
    let helpers = preset("git").unwrap().helpers;
    Registered::new("git", &binary(), helpers, &[&[("GIT_HTTP_TOKEN", TOKEN)], variables].concat())
}

/// Runs git outside of any sandbox, as the person who owns the machine.
#[track_caller]
fn git(directory: &Path, arguments: &[&str]) -> String {
    let isolated = [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")];
    let who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"];
    let mut command = Command::new(binary());
    let ran = command.current_dir(directory).args(who).args(arguments).envs(isolated).output().unwrap();
    assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// Makes the workspace a repository with one commit.
fn repository(program: &Registered) {
    git(program.workspace(), &["init", "-q"]);
    fs::write(program.workspace().join("a.txt"), "a\n").unwrap();
    git(program.workspace(), &["add", "a.txt"]);
    git(program.workspace(), &["commit", "-qm", "first"]);
}

fn configure(directory: &Path, text: &str) {
    let mut file = fs::File::options().append(true).open(directory).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// A server with a certificate of its own for `localhost`; killed when it is dropped.
struct Server {
    child: Child,
    /// The self-signed certificate.
    certificate: PathBuf,
    printed: Arc<Mutex<Vec<u8>>>,
    reader: thread::JoinHandle<()>,
    _keys: TempDir,
}

impl Server {
    /// Serves at an address. With `files`, serves the files of a directory; otherwise prints each request and
    /// sends `answer`.
    fn start(address: &str, files: Option<&Path>, answer: &str) -> Self {
        let keys = tempfile::tempdir().unwrap();
        let (key, certificate) = (keys.path().join("key"), keys.path().join("certificate"));
        let made = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "2",
            ])
            .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut server = Command::new("openssl");
        server
            .args(["s_server", "-quiet", "-accept", address])
            .arg("-cert")
            .arg(&certificate)
            .arg("-key")
            .arg(&key);
        if let Some(files) = files {
            server.arg("-WWW").current_dir(files);
        }
        let mut child =
            server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(answer.as_bytes()).unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let printed = Arc::new(Mutex::new(Vec::new()));
        let reader = thread::spawn({
            let printed = Arc::clone(&printed);
            move || {
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = stdout.read(&mut buffer) {
                    printed.lock().unwrap().extend_from_slice(&buffer[..count]);
                }
            }
        });
        Self::wait_for(address);
        Self { child, certificate, printed, reader, _keys: keys }
    }

    /// Waits until it listens, without consuming the answer meant for git.
    fn wait_for(address: &str) {
        let port: u16 = address.rsplit(':').next().unwrap().parse().unwrap();
        let (port, listens) = (format!(":{port:04X}"), "0A");
        for _ in 0..200 {
            let table = fs::read_to_string("/proc/net/tcp").unwrap();
            let is_it = |line: &str| {
                let columns: Vec<&str> = line.split_whitespace().collect();
                columns.get(1).is_some_and(|local| local.ends_with(&port)) && columns.get(3) == Some(&listens)
            };
            if table.lines().any(is_it) {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
        panic!("the server does not listen at {address}");
    }

    fn printed(&self) -> String {
        String::from_utf8_lossy(&self.printed.lock().unwrap()).into_owned()
    }

    /// Waits until a request with these words is printed, which may be after its answer was sent.
    fn wait_for_request(&self, words: &str) {
        let end = Instant::now() + Duration::from_secs(30);
        while !self.printed().contains(words) {
            assert!(Instant::now() < end, "no request with `{words}`: {}", self.printed());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends the server; returns the requests it got.
    fn end(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.reader.join().unwrap();
        String::from_utf8_lossy(&self.printed.lock().unwrap()).into_owned()
    }
}

/// Returns a port on which nothing listens.
fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The token as git sends it.
fn sent_token() -> String {
    STANDARD.encode(format!("x-access-token:{TOKEN}"))
}

/// Returns an answer to the first request of a fetch: one branch.
fn advertisement() -> String {
    let line = format!("{} refs/heads/main\0 agent=x\n", "1".repeat(40));
    let body = format!("001e# service=git-upload-pack\n0000{:04x}{line}0000", line.len() + 4);
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn the_token_reaches_the_host_that_it_is_for() {
    let port = port();
    let server = Server::start(&format!("127.0.0.1:{port}"), None, &advertisement());
    let host = format!("localhost:{port}");
    let certificate = server.certificate.to_str().unwrap().to_owned();
    let program = registered(&[("GIT_HTTP_HOST", &host), ("GIT_SSL_CAINFO", &certificate)]);
    let ran = program.run(".", &["ls-remote", &format!("https://{host}/a/b.git")]).await;
    assert!(ran.output.contains("refs/heads/main"), "{ran:?}");
    server.wait_for_request(&format!("Authorization: Basic {}", sent_token()));
    server.end();
}

#[tokio::test]
async fn refuses_to_send_the_token_where_a_planted_configuration_leads() {
    let port = port();
    let host = format!("localhost:{port}");
    // More specific than any setting from outside, so that git prefers it.
    let url = format!("https://{host}/a/b.git");
    let elsewhere = format!("https://127.0.0.2:{port}/");
    for (name, planted) in [
        (
            "resolve",
            format!("[http \"{url}\"]\n\tcurloptResolve = localhost:{port}:127.0.0.2\n\tsslVerify = false\n"),
        ),
        (
            "instead",
            format!(
                "[url \"{elsewhere}\"]\n\tinsteadOf = https://{host}/\n[http \"{elsewhere}\"]\n\tsslVerify = false\n"
            ),
        ),
        ("include", format!("[include]\n\tpath = ../planted\n[http \"{url}\"]\n\tsslVerify = false\n")),
        (
            "header",
            format!(
                "[http \"{elsewhere}\"]\n\tsslVerify = false\n[remote \"other\"]\n\turl = {elsewhere}a/b.git\n"
            ),
        ),
    ] {
        let evil = Server::start(&format!("127.0.0.2:{port}"), None, &advertisement());
        let program = registered(&[("GIT_HTTP_HOST", &host)]);
        repository(&program);
        fs::write(
            program.workspace().join("planted"),
            format!("[http \"{url}\"]\n\tcurloptResolve = localhost:{port}:127.0.0.2\n"),
        )
        .unwrap();
        configure(
            &program.workspace().join(".git/config"),
            &format!(
                "{planted}[remote \"origin\"]\n\turl = {url}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
            ),
        );
        for words in [
            &["ls-remote", "origin"][..],
            &["fetch", "origin"],
            &["fetch", "other"],
            &["push", "origin", "HEAD"],
        ] {
            program.run(".", words).await;
        }
        let got = evil.end();
        assert!(!got.contains(&sent_token()) && !got.contains(TOKEN), "{name}: {got}");
    }
}

#[tokio::test]
async fn refuses_to_run_what_a_repository_names() {
    let program = registered(&[]);
    repository(&program);
    let planted = program.plant("evil.sh", "#!/bin/sh\nenv | rev > leaked\n").display().to_string();
    for hook in
        ["pre-commit", "post-commit", "pre-push", "post-checkout", "post-merge", "reference-transaction"]
    {
        program.plant(&format!(".git/hooks/{hook}"), "#!/bin/sh\nenv | rev > leaked\n");
    }
    let config = format!(
        "[core]\n\tfsmonitor = {planted}\n\tpager = {planted}\n\teditor = {planted}\n\tsshCommand = {planted}\n\
         \tgitProxy = {planted}\n\taskPass = {planted}\n\thooksPath = .git/hooks\n\
         [alias]\n\tx = !{planted}\n\ty = \"!env | rev > leaked\"\n\
         [diff]\n\texternal = {planted}\n[diff \"d\"]\n\ttextconv = {planted}\n\
         [filter \"f\"]\n\tsmudge = {planted}\n\tclean = {planted}\n\tprocess = {planted}\n\
         [merge \"m\"]\n\tdriver = {planted}\n[gpg]\n\tprogram = {planted}\n[commit]\n\tgpgSign = true\n\
         [credential]\n\thelper = {planted}\n\
         [remote \"origin\"]\n\turl = https://localhost:1/a\n\tuploadpack = {planted}\n\treceivepack = {planted}\n\tvcs = evil\n\
         [remote \"ext\"]\n\turl = ext::{planted}\n[remote \"ssh\"]\n\turl = ssh://localhost/x\n\
         [remote \"here\"]\n\turl = .\n\tuploadpack = {planted}\n\
         [protocol]\n\tallow = always\n[protocol \"ext\"]\n\tallow = always\n"
    );
    configure(&program.workspace().join(".git/config"), &config);
    fs::write(program.workspace().join(".gitattributes"), "* filter=f diff=d merge=m\n").unwrap();
    // A repository that only looks like a directory of the workspace.
    git(
        program.workspace(),
        &["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "init", "-q", "--bare", "docs"],
    );
    configure(
        &program.workspace().join("docs/config"),
        &format!("\tfsmonitor = {planted}\n\tworktree = ..\n\tbare = false\n[alias]\n\tx = !{planted}\n"),
    );
    let workspace = program.workspace().display().to_string();
    fs::write(program.workspace().join("a.txt"), "b\n").unwrap();
    for (directory, words) in [
        (".", &["status"][..]),
        (".", &["x"]),
        (".", &["y"]),
        (".", &["diff"]),
        (".", &["log", "-p", "--ext-diff"]),
        (".", &["-p", "log"]),
        (".", &["commit", "-am", "second"]),
        (".", &["commit", "-a"]),
        (".", &["checkout", "-f", "HEAD"]),
        (".", &["fetch", "origin"]),
        (".", &["fetch", "ext"]),
        (".", &["fetch", "ssh"]),
        (".", &["fetch", "here"]),
        (".", &["fetch", "--upload-pack", &planted, "."]),
        (".", &["push", "origin", "HEAD"]),
        (".", &["pull", "here", "main"]),
        (".", &["-c", "core.fsmonitor=./evil.sh", "status"]),
        (".", &["--exec-path=.", "sh"]),
        (".", &["submodule", "foreach", "./evil.sh"]),
        (".", &["bisect", "run", "./evil.sh"]),
        (".", &["rebase", "-x", "./evil.sh", "HEAD~0"]),
        ("docs", &["status"]),
        ("docs", &["x"]),
        ("docs", &["fetch", "."]),
        (".", &["--git-dir", "docs", "status"]),
        (".", &["--git-dir=docs", "fetch", "."]),
        (".", &["-C", "docs", "status"]),
        (".", &["clone", &workspace, "copy"]),
        (".", &["clone", "-c", "core.fsmonitor=./evil.sh", ".", "other"]),
    ] {
        // Some of them fail, and some are refused: what counts is what ran.
        let ran = program.try_run(directory, words).await;
        for place in ["leaked", "docs/leaked", "copy/leaked", ".git/leaked"] {
            assert!(!program.workspace().join(place).exists(), "{words:?} in `{directory}`: {ran:?}");
        }
    }
}

#[tokio::test]
async fn a_repository_is_fetched_cloned_and_used() {
    let port = port();
    let served = tempfile::tempdir().unwrap();
    // Served as plain files, as any web server can.
    let source = registered(&[]);
    repository(&source);
    git(source.workspace(), &["clone", "-q", "--bare", ".", served.path().join("b.git").to_str().unwrap()]);
    let bare = served.path().join("b.git");
    git(&bare, &["update-server-info"]);
    fs::copy(bare.join("info/refs"), bare.join("info/refs?service=git-upload-pack")).unwrap();
    let server = Server::start(&format!("127.0.0.1:{port}"), Some(served.path()), "");
    let (host, certificate) = (format!("localhost:{port}"), server.certificate.to_str().unwrap().to_owned());
    let variables = [("GIT_HTTP_HOST", host.as_str()), ("GIT_SSL_CAINFO", certificate.as_str())];
    let url = format!("https://{host}/b.git");

    let mut program = registered(&variables);
    git(program.workspace(), &["init", "-q"]);
    git(program.workspace(), &["config", "user.name", "b"]);
    git(program.workspace(), &["config", "user.email", "b@c"]);
    git(program.workspace(), &["remote", "add", "origin", &url]);
    fs::create_dir(program.workspace().join("sub")).unwrap();
    let ran = program.run("sub", &["pull", "origin", "main"]).await;
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    assert_eq!(fs::read_to_string(program.workspace().join("a.txt")).unwrap(), "a\n");
    assert_eq!(git(program.workspace(), &["log", "--format=%s"]), "first\n");
    // Commands without network use work as before, and can be configured.
    for words in [
        &["remote", "add", "more", &url][..],
        &["checkout", "-q", "-b", "new"],
        &["commit", "--allow-empty", "-qm", "x"],
    ] {
        let ran = program.run(".", words).await;
        assert_eq!(ran.exit, Some(0), "{words:?}: {ran:?}");
    }

    let layers = tempfile::tempdir().unwrap();
    program.kit.options.transactions = Some(Transactions::new(layers.path()));
    let mut cloned = program.run(".", &["clone", "--quiet", &url, "copy"]).await;
    assert_eq!(cloned.exit, Some(0), "{cloned:?}");
    assert!(!program.workspace().join("copy").exists(), "nobody sees it before it has ended");
    cloned.pending.as_mut().unwrap().apply(&[]).await.unwrap();
    assert_eq!(fs::read_to_string(program.workspace().join("copy/a.txt")).unwrap(), "a\n");
    let ran = program.run("copy", &["fetch", "--quiet"]).await;
    assert_eq!((ran.exit, ran.output.as_str()), (Some(0), ""), "{ran:?}");
    let refused =
        program.try_run(".", &["clone", "--config", "http.sslVerify=false", &url, "x"]).await.unwrap_err();
    assert!(refused.message.contains("does not take `--config`"), "{refused:?}");
    server.end();
}
