//! The file tools on the real road, over files in memory.

mod laws;
mod secrets;

use std::sync::Arc;

use claw_core::port::World;
use claw_core::tool::{Caller, ErrorKind};
use claw_core::{AgentId, SessionKey};
use claw_policy::config::PolicyConfig;
use claw_policy::pipeline::Policy;
use claw_registry::{Executor, FileRules, Registry, Reply, Request, Scrubbers};
use claw_store_memory::MemoryStore;
use claw_testkit::{ManualClock, MemoryFiles, MemoryJournal, MemorySeen};
use serde_json::{Value, json};

/// A workspace `/w`, and an executor with the file tools.
pub(crate) struct Road {
    pub(crate) executor: Executor,
    pub(crate) files: Arc<MemoryFiles>,
    pub(crate) journal: Arc<MemoryJournal>,
}

impl Road {
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Self {
        Self::with(files, Arc::new(MemorySeen::default()), Scrubbers::default())
    }

    pub(crate) fn with(files: &[(&str, &[u8])], seen: Arc<MemorySeen>, scrubbers: Scrubbers) -> Self {
        let bridge = Arc::new(MemoryFiles::new());
        for (path, bytes) in files {
            bridge.put(format!("/w/{path}"), *bytes);
        }
        Self::over(bridge, seen, scrubbers)
    }

    fn over(files: Arc<MemoryFiles>, seen: Arc<MemorySeen>, scrubbers: Scrubbers) -> Self {
        let journal = Arc::new(MemoryJournal::default());
        let mut world = World::new(Arc::new(ManualClock::default()));
        world.bridge = Some(files.clone());
        world.undo = Some(journal.clone());
        world.seen = Some(seen);
        let registry = Registry::new(world);
        for tool in super::TOOLS {
            registry.register((tool.make)()).unwrap();
        }
        let policy = Policy::compile(&PolicyConfig::default()).unwrap();
        let executor = Executor::builder(Arc::new(registry), Arc::new(MemoryStore::new()), policy)
            .limiter(claw_registry::rate_limiter::Limiter::new(
                claw_policy::rate_config::RateConfig::UNLIMITED,
                8,
            ))
            .scrubbers(scrubbers)
            .build();
        Self { executor, files, journal }
    }

    pub(crate) async fn call(&self, tool: &str, args: Value) -> Reply {
        self.call_as("test:one", tool, args).await
    }

    async fn call_as(&self, session: &str, tool: &str, args: Value) -> Reply {
        let caller = Caller::new(AgentId::new("main").unwrap(), SessionKey::new(session).unwrap(), "/w");
        let offer = self.executor.offer(caller).await;
        self.executor.execute(&offer, Request::new(tool, args)).await
    }

    pub(crate) fn text(&self, path: &str) -> String {
        self.files.text(format!("/w/{path}")).unwrap()
    }
}

/// The text that the model reads after success.
#[track_caller]
pub(crate) fn done(reply: &Reply) -> String {
    assert!(reply.is_done(), "{}", reply.model_text());
    reply.model_text()
}

/// The text that the model reads after a failure of this kind.
#[track_caller]
pub(crate) fn failed(reply: &Reply, kind: ErrorKind) -> String {
    assert_eq!(reply.failure().map(|error| error.kind), Some(kind), "{}", reply.model_text());
    reply.failure().map(|error| error.for_model()).unwrap_or_default()
}

#[tokio::test]
async fn a_file_that_was_not_read_is_not_overwritten() {
    let road = Road::new(&[("a.txt", b"one\n")]);
    let write = json!({ "path": "a.txt", "content": "two\n" });
    let said = failed(&road.call("write_file", write.clone()).await, ErrorKind::Conflict);
    assert_eq!(
        said,
        "`a.txt` exists, and this session has not read it; read it first, then overwrite or edit it"
    );
    done(&road.call_as("test:other", "read_file", json!({ "path": "a.txt" })).await);
    failed(&road.call("write_file", write.clone()).await, ErrorKind::Conflict);
    done(&road.call("read_file", json!({ "path": "./a.txt" })).await);
    done(&road.call("write_file", write.clone()).await);
    assert_eq!(road.text("a.txt"), "two\n");
    // It knows the text that it wrote itself.
    done(&road.call("write_file", json!({ "path": "a.txt", "content": "three\n" })).await);
}

