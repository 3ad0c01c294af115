//! The file tools by the one road, over files that are in a store and on no disk.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails loudly")]

use std::path::Path;
use std::sync::Arc;

use claw_core::store::{UndoFilter, UndoIndex as _};
use claw_host::files::{Restoring, StoredUndo, UndoLimits, Verdict};
use claw_store::SqliteStore;
use clawsmith::store::WorkspaceFiles as _;
use clawsmith::{
    AgentId, CallId, Caller, FileRules, Request, SessionKey, StoreFiles, SystemClock, TenantId, ToolName,
    Toolbox, World,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The workspace's path, in the store alone.
const WORKSPACE: &str = "/clawsmith-test/team/notes";
/// A secret that no tool may show.
const SECRET: &str = "ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2";

struct Shared {
    store: Arc<SqliteStore>,
    data: TempDir,
}

impl Shared {
    fn bridge(&self) -> StoreFiles {
        StoreFiles::new(Arc::clone(&self.store) as _, Arc::new(SystemClock))
    }

    /// Another program over the same store.
    fn toolbox(&self) -> Toolbox {
        let mut world = World::new(Arc::new(SystemClock));
        world.bridge = Some(Arc::new(self.bridge()));
        let builder = Toolbox::builder().world(world).everything_in(Arc::clone(&self.store) as _);
        builder.data_dir(self.data.path()).build().unwrap()
    }
}

fn caller() -> Caller {
    Caller::new(AgentId::new("helper").unwrap(), SessionKey::new("demo:1").unwrap(), WORKSPACE)
}

async fn call(toolbox: &Toolbox, caller: &Caller, tool: &'static str, args: Value) -> Result<String, String> {
    let offer = toolbox.offer(caller.clone()).await;
    let reply = toolbox.execute(&offer, Request::new(tool, args)).await;
    let text = reply.model_text();
    assert!(!text.contains(SECRET), "{tool} shows the secret: {text}");
    if reply.outcome.is_ok() { Ok(text) } else { Err(text) }
}

#[tokio::test]
async fn the_file_tools_work_on_files_that_are_on_no_disk() {
    let store = Arc::new(SqliteStore::memory("local".parse().unwrap()).await.unwrap());
    let world = Shared { store, data: TempDir::new().unwrap() };
    let (toolbox, me, main) = (world.toolbox(), caller(), TenantId::main());
    let bytes = async |path: &str| -> String {
        let found = world.store.file(&main, &format!("{WORKSPACE}/{path}")).await.unwrap();
        String::from_utf8(found.unwrap().1).unwrap()
    };
    let yes = async |tool, args| call(&toolbox, &me, tool, args).await.unwrap();

    let config = format!("user = ann\ntoken = {SECRET}\ncolour = red\n");
    yes("write_file", json!({ "path": "conf/app.ini", "content": config })).await;
    yes("write_file", json!({ "path": "conf/notes.md", "content": "the fern needs water\n" })).await;
    assert_eq!(bytes("conf/app.ini").await, config, "the secret is kept as it was given");
    let read = yes("read_file", json!({ "path": "conf/app.ini" })).await;
    assert!(read.contains("[REDACTED]") && read.contains("colour = red"), "{read}");

    // Another program of the conversation changes what is beside the secret.
    let other = world.toolbox();
    let edit = json!({ "path": "conf/app.ini", "old_string": "red", "new_string": "green" });
    call(&other, &me, "edit", edit).await.unwrap();
    let changed = config.replace("red", "green");
    assert_eq!(bytes("conf/app.ini").await, changed);

    let listed = yes("list_files", json!({ "depth": 3 })).await;
    assert!(listed.contains("app.ini") && listed.contains("notes.md"), "{listed}");
    assert!(yes("glob", json!({ "pattern": "*.md" })).await.contains("conf/notes.md"));
    assert!(yes("search", json!({ "pattern": "fern|green" })).await.contains("the fern needs water"));
    let guessed = yes("search", json!({ "pattern": "a1B2" })).await;
    assert!(!guessed.contains("app.ini"), "no oracle: {guessed}");

    // A version that this session did not see last is not overwritten, and files out of reach stay so.
    let mut foreign = caller();
    foreign.session = SessionKey::new("demo:2").unwrap();
    let over = json!({ "path": "conf/notes.md", "content": "x", "mode": "overwrite" });
    assert!(call(&toolbox, &foreign, "write_file", over).await.is_err());
    for path in ["../../etc/passwd", "/etc/passwd", "../notes-evil/x", ".clawsmith/x"] {
        let told = call(&toolbox, &me, "read_file", json!({ "path": path })).await.unwrap_err();
        assert!(told.contains("outside the workspace") || told.contains("does not exist"), "{told}");
    }
    let mut stranger = caller();
    stranger.tenant = TenantId::new("other").unwrap();
    let told = call(&toolbox, &stranger, "read_file", json!({ "path": "conf/app.ini" })).await.unwrap_err();
    assert!(told.contains("does not exist"), "{told}");

    undo_everything(&world).await;
    assert_eq!(world.store.files_below(&main, "/", 10).await.unwrap().len(), 4, "the directories are left");
    assert!(!Path::new("/clawsmith-test").exists(), "nothing is on the disk");
}

/// Undoes all changes; each file was created, so that none is left.
async fn undo_everything(world: &Shared) {
    let clock = Arc::new(SystemClock);
    let index = Arc::clone(&world.store) as _;
    let data = world.data.path().canonicalize().unwrap();
    let journal = StoredUndo::new(index, &data, clock, UndoLimits::default());
    let (bridge, rules) = (world.bridge(), FileRules::default());
    let scope = |caller: &Caller| rules.scope(caller, &ToolName::literal("undo"));
    let restoring = Restoring { journal: &journal, bridge: &bridge, scope: &scope };
    let main = TenantId::main();
    let changes = world.store.undos(&main, &UndoFilter::default(), 100).await.unwrap();
    assert_eq!(changes.len(), 3, "two files were written and one of them edited");
    // The edit first: the file is as it was.
    let steps = restoring.look(vec![changes[0].clone()]).await.unwrap();
    assert_eq!(steps[0].verdict, Verdict::Ready);
    restoring.restore(CallId::new(), steps, false).await.unwrap();
    let path = format!("{WORKSPACE}/conf/app.ini");
    let back = world.store.file(&main, &path).await.unwrap().unwrap().1;
    assert!(back.ends_with(b"colour = red\n"), "{:?}", String::from_utf8_lossy(&back));
    let steps = restoring.look(changes[1..].to_vec()).await.unwrap();
    let restored = restoring.restore(CallId::new(), steps, false).await.unwrap();
    assert!(restored.len() == 2 && restored.iter().all(|restored| restored.removed), "{restored:?}");
}
