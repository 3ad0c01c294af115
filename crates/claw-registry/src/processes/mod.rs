//! Background commands: one table per program, which ends them all when it is dropped.
//!
//! Each command belongs to one session and is invisible to others. Its output is scrubbed before it is kept.
//! Text typed into it is judged together with all text typed before.

mod kept;
mod plain;
mod ring;
mod watch;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use claw_core::ProcessId;
use claw_core::port::{Clock, Owner, Program, RunContext, ShellHost, Size, Start};
use claw_core::store::{self, NewProcess, Worker};
use claw_core::tool::{Caller, ErrorKind, Input, Script, Sight, Target, ToolError};
use claw_policy::shell::{Rules, Verdict};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::kept::{Kept, Known};
use self::watch::Watch;
use crate::scrub::CallScrubber;

/// Settings for commands in the background.
#[derive(Clone)]
pub struct Keeping {
    /// The store of background commands, so that lost ones can be reported.
    pub store: Arc<dyn store::Processes>,
    /// The program that owns them.
    pub worker: Worker,
    /// Limits.
    pub limits: ProcessLimits,
}

impl std::fmt::Debug for Keeping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeping").field("worker", &self.worker).finish_non_exhaustive()
    }
}

/// Limits of background commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Running commands per session.
    pub per_session: usize,
    /// Ended commands kept per session.
    pub ended: usize,
    /// Bytes of output kept per command.
    pub output_bytes: usize,
    /// Time for a command to end after it was asked to.
    pub grace: Duration,
}

impl Default for ProcessLimits {
    fn default() -> Self {
        Self { per_session: 8, ended: 8, output_bytes: 1 << 20, grace: Duration::from_secs(2) }
    }
}

/// The background commands of this program.
pub(crate) struct ProcessTable {
    keeping: Option<Keeping>,
    kept: Mutex<Vec<Arc<Kept>>>,
    /// Locked while a command starts, so that the limit holds.
    starting: tokio::sync::Mutex<()>,
    over: CancellationToken,
    /// Ends all commands when the table is dropped.
    _end: DropGuard,
}

/// A script to be started in the background.
pub(crate) struct Starting<'a> {
    pub(crate) host: &'a dyn ShellHost,
    pub(crate) context: &'a RunContext,
    pub(crate) caller: &'a Caller,
    pub(crate) script: &'a Script,
    pub(crate) scrubber: &'a CallScrubber,
    pub(crate) clock: &'a Arc<dyn Clock>,
}

