//! What the system must remember: one trait per aggregate, one method one transaction.
//!
//! Methods that span aggregates have names of their own: [`Ledger::begin_call`] marks an approval used and
//! writes the intent together,
//! [`Rules::answer_with_rule`] stores an answer and the rule given with it, [`Runs::park`] and [`Runs::cancel`] change
//! a run with its approvals and its session.

mod access;
mod agents;
mod approvals;
mod artifacts;
mod blobs;
mod changes;
mod conversations;
mod custom_tools;
mod documents;
mod graph;
mod ledger;
mod mcp;
mod memories;
mod offers;
mod passages;
mod processes;
mod programs;
mod queue;
mod rules;
mod runs;
mod sealed;
mod secrets;
mod seen;
mod session_events;
mod sessions;
mod settings;
mod skills;
mod streams;
mod undo;
mod usage;
mod workspace_files;

pub use access::{
    AccessRole, AccessStore, Admitted, ApiKey, InvalidKey, KEY_USE_EVERY, Key, KeyLimits, KeyScope,
    KeyScopes, NewKey, Tenant, TenantChange, UnknownScope, User, UserChange,
};
pub use agents::{Agent, AgentKind, AgentSetup, AgentStore};
pub use approvals::{Answer, Approval, ApprovalState, Approvals, NewApproval, Suggestion};
pub use artifacts::{ArtifactIndex, KeptArtifact};
pub use blobs::{Blob, BlobCard, BlobLimits, Blobs, NewBlob};
pub use changes::{Bells, Changes, SessionBells, Topic};
pub use conversations::{Circle, Conversation, ConversationPage, Conversations, Party};
pub use custom_tools::{
    CustomToolAction, CustomToolCard, CustomToolDefinition, CustomToolGrants, CustomToolHttp,
    CustomToolPlace, CustomTools, GrantedPath, StoredCustomTool,
};
pub use documents::{Document, DocumentCard, DocumentKey, Documents, Found, Passage, PassageQuery, Shelf};
pub use graph::{
    EntityPair, EntityQuery, ExtractionFailure, ExtractionWork, FactsFrom, FoundEntity, GraphOwner,
    GraphState, GraphStore, GraphWalk, KeptFacts, NewEntity, NewFacts, NewRelation, RelationEnd, Walked,
};
pub use ledger::{CallContext, ChangeRecord, Entry, Event as EntryEvent, Ledger, Outcome, Record, Tally};
pub use mcp::{
    McpEndpoint, McpGrant, McpOAuth, McpOverrides, McpProgram, McpRequest, McpReview, McpServer, McpStore,
    McpSubject, McpTool, McpToolState, McpTransport, compare_tools,
};
pub use memories::{
    EmbeddingDone, EmbeddingFailure, EmbeddingWork, Memories, MemoryState, PassageHash, SimilarPassage,
    SimilarQuery, UnembeddedPassage,
};
pub use offers::Offers;
pub use passages::passages;
pub use processes::{NewProcess, Process, ProcessEnd, Processes};
pub use programs::{Credentials, OpenProgram, Program, ProgramCard, ProgramPlace, ProgramSettings, Programs};
pub use queue::{
    CancelRequest, Claim, Failure, Job, JobFilter, JobState, LONGEST_LEASE, LaneCount, Lease, Lineage,
    NewJob, Queue, Worker,
};
pub use rules::{NewRule, Rule, RuleScope, Rules};
pub use runs::{Cancel, Cancelled, Parking, Runs};
pub use sealed::{
    KeyUse, NotSealed, Resealed, SEALED_HEAD, SEALED_NONCE, SEALED_TAG, SEALED_VERSION, SealKeyId, Sealed,
    SealedPlace, SealedRow, SealedTable, SealedValues,
};
pub use secrets::{SecretCard, SecretPlace, Secrets};
pub use seen::{SEEN_FILES, SeenIndex};
pub use session_events::{
    ApprovalAsked, FeedEvent, RunEnd, RunEvent, SessionEvent, SessionEventBody, ToolEvent,
};
pub use sessions::{
    Accepted, Announce, Finish, Finished, JobEnd, Message, NewMessage, Role, SessionLog, Summary,
};
pub use settings::{Layer, Settings, SettingsStore, StoredSettings, ToolSettings, overlay};
pub use skills::{
    AcceptedSkill, NewSkillVersion, SkillAccess, SkillChange, SkillGrant, SkillGrantee, SkillStore, SkillUse,
    SkillVersion, SkillVisibility, StoredSkill,
};
pub use streams::{Delta, Source, Streams, Voice};
pub use undo::{CommandUndo, FileState, NewUndo, Undo, UndoFilter, UndoIndex};
pub use usage::{NewUsage, Spender, Tokens, Usage, UsageFilter, UsageLine, UsageLog};
pub use workspace_files::{DEEPEST_PATH, FileChange, FileError, LARGEST_FILE, LONGEST_PATH, WorkspaceFiles};

