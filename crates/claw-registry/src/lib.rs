//! The registry of tools, and the one road every call takes.
//!
//! ```text
//!  find → authorise → limit → validate → plan, look, judge (ask) → record → run → finish
//! ```
//!
//! [`Registry`] holds the tools. Only the [`Executor`] runs them. An [`Offer`] is the set of tools that one
//! caller may call; a [`Request`] against it gives a [`Reply`].

mod approval;
mod approver;
mod batch;
mod bound;
mod commands;
mod execute;
mod executor;
mod guard;
mod offer;
mod operation;
mod output;
mod processes;
pub mod rate_limiter;
mod registry;
mod reply;
mod scrub;
mod settings;
pub mod skills;
mod tool_layer;
mod tool_overlay;
mod traced;

pub use approver::{ApprovalAnswer, Approver};
pub use bound::BoundTool;
pub use commands::{AgentCommands, CommandRules};
pub use execute::{Arguments, Asking, Paused, Rehearsal, RehearsedVerdict, Request, TimeLimit};
pub use executor::{Executor, ExecutorBuilder, Limits, WeakExecutor};
pub use guard::{AgentFiles, FileRules, unified_diff};
pub use offer::{Offer, OfferOptions};
pub use operation::{Operation, Recorder};
pub use registry::{
    Context, Discovered, Discovery, Factory, Listing, RegisterError, Registry, Status, Version,
};
pub use reply::{CallError, Refusal, Reply, Step, Waiting};
pub use scrub::{CallScrubber, Saying, Scrubbers, SecretError};
pub use tool_layer::{CallerTools, ToolLayer};
pub use tool_overlay::OverlayScope;
pub use traced::CallSpan;
