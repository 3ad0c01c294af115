//! Commands, exactly as the plan names them.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::{Ran, RunContext, Shell, ShellHost};
use claw_core::tool::{Argv, Ask, Caller, Effect, Script, ToolError};

use super::Grant;

pub(super) fn guard(host: Arc<dyn ShellHost>, caller: &Caller, grant: &Arc<Grant>) -> Arc<dyn Shell> {
    Arc::new(GuardedShell { host, context: context(caller, grant), grant: Arc::clone(grant) })
}

/// For whom and within what the caller's commands run.
pub(super) fn context(caller: &Caller, grant: &Grant) -> RunContext {
    let wished = |ask: &Ask| matches!(ask, Ask::Script(script) if script.network);
    RunContext {
        workspace: caller.workspace.clone(),
        sandbox_key: caller.sandbox_key.clone(),
        sandboxed: caller.sandboxed,
        effects: grant.effects,
        network: grant.effects.has(Effect::Network) && (grant.network || grant.plan.asks.iter().any(wished)),
        hidden: grant.scope.denied.clone(),
        sights: grant.sights.clone(),
        cancel: grant.cancel.clone(),
        progress: grant.progress.clone(),
        secrets: grant.secrets.clone(),
    }
}

struct GuardedShell {
    host: Arc<dyn ShellHost>,
    context: RunContext,
    grant: Arc<Grant>,
}

#[async_trait]
impl Shell for GuardedShell {
    async fn run(&self, script: &Script) -> Result<Ran, ToolError> {
        self.grant.live()?;
        let named = |ask: &Ask| matches!(ask, Ask::Script(named) if named == script);
        if !self.grant.plan.asks.iter().any(named) {
            return Err(super::unplanned(format!("running `{}`", script.text)));
        }
        self.host.run(&self.context, script).await
    }

    async fn spawn(&self, argv: &Argv) -> Result<Ran, ToolError> {
        self.grant.live()?;
        let named = |ask: &Ask| matches!(ask, Ask::Argv(named) if named == argv);
        if !self.grant.plan.asks.iter().any(named) {
            return Err(super::unplanned(format!("running `{}`", argv.argv.join(" "))));
        }
        self.host.spawn(&self.context, argv).await
    }
}
