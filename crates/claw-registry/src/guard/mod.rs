//! The guarded side of the ports: bound to one caller and one plan.
//!
//! A tool reaches the world only through what is made here, and only through the ports that its metadata
//! declares. Each guard refuses what the plan did not name.

mod agents;
mod artifacts;
mod catalogue;
mod endpoints;
mod files;
mod printed;
mod processes;
mod scope;
mod sessions;
mod shell;
mod talks;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use claw_core::port::{Access, Expect, FsBridge, Owner, Place, Ports, ProgramRun, RunContext, Scope};
use claw_core::tool::{
    Ask, Caller, Effects, ErrorKind, Meta, Need, Plan, Progress, Secrets, Sight, Target, ToolError,
};
use claw_core::{CallId, JobId};
use tokio_util::sync::CancellationToken;

pub(crate) use self::files::SeenTable;
pub use self::files::unified_diff;
pub(crate) use self::scope::scope;
pub use self::scope::{AgentFiles, FileRules};
use crate::{Executor, Offer};

/// What one call was granted.
pub(crate) struct Grant {
    pub(crate) plan: Plan,
    /// The asks of the plan that lead to a program with credentials.
    pub(crate) logins: Vec<(Ask, ProgramRun)>,
    pub(crate) sights: Vec<Sight>,
    /// What the policy left of the tool's ceiling.
    pub(crate) effects: Effects,
    pub(crate) scope: Arc<Scope>,
    /// Whether the caller's commands reach other machines without asking for it.
    pub(crate) network: bool,
    pub(crate) cancel: CancellationToken,
    pub(crate) progress: Progress,
    pub(crate) secrets: Secrets,
    /// The agent's run that the call is part of.
    pub(crate) run: Option<JobId>,
    /// Set when the call is over.
    pub(crate) over: AtomicBool,
}

impl Grant {
    /// The call is over: whoever still holds its ports gets nothing from them.
    pub(crate) fn revoke(&self) {
        self.over.store(true, Ordering::Release);
    }

    fn live(&self) -> Result<(), ToolError> {
        if self.over.load(Ordering::Acquire) {
            return Err(ToolError::new(ErrorKind::Forbidden, "the call that this port belongs to is over"));
        }
        Ok(())
    }
}

/// The ports of one call: those that the tool needs, and no others.
pub(crate) fn ports(
    executor: &Executor,
    offer: &Offer,
    (call, meta): (CallId, &Meta),
    grant: &Arc<Grant>,
) -> Ports {
    let world = offer.0.registry.world();
    let caller = offer.caller();
    let mut ports = Ports::new(Arc::clone(&world.clock));
    for need in meta.needs.iter() {
        match need {
            Need::Files => {
                ports.files = world.bridge.clone().map(|bridge| {
                    let (executor, caller, tool) = (executor.clone(), Arc::clone(caller), meta.name.clone());
                    files::guard(bridge, files::Origin { executor, caller, call, tool }, grant)
                });
            }
            Need::Shell => {
                let programs = world.programs.clone();
                ports.shell =
                    world.shell.clone().map(|host| shell::guard((host, programs), executor, caller, grant));
            }
            Need::Processes => {
                ports.processes =
                    world.shell.clone().map(|host| processes::guard(host, executor, offer, grant));
            }
            // The shell port runs them.
            Need::Programs => {}
            Need::Artifacts => {
                ports.artifacts = world.artifacts.clone().map(|store| artifacts::guard(store, caller, grant));
            }
            Need::Agents => {
                ports.agents = world.agents.clone().map(|directory| agents::guard(directory, caller, grant));
            }
            Need::Sessions => ports.sessions = Some(sessions::guard(executor, offer, grant)),
            Need::Talks => {
                ports.talks =
                    world.talks.clone().map(|host| talks::guard(host, executor, (caller, meta), grant));
            }
            Need::Endpoints => {
                ports.endpoints = world.endpoints.clone().map(|host| endpoints::guard(host, caller, grant));
            }
            Need::Catalogue => ports.catalogue = Some(catalogue::guard(offer, grant)),
        }
    }
    ports
}

