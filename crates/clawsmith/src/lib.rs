//! Tools for AI agents, behind one guarded road.
//!
//! A [`Toolbox`] holds the built-in tools and those you add. You make an [`Offer`] for a caller, send its
//! tools to the model, and [`execute`](Executor::execute) the calls that the model requests. Every call is
//! authorised by the policy, rate limited, validated, planned, judged, recorded, run over guarded ports,
//! scrubbed of secrets and cut to size; there is no other way to a tool.
//!
//! ```
//! use clawsmith::{AgentId, Caller, Request, SessionKey, Toolbox};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let toolbox = Toolbox::builder().build()?;
//! let caller = Caller::new(AgentId::new("helper")?, SessionKey::new("demo:1")?, "/srv/demo");
//! let offer = toolbox.offer(caller).await;
//!
//! let reply = toolbox.execute(&offer, Request::new("workspace_dir", json!({}))).await;
//! assert_eq!(reply.model_text(), "/srv/demo");
//! # Ok(())
//! # }
//! ```
//!
//! # The parts
//!
//! - **Your tools** implement [`Tool`]: typed arguments, a constant [`Meta`], a `run`. Tools whose schema is
//!   known only at run time implement [`AnyTool`]. Register them with [`ToolboxBuilder::tool`], or later and
//!   lazily with [`Registry`].
//! - **The policy** is a [`PolicyConfig`]: who may call what. [`Policy::judge`] returns the verdict on one
//!   tool with the trace that led to it; the same function decides and explains.
//! - **The tool list for a model** is [`Offer::render`] in the [`Dialect`] of its provider.
//! - **The rate of calls** of a session is limited by a [`Limiter`]; background commands, and the tool
//!   `process` with them, need a [`ProcessKeeping`].
//! - **The known tools**, in this build and beyond it, are the [`catalogue`], by [`Section`]s in
//!   [`Registry::list_by_section`].
//! - **Who is asked** where a rule says ask is your [`Approver`], or whoever answers by the store.
//! - **The result of a call** is a [`Reply`]: an [`Output`], or why there is none.
//! - **The world** is a [`World`]: the files, commands and clocks that tools reach. Tools that need a
//!   missing part are listed as unavailable with the reason. Files are those of this machine
//!   ([`LocalFiles`]), in memory ([`MemoryFiles`]), in a store that several nodes may share ([`StoreFiles`]),
//!   with documents of a store in front ([`RoutedFiles`]), or those of your own [`FsBridge`](port::FsBridge),
//!   which the guard confines by the text of paths.
//! - **Records** go to a [`CallStore`](store::CallStore): in memory by default, in SQLite or PostgreSQL
//!   with [`ToolboxBuilder::store`] and the feature `store`; [`ToolboxBuilder::everything_in`] keeps the
//!   records of files there too, so that changes can be undone. Long results are kept in files with
//!   [`ToolboxBuilder::data_dir`].
//!
//! Names at the top are those that most programs need. Everything else that public types hold is in the modules
//! re-exported beside them: what travels with a call in [`tool`], rules and verdicts in [`policy`], schemas in [`schema`],
//! events in [`event`], where text of a run came from in [`provenance`].
//!
//! # Features
//!
//! By default the library has the road, policy, scrubbing and the file tools, over memory. `sandbox` adds a shell and the
//! kernel's sandbox for its commands, `docker` containers as a sandbox too, `store` SQLite and PostgreSQL, `models` the
//! model providers, `agent` an agent that runs. `app` is all of it, and the application that front ends share:
//! configuration, sessions, approvals, undo.
//!
//! # Examples
//!
//! | example | shows |
//! |---|---|
//! | `register_tool`, `lazy_factory` | [`Tool`], [`Meta`], [`Toolbox`] |
//! | `any_tool` | [`AnyTool`], [`Registry`], [`Section`], [`catalogue`] |
//! | `policy_explained` | [`PolicyConfig`], [`Policy`] |
//! | `schemas` | [`Offer`], [`Dialect`] |
//! | `limits` | [`Limiter`], [`MemoryFiles`], [`CallStore`](store::CallStore), [`Reply`] |
//! | `approvals` | [`Approver`], [`ApprovalConfig`] |
//! | `progress` | [`Progress`], [`Request`], [`Caller`] |
//! | `commands`, `background` | [`World`], [`LocalFiles`], [`Reply`], [`Output`], [`ProcessKeeping`] |
//! | `plans` | [`Plan`], [`Ask`], [`Rehearsal`] |
//! | `agent_loop`, `agent_with_model` | an agent by hand, and one with a model of a server |
//! | `own_files` | [`FsBridge`](port::FsBridge) |
//! | `store_files` | [`StoreFiles`], [`RoutedFiles`], [`ToolboxBuilder::everything_in`] |
//! | `front_end` | the application behind a front end |

