//! A command that runs on in the background, and the tool `process` that reads it.
//!
//! On this machine without a sandbox, so that the example runs anywhere; leave `without_sandbox` out to have one.

use std::sync::Arc;

use clawsmith::claw_store::SqliteStore;
use clawsmith::sandbox::Launcher;
use clawsmith::shell::{LocalShell, ShellOptions};
use clawsmith::store::Worker;
use clawsmith::{
    AgentId, BootId, Caller, LocalFiles, ProcessKeeping, ProcessLimits, Request, SessionKey, SystemClock,
    Toolbox, World,
};
use serde_json::json;

pub(crate) fn main() -> anyhow::Result<()> {
    // The program is started again as the helper that runs commands, and must be that before it has a second thread.
    clawsmith::sandbox::enter_if_asked();
    tokio::runtime::Runtime::new()?.block_on(run())
}

async fn run() -> anyhow::Result<()> {
    let workspace = tempfile::tempdir()?;
    let mut world = World::new(Arc::new(SystemClock));
    world.bridge = Some(Arc::new(LocalFiles::new()));
    world.shell = Some(Arc::new(LocalShell::new(Arc::new(Launcher::new()), ShellOptions::default())));
    // The store knows which commands run, so that those of a program that died are reported as lost.
    let keeping = ProcessKeeping {
        store: Arc::new(SqliteStore::memory("demo".parse()?).await?),
        worker: Worker { node: "demo".parse()?, boot: BootId::new() },
        limits: ProcessLimits::default(),
    };
    let toolbox = Toolbox::builder().world(world).keeping(keeping).build()?;
    let caller =
        Caller::new(AgentId::new("demo")?, SessionKey::new("example:11")?, workspace.path().canonicalize()?)
            .without_sandbox();
    let offer = toolbox.offer(caller).await;

    let args = json!({ "command": "read line; echo got $line", "background": true });
    let started = toolbox.execute(&offer, Request::new("exec", args)).await;
    println!("{}\n", started.model_text());
    let output = started.outcome.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
    let id = output.details.as_ref().map(|details| details["id"].clone()).unwrap_or_default();

    let process = |args| toolbox.execute(&offer, Request::new("process", args));
    process(json!({ "action": "write", "id": id, "text": "tea\n", "end": true })).await;
    println!("{}", process(json!({ "action": "wait", "id": id })).await.model_text());
    let printed = process(json!({ "action": "poll", "id": id })).await.model_text();
    println!("{printed}");
    assert!(printed.contains("got tea"), "{printed}");
    Ok(())
}