/// Has the bridge look at files that a plan names.
pub(crate) async fn look_at_files(
    offer: &Offer,
    targets: &[Target],
    scope: &Scope,
) -> Result<Vec<Sight>, ToolError> {
    let world = offer.0.registry.world();
    let Some(bridge) = &world.bridge else { return Ok(Vec::new()) };
    let caller = offer.caller();
    let place = Place { caller, directory: &caller.workspace, scope, expect: Expect::Anything };
    let mut sights = Vec::with_capacity(targets.len());
    for target in targets {
        // What is out of scope is not looked at; the policy denies it.
        if let Target::File { path } = target
            && scope.resolve_text(place.directory, path, Access::Write).is_ok()
        {
            let mut sight = bridge.look(&place, path).await?;
            if sight.path.is_none() {
                sight.path = would_be(&**bridge, &place, path).await;
            }
            sights.push(sight);
        }
    }
    Ok(sights)
}

/// Where a file would be whose directory is not there yet: below what is there of the way to it.
async fn would_be(bridge: &dyn FsBridge, place: &Place<'_>, path: &str) -> Option<String> {
    let path = Path::new(path);
    for above in path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
        if let Ok(Sight { path: Some(real), .. }) = bridge.look(place, above.to_str()?).await {
            let rest = path.strip_prefix(above).ok()?;
            return Some(Path::new(&real).join(rest).display().to_string());
        }
    }
    None
}

/// A plan, what the policy left of its tool's ceiling, and whether the caller's commands reach other machines.
type Looking<'a> = (&'a Plan, Effects, bool);

/// Has the shell look at programs that a plan leads to, where they would run.
pub(crate) async fn look_at_commands(
    offer: &Offer,
    targets: &[Target],
    looking: Looking<'_>,
    cancel: &CancellationToken,
) -> Result<Vec<Sight>, ToolError> {
    let Some(host) = &offer.0.registry.world().shell else { return Ok(Vec::new()) };
    if targets.is_empty() {
        return Ok(Vec::new());
    }
    host.look(&context_to_look(offer, looking, cancel), targets).await
}

/// Has the place that runs programs with credentials look at those that a plan leads to.
pub(crate) async fn look_at_programs(
    offer: &Offer,
    runs: &[&ProgramRun],
    looking: Looking<'_>,
    cancel: &CancellationToken,
) -> Result<Vec<Sight>, ToolError> {
    let Some(host) = &offer.0.registry.world().programs else { return Ok(Vec::new()) };
    let mut sights = Vec::new();
    for run in runs {
        sights.extend(host.look(&context_to_look(offer, looking, cancel), run).await?);
    }
    Ok(sights)
}

fn context_to_look(
    offer: &Offer,
    (plan, effects, network): Looking<'_>,
    cancel: &CancellationToken,
) -> RunContext {
    let looking = Grant {
        plan: plan.clone(),
        logins: Vec::new(),
        sights: Vec::new(),
        effects,
        scope: Arc::default(),
        network,
        cancel: cancel.clone(),
        progress: Progress::silent(),
        secrets: Secrets::default(),
        run: None,
        over: AtomicBool::new(false),
    };
    shell::context(offer.caller(), &looking)
}

/// To whom the caller's kept results belong.
pub(crate) fn owner(caller: &Caller) -> Owner {
    Owner { tenant: caller.tenant.clone(), session: caller.session.clone() }
}

/// A port was asked for something that the plan did not name.
fn unplanned(what: String) -> ToolError {
    ToolError::new(ErrorKind::Forbidden, format!("{what} is not in the plan of this call"))
        .try_instead("use another tool; this one does other things than it says")
        .because("a tool must name in `plan` what it will do")
}