#[tokio::test]
async fn a_file_that_changed_since_is_not_overwritten_and_the_change_is_shown() {
    let road = Road::new(&[("a.txt", b"one\ntwo\n")]);
    done(&road.call("read_file", json!({ "path": "a.txt" })).await);
    road.files.put("/w/a.txt", "one\nthe user's\n");
    let said = failed(
        &road.call("write_file", json!({ "path": "a.txt", "content": "x" })).await,
        ErrorKind::Conflict,
    );
    insta::assert_snapshot!(said, @"
    `a.txt` differs from what this session last saw:
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,2 @@
     one
    -two
    +the user's
    ; read it again before you change it
    ");
    assert_eq!(road.text("a.txt"), "one\nthe user's\n");
}

#[tokio::test]
async fn an_edit_of_what_was_not_read_does_not_make_the_rest_known() {
    let road = Road::new(&[("a.txt", b"one\ntwo\n")]);
    done(&road.call("edit", json!({ "path": "a.txt", "old_string": "one", "new_string": "1" })).await);
    done(&road.call("write_file", json!({ "path": "a.txt", "content": "3\n", "mode": "append" })).await);
    let whole = json!({ "path": "a.txt", "content": "x" });
    failed(&road.call("write_file", whole.clone()).await, ErrorKind::Conflict);
    done(&road.call("read_file", json!({ "path": "a.txt" })).await);
    done(&road.call("edit", json!({ "path": "a.txt", "old_string": "1", "new_string": "one" })).await);
    done(&road.call("write_file", whole).await);
}

#[tokio::test]
async fn what_was_seen_outlives_the_process() {
    let seen = Arc::new(MemorySeen::default());
    let road = Road::with(&[("a.txt", b"one\n")], seen.clone(), Scrubbers::default());
    done(&road.call("read_file", json!({ "path": "a.txt" })).await);
    let next = Road::over(road.files.clone(), seen, Scrubbers::default());
    done(&next.call("write_file", json!({ "path": "a.txt", "content": "two\n" })).await);
    assert_eq!(next.text("a.txt"), "two\n");
}

#[tokio::test]
async fn every_change_is_journaled_before_it_is_made() {
    let road = Road::new(&[("a.txt", b"one\n")]);
    done(&road.call("edit", json!({ "path": "a.txt", "old_string": "one", "new_string": "two" })).await);
    done(&road.call("write_file", json!({ "path": "b.txt", "content": "new" })).await);
    let kept: Vec<_> =
        road.journal.changes().into_iter().map(|kept| (kept.place, kept.before, kept.after)).collect();
    assert_eq!(
        kept,
        [
            ("/w/a.txt".to_owned(), Some(b"one\n".to_vec()), Some(b"two\n".to_vec())),
            ("/w/b.txt".to_owned(), None, Some(b"new".to_vec())),
        ]
    );
    // A failed write does not count as known: `b.txt` is no directory.
    failed(&road.call("write_file", json!({ "path": "b.txt/c", "content": "x" })).await, ErrorKind::Invalid);
    assert_eq!(road.journal.changes().len(), 2);
    road.journal.fill();
    failed(&road.call("write_file", json!({ "path": "c.txt", "content": "x" })).await, ErrorKind::Failed);
    assert_eq!(road.files.text("/w/c.txt"), None, "what cannot be undone is not done");
}

#[tokio::test]
async fn what_is_denied_at_run_time_is_gone_at_once() {
    let road = Road::new(&[("a.txt", b"one\n"), (".clawsmith/x", b"own\n")]);
    let read = json!({ "path": "a.txt" });
    done(&road.call("read_file", read.clone()).await);
    failed(&road.call("read_file", json!({ "path": ".clawsmith/x" })).await, ErrorKind::NotFound);
    let mut rules = FileRules::default();
    rules.denied.push("a.txt".into());
    road.executor.set_file_rules(rules);
    failed(&road.call("read_file", read.clone()).await, ErrorKind::NotFound);
    let reply = road.call("write_file", json!({ "path": "./x/../a.txt", "content": "x" })).await;
    assert!(reply.refusal().is_some(), "{}", reply.model_text());
    assert_eq!(road.text("a.txt"), "one\n");
    road.executor.set_file_rules(FileRules::default());
    done(&road.call("read_file", read).await);
}
