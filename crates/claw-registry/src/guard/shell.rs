//! Guard of the shell: runs commands exactly as the plan names them.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::{
    Access, Allowed, CommandHome, HostRan, ProgramHost, ProgramRun, Ran, Root, RunContext, Scope, Shell,
    ShellHost,
};
use claw_core::tool::{Argv, Ask, Caller, Effect, Plan, Script, Sight, ToolError};
use smol_str::{SmolStr, format_smolstr};

use super::command_changes::{ChangeSite, RanCommand};
use super::command_output::{without_edges, without_escapes};
use super::{Grant, Site};
use crate::Executor;

pub(super) fn guard(site: &Site<'_>) -> Option<Arc<dyn Shell>> {
    let (host, programs) = (site.world().shell.clone()?, site.world().programs.clone());
    let grant = site.grant();
    let context = context(site.caller(), &grant);
    // Each host compares what it saw itself.
    let is_login = |sight: &&Sight| sight.credential.is_some();
    let of_logins = grant.sights.iter().filter(is_login).cloned().collect();
    let others = grant.sights.iter().filter(|sight| !is_login(sight)).cloned().collect();
    // A program with credentials reads no files that others wrote for agents.
    let login = for_login(RunContext { sights: of_logins, ..context.clone() });
    let context = RunContext { sights: others, ..context };
    let (executor, tenant) = (site.executor.clone(), site.caller().tenant.clone());
    let site = ChangeSite::of(site);
    Some(Arc::new(GuardedShell { host, programs, context, login, grant, executor, tenant, site }))
}

/// For whom and within what the caller's commands run. Where a rule or a mode denies writing, nothing beside the workspace
/// can be changed: the changes of the workspace are looked at when a command has ended, and those could not be.
pub(super) fn context(caller: &Caller, grant: &Grant) -> RunContext {
    let wished = |ask: &Ask| matches!(ask, Ask::Script(script) if script.network);
    let context = RunContext {
        workspace: caller.workspace.clone(),
        sandbox_key: caller.sandbox_key.clone(),
        sandboxed: caller.sandboxed,
        effects: grant.effects,
        access: grant.access,
        network: grant.effects.has(Effect::Network) && (grant.network || grant.plan.asks.iter().any(wished)),
        readable: readable(&grant.scope),
        granted: granted(&grant.scope),
        home: Some(CommandHome { key: home(caller), write: true }),
        hidden: grant.scope.denied.clone(),
        paths: given_paths(&grant.plan),
        changeable: changeable(&grant.scope, &grant.plan),
        sights: grant.sights.clone(),
        cancel: grant.cancel.clone(),
        progress: grant.progress.clone(),
        secrets: grant.secrets.clone(),
    };
    if grant.reads_only { reading(context) } else { context }
}

/// Paths outside the workspace that the tool's owner granted its commands.
fn given_paths(plan: &Plan) -> Vec<Allowed> {
    let paths = plan.given.iter().flat_map(|given| &given.paths);
    paths.map(|given| Allowed { path: given.path.clone(), write: given.write }).collect()
}

/// Directories outside the workspace that the caller can change with any tool, also where this call only reads.
fn changeable(scope: &Scope, plan: &Plan) -> Vec<PathBuf> {
    let roots = scope.roots.iter().filter(|root| root.access == Access::Write).map(|root| root.path.clone());
    let given = given_paths(plan).into_iter().filter(|given| given.write).map(|given| given.path);
    roots.chain(given).collect()
}

/// The same for a program with credentials: it sees no files that others wrote for agents, and no home
/// directory of theirs. `changeable` stays, so that nothing that an agent could have written is executed.
pub(super) fn for_login(context: RunContext) -> RunContext {
    RunContext { readable: Vec::new(), granted: Vec::new(), home: None, ..context }
}

/// The same for a call that may only read: nothing outside the workspace can be changed, the home included.
fn reading(context: RunContext) -> RunContext {
    let mut context = rehearsing(context);
    context.home.iter_mut().for_each(|home| home.write = false);
    context
}

/// The same for a dry run: nothing granted outside the workspace can be changed, since it could not be undone. The
/// home is on a layer that is discarded, like the workspace.
fn rehearsing(mut context: RunContext) -> RunContext {
    for allowed in context.granted.iter_mut().chain(&mut context.paths) {
        allowed.write = false;
    }
    context
}

/// Directories outside the workspace that commands can read but not change.
fn readable(scope: &Scope) -> Vec<PathBuf> {
    let is_readable = |root: &&Root| root.access == Access::Read && !scope.covered.contains(&root.path);
    scope.roots.iter().filter(is_readable).map(|root| root.path.clone()).collect()
}

/// Directories that the deployment grants.
fn granted(scope: &Scope) -> Vec<Allowed> {
    let granted = scope.roots.iter().filter(|root| scope.covered.contains(&root.path));
    granted.map(|root| Allowed { path: root.path.clone(), write: root.access == Access::Write }).collect()
}

