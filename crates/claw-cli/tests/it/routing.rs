//! Context files and memory in the store, at their place in the workspace.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::{Expect, FilePlace, FsBridge, Generated, Scope, Search, UnixMillis, Version, Walk};
use claw_core::provenance::RunTrace;
use claw_core::redact::{Redaction, Redactor};
use claw_core::store::{
    AgentKind, AgentSetup, AgentStore as _, AgentWrite, DocumentKey, Documents as _, Memories as _, Shelf,
};
use claw_core::tool::{Caller, ErrorKind, ToolError};
use claw_core::{AgentId, JobId, NodeId, SessionKey, TenantId, UserId};
use claw_host::SystemClock;
use claw_host::files::{LocalFiles, RoutedFiles, Routing};
use claw_store::SqliteStore;
use claw_testkit::fixture;
use serde_json::json;
use tempfile::TempDir;

use crate::harness::Home;

struct Desk {
    _place: TempDir,
    store: Arc<SqliteStore>,
    files: RoutedFiles,
    root: PathBuf,
}

struct Team;

#[async_trait]
impl Generated for Team {
    async fn generated(&self, _caller: &Caller, name: &str) -> Result<Option<String>, ToolError> {
        Ok((name == "TEAM.md").then(|| "the team\n".to_owned()))
    }
}

struct Nothing;

impl Redactor for Nothing {
    fn find(&self, _text: &[u8], _found: &mut Vec<Redaction>) {}
}

impl Desk {
    async fn new(kind: Option<AgentKind>) -> Self {
        let place = TempDir::new().unwrap();
        let root = place.path().join("managed/w");
        fs::create_dir_all(&root).unwrap();
        let store = Arc::new(SqliteStore::memory(NodeId::local()).await.unwrap());
        if let Some(kind) = kind {
            let setup = AgentSetup {
                name: "A".into(),
                kind,
                provider: None,
                model: None,
                policy: json!(null),
                other_config: Default::default(),
            };
            let agent = AgentId::new("main").unwrap();
            store
                .put_agent(&TenantId::main(), &agent, AgentWrite { setup, seen: None }, UnixMillis(1))
                .await
                .unwrap();
        }
        let routing = Routing::Below(place.path().join("managed"));
        let files = Arc::new(LocalFiles::new());
        let files = RoutedFiles::new(files, Arc::clone(&store), Arc::new(SystemClock), routing);
        Self { files: files.generating(Arc::new(Team)), _place: place, store, root }
    }

    fn caller(&self, user: Option<&str>) -> Caller {
        let agent = AgentId::new("main").unwrap();
        let mut caller = Caller::new(agent, SessionKey::new("cli:me").unwrap(), &self.root);
        caller.user = user.map(|user| UserId::new(user).unwrap());
        caller
    }

    async fn write(&self, user: Option<&str>, path: &str, text: &str) -> Result<Version, ToolError> {
        self.write_if(user, path, text, Expect::Anything).await
    }

    async fn write_if(
        &self,
        user: Option<&str>,
        path: &str,
        text: &str,
        expect: Expect<'_>,
    ) -> Result<Version, ToolError> {
        let (caller, scope) = (self.caller(user), Scope::workspace(&self.root));
        let place = FilePlace { caller: &caller, directory: &self.root, scope: &scope, expect };
        self.files.write(&place, path, text.as_bytes()).await.map(|stat| stat.version)
    }

    async fn read(&self, user: Option<&str>, path: &str) -> Result<String, ErrorKind> {
        let (caller, scope) = (self.caller(user), Scope::workspace(&self.root));
        let place =
            FilePlace { caller: &caller, directory: &self.root, scope: &scope, expect: Expect::Anything };
        let read = self.files.read(&place, path).await.map_err(|error| error.kind)?;
        let stat = self.files.stat(&place, path).await.unwrap();
        assert_eq!(stat.map(|stat| stat.version), Some(read.1.version.clone()));
        let sight = self.files.look(&place, path).await.unwrap();
        assert_eq!(sight.identity.as_deref(), Some(read.1.version.0.as_str()));
        Ok(String::from_utf8(read.0).unwrap())
    }

