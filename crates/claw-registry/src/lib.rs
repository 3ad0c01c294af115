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
mod bound_tool;
mod call_spans;
mod execute;
mod executor;
mod guard;
mod offer;
mod output;
mod parallel_calls;
mod processes;
pub mod rate_limiter;
mod recorded_operation;
mod registry;
mod reply;
mod scrub;
mod settings;
mod shell_settings;
pub mod skill_checks;
mod tool_layer;
mod tool_overlay;
mod unified_diff;

pub use approver::{ApprovalAnswer, Approver};
pub use bound_tool::BoundTool;
pub use call_spans::CallSpan;
pub use execute::{Arguments, Asking, Paused, Rehearsal, RehearsedVerdict, Request, TimeLimit};
pub use executor::{Executor, ExecutorBuilder, Limits, WeakExecutor};
pub use guard::{AgentFiles, FileRules};
pub use offer::{Offer, OfferOptions};
pub use recorded_operation::{Operation, Recorder};
pub use registry::{
    Context, Discovered, Discovery, Factory, Listing, RegisterError, Registry, Status, Version,
};
pub use reply::{CallError, Refusal, Reply, Step, Waiting};
pub use scrub::{CallScrubber, Saying, Scrubbers, SecretError};
pub use shell_settings::{AgentCommands, CommandRules};
pub use tool_layer::{CallerTools, ToolLayer};
pub use tool_overlay::OverlayScope;
pub use unified_diff::unified_diff;
