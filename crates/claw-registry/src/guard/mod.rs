//! The guarded side of the ports: bound to one caller and one plan.
//!
//! A tool reaches the world only through the guards made here, and only through the ports that its metadata
//! declares. Each guard refuses what the plan did not name.

mod agents;
mod catalogue;
mod command_changes;
mod command_output;
mod endpoints;
mod files;
mod graph;
mod http;
mod inputs;
mod kept_results;
mod memory;
mod other_sessions;
mod processes;
mod refuse_secrets;
mod scope;
mod sessions;
mod shell;
mod skills;
mod web;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claw_core::port::{
    Access, Expect, FilePlace, FsBridge, Owner, Ports, ProgramRun, RunContext, Scope, WorkspaceAccess, World,
};
use claw_core::store::{Approval, ChangeRecord};
use claw_core::tool::{
    Ask, Caller, Effects, ErrorKind, Meta, Need, Plan, Progress, Secrets, Sight, Target, ToolError,
};
use claw_core::{CallId, JobId};
use claw_policy::approval::{ApprovalConfig, Narrowing};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(crate) use self::files::SeenTable;
pub(crate) use self::other_sessions::look_at_sessions;
pub use self::scope::{AgentFiles, FileRules};
pub(crate) use self::scope::{Beside, scope};
pub(crate) use self::skills::look_at_skills;
pub(crate) use self::web::look_at_hosts;
use crate::{Asking, Executor, Offer, TimeLimit};

/// The permissions of one call.
pub(crate) struct Grant {
    pub(crate) plan: Plan,
    /// The asks of the plan that lead to a program with credentials.
    pub(crate) logins: Vec<(Ask, ProgramRun)>,
    /// A command prints a configuration file, so that more of its output is secret.
    pub(crate) settings: bool,
    pub(crate) sights: Vec<Sight>,
    /// The tool's ceiling without the effects that the policy removed.
    pub(crate) effects: Effects,
    /// The way in which its commands see the workspace.
    pub(crate) access: WorkspaceAccess,
    /// The call was judged as one that writes.
    pub(crate) writes: bool,
    /// A rule or a mode denied writing when the call was judged.
    pub(crate) reads_only: bool,
    /// The way to get an approval while the call runs.
    pub(crate) asking: Asking,
    /// The mode of the run that the call is part of.
    pub(crate) narrowing: Option<Arc<Narrowing>>,
    /// Hears of requests for input.
    pub(crate) inputs: Option<mpsc::UnboundedSender<Approval>>,
    /// The time that the call may take; it stands still while a person is asked.
    pub(crate) time: TimeLimit,
    pub(crate) scope: Arc<Scope>,
    /// The caller's commands have network access without requesting it.
    pub(crate) network: bool,
    pub(crate) cancel: CancellationToken,
    pub(crate) progress: Progress,
    pub(crate) secrets: Secrets,
    /// The agent's run that the call is part of.
    pub(crate) run: Option<JobId>,
    /// Changes made by its commands, for the ledger.
    pub(crate) changed: Mutex<Option<Box<ChangeRecord>>>,
    /// Set when the call is over.
    pub(crate) over: AtomicBool,
}

impl Grant {
    /// Revokes the ports: after the call they refuse everything.
    pub(crate) fn revoke(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// When a person is asked, in the mode of the call's run.
    fn approvals(&self, executor: &Executor) -> Arc<ApprovalConfig> {
        executor.approvals_in(self.narrowing.as_ref())
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

/// The ports of one call: only those that the tool needs. One line per port; each guard is `None` if its host
/// is missing.
pub(crate) fn ports(site: &Site<'_>) -> Ports {
    let mut ports = Ports::new(Arc::clone(&site.world().clock));
    for need in site.meta.needs.iter() {
        match need {
            Need::Files => ports.files = files::guard(site),
            Need::Shell => ports.shell = shell::guard(site),
            Need::Processes => ports.processes = processes::guard(site),
            Need::Programs => {} // The shell port runs them.
            Need::Artifacts => ports.artifacts = kept_results::guard(site),
            Need::Agents => ports.agents = agents::guard(site),
            Need::Sessions => ports.sessions = Some(sessions::guard(site)),
            Need::Skills => ports.skills = skills::guard(site),
            Need::Talks => ports.talks = other_sessions::guard(site),
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

/// Has the bridge look at the files of a plan.
pub(crate) async fn look_at_files(
    offer: &Offer,
    targets: &[Target],
    scope: &Scope,
) -> Result<Vec<Sight>, ToolError> {
    let world = offer.0.registry.world();
    let Some(bridge) = &world.bridge else { return Ok(Vec::new()) };
    let caller = offer.caller();
    let place = FilePlace { caller, directory: &caller.workspace, scope, expect: Expect::Anything };
    let mut sights = Vec::with_capacity(targets.len());
    for target in targets {
        // A path out of scope is not looked at; the policy denies it.
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

/// The real path of a file whose directory does not exist yet: below the nearest existing ancestor.
async fn would_be(bridge: &dyn FsBridge, place: &FilePlace<'_>, path: &str) -> Option<String> {
    let path = Path::new(path);
    for above in path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
        if let Ok(Sight { path: Some(real), .. }) = bridge.look(place, above.to_str()?).await {
            let rest = path.strip_prefix(above).ok()?;
            return Some(Path::new(&real).join(rest).display().to_string());
        }
    }
    None
}

/// A plan and the circumstances under which the ports look at its targets.
#[derive(Clone, Copy)]
pub(crate) struct Looking<'a> {
    pub(crate) plan: &'a Plan,
    /// The tool's ceiling without the effects that the policy removed.
    pub(crate) effects: Effects,
    /// The caller's commands have network access.
    pub(crate) network: bool,
    /// The way in which commands see the workspace.
    pub(crate) access: WorkspaceAccess,
    /// A rule or a mode denies writing.
    pub(crate) reads_only: bool,
    /// The files that the caller may reach.
    pub(crate) scope: &'a Arc<Scope>,
}

/// Has the shell look at the programs of a plan, in the sandbox where they would run.
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

/// Has the host of programs with credentials look at those of a plan.
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
    Looking { plan, effects, network, access, reads_only, scope }: Looking<'_>,
    cancel: &CancellationToken,
) -> RunContext {
    let looking = Grant {
        plan: plan.clone(),
        logins: Vec::new(),
        settings: false,
        sights: Vec::new(),
        effects,
        access,
        writes: true,
        reads_only,
        asking: Asking::Impossible,
        narrowing: None,
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

/// The owner of the caller's kept results.
pub(crate) fn owner(caller: &Caller) -> Owner {
    Owner { tenant: caller.tenant.clone(), session: caller.session.clone() }
}

/// The error for a request that the plan did not name.
fn unplanned(what: String) -> ToolError {
    ToolError::new(ErrorKind::Forbidden, format!("{what} is not in the plan of this call"))
        .try_instead("use another tool; this one does things that it did not announce")
        .because("a tool must name in `plan` what it will do")
}