impl ProcessTable {
    pub(crate) fn new(keeping: Option<Keeping>) -> Self {
        let over = CancellationToken::new();
        let end = over.clone().drop_guard();
        Self { keeping, kept: Mutex::default(), starting: tokio::sync::Mutex::default(), over, _end: end }
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Arc<Kept>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The commands of an owner, in the order in which they were started.
    pub(crate) fn of(&self, owner: &Owner) -> Vec<Arc<Kept>> {
        self.kept().iter().filter(|kept| kept.known.owner == *owner).cloned().collect()
    }

    /// The command that an owner names, by its id or the end of it.
    pub(crate) fn find(&self, owner: &Owner, process: &str) -> Result<Arc<Kept>, ToolError> {
        let named = |kept: &Arc<Kept>| process.len() >= 4 && kept.known.id.to_string().ends_with(process);
        let mut found = self.of(owner).into_iter().filter(named);
        match (found.next(), found.next()) {
            (Some(kept), None) => Ok(kept),
            (Some(_), Some(_)) => {
                Err(ToolError::invalid(format!("`{process}` is the end of more than one id"))
                    .try_instead("give more of it"))
            }
            (None, _) => Err(ToolError::not_found(format!(
                "no background command of this session is called `{process}`"
            ))
            .try_instead("`list` names those that there are")),
        }
    }

    /// The current state of an owner's command, with all text typed into it.
    pub(crate) fn look(&self, owner: &Owner, target: &Target) -> Result<Option<Sight>, ToolError> {
        let Target::Process { process } = target else { return Ok(None) };
        self.find(owner, process).map(|kept| Some(kept.sight(process)))
    }

    /// Applies the rules to text that an owner would type; `None` if there is no such command.
    pub(crate) fn judge(&self, owner: &Owner, input: &Input, rules: &Rules) -> Option<Verdict> {
        Some(self.find(owner, &input.process).ok()?.judge(input, rules))
    }

    /// Starts a script in the background.
    pub(crate) async fn start(&self, starting: Starting<'_>) -> Result<Arc<Kept>, ToolError> {
        let Some(keeping) = &self.keeping else {
            let message = "this program ends with the call, and would take the command with it";
            return Err(ToolError::new(ErrorKind::Unavailable, message)
                .try_instead("run it without `background`, or in a conversation (`clawsmith chat`)"));
        };
        let Starting { host, context, caller, script, scrubber, clock } = starting;
        let owner = crate::guard::owner(caller);
        let _one = self.starting.lock().await;
        self.make_room(&owner, &keeping.limits)?;
        let mut start = Start::new(Program::Script(script.clone()));
        start.terminal = script.terminal.then(Size::default);
        let child = host.start(context, &start).await?;
        let known = Known {
            id: ProcessId::new(),
            owner,
            script: script.clone(),
            programs: context.sights.iter().filter_map(program).collect(),
            effects: context.effects,
            command: scrubber.text(&script.text),
            started: clock.now(),
            place: child.place,
        };
        let stored = keeping.store.begin_process(NewProcess {
            id: known.id,
            tenant: known.owner.tenant.clone(),
            session: known.owner.session.clone(),
            agent: caller.agent.clone(),
            user: caller.user.clone(),
            worker: keeping.worker.clone(),
            command: known.command.clone(),
            directory: script.directory.clone(),
            pid: child.pid,
            started: known.started,
        });
        // A command that cannot be stored is not kept: dropping the child ends it.
        stored.await.map_err(|error| {
            ToolError::new(ErrorKind::Unavailable, "the command cannot be remembered, so it is not started")
                .because(error)
        })?;
        let saying = (scrubber.saying(), keeping.limits.output_bytes);
        let (kept, orders) = Kept::new(known, saying, child.input);
        let kept = Arc::new(kept);
        tokio::spawn(kept.begin());
        self.kept().push(Arc::clone(&kept));
        let watch = Watch {
            kept: Arc::clone(&kept),
            output: child.output,
            control: child.control,
            orders,
            over: self.over.clone(),
            limit: script.timeout_secs.map(|seconds| Duration::from_secs(seconds.into())),
            keeping: keeping.clone(),
            clock: Arc::clone(clock),
        };
        tokio::spawn(watch.go());
        Ok(kept)
    }

    /// Drops the oldest ended commands; refuses if too many run.
    fn make_room(&self, owner: &Owner, limits: &ProcessLimits) -> Result<(), ToolError> {
        if limits.per_session == 0 {
            let message = "no command may run in the background here (`limits.background_commands` is 0)";
            return Err(ToolError::new(ErrorKind::Unavailable, message).try_instead("run it to its end"));
        }
        let all = self.of(owner);
        let running = all.iter().filter(|kept| kept.is_running()).count();
        if running >= limits.per_session {
            let message =
                format!("{running} commands of this session run in the background, and no more may");
            return Err(ToolError::new(ErrorKind::Unavailable, message)
                .try_instead("end one of them (`kill`), or wait for its end"));
        }
        let ended: Vec<_> = all.iter().filter(|kept| !kept.is_running()).collect();
        let old: Vec<ProcessId> = ended.iter().rev().skip(limits.ended).map(|kept| kept.known.id).collect();
        self.kept().retain(|kept| !old.contains(&kept.known.id));
        Ok(())
    }

    /// Ends all running commands and waits for them; returns how many there were.
    pub(crate) async fn end_all(&self) -> usize {
        let running: Vec<_> = self.kept().iter().filter(|kept| kept.is_running()).cloned().collect();
        running.iter().for_each(|kept| kept.kill());
        for kept in &running {
            kept.ended().await;
        }
        running.len()
    }
}

/// A program that a command's word resolved to.
fn program(sight: &Sight) -> Option<(String, String)> {
    match (&sight.target, &sight.path) {
        (Target::Program { name, .. }, Some(path)) => Some((name.clone(), path.clone())),
        _ => None,
    }
}
