//! Background commands: one table per program, which ends them all when it is dropped.
//!
//! Each command belongs to one session. Its output is scrubbed before it is kept; text typed into it was judged
//! together with all text typed before, and is refused if something else was typed meanwhile.

mod background_command;
mod decode;
mod output_ring;
mod watch_and_stop;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use claw_core::ProcessId;
use claw_core::counted::counted;
use claw_core::port::{
    BackgroundCommand, BackgroundStart, Owner, ProcessHost, Program, Size, Start, StartedCommand,
};
use claw_core::store::{self, NewProcess, Worker};
use claw_core::tool::{ErrorKind, Sight, Target, ToolError};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::background_command::Kept;
use self::watch_and_stop::Watch;

/// Settings for commands in the background.
#[derive(Clone)]
pub struct ProcessKeeping {
    /// The store of background commands, so that lost ones can be reported.
    pub store: Arc<dyn store::Processes>,
    /// The program that owns them.
    pub worker: Worker,
    /// Limits.
    pub limits: ProcessLimits,
}

impl std::fmt::Debug for ProcessKeeping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessKeeping").field("worker", &self.worker).finish_non_exhaustive()
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
pub struct ProcessTable {
    keeping: ProcessKeeping,
    kept: Mutex<Vec<Arc<Kept>>>,
    /// The owner of each command that is being started, so that the limit holds. Starting one never waits for another.
    starting: Mutex<Vec<Owner>>,
    over: CancellationToken,
    /// Ends all commands when the table is dropped.
    _end: DropGuard,
}

impl ProcessTable {
    /// Creates an empty table.
    pub fn new(keeping: ProcessKeeping) -> Self {
        let over = CancellationToken::new();
        let end = over.clone().drop_guard();
        Self { keeping, kept: Mutex::default(), starting: Mutex::default(), over, _end: end }
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Arc<Kept>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of_owner(&self, owner: &Owner) -> Vec<Arc<Kept>> {
        self.kept().iter().filter(|kept| kept.known.owner == *owner).cloned().collect()
    }

    fn starting(&self) -> MutexGuard<'_, Vec<Owner>> {
        self.starting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a slot for a command that is being started. Drops the oldest ended commands; refuses if too many run.
    fn make_room(&self, owner: &Owner, limits: &ProcessLimits) -> Result<Slot<'_>, ToolError> {
        if limits.per_session == 0 {
            let message = "no command may run in the background here (`limits.background_commands` is 0)";
            return Err(
                ToolError::new(ErrorKind::Unavailable, message).try_instead("run it in the foreground")
            );
        }
        let mut starting = self.starting();
        let all = self.of_owner(owner);
        let running = all.iter().filter(|kept| kept.is_running()).count()
            + starting.iter().filter(|other| *other == owner).count();
        if running >= limits.per_session {
            let commands = counted(running, "command");
            let message = format!("this session has {commands} in the background, which is the limit");
            return Err(ToolError::new(ErrorKind::Unavailable, message)
                .try_instead("end one of them (`kill`), or wait for its end"));
        }
        let ended: Vec<_> = all.iter().filter(|kept| !kept.is_running()).collect();
        let old: Vec<ProcessId> = ended.iter().rev().skip(limits.ended).map(|kept| kept.known.id).collect();
        self.kept().retain(|kept| !old.contains(&kept.known.id));
        starting.push(owner.clone());
        Ok(Slot { table: self, owner: owner.clone() })
    }
}

/// A slot of a command that is being started. Freed on drop: the command runs by then, or did not start.
struct Slot<'a> {
    table: &'a ProcessTable,
    owner: Owner,
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut starting = self.table.starting();
        if let Some(at) = starting.iter().position(|other| *other == self.owner) {
            starting.swap_remove(at);
        }
    }
}

#[async_trait]
impl ProcessHost for ProcessTable {
    async fn start(&self, start: BackgroundStart<'_>) -> Result<Arc<dyn BackgroundCommand>, ToolError> {
        let BackgroundStart { shell, context, caller, script, command, scrub, clock } = start;
        let keeping = &self.keeping;
        let owner = Owner { tenant: caller.tenant.clone(), session: caller.session.clone() };
        let slot = self.make_room(&owner, &keeping.limits)?;
        let mut start = Start::new(Program::Script(script.clone()));
        start.terminal = script.terminal.then(Size::default);
        let child = shell.start(context, &start).await?;
        let known = StartedCommand {
            id: ProcessId::new(),
            owner,
            script: script.clone(),
            programs: context.sights.iter().filter_map(program).collect(),
            effects: context.effects,
            command,
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
            ToolError::new(ErrorKind::Unavailable, "the command cannot be recorded, so it is not started")
                .because(error)
        })?;
        let (kept, orders) = Kept::new(known, scrub, keeping.limits.output_bytes, child.input);
        let kept = Arc::new(kept);
        tokio::spawn(kept.begin());
        self.kept().push(Arc::clone(&kept));
        drop(slot);
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

    fn of(&self, owner: &Owner) -> Vec<Arc<dyn BackgroundCommand>> {
        self.of_owner(owner).into_iter().map(|kept| kept as _).collect()
    }

    async fn end_all(&self) -> usize {
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
