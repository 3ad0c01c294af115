//! Shell commands: judged before they run, run where the world's shell leads, told while they print.
//!
//! On this machine without a sandbox, so that the example runs anywhere; leave `without_sandbox` out to have one.

use std::sync::Arc;

use clawsmith::sandbox::Launcher;
use clawsmith::shell::{LocalShell, ShellOptions};
use clawsmith::{AgentId, Caller, LocalFiles, Request, SessionKey, SystemClock, Toolbox, World};
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
    let toolbox = Toolbox::builder().world(world).build()?;
    let caller =
        Caller::new(AgentId::new("demo")?, SessionKey::new("example:9")?, workspace.path().canonicalize()?)
            .without_sandbox();
    let offer = toolbox.offer(caller).await;

    let exec = |command: &str| Request::new("exec", json!({ "command": command }));
    let reply = toolbox.execute(&offer, exec("echo hello && exit 3")).await;
    println!("{}", reply.model_text());
    let output = reply.outcome.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
    assert_eq!(output.details.as_ref().map(|details| details["exit"].clone()), Some(json!(3)));

    // What a rule denies does not run; a person is told which setting would allow it.
    let reply = toolbox.execute(&offer, exec("rm -rf build")).await;
    println!("{}\n  to allow it: {}", reply.model_text(), reply.setting().unwrap_or("no setting does"));
    assert!(reply.refusal().is_some() && reply.setting().is_some());
    Ok(())
}