/// Key of the home directory of a caller's commands: one for each agent, user and workspace, so that a project's commands
/// cannot leave settings behind for those of another project.
fn home(caller: &Caller) -> SmolStr {
    let user = caller.user.as_ref().map_or("", |user| user.as_str());
    let workspace = caller.workspace.display();
    format_smolstr!("{}\n{}\n{user}\n{workspace}", caller.tenant, caller.agent)
}

struct GuardedShell {
    host: Arc<dyn ShellHost>,
    programs: Option<Arc<dyn ProgramHost>>,
    context: RunContext,
    /// The same for programs with credentials.
    login: RunContext,
    grant: Arc<Grant>,
    executor: Executor,
    tenant: TenantId,
    site: ChangeSite,
}

impl GuardedShell {
    /// The program with credentials that an ask was judged to lead to.
    fn login(&self, is_it: impl Fn(&Ask) -> bool) -> Option<(&dyn ProgramHost, &ProgramRun)> {
        let run = self.grant.logins.iter().find_map(|(ask, run)| is_it(ask).then_some(run))?;
        Some((self.programs.as_deref()?, run))
    }

    /// The result of a command after its changes are applied, held back or discarded.
    async fn settled(
        &self,
        done: Result<HostRan, ToolError>,
        shown: &str,
        dry_run: bool,
    ) -> Result<Ran, ToolError> {
        let HostRan { mut ran, pending } = done?;
        if let Some(pending) = pending {
            let command = RanCommand { exit: ran.exit, command: shown, dry_run };
            ran.changes = Some(self.site.settle(&self.grant, pending, command).await?);
        }
        Ok(ran)
    }

    /// The environment of a command with the secret variables of its tool. These values are scrubbed from
    /// here on.
    fn with_secrets(&self, env: &[(String, String)]) -> Vec<(String, String)> {
        let mut env = env.to_vec();
        for (name, value) in self.grant.plan.given.iter().flat_map(|given| given.variables.reveal()) {
            self.grant.secrets.add(value.clone());
            env.retain(|(other, _)| other != name);
            env.push((name.clone(), value.clone()));
        }
        env.sort();
        env
    }

    /// Prepares a command's output for scrubbing.
    fn cleaned(&self, mut ran: Ran) -> Ran {
        for printed in [&mut ran.output, &mut ran.errors] {
            if let Cow::Owned(plain) = without_escapes(printed) {
                *printed = plain;
            }
        }
        if ran.dropped > 0 {
            let scrubber = self.executor.scrubbers().for_call(&self.tenant, &self.grant.secrets);
            let scrubber = scrubber.for_settings(self.grant.settings);
            for printed in [&mut ran.output, &mut ran.errors] {
                *printed = without_edges(printed, |text| scrubber.text(text));
            }
        }
        ran
    }
}

#[async_trait]
impl Shell for GuardedShell {
    async fn run(&self, script: &Script) -> Result<Ran, ToolError> {
        self.grant.live()?;
        let named = |ask: &Ask| matches!(ask, Ask::Script(named) if named == script);
        if !self.grant.plan.asks.iter().any(named) {
            return Err(super::unplanned(format!("running `{}`", script.text)));
        }
        let ran = match self.login(named) {
            Some((programs, run)) => {
                self.settled(programs.run(&self.login, run).await, &script.text, script.dry_run).await
            }
            None => {
                let secret = Script { env: self.with_secrets(&script.env), ..script.clone() };
                let ran = match script.dry_run {
                    true => self.host.run(&rehearsing(self.context.clone()), &secret).await,
                    false => self.host.run(&self.context, &secret).await,
                };
                self.settled(ran, &script.text, script.dry_run).await
            }
        };
        ran.map(|ran| self.cleaned(ran))
    }

    async fn spawn(&self, argv: &Argv) -> Result<Ran, ToolError> {
        self.grant.live()?;
        let named = |ask: &Ask| matches!(ask, Ask::Argv(named) if named == argv);
        if !self.grant.plan.asks.iter().any(named) {
            return Err(super::unplanned(format!("running `{}`", argv.argv.join(" "))));
        }
        let ran = match self.login(named) {
            Some((programs, run)) => {
                self.settled(programs.run(&self.login, run).await, &argv.argv.join(" "), false).await
            }
            None if argv.credentials => Err(super::unplanned("a program with credentials".to_owned())),
            None => {
                let secret = Argv { env: self.with_secrets(&argv.env), ..argv.clone() };
                let ran = self.host.spawn(&self.context, &secret).await;
                self.settled(ran, &argv.argv.join(" "), false).await
            }
        };
        ran.map(|ran| self.cleaned(ran))
    }
}

#[cfg(test)]
mod tests;
