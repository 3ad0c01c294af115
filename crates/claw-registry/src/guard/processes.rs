//! Guard of processes: background commands of the caller's own session, started and fed exactly as the plan
//! says.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use claw_core::port::{
    ApplyMode, Awaited, BackgroundStart, Expected, Owner, Printed, ProcessCard, Processes, RunContext,
    ShellHost, Size, WorkspaceAccess,
};
use claw_core::tool::{Ask, Effect, ErrorKind, Input, Script, Target, ToolError};
use claw_policy::approval::EffectRule;

use super::{Grant, Site};
use crate::{Executor, Offer};

pub(super) fn guard(site: &Site<'_>) -> Option<Arc<dyn Processes>> {
    Some(Arc::new(OwnProcesses {
        host: site.world().shell.clone()?,
        context: super::shell::context(site.caller(), site.grant),
        owner: super::owner(site.caller()),
        executor: site.executor.clone(),
        offer: site.offer.clone(),
        grant: site.grant(),
    }))
}

struct OwnProcesses {
    host: Arc<dyn ShellHost>,
    context: RunContext,
    owner: Owner,
    executor: Executor,
    offer: Offer,
    grant: Arc<Grant>,
}

impl OwnProcesses {
    /// Refuses a command whose changes must be held back until somebody has seen them: in the background it changes files
    /// at once.
    fn check_changes(&self) -> Result<(), ToolError> {
        let refused = |message: String| {
            ToolError::new(ErrorKind::Forbidden, message).try_instead("run it without `background`")
        };
        let approvals = self.grant.approvals(&self.executor);
        let of_writing = approvals.of_effect(Effect::Write);
        if let Some((EffectRule::Deny, by)) = &of_writing {
            let message = format!("a command in the background could change files, and {by} denies that");
            return Err(refused(message)
                .allowed_by("`/mode configured`, or `approvals.effects.write`, lets it write"));
        }
        if !self.context.sandboxed || self.context.access != WorkspaceAccess::OnlyLayer {
            return Ok(());
        }
        const DIRECT: &str =
            "a command in the background changes files at once, so its changes cannot be held back";
        let message = match (self.executor.0.commands.of(self.offer.caller()).apply, of_writing) {
            (ApplyMode::Review, _) => {
                format!("{DIRECT} until a person has seen them (`shell.apply` is `review`)")
            }
            (ApplyMode::OnSuccess, _) => {
                format!("{DIRECT} until its exit code is known (`shell.apply` is `on_success`)")
            }
            (ApplyMode::Auto, Some((_, by))) => {
                format!("{DIRECT} until a person has approved them, which {by} requires")
            }
            (ApplyMode::Auto, None) => DIRECT.to_owned(),
        };
        Err(refused(message)
            .allowed_by("`/mode configured`, `shell.apply = \"auto\"` or `approvals.effects.write`"))
    }
}

#[async_trait]
impl Processes for OwnProcesses {
    async fn start(&self, script: &Script) -> Result<ProcessCard, ToolError> {
        self.grant.live()?;
        let named = |ask: &Ask| matches!(ask, Ask::Script(named) if named == script);
        if !self.grant.plan.asks.iter().any(named) {
            return Err(super::unplanned(format!("running `{}`", script.text)));
        }
        if self.grant.logins.iter().any(|(ask, _)| named(ask)) {
            let message = "a program with credentials does not run in the background";
            return Err(ToolError::invalid(message).try_instead("call it without `background`"));
        }
        self.check_changes()?;
        let caller = self.offer.caller();
        let scrubber = self.executor.0.scrubbers.for_call(&caller.tenant, &self.grant.secrets);
        let scrubber = scrubber.for_settings(self.grant.settings);
        let clock = &self.offer.0.registry.world().clock;
        let (shell, context) = (self.host.as_ref(), &self.context);
        let (command, scrub) = (scrubber.text(&script.text), Box::new(scrubber.saying()));
        let start = BackgroundStart { shell, context, caller, script, command, scrub, clock };
        Ok(self.executor.0.processes.start(start).await?.card())
    }

    async fn list(&self) -> Result<Vec<ProcessCard>, ToolError> {
        self.grant.live()?;
        Ok(self.executor.0.processes.of(&self.owner).iter().map(|kept| kept.card()).collect())
    }

    async fn read(&self, process: &str, from: Option<u64>, most: usize) -> Result<Printed, ToolError> {
        self.grant.live()?;
        Ok(self.executor.0.processes.find(&self.owner, process)?.read(from, most))
    }

    async fn send(&self, input: &Input) -> Result<ProcessCard, ToolError> {
        self.grant.live()?;
        let named = |ask: &Ask| matches!(ask, Ask::Input(named) if named == input);
        if !self.grant.plan.asks.iter().any(named) {
            return Err(super::unplanned(format!("typing into `{}`", input.process)));
        }
        let kept = self.executor.0.processes.find(&self.owner, &input.process)?;
        let more = kept.started().effects.without(self.grant.effects);
        if !more.is_empty() {
            let message = format!(
                "`{}` was started with effects that the policy has removed since: {more}",
                input.process
            );
            return Err(
                ToolError::new(ErrorKind::Forbidden, message).try_instead("end it and start it again")
            );
        }
        let target = Target::Process { process: input.process.clone() };
        let seen = self.grant.sights.iter().find(|sight| sight.target == target);
        tokio::select! {
            sent = kept.send(input, seen) => sent?,
            () = self.grant.cancel.cancelled() => {
                return Err(ToolError::new(ErrorKind::Cancelled, "the typing was cancelled"));
            }
        }
        Ok(kept.card())
    }

    async fn resize(&self, process: &str, size: Size) -> Result<ProcessCard, ToolError> {
        self.grant.live()?;
        let kept = self.executor.0.processes.find(&self.owner, process)?;
        kept.resize(size).await?;
        Ok(kept.card())
    }

    async fn wait(&self, process: &str, expected: &Expected, limit: Duration) -> Result<Awaited, ToolError> {
        self.grant.live()?;
        let kept = self.executor.0.processes.find(&self.owner, process)?;
        kept.wait(expected, limit, &self.grant.cancel).await
    }

    async fn kill(&self, process: &str) -> Result<ProcessCard, ToolError> {
        self.grant.live()?;
        let kept = self.executor.0.processes.find(&self.owner, process)?;
        kept.kill();
        tokio::select! {
            () = kept.ended() => Ok(kept.card()),
            () = self.grant.cancel.cancelled() => {
                Err(ToolError::new(ErrorKind::Cancelled, "the command was told to end; the wait for it was cancelled"))
            }
        }
    }
}
