//! `clawsmith tools`: list, show, call, schema; and custom tools: add, test, edit, disable, enable, remove.

pub(crate) mod approve;
mod call;
mod custom;
mod list;
mod schema;
mod show;

use clap::Subcommand;

pub(crate) use self::call::{CallOptions, CallTool, read};
use crate::cli::Session;
use crate::exit_code::Outcome;

/// The operations on tools.
#[derive(Debug, Subcommand)]
pub(crate) enum Tools {
    /// List the tools: whether each works here, its effects, and whether the caller may use it.
    List(list::List),
    /// Show everything about one tool.
    Show(show::Show),
    /// Call a tool as an agent does, through every check.
    Call(call::CallTool),
    /// Print tool definitions in the form of a model provider's API.
    Schema(schema::SchemaOf),
    /// Define a custom tool: a command, a program or a request that agents call like any other tool.
    Add(custom::Add),
    /// Call a custom tool as an agent would, and name the grant that it lacks.
    Test(custom::Test),
    /// Change a custom tool; running sessions see it with their next call.
    Edit(custom::Edit),
    /// Stop offering a custom tool.
    Disable(custom::Named),
    /// Offer a custom tool again.
    Enable(custom::Named),
    /// Remove a custom tool and its secrets.
    Remove(custom::Named),
}

impl Tools {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::List(list) => list.run(session),
            Self::Show(show) => show.run(session),
            Self::Call(call) => call.run(session),
            Self::Schema(schema) => schema.run(session),
            Self::Add(add) => add.run(session),
            Self::Test(test) => test.run(session),
            Self::Edit(edit) => edit.run(session),
            Self::Disable(named) => named.enable(session, false),
            Self::Enable(named) => named.enable(session, true),
            Self::Remove(named) => named.remove(session),
        }
    }
}
