//! The stores: one trait per aggregate, one transaction per method.
//!
//! Methods that span aggregates have names of their own: [`Ledger::begin_call`] marks an approval used and
//! writes the intent together, [`Rules::answer_with_rule`] stores an answer and the rule given with it,
//! [`Runs::park`] and [`Runs::cancel`] change a run with its approvals and its session.

mod access;
mod agents;
mod approvals;
mod blobs;
mod custom_tools;
mod documents;
mod encrypted_values;
mod graph;
mod kept_results;
mod ledger;
mod live_streams;
mod mcp;
mod notifications;
mod offers;
mod passage_vectors;
mod passages;
mod processes;
mod programs;
mod queue;
mod rules;
mod runs;
mod secrets;
mod seen_files;
mod session_events;
mod session_owners;
mod sessions;
mod settings;
mod skills;
mod undo;
mod usage;
mod workspace_files;

pub use access::{
    AccessRole, AccessStore, Admitted, ApiKey, InvalidKey, KEY_USE_EVERY, Key, KeyLimits, KeyScope,
    KeyScopes, NewKey, Tenant, TenantChange, UnknownScope, User, UserChange,
};
pub use agents::{Agent, AgentKind, AgentSetup, AgentStore, AgentWrite};
pub use approvals::{
    Answer, Approval, ApprovalState, Approvals, NewApproval, RuleWidth, Suggestion, Suggestions,
};
pub use blobs::{Blob, BlobCard, BlobLimits, Blobs, NewBlob};
pub use custom_tools::{
    CustomToolAction, CustomToolCard, CustomToolDefinition, CustomToolGrants, CustomToolHttp,
    CustomToolPlace, CustomTools, GrantedPath, StoredCustomTool,
};
pub use documents::{
    Document, DocumentCard, DocumentKey, DocumentWrite, Documents, FoundPassage, Passage, PassagePlace,
    PassageQuery, Shelf,
};
pub use encrypted_values::{
    KeyUse, NotSealed, Resealed, SEALED_HEAD, SEALED_NONCE, SEALED_TAG, SEALED_VERSION, SealKeyId, Sealed,
    SealedChanges, SealedMark, SealedPlace, SealedRow, SealedTable, SealedValues,
};
pub use graph::{
    EntityPair, EntityQuery, ExtractionFailure, ExtractionWork, FactsFrom, FoundEntity, GraphOwner,
    GraphState, GraphStore, GraphWalk, KeptFacts, NewEntity, NewFacts, NewRelation, RelationEnd, Walked,
};
pub use kept_results::{ArtifactIndex, KeptArtifact};
pub use ledger::{
    CallContext, ChangeRecord, Entry, EntryPage, EntryUser, Event as EntryEvent, Ledger, Outcome, Record,
    Tally,
};
pub use live_streams::{Delta, Source, Streams, Voice};
pub use mcp::{
    McpAccess, McpEndpoint, McpGrant, McpOAuth, McpOverrides, McpProgram, McpRequest, McpRequestEvent,
    McpRequestState, McpReview, McpServer, McpStore, McpSubject, McpTool, McpToolState, McpTransport,
    compare_tools,
};
pub use notifications::{Bells, Changes, SessionBells, Topic};
pub use offers::Offers;
pub use passage_vectors::{
    EmbeddingDone, EmbeddingFailure, EmbeddingWork, Memories, MemoryState, PassageHash, SimilarPassage,
    SimilarQuery, UnembeddedPassage,
};
pub use passages::passages;
pub use processes::{NewProcess, Process, ProcessEnd, Processes};
pub use programs::{Credentials, OpenProgram, Program, ProgramCard, ProgramPlace, ProgramSettings, Programs};
pub use queue::{
    CancelRequest, Claim, Failure, Job, JobFilter, JobState, LONGEST_LEASE, LaneCount, Lease, Lineage,
    NewJob, Queue, Worker,
};
pub use rules::{NewRule, Rule, RuleScope, Rules};
pub use runs::{Cancel, Cancelled, Parking, Runs};
pub use secrets::{SecretCard, SecretPlace, Secrets};
pub use seen_files::{SEEN_FILES, SeenIndex};
pub use session_events::{
    ApprovalAsked, FeedEvent, RunEnd, RunEvent, SessionEvent, SessionEventBody, ToolEvent,
};
pub use session_owners::{Circle, Conversation, ConversationPage, Conversations, Fork, MessagePage, Party};
pub use sessions::{
    Accepted, Announce, EndEvent, Finish, Finished, JobEnd, Message, NewEvent, NewMessage, Role, SessionLog,
    Summary,
};
pub use settings::{Layer, Settings, SettingsStore, StoredSettings, ToolSettings, overlay};
pub use skills::{
    AcceptedSkill, NewSkillVersion, SkillAccess, SkillChange, SkillGrant, SkillGrantee, SkillStore, SkillUse,
    SkillVersion, SkillVisibility, StoredSkill,
};
pub use undo::{CommandUndo, FileState, NewUndo, Undo, UndoFilter, UndoIndex};
pub use usage::{NewUsage, Spender, Tokens, Usage, UsageFilter, UsageLine, UsageLog};
pub use workspace_files::{DEEPEST_PATH, FileChange, FileError, LARGEST_FILE, LONGEST_PATH, WorkspaceFiles};

