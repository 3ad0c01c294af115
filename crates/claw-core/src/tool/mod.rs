//! Tools, and everything that travels with a call of one.
//!
//! - Authors write a [`Tool`]: typed arguments, a constant [`Meta`], a pure [`plan`](Tool::plan), a `run`.
//! - The registry stores [`AnyTool`], made by [`erase`]; tools whose schema is known only at run time (MCP,
//!   custom) implement that one directly.
//! - A [`Plan`] states, before anything happens, the effects of one call and what it asks of the world.
//! - A [`Call`] carries the caller, and the ports through which the tool acts.
//! - An [`Output`] or a [`ToolError`] is the result.
//!
//! ```
//! use claw_core::tool::{Call, Group, Meta, Output, Tool, ToolError};
//!
//! struct Greet;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Args {
//!     /// Who to greet.
//!     name: String,
//! }
//!
//! impl Tool for Greet {
//!     type Args = Args;
//!     const META: Meta = Meta::new("greet", Group::named("demo")).about("Say hello to someone.");
//!
//!     async fn run(&self, _call: &Call, args: Args) -> Result<Output, ToolError> {
//!         Ok(Output::text(format!("Hello, {}!", args.name)))
//!     }
//! }
//! ```

mod alias;
mod call;
mod effect;
mod error;
mod group;
mod meta;
mod output;
mod plan;
mod source;
mod spec;
mod tool_trait;

pub use alias::Aliases;
pub use call::{Call, CallParts, Caller, CallingModel, PeerKind, Progress, Secrets, SubagentDepth};
pub use effect::{Effect, Effects, UnknownEffect};
pub use error::{ErrorKind, ToolError};
pub use group::{Group, Section};
pub use meta::{Cost, Meta, Profile, Source};
pub use output::{Block, Media, Output, Usage};
pub use plan::{
    Argv, Ask, Digest, Facts, Given, GivenPath, Identity, Input, Origin, Plan, Script, SecretVariables,
    Sight, Target,
};
pub use source::{ToolSource, Unavailable};
pub use spec::Spec;
pub use tool_trait::{AnyTool, Tool, erase};

pub use crate::port::Need;
