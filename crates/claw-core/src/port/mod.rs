//! What a tool may ask of the world, one file per thing asked.
//!
//! Each port has two faces. A tool sees the *guarded* one through its [`Call`](crate::tool::Call): bound to
//! its caller, refusing what the plan did not name. The world implements the *host* one, which is told for
//! whom and within which scope it acts. The registry stands between them; nobody else may.

mod agents;
mod artifacts;
mod catalogue;
mod clock;
mod endpoints;
mod files;
mod generated;
mod model;
mod processes;
mod programs;
mod seen;
mod sessions;
mod shell;
mod talks;
mod undo;

use std::fmt;
use std::sync::Arc;

pub use agents::{AgentCard, AgentDirectory, AgentEntry, AgentSource, Agents, ResolvedAgent};
pub use artifacts::{Artifact, ArtifactStore, Artifacts, Part};
pub use catalogue::{Catalogue, Hit};
pub use clock::{Clock, UnixMillis};
pub use endpoints::{EndpointAnswer, EndpointCard, EndpointHost, EndpointRequest, Endpoints};
pub use files::{
    Access, Binary, Confinement, Entry, EntryKind, Expect, Files, From, FsBridge, Hits, Line, Order, Place,
    Quota, Reading, Root, Scope, Search, Searched, Splice, Stat, Version, View, Walk, Walked, Window,
    WriteMode, Written,
};
pub use generated::Generated;
pub use model::{
    Answer, Choice, Ear, Fault, Model, ModelCard, ModelError, Models, Piece, Prices, Prompt, Question, Stop,
};
pub use processes::{Awaited, Expected, Printed, ProcessCard, ProcessState, Processes};
pub use programs::{ProgramHost, ProgramRun, Registered};
pub use seen::SeenFiles;
pub use sessions::{SessionStatus, Sessions, TalkFigures};
pub use shell::{
    Allowed, Child, Control, Ended, Program, Ran, RunContext, Shell, ShellHost, Size, Start, Stopped, gap,
    gaps,
};
pub use talks::{Line as TalkLine, Posted, Talk, TalkHost, TalkPage, Talks, Words};
pub use undo::{Change, Contents, UndoJournal};

use crate::id::{SessionKey, TenantId};
use crate::tool::Need;

/// To whom a thing belongs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Whose data it is.
    pub tenant: TenantId,
    /// In which conversation it came up.
    pub session: SessionKey,
}

/// The real world, as one deployment has it. What is `None` is not there, and tools that need it are listed
/// as unavailable.
#[derive(Clone)]
pub struct World {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Files.
    pub bridge: Option<Arc<dyn FsBridge>>,
    /// Where changes of files are kept; without it they cannot be undone.
    pub undo: Option<Arc<dyn UndoJournal>>,
    /// Which files a conversation has seen; without it only this process remembers.
    pub seen: Option<Arc<dyn SeenFiles>>,
    /// Commands.
    pub shell: Option<Arc<dyn ShellHost>>,
    /// Programs that run with credentials.
    pub programs: Option<Arc<dyn ProgramHost>>,
    /// Kept results.
    pub artifacts: Option<Arc<dyn ArtifactStore>>,
    /// The configured agents.
    pub agents: Option<Arc<dyn AgentDirectory>>,
    /// Conversations.
    pub talks: Option<Arc<dyn TalkHost>>,
    /// Endpoints that configuration names.
    pub endpoints: Option<Arc<dyn EndpointHost>>,
}

impl World {
    /// A world with nothing but a clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            bridge: None,
            undo: None,
            seen: None,
            shell: None,
            programs: None,
            artifacts: None,
            agents: None,
            talks: None,
            endpoints: None,
        }
    }

    /// Why `need` cannot be met here, or `None` where it can.
    pub fn lacks(&self, need: Need) -> Option<&'static str> {
        let (there, reason) = match need {
            Need::Files => (self.bridge.is_some(), "no file bridge is set up in this build"),
            Need::Shell | Need::Processes => (self.shell.is_some(), "no shell is set up in this build"),
            Need::Programs => (self.programs.is_some(), "no place for programs with credentials is set up"),
            Need::Artifacts => (self.artifacts.is_some(), "no artifact store is set up"),
            Need::Agents => (self.agents.is_some(), "no agent directory is set up"),
            Need::Talks => (self.talks.is_some(), "no store of conversations is set up"),
            Need::Endpoints => {
                (self.endpoints.is_some(), "no endpoint is configured; see `endpoints` in the configuration")
            }
            Need::Sessions | Need::Catalogue => (true, ""),
        };
        (!there).then_some(reason)
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has = |there: bool| if there { "there" } else { "absent" };
        f.debug_struct("World")
            .field("bridge", &has(self.bridge.is_some()))
            .field("undo", &has(self.undo.is_some()))
            .field("seen", &has(self.seen.is_some()))
            .field("shell", &has(self.shell.is_some()))
            .field("programs", &has(self.programs.is_some()))
            .field("artifacts", &has(self.artifacts.is_some()))
            .field("agents", &has(self.agents.is_some()))
            .field("talks", &has(self.talks.is_some()))
            .field("endpoints", &has(self.endpoints.is_some()))
            .finish_non_exhaustive()
    }
}

/// What one call can reach, guarded. A port that the tool did not declare in its needs is `None`.
#[derive(Clone)]
pub struct Ports {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Files of the workspace.
    pub files: Option<Arc<dyn Files>>,
    /// Running commands.
    pub shell: Option<Arc<dyn Shell>>,
    /// Commands that run in the background.
    pub processes: Option<Arc<dyn Processes>>,
    /// Kept results.
    pub artifacts: Option<Arc<dyn Artifacts>>,
    /// The configured agents.
    pub agents: Option<Arc<dyn Agents>>,
    /// The figures of the caller's session.
    pub sessions: Option<Arc<dyn Sessions>>,
    /// The caller's conversations.
    pub talks: Option<Arc<dyn Talks>>,
    /// Endpoints that configuration names.
    pub endpoints: Option<Arc<dyn Endpoints>>,
    /// Searching the tools themselves.
    pub catalogue: Option<Arc<dyn Catalogue>>,
}

impl Ports {
    /// Nothing but a clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            files: None,
            shell: None,
            processes: None,
            artifacts: None,
            agents: None,
            sessions: None,
            talks: None,
            endpoints: None,
            catalogue: None,
        }
    }
}
