//! A rate limit for each session, over files and records in memory.

use std::sync::Arc;

use clawsmith::store::CallStore;
use clawsmith::{
    AgentId, Caller, Limiter, MemoryFiles, MemoryStore, RateConfig, Reply, Request, SessionKey, SystemClock,
    Toolbox, World,
};
use serde_json::json;

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let files = Arc::new(MemoryFiles::new().with("/srv/demo/notes.txt", "water the ferns\n"));
    let mut world = World::new(Arc::new(SystemClock));
    world.bridge = Some(Arc::clone(&files) as _);
    let records: Arc<dyn CallStore> = Arc::new(MemoryStore::new());
    let rate = RateConfig { total: 2, ..RateConfig::default() };
    let toolbox = Toolbox::builder().world(world).store(records).limiter(Limiter::new(rate, 1000)).build()?;

    let caller = |session: &str| -> anyhow::Result<Caller> {
        Ok(Caller::new(AgentId::new("demo")?, SessionKey::new(session)?, "/srv/demo"))
    };
    let read = || Request::new("read_file", json!({ "path": "notes.txt" }));
    let (first, second) = (toolbox.offer(caller("demo:1")?).await, toolbox.offer(caller("demo:2")?).await);
    for _ in 0..2 {
        println!("{}", toolbox.execute(&first, read()).await.model_text());
    }
    let limited: Reply = toolbox.execute(&first, read()).await;
    println!("{}", limited.model_text());
    assert!(limited.refusal().is_some(), "two calls in any 60 seconds");
    assert!(toolbox.execute(&second, read()).await.refusal().is_none(), "another session has its own limit");
    Ok(())
}
