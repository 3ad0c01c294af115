//! The guarded side of the ports: bound to one caller and one plan.
//!
//! A tool reaches the world only through what is made here, and only through the ports that its metadata
//! declares. Each guard refuses what the plan did not name.

mod agents;
mod artifacts;
mod catalogue;
mod changes;
mod endpoints;
mod files;
mod graph;
mod http;
mod inputs;
mod memory;
mod printed;
mod processes;
mod scope;
mod sessions;
mod shell;
mod skills;
mod talks;
mod web;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claw_core::port::{
    Access, Expect, FsBridge, Owner, Place, Ports, ProgramRun, RunContext, Scope, WorkspaceAccess, World,
};
use claw_core::store::{Approval, ChangeRecord};
use claw_core::tool::{
    Ask, Caller, Effects, ErrorKind, Meta, Need, Plan, Progress, Secrets, Sight, Target, ToolError,
};
use claw_core::{CallId, JobId};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(crate) use self::files::SeenTable;
pub use self::files::unified_diff;
pub(crate) use self::scope::scope;
pub use self::scope::{AgentFiles, FileRules};
pub(crate) use self::skills::look_at_skills;
pub(crate) use self::talks::look_at_sessions;
pub(crate) use self::web::look_at_hosts;
use crate::{Asking, Executor, Offer, TimeLimit};

/// What one call was granted.
pub(crate) struct Grant {
    pub(crate) plan: Plan,
    /// The asks of the plan that lead to a program with credentials.
    pub(crate) logins: Vec<(Ask, ProgramRun)>,
    pub(crate) sights: Vec<Sight>,
    /// The tool's ceiling without the effects that the policy took.
    pub(crate) effects: Effects,
    /// How its commands see the workspace.
    pub(crate) access: WorkspaceAccess,
    /// Whether the call was judged as one that writes.
    pub(crate) writes: bool,
    /// Whether a person can be asked while the call runs.
    pub(crate) asking: Asking,
    /// Hears of requests for input.
    pub(crate) inputs: Option<mpsc::UnboundedSender<Approval>>,
    /// The time that the call may take; it stands still while a person is asked.
    pub(crate) time: TimeLimit,
    pub(crate) scope: Arc<Scope>,
    /// Whether the caller's commands reach other machines without asking for it.
    pub(crate) network: bool,
    pub(crate) cancel: CancellationToken,
    pub(crate) progress: Progress,
    pub(crate) secrets: Secrets,
    /// The agent's run that the call is part of.
    pub(crate) run: Option<JobId>,
    /// Changes that its commands made, for the ledger.
    pub(crate) changed: Mutex<Option<Box<ChangeRecord>>>,
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

/// The call that ports are made for.
pub(crate) struct Site<'a> {
    pub(crate) executor: &'a Executor,
    pub(crate) offer: &'a Offer,
    pub(crate) call: CallId,
    pub(crate) meta: &'a Meta,
    pub(crate) grant: &'a Arc<Grant>,
}

impl Site<'_> {
    fn world(&self) -> &World {
        self.offer.0.registry.world()
    }

    fn caller(&self) -> &Arc<Caller> {
        self.offer.caller()
    }

    fn grant(&self) -> Arc<Grant> {
        Arc::clone(self.grant)
    }
}

/// The ports of one call: those that the tool needs, and no others. One line per port; each guard gives `None` where
/// its host is not there.
pub(crate) fn ports(site: &Site<'_>) -> Ports {
    let mut ports = Ports::new(Arc::clone(&site.world().clock));
    for need in site.meta.needs.iter() {
        match need {
            Need::Files => ports.files = files::guard(site),
            Need::Shell => ports.shell = shell::guard(site),
            Need::Processes => ports.processes = processes::guard(site),
            Need::Programs => {} // The shell port runs them.
            Need::Artifacts => ports.artifacts = artifacts::guard(site),
            Need::Agents => ports.agents = agents::guard(site),
            Need::Sessions => ports.sessions = Some(sessions::guard(site)),
            Need::Skills => ports.skills = skills::guard(site),
            Need::Talks => ports.talks = talks::guard(site),
            Need::Endpoints => ports.endpoints = endpoints::guard(site),
            Need::Http => ports.http = http::guard(site),
            Need::Web => ports.web = web::guard(site),
            Need::Memory => ports.memory = memory::guard(site),
            Need::Graph => ports.graph = graph::guard(site),
            Need::Inputs => ports.inputs = Some(inputs::guard(site)),
            Need::Catalogue => ports.catalogue = Some(catalogue::guard(site)),
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

/// A plan with the circumstances in which the ports look at what it leads to.
#[derive(Clone, Copy)]
pub(crate) struct Looking<'a> {
    pub(crate) plan: &'a Plan,
    /// The tool's ceiling without the effects that the policy took.
    pub(crate) effects: Effects,
    /// Whether the caller's commands reach other machines.
    pub(crate) network: bool,
    /// How they see the workspace.
    pub(crate) access: WorkspaceAccess,
    /// The files that the caller may reach.
    pub(crate) scope: &'a Arc<Scope>,
}

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
        let context = shell::for_login(context_to_look(offer, looking, cancel));
        sights.extend(host.look(&context, run).await?);
    }
    Ok(sights)
}

fn context_to_look(
    offer: &Offer,
    Looking { plan, effects, network, access, scope }: Looking<'_>,
    cancel: &CancellationToken,
) -> RunContext {
    let looking = Grant {
        plan: plan.clone(),
        logins: Vec::new(),
        sights: Vec::new(),
        effects,
        access,
        writes: true,
        asking: Asking::Impossible,
        inputs: None,
        time: TimeLimit::new(Duration::ZERO),
        scope: Arc::clone(scope),
        network,
        cancel: cancel.clone(),
        progress: Progress::silent(),
        secrets: Secrets::default(),
        run: None,
        changed: Mutex::default(),
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