/// Everything a deployment remembers.
pub trait Store:
    CallStore
    + Queue
    + SessionLog
    + Runs
    + Conversations
    + Streams
    + UsageLog
    + Offers
    + Rules
    + Processes
    + ArtifactIndex
    + UndoIndex
    + SeenIndex
    + AccessStore
    + AgentStore
    + SettingsStore
    + SkillStore
    + Programs
    + CustomTools
    + SealedValues
    + Secrets
    + Documents
    + Memories
    + GraphStore
    + WorkspaceFiles
    + McpStore
{
}

impl<S> Store for S where
    S: CallStore
        + Queue
        + SessionLog
        + Runs
        + Conversations
        + Streams
        + UsageLog
        + Offers
        + Rules
        + Processes
        + ArtifactIndex
        + UndoIndex
        + SeenIndex
        + AccessStore
        + AgentStore
        + SettingsStore
        + SkillStore
        + Programs
        + CustomTools
        + CustomTools
        + SealedValues
        + Secrets
        + Documents
        + Memories
        + GraphStore
        + WorkspaceFiles
        + McpStore
{
}

/// Everything the road remembers calls by, and the images that they give.
pub trait CallStore: Ledger + Approvals + Blobs {}

impl<S: Ledger + Approvals + Blobs> CallStore for S {}

/// A store that could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The call id has an intent already: it ran, or may have.
    #[error("call `{call}` was begun before and is never run again; its outcome is {outcome}")]
    AlreadyBegun {
        /// Which call.
        call: crate::CallId,
        /// What became of it; unknown where nothing was recorded.
        outcome: Outcome,
    },
    /// The approval is not there, or not in the state that the step needs.
    #[error("approval `{id}` is {state}; only a pending one can be answered and only an approved one used")]
    ApprovalState {
        /// Which approval.
        id: crate::ApprovalId,
        /// `pending`, `used`, ..., or `missing`.
        state: &'static str,
    },
    /// The rule is not there, or holds no more.
    #[error("rule `{id}` is {state}; ask a person, who may give another")]
    RuleState {
        /// Which rule.
        id: crate::RuleId,
        /// `expired`, `revoked` or `missing`.
        state: &'static str,
    },
    /// The job is not this worker's any more: its lease ended and someone else may have it.
    #[error("job `{job}` is not leased to this worker any more; drop what it made and claim again")]
    LeaseLost {
        /// Which job.
        job: crate::JobId,
    },
    /// The document or agent is not as the writer saw it.
    #[error("`{path}` {}; read it again and write what should be there now", stale(.now))]
    Stale {
        /// Which document or agent.
        path: String,
        /// Its version now; `None` where it is not there.
        now: Option<u64>,
    },
    /// What was given does not fit what is there. Nothing was stored.
    #[error("{what}: {why}")]
    Refused {
        /// What was being done.
        what: &'static str,
        /// What does not fit, and what to do.
        why: String,
    },
    /// The database refused or could not be reached. What was asked has not happened, or is not known to.
    #[error("{what}: {why}")]
    Database {
        /// What was being done.
        what: &'static str,
        /// Why it failed, without values of rows.
        why: String,
        /// Whether trying again later may help.
        transient: bool,
    },
    /// The store is not that of the installation which this node is part of.
    #[error("this node is part of installation `{node}`, and {}", whose(.store))]
    OtherInstallation {
        /// The node's.
        node: crate::InstallationId,
        /// The store's; `None` where it is empty or not there.
        store: Option<crate::InstallationId>,
    },
    /// What is stored does not read as it should.
    #[error("{what} is damaged: {why}")]
    Damaged {
        /// Which file or row.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The keys of sealed values cannot be used.
    #[error("the keys in {place} cannot be used: {why}")]
    Keys {
        /// Which file or variable.
        place: String,
        /// What is wrong, and what to do about it; never a key.
        why: String,
    },
    /// The store itself failed.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, with the path.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl StoreError {
    /// Whether trying again later may help.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Database { transient: true, .. })
    }
}

fn stale(now: &Option<u64>) -> String {
    match now {
        Some(version) => format!("was changed since it was read (it is at version {version})"),
        None => "is not there any more".to_owned(),
    }
}

fn whose(store: &Option<crate::InstallationId>) -> String {
    match store {
        Some(id) => format!("the store is that of `{id}`"),
        None => "the store is empty or not there".to_owned(),
    }
}
