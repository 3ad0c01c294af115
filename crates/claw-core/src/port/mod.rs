//! The ports: everything a tool may ask of the world, one file each.
//!
//! Each port has two traits. A tool gets the *guarded* one through its [`Call`](crate::tool::Call): bound to
//! its caller, refusing everything the plan does not name. The world implements the *host* one, which is told
//! for whom and within which scope it acts. The registry alone connects them.
//!
//! A new port is a file with both traits, its `mod` and `pub use` lines here, its lines in `list.rs`, and its guard
//! in the registry; `list.rs` names all of them.

mod agents;
mod catalogue;
mod clock;
mod command_changes;
mod endpoints;
mod files;
mod generated_files;
mod graph;
mod http;
mod inputs;
mod kept_results;
mod list;
mod memory;
mod model;
mod other_sessions;
mod processes;
mod programs;
mod seen_files;
mod session_status;
mod shell;
mod skills;
mod traces;
mod undo;
mod web;

pub use agents::{AgentCard, AgentDirectory, AgentEntry, AgentSource, Agents, ResolvedAgent};
pub use catalogue::{Catalogue, Hit};
pub use clock::{Clock, UnixMillis};
pub use command_changes::{
    ApplyMode, ChangeConflict, ChangeKind, ChangedEntry, CommandChanges, FileChange, HeldChange,
    PendingChanges, WorkspaceAccess, shown_path,
};
pub use endpoints::{EndpointAnswer, EndpointCard, EndpointHost, EndpointRequest, Endpoints};
pub use files::{
    Access, Binary, Confinement, DocumentUse, Entry, EntryKind, Expect, FilePlace, Files, From, FsBridge,
    Hits, Order, Quota, Reading, Root, Scope, Search, SearchLine, Searched, Splice, Stat, Version, View,
    Walk, Walked, Window, WorkspaceGrowth, WriteMode, Written, normalise,
};
pub use generated_files::Generated;
pub use graph::{Graph, GraphFound, GraphHost, GraphQuery, GraphStart};
pub use http::{Http, HttpAnswer, HttpHost, HttpRequest};
pub use inputs::{InputAnswer, InputForm, InputRequest, Inputs};
pub use kept_results::{Artifact, ArtifactStore, Artifacts, Part};
pub use list::{Need, Ports, World};
pub use memory::{
    EmbedError, EmbedPurpose, Embedder, Memory, MemoryFound, MemoryHit, MemoryHost, MemoryMode, MemoryOwner,
    MemoryPart, MemoryQuery, MemoryReader, MemoryReason, MemoryText, unit_vector,
};
pub use model::{
    Answer, Choice, Ear, Fault, Model, ModelCard, ModelError, Models, Piece, Prices, Prompt, Question, Stop,
};
pub use other_sessions::{Posted, Talk, TalkHost, TalkLine, TalkLines, TalkPage, Talks, Words};
pub use processes::{
    Awaited, BackgroundCommand, BackgroundStart, Expected, Printed, ProcessCard, ProcessHost, ProcessState,
    Processes, StartedCommand,
};
pub use programs::{ProgramHost, ProgramRun, Registered};
pub use seen_files::SeenFiles;
pub use session_status::{SessionStatus, Sessions, TalkFigures};
pub use shell::{
    Allowed, Child, CommandHome, Control, Ended, FullPlace, HostRan, MissingProgram, Program, Ran,
    RunContext, Shell, ShellHost, Size, Start, Stopped, gap, gaps,
};
pub use skills::{ActiveSkills, Narrowing, OpenedSkill, PublishedSkill, SkillHost, SkillRequest, Skills};
pub use traces::{Attribute, Span, SpanId, TraceId, Traces};
pub use undo::{Change, CommandChange, Contents, UndoJournal};
pub use web::{
    BadAddress, ExtractMode, FetchRequest, Freshness, SearchAnswer, SearchRequest, SearchResult, Surfer, Web,
    WebAddress, WebHost, WebPage,
};

use crate::id::{SessionKey, TenantId};

/// The owner of stored data.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The tenant.
    pub tenant: TenantId,
    /// The session that produced it.
    pub session: SessionKey,
}
