//! Keep a workspace's files in a store: one program writes, another reads, without a shared disk.
//!
//! With the feature `store`. Instead of memory it can be a file, or a PostgreSQL database that many nodes share.

use std::sync::Arc;

use clawsmith::claw_store::SqliteStore;
use clawsmith::{
    AgentId, Caller, MemoryFiles, Request, RoutedFiles, Routing, SessionKey, StoreFiles, SystemClock,
    Toolbox, World,
};
use serde_json::json;

/// A node: its own toolbox over the common store.
fn node(store: &Arc<SqliteStore>) -> anyhow::Result<Toolbox> {
    let clock = Arc::new(SystemClock);
    let mut world = World::new(Arc::clone(&clock) as _);
    world.bridge = Some(Arc::new(StoreFiles::new(Arc::clone(store) as _, clock)));
    Ok(Toolbox::builder().world(world).everything_in(Arc::clone(store) as _).build()?)
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let store = Arc::new(SqliteStore::memory("demo".parse()?).await?);
    // The workspace is a path in the store; nothing is there on this machine.
    let caller = Caller::new(AgentId::new("writer")?, SessionKey::new("demo:1")?, "/team/notes");

    let (one, other) = (node(&store)?, node(&store)?);
    let offer = one.offer(caller.clone()).await;
    let args = json!({ "path": "plans/monday.md", "content": "- water the ferns\n" });
    println!("{}\n", one.execute(&offer, Request::new("write_file", args)).await.model_text());

    let offer = other.offer(caller.clone()).await;
    for (tool, args) in [
        ("read_file", json!({ "path": "plans/monday.md" })),
        ("edit", json!({ "path": "plans/monday.md", "old_string": "ferns", "new_string": "orchids" })),
        ("search", json!({ "pattern": "orchids" })),
        ("glob", json!({ "pattern": "*.md" })),
    ] {
        println!("{tool} {args}");
        println!("{}\n", other.execute(&offer, Request::new(tool, args)).await.model_text());
    }

    // Files may lie anywhere else, and memory in the store all the same.
    let (files, clock) = (Arc::new(MemoryFiles::new()), Arc::new(SystemClock));
    let mut world = World::new(Arc::clone(&clock) as _);
    let routed = RoutedFiles::new(Arc::clone(&files) as _, Arc::clone(&store), clock, Routing::All);
    world.bridge = Some(Arc::new(routed));
    let third = Toolbox::builder().world(world).store(Arc::clone(&store) as _).build()?;
    let offer = third.offer(caller).await;
    for path in ["todo.md", "MEMORY.md"] {
        let args = json!({ "path": path, "content": "- orchids\n" });
        println!("{}", third.execute(&offer, Request::new("write_file", args)).await.model_text());
    }
    assert!(files.text("/team/notes/todo.md").is_some() && files.text("/team/notes/MEMORY.md").is_none());
    Ok(())
}