/// Everything a deployment stores.
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

/// Everything the road stores about calls, and the images of their results.
pub trait CallStore: Ledger + Approvals + Blobs {}

impl<S: Ledger + Approvals + Blobs> CallStore for S {}

/// The reason why a store operation failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The call id has an intent already: the call ran, or may have.
    #[error("call `{call}` was begun before and is never run again; its outcome is {outcome}")]
    AlreadyBegun {
        /// The call.
        call: crate::CallId,
        /// Its outcome; unknown if none was recorded.
        outcome: Outcome,
    },
    /// The approval is missing, or not in the required state.
    #[error("approval `{id}` is {state}; only a pending one can be answered and only an approved one used")]
    ApprovalState {
        /// The approval.
        id: crate::ApprovalId,
        /// `pending`, `used`, ..., or `missing`.
        state: &'static str,
    },
    /// The rule is missing, expired or revoked.
    #[error("rule `{id}` is {state}; ask a person, who may give another")]
    RuleState {
        /// The rule.
        id: crate::RuleId,
        /// `expired`, `revoked` or `missing`.
        state: &'static str,
    },
    /// The job is no longer leased to this worker: its lease ended, and another worker may have it.
    #[error("job `{job}` is not leased to this worker any more; drop what it made and claim again")]
    LeaseLost {
        /// The job.
        job: crate::JobId,
    },
    /// The stored version is not the one that the writer has seen.
    #[error("`{path}` {}; read it again and write what should be there now", stale(.now))]
    Stale {
        /// The document or agent.
        path: String,
        /// Its present version; `None` if it is gone.
        now: Option<u64>,
    },
    /// The arguments conflict with the stored state. Nothing was stored.
    #[error("{what}: {why}")]
    Refused {
        /// The operation.
        what: &'static str,
        /// The conflict, and the advice.
        why: String,
    },
    /// The database failed or could not be reached. The operation has not happened, or its outcome is
    /// unknown.
    #[error("{what}: {why}")]
    Database {
        /// The operation.
        what: &'static str,
        /// The error, without values of rows.
        why: String,
        /// True if a retry may succeed.
        transient: bool,
    },
    /// The store belongs to another installation than this node.
    #[error("this node is part of installation `{node}`, and {}", whose(.store))]
    OtherInstallation {
        /// The node's installation.
        node: crate::InstallationId,
        /// The store's installation; `None` if it is empty or missing.
        store: Option<crate::InstallationId>,
    },
    /// The stored data is invalid.
    #[error("{what} is damaged: {why}")]
    Damaged {
        /// The file or row.
        what: String,
        /// The problem.
        why: String,
    },
    /// The encryption keys cannot be used.
    #[error("the keys in {place} cannot be used: {why}")]
    Keys {
        /// The file or variable.
        place: String,
        /// The problem and the advice; never a key.
        why: String,
    },
    /// An I/O operation of the store failed.
    #[error("{what}: {source}")]
    Io {
        /// The operation, with the path.
        what: String,
        /// The error.
        source: std::io::Error,
    },
}

impl StoreError {
    /// Returns whether a retry may succeed.
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
