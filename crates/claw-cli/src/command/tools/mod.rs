//! `clawsmith tools`: list, show, call, schema.

pub(crate) mod approve;
mod call;
mod list;
mod schema;
mod show;

use clap::Subcommand;
use claw_core::tool::Meta;
use claw_policy::nearest::nearest;

pub(crate) use self::call::{CallOptions, CallTool, read, workspace};
use crate::cli::Session;
use crate::failure::{Failure, Outcome};

/// What to do with tools.
#[derive(Debug, Subcommand)]
pub(crate) enum Tools {
    /// List the tools: whether each works here, what it may do, and whether the caller may use it.
    List(list::List),
    /// Show everything about one tool.
    Show(show::Show),
    /// Call a tool, by the road that every call takes.
    Call(call::CallTool),
    /// Print tool definitions as a model provider's API takes them.
    Schema(schema::SchemaOf),
}

impl Tools {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::List(list) => list.run(session),
            Self::Show(show) => show.run(session),
            Self::Call(call) => call.run(session),
            Self::Schema(schema) => schema.run(session),
        }
    }
}

/// A runtime on this thread alone: one command makes one call.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::failed("the runtime could not be started").because(error))
}

/// The known tool of this name or alias.
fn known(name: &str) -> Result<Meta, Failure> {
    let catalogue = claw_tools::catalogue();
    let by_name = catalogue.iter().find(|meta| meta.name.as_str() == name);
    if let Some(meta) = by_name.or_else(|| catalogue.iter().find(|meta| meta.aliases.contains(name))) {
        return Ok(meta.clone());
    }
    let failure = Failure::usage(format!("there is no tool called `{name}`"));
    Err(match nearest(name, catalogue.iter().map(|meta| meta.name.as_str())) {
        Some(near) => failure.hint(format!("clawsmith tools show {near}")),
        None => failure.hint("clawsmith tools list --all"),
    })
}

fn is_in_build(meta: &Meta) -> bool {
    claw_tools::builtin().any(|tool| tool.meta.name == meta.name)
}