#[cfg(feature = "app")]
pub mod app;
#[cfg(feature = "app")]
pub mod config;
mod toolbox;

#[cfg(feature = "agent")]
pub use claw_agent;
pub use claw_core::event::{Event, Listener, What};
pub use claw_core::port::{UnixMillis, World};
pub use claw_core::tool::{
    AnyTool, Ask, Block, Call, Caller, CallingModel, Cost, Digest, Effect, Effects, ErrorKind, Facts, Group,
    Meta, Need, Output, PeerKind, Plan, Profile, Progress, Section, Sight, Spec, SubagentDepth, Target, Tool,
    ToolError, ToolSource, Unavailable, erase,
};
pub use claw_core::{
    AccessRequestId, AgentId, ApprovalId, ArtifactId, BootId, CallId, EntityId, InstallationId, InvalidId,
    JobId, KeyId, MessageId, NodeId, ProcessId, ProgramName, RelationId, RuleId, SecretName, ServerName,
    SessionKey, SkillName, TenantId, ToolName, UndoId, UsageId, UserId,
};
pub use claw_core::{attachment, event, graph, image, message, port, provenance, redact, skill, store, tool};
pub use claw_host::files::{
    LocalFiles, MemoryFiles, RoutedFiles, Routing, StoreFiles, StoredSeen, StoredUndo, UndoLimits,
    workspace_path,
};
pub use claw_host::skills::{SkillOptions, SkillShelf};
pub use claw_host::{
    AgentResolver, ArtifactKeeping, ArtifactLimits, FileArtifacts, IndexedArtifacts, MemoryArtifacts,
    ProcessKeeping, ProcessLimits, ProcessTable, SystemClock,
};
pub use claw_schema as schema;
pub use claw_schema::dialect::Dialect;

#[cfg(feature = "models")]
pub use claw_llm;
pub use claw_policy as policy;
pub use claw_policy::approval::ApprovalConfig;
pub use claw_policy::config::{self as policy_config, PolicyConfig};
pub use claw_policy::explain::{Explanation, explain};
pub use claw_policy::pipeline::{Policy, PolicyError, Subject, ToolSet, Verdict};
pub use claw_policy::rate_config::RateConfig;
pub use claw_policy::scrub::Scrubber;
pub use claw_registry::rate_limiter::Limiter;
pub use claw_registry::{
    AgentCommands, AgentFiles, ApprovalAnswer, Approver, Arguments, Asking, BoundTool, CallError,
    CallScrubber, CallSpan, CallerTools, CommandRules, Context, Discovered, Discovery, Executor,
    ExecutorBuilder, Factory, FileRules, Limits, Listing, Offer, OfferOptions, Operation, OverlayScope,
    Paused, Recorder, Refusal, RegisterError, Registry, Rehearsal, RehearsedVerdict, Reply, Request, Saying,
    Scrubbers, SecretError, Status, Step, TimeLimit, ToolLayer, Version, Waiting, WeakExecutor, unified_diff,
};
#[cfg(feature = "sandbox")]
pub use claw_sandbox::{self as sandbox, shell};
#[cfg(feature = "store")]
pub use claw_store;
pub use claw_store_memory::MemoryStore;
pub use claw_tools::{Builtin, absent, builtin, catalogue};
pub use toolbox::{BuildError, Toolbox, ToolboxBuilder, populate};

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