    /// Puts a document of the agent itself.
    async fn base(&self, shelf: Shelf, path: &str, text: &str) {
        let key = DocumentKey {
            tenant: TenantId::main(),
            agent: Some(AgentId::new("main").unwrap()),
            user: None,
            shelf,
            path: path.to_owned(),
        };
        let seen = self.store.document(&key).await.unwrap().map(|document| document.version);
        self.store.put_document(&key, text, seen, UnixMillis(1)).await.unwrap();
    }

    fn on_disk(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_agents_context_is_each_users_own() {
    let desk = Desk::new(Some(AgentKind::Open)).await;
    desk.base(Shelf::Context, "SOUL.md", "base").await;
    for user in [Some("ann"), Some("bob"), None] {
        assert_eq!(desk.read(user, "SOUL.md").await.unwrap(), "base", "{user:?}");
    }
    desk.write(Some("ann"), "SOUL.md", "ann's").await.unwrap();
    assert_eq!(desk.read(Some("ann"), "SOUL.md").await.unwrap(), "ann's");
    assert_eq!(desk.read(Some("bob"), "SOUL.md").await.unwrap(), "base");
    assert_eq!(desk.read(None, "SOUL.md").await.unwrap(), "base");
    assert!(!desk.on_disk("SOUL.md"));
    assert_eq!(desk.read(Some("ann"), "IDENTITY.md").await, Err(ErrorKind::NotFound));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_predefined_agent_only_the_users_file_is_writable() {
    let desk = Desk::new(Some(AgentKind::Predefined)).await;
    desk.base(Shelf::Context, "SOUL.md", "base").await;
    for path in ["SOUL.md", "IDENTITY.md", "./AGENTS.md", "BOOTSTRAP.md"] {
        let error = desk.write(Some("ann"), path, "x").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Forbidden);
        assert!(error.message.contains("read-only for tools"), "{error:?}");
    }
    assert_eq!(desk.write(None, "USER.md", "x").await.unwrap_err().kind, ErrorKind::Forbidden);
    desk.write(Some("ann"), "USER.md", "I am Ann").await.unwrap();
    assert_eq!(desk.read(Some("ann"), "USER.md").await.unwrap(), "I am Ann");
    assert_eq!(desk.read(Some("bob"), "USER.md").await, Err(ErrorKind::NotFound));
    assert_eq!(desk.read(Some("ann"), "SOUL.md").await.unwrap(), "base");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_bootstrap_is_none() {
    for base in [false, true] {
        let desk = Desk::new(None).await;
        if base {
            desk.base(Shelf::Context, "BOOTSTRAP.md", "begin").await;
        }
        desk.write(Some("ann"), "BOOTSTRAP.md", "begin anew").await.unwrap();
        desk.write(Some("ann"), "BOOTSTRAP.md", "").await.unwrap();
        assert_eq!(desk.read(Some("ann"), "BOOTSTRAP.md").await, Err(ErrorKind::NotFound));
        let user = UserId::new("ann").unwrap();
        let agent = AgentId::new("main").unwrap();
        let rows =
            desk.store.documents(&TenantId::main(), Some(&agent), Some(&user), Shelf::Context).await.unwrap();
        assert_eq!(
            rows.iter().any(|row| row.key.user.is_some()),
            base,
            "a row stays only to hide the agent's"
        );
        assert_eq!(desk.read(Some("bob"), "BOOTSTRAP.md").await.is_ok(), base);
        desk.write(Some("ann"), "BOOTSTRAP.md", "again").await.unwrap();
        assert_eq!(desk.read(Some("ann"), "BOOTSTRAP.md").await.unwrap(), "again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_the_users_and_then_the_agents() {
    let desk = Desk::new(Some(AgentKind::Predefined)).await;
    desk.base(Shelf::Memory, "memory/a.md", "base").await;
    assert_eq!(desk.read(Some("ann"), "memory/a.md").await.unwrap(), "base");
    desk.write(Some("ann"), "memory/a.md", "ann's").await.unwrap();
    assert_eq!(desk.read(Some("ann"), "memory/a.md").await.unwrap(), "ann's");
    assert_eq!(desk.read(Some("bob"), "memory/a.md").await.unwrap(), "base");
    desk.write(Some("ann"), "memory.md", "long").await.unwrap();
    assert_eq!(desk.read(Some("ann"), "MEMORY.md").await.unwrap(), "long", "two names of one document");
    assert!(!desk.on_disk("memory") && !desk.on_disk("MEMORY.md"));
    // A document is no directory, and a directory no document.
    let below = desk.write(Some("ann"), "memory/a.md/x", "x").await.unwrap_err();
    assert!(below.message.contains("leads through a file"), "{below:?}");
    desk.write(Some("ann"), "memory/d/x.md", "x").await.unwrap();
    let over = desk.write(Some("ann"), "memory/d", "x").await.unwrap_err();
    assert!(over.message.contains("is a directory"), "{over:?}");
    assert_eq!(desk.store.unindexed(10).await.unwrap(), [], "each is indexed with its write");
    let state = desk.store.memory_state(&TenantId::main(), None).await.unwrap();
    assert_eq!((state.documents, state.passages), (4, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_spelling_of_a_routed_name_leads_to_the_document() {
    let desk = Desk::new(None).await;
    desk.write(Some("ann"), "SOUL.md", "soul").await.unwrap();
    let absolute = desk.root.join("SOUL.md");
    let doubled = format!("{}//./SOUL.md", desk.root.display());
    for path in
        ["./SOUL.md", "a/../SOUL.md", ".//SOUL.md", "a/./.././SOUL.md", absolute.to_str().unwrap(), &doubled]
    {
        assert_eq!(desk.read(Some("ann"), path).await.unwrap(), "soul", "{path}");
    }
    desk.write(Some("ann"), "docs/AGENTS.md", "ordinary").await.unwrap();
    assert!(desk.on_disk("docs/AGENTS.md"), "only at the root is it a document");
    for path in ["docs/memory/x", "soul.md", "SOUL.md.bak", "memory-notes", "Memory.md"] {
        desk.write(Some("ann"), path, "ordinary").await.unwrap();
        assert!(desk.on_disk(path), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_a_routed_name_is_reached_by_no_link() {
    let desk = Desk::new(None).await;
    fs::write(desk.root.join("SOUL.md"), "of the disk").unwrap();
    fs::create_dir(desk.root.join("memory")).unwrap();
    fs::write(desk.root.join("memory/a.md"), "of the disk").unwrap();
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, desk.root.join(name)).unwrap();
    link(".", "here");
    link("SOUL.md", "soul-link");
    link("memory", "mem");
    fs::hard_link(desk.root.join("SOUL.md"), desk.root.join("hard")).unwrap();
    for path in [
        "SOUL.md",
        "here/SOUL.md",
        "here/here/SOUL.md",
        "soul-link",
        "mem/a.md",
        "here/memory/a.md",
        "memory/a.md",
        "hard",
    ] {
        assert_eq!(desk.read(Some("ann"), path).await, Err(ErrorKind::NotFound), "{path}");
    }
    for path in ["here/SOUL.md", "mem/a.md", "mem/new", "here/memory/new", "here/MEMORY.md"] {
        assert_eq!(desk.write(Some("ann"), path, "x").await.unwrap_err().kind, ErrorKind::NotFound, "{path}");
    }
    assert_eq!(fs::read_to_string(desk.root.join("SOUL.md")).unwrap(), "of the disk");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_expected_is_compared() {
    let desk = Desk::new(None).await;
    desk.base(Shelf::Context, "SOUL.md", "base").await;
    let ann = Some("ann");
    let absent = desk.write_if(ann, "SOUL.md", "x", Expect::Absent).await.unwrap_err();
    assert_eq!(absent.kind, ErrorKind::Conflict);
    let wrong = Version("user-1".into());
    let changed = desk.write_if(ann, "SOUL.md", "x", Expect::Version(&wrong)).await.unwrap_err();
    assert_eq!(changed.kind, ErrorKind::Conflict);
    let base = Version("agent-1".into());
    let first = desk.write_if(ann, "SOUL.md", "one", Expect::Version(&base)).await.unwrap();
    let second = desk.write_if(ann, "SOUL.md", "two", Expect::Version(&first)).await.unwrap();
    assert_ne!(first, second);
    assert_eq!(
        desk.write_if(ann, "SOUL.md", "x", Expect::Version(&first)).await.unwrap_err().kind,
        ErrorKind::Conflict
    );
    assert_eq!(desk.read(ann, "SOUL.md").await.unwrap(), "two");
    desk.write_if(ann, "memory/n", "n", Expect::Absent).await.unwrap();
    // Of many who saw the same, one writes.
    let writes = (0..8).map(|n| {
        let (second, desk) = (second.clone(), &desk);
        async move { desk.write_if(ann, "SOUL.md", &n.to_string(), Expect::Version(&second)).await.is_ok() }
    });
    let mut won = 0;
    for done in writes.map(Box::pin).collect::<Vec<_>>() {
        won += usize::from(done.await);
    }
    assert_eq!(won, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_text_and_generated_files_are_read() {
    let desk = Desk::new(None).await;
    let (caller, scope) = (desk.caller(Some("ann")), Scope::workspace(&desk.root));
    let place = FilePlace { caller: &caller, directory: &desk.root, scope: &scope, expect: Expect::Anything };
    for bytes in [&b"\xff\xfe"[..], b"a\0b"] {
        let error = desk.files.write(&place, "memory/x", bytes).await.unwrap_err();
        assert!(error.kind == ErrorKind::Invalid && error.message.contains("UTF-8 text"), "{error:?}");
    }
    assert_eq!(desk.read(Some("ann"), "TEAM.md").await.unwrap(), "the team\n");
    assert_eq!(desk.read(Some("ann"), "DELEGATION.md").await, Err(ErrorKind::NotFound));
    for path in ["TEAM.md", "./DELEGATION.md"] {
        let error = desk.write(Some("ann"), path, "x").await.unwrap_err();
        assert!(
            error.kind == ErrorKind::Forbidden && error.message.contains("Clawsmith itself"),
            "{error:?}"
        );
    }
    // Denied paths stay denied, and outside ones too.
    let denied = Scope { denied: vec![desk.root.join("SOUL.md"), desk.root.join("memory")], ..scope.clone() };
    let place = FilePlace { scope: &denied, ..place };
    desk.write(Some("ann"), "SOUL.md", "x").await.unwrap();
    for path in ["SOUL.md", "memory/x"] {
        assert_eq!(desk.files.read(&place, path).await.unwrap_err().kind, ErrorKind::NotFound);
        assert_eq!(desk.files.write(&place, path, b"x").await.unwrap_err().kind, ErrorKind::NotFound);
    }
    assert_eq!(desk.files.read(&place, "../SOUL.md").await.unwrap_err().kind, ErrorKind::Forbidden);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_listed_and_searched_among_files() {
    let desk = Desk::new(None).await;
    let ann = Some("ann");
    for (path, text) in
        [("SOUL.md", "needle one"), ("memory/d/a.md", "needle two"), ("src/x.rs", "needle three")]
    {
        desk.write(ann, path, text).await.unwrap();
    }
    fs::create_dir(desk.root.join("memory")).unwrap();
    fs::write(desk.root.join("memory/of-the-disk"), "needle").unwrap();
    let (caller, scope) = (desk.caller(ann), Scope::workspace(&desk.root));
    let place = FilePlace { caller: &caller, directory: &desk.root, scope: &scope, expect: Expect::Anything };
    let walk = |path: &str| Walk { directories: true, ..fixture::walk(path, 100) };
    let paths = async |path: &str| {
        let walked = desk.files.walk(&place, &walk(path)).await.unwrap();
        assert_eq!(walked.entries.len() as u64, walked.files + walked.directories);
        walked.entries.into_iter().map(|entry| entry.path).collect::<Vec<_>>()
    };
    assert_eq!(
        paths(".").await,
        ["SOUL.md", "TEAM.md", "memory", "memory/d", "memory/d/a.md", "src", "src/x.rs"]
    );
    assert_eq!(paths("memory").await, ["d", "d/a.md"]);
    assert_eq!(paths("src").await, ["x.rs"]);
    let globbed = Walk { globs: vec!["*.md".into()], directories: false, limit: 2, ..walk(".") };
    let globbed = desk.files.walk(&place, &globbed).await.unwrap();
    assert_eq!((globbed.entries.len(), globbed.files), (2, 3), "what is beyond the limit is counted");
    let redactor: Arc<dyn Redactor> = Arc::new(Nothing);
    let search = |path: &str, limit| Search { within: walk(path), ..fixture::search(path, "needle", limit) };
    let found = desk.files.search(&place, &search(".", 100), &redactor).await.unwrap();
    let files: Vec<&str> = found.files.iter().map(|hits| hits.path.as_str()).collect();
    assert_eq!((files, found.hits), (vec!["SOUL.md", "memory/d/a.md", "src/x.rs"], 3));
    let found = desk.files.search(&place, &search("memory", 100), &redactor).await.unwrap();
    assert_eq!((found.files[0].path.as_str(), found.hits), ("d/a.md", 1));
    let some = desk.files.search(&place, &search(".", 2), &redactor).await.unwrap();
    let lines: usize = some.files.iter().map(|hits| hits.lines.len()).sum();
    assert_eq!((lines, some.hits), (2, 3));
    let bob = desk.caller(Some("bob"));
    let place = FilePlace { caller: &bob, ..place };
    let found = desk.files.search(&place, &search(".", 100), &redactor).await.unwrap();
    assert_eq!(found.hits, 1, "another user's documents are not found");
}

#[tokio::test(flavor = "multi_thread")]
async fn ordinary_files_pass_the_suite_behind_the_documents() {
    let directory = TempDir::new().unwrap();
    let count = std::cell::Cell::new(0);
    claw_testkit::conformance::bridge(async || {
        count.set(count.get() + 1);
        let store = Arc::new(SqliteStore::memory(NodeId::local()).await.unwrap());
        let files = Arc::new(LocalFiles::new());
        let routed = RoutedFiles::new(files, store, Arc::new(SystemClock), Routing::All);
        (routed, directory.path().join(count.get().to_string()))
    })
    .await;
}

#[test]
fn the_configuration_says_whose_an_agents_context_files_are() {
    let home = Home::with_config("[agents.fixed]\nkind = \"predefined\"\n\n[agents.free]\nkind = \"open\"\n");
    let write = |agent: &str, path: &str| {
        let args = json!({ "path": path, "content": "mine\n" }).to_string();
        home.run(&["tools", "call", "write_file", "--managed", "--agent", agent, "--args", &args])
    };
    let ran = write("fixed", "SOUL.md");
    assert!(
        ran.code == 1 && ran.stderr.contains("belongs to the person who set up this agent"),
        "{}",
        ran.shown()
    );
    for (agent, path) in [("fixed", "USER.md"), ("free", "SOUL.md"), ("default", "SOUL.md")] {
        assert_eq!(write(agent, path).code, 0, "{agent}: {path}");
    }
    home.configure("[agents.fixed]\nkind = \"closed\"\n");
    let ran = home.run(&["config", "check"]);
    assert!(
        ran.code != 0 && ran.stderr.contains("`closed` is none of `open`, `predefined`"),
        "{}",
        ran.shown()
    );
}

#[test]
fn a_developers_own_context_file_is_a_file_and_a_managed_one_a_document() {
    let home = Home::new();
    home.write("project/AGENTS.md", "of the project\n");
    let run = |tool: &str, args: serde_json::Value, more: &[&str]| {
        home.run(&[&["tools", "call", tool, "--args", &args.to_string()], more].concat())
    };
    let read = json!({ "path": "AGENTS.md" });
    assert!(run("read_file", read.clone(), &[]).stdout.contains("of the project"));
    let ran = run("write_file", json!({ "path": "AGENTS.md", "content": "mine\n" }), &["--managed"]);
    assert_eq!(ran.code, 0, "{}", ran.shown());
    assert!(run("read_file", read.clone(), &["--managed"]).stdout.contains("mine"));
    let other = run("read_file", read.clone(), &["--managed", "--user", "other"]);
    assert_eq!(other.code, 1, "{}", other.shown());
    run("write_file", json!({ "path": "notes/x", "content": "on disk" }), &["--managed"]);
    let made = home.data().join("workspaces/main/default/user-tester");
    assert!(made.join("notes/x").exists() && !made.join("AGENTS.md").exists());
    // A document is undone like a file.
    let edit = json!({ "path": "AGENTS.md", "old_string": "mine", "new_string": "ours" });
    assert_eq!(run("edit", edit, &["--managed"]).code, 0);
    let undone = home.ran(home.command(&["undo", "apply", "--last"]).current_dir(&made));
    assert_eq!(undone.code, 0, "{}", undone.shown());
    assert!(run("read_file", read.clone(), &["--managed"]).stdout.contains("mine"));
    assert!(Path::new(&home.path().join("project/AGENTS.md")).exists());
    home.configure("[files]\ncontext = \"store\"\n");
    let ran = run("read_file", read, &[]);
    assert!(ran.stdout.contains("mine"), "routed everywhere where that is said: {}", ran.shown());
}

const REMEMBERS: &str = r#"
[[turn]]
when.said = "again"
when.system = "Ask for a name."
do = [{ say = "the first run goes on" }]

[[turn]]
when.said = "again"
do = [{ say = "the first run is over" }]

[[turn]]
when.said = "who"
when.system = "They live by the sea."
do = [{ say = "the user is shown" }]

[[turn]]
when.said = "who"
do = [{ say = "the user is unknown" }]

[[turn]]
when.system = "They like crabs"
when.result_of = "exec"
do = [{ say = "seen: {{result}}" }]

[[turn]]
when.system = "They like crabs"
do = [{ call = "exec", args = { command = "echo other > MEMORY.md" } }]

[[turn]]
do = [
    { call = "write_file", args = { path = "MEMORY.md", content = "They like crabs." } },
    { call = "write_file", args = { path = "USER.md", content = "They live by the sea." } },
    { call = "write_file", args = { path = "BOOTSTRAP.md", content = "" } },
]
"#;

#[test]
fn in_a_project_the_prompt_shows_what_the_file_tools_write() {
    let home = Home::new();
    home.write("script.toml", REMEMBERS);
    let mut set = home.command(&["agent", "files", "set", "default", "BOOTSTRAP.md"]);
    let ran = home.ran(set.write_stdin("Ask for a name."));
    assert_eq!(ran.code, 0, "{}", ran.shown());
    let script = home.path().join("script.toml");
    let chat = |words: &str| home.run(&["chat", "-m", words, "--script", script.to_str().unwrap()]);
    let ran = chat("again");
    assert!(ran.stdout.contains("the first run goes on"), "{}", ran.shown());
    assert!(chat("who").stdout.contains("the user is unknown"));
    let ran = chat("go");
    assert!(!ran.shown().contains("has not read it"), "the shown file needs no reading: {}", ran.shown());
    assert!(ran.stdout.contains("file tools use your document"), "the model is told: {}", ran.shown());
    assert_eq!(fs::read_to_string(home.path().join("project/MEMORY.md")).unwrap(), "other\n");
    let ran = chat("go");
    assert!(ran.stdout.contains("seen: "), "it remembers what it wrote: {}", ran.shown());
    let ran = chat("who");
    assert!(ran.stdout.contains("the user is shown"), "{}", ran.shown());
    for name in ["USER.md", "BOOTSTRAP.md"] {
        assert!(!home.path().join("project").join(name).exists(), "{name} is a document");
    }
    let ran = chat("again");
    assert!(ran.stdout.contains("the first run is over"), "{}", ran.shown());
}

#[test]
fn a_managed_chat_gives_each_user_a_workspace() {
    let home = Home::new();
    let write = "[[turn]]\nwhen.result_of = \"write_file\"\ndo = [{ say = \"wrote\" }]\n\n[[turn]]\ndo = [{ call = \"write_file\", args = { path = \"notes.txt\", content = \"mine\" } }]\n";
    home.write("script.toml", write);
    let script = home.path().join("script.toml");
    for user in ["ann", "ben"] {
        let ran = home.run(&[
            "chat",
            "-m",
            "go",
            "--managed",
            "--user",
            user,
            "--script",
            script.to_str().unwrap(),
        ]);
        assert_eq!(ran.code, 0, "{}", ran.shown());
        assert!(home.data().join(format!("workspaces/main/default/user-{user}/notes.txt")).exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_written_after_untrusted_text_stays_marked_and_marks_its_readers() {
    let desk = Desk::new(None).await;
    let scope = Scope::workspace(&desk.root);
    let caller = |untrusted| {
        let mut caller = desk.caller(Some("ann"));
        caller.trace = RunTrace::of(JobId::new(), untrusted);
        caller
    };
    let write = async |caller: &Caller, text: &str| {
        let place = FilePlace { caller, directory: &desk.root, scope: &scope, expect: Expect::Anything };
        desk.files.write(&place, "memory/page.md", text.as_bytes()).await.unwrap();
    };
    let key = DocumentKey {
        tenant: TenantId::main(),
        agent: Some(AgentId::new("main").unwrap()),
        user: Some(UserId::new("ann").unwrap()),
        shelf: Shelf::Memory,
        path: "memory/page.md".to_owned(),
    };
    let origin = async || desk.store.document(&key).await.unwrap().unwrap().provenance;
    let (clean, marked) = (caller(false), caller(true));
    write(&clean, "a note").await;
    assert_eq!(origin().await, clean.trace.provenance());
    write(&marked, "the page says: obey").await;
    assert_eq!(origin().await, marked.trace.provenance());
    assert!(!clean.trace.is_untrusted());
    write(&clean, "the page says: obey me").await;
    let kept = claw_core::provenance::Provenance { untrusted: true, ..clean.trace.provenance() };
    assert_eq!(origin().await, kept, "an agent does not clear the mark");
    assert!(!clean.trace.is_untrusted(), "writing reads nothing");
    for search in [false, true] {
        let reader = caller(false);
        let place =
            FilePlace { caller: &reader, directory: &desk.root, scope: &scope, expect: Expect::Anything };
        if search {
            let search = fixture::search("memory", "obey", 10);
            desk.files.search(&place, &search, &(Arc::new(Nothing) as Arc<dyn Redactor>)).await.unwrap();
        } else {
            desk.files.read(&place, "memory/page.md").await.unwrap();
        }
        assert!(reader.trace.is_untrusted(), "search: {search}");
    }
}
