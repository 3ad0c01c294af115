//! One agent: its prompt, its history, its calls, and runs that survive crashes.
//!
//! ```text
//!  message → queue → worker → turn: prompt, history, think, act, observe, until the model stops
//! ```
//!
//! A [`Deployment`] holds the parts that runs need. [`Order::accept`] stores a message and the job that
//! answers it. A [`Worker`] takes such jobs and carries each to its end; after a crash, from where it
//! stopped. Messages are stored before their calls are made, so that every action is on record.

mod call_events;
mod call_result;
mod client_tools;
mod context_window;
mod deployment;
mod error;
mod history;
mod images;
mod limits;
mod order;
mod other_sessions;
mod prompt;
mod repeated_calls;
mod run;
mod session_key;
mod worker;

pub use call_events::Chronicle;
pub use client_tools::{ClientChoice, ClientTool, ClientTools, client_result};
pub use deployment::{Deployment, ModelChoice, Profile, Profiles};
pub use error::RunError;
pub use history::History;
pub use limits::{LoopLimits, Meanwhile, RunLimits, Threshold};
pub use order::{Acceptance, Budget, Order};
pub use other_sessions::StoredTalks;
pub use prompt::project_instructions::ProjectFiles;
pub use repeated_calls::{Finding, Loops};
pub use session_key::{Peer, key};
pub use worker::{Worker, WorkerOptions};

pub use claw_core::store::RunEnd as End;
