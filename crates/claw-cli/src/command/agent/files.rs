//! `clawsmith agent files`: the texts an agent lives by, as the store keeps them.

use std::io::{self, Read as _};

use clap::{Args, Subcommand};
use claw_core::UserId;
use claw_core::counted::counted;
use claw_terminal::Cell;
use clawsmith::app::context::{CONTEXT_FILES, ContextOwner};
use serde_json::json;

use super::Which;
use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};

/// The operations on context files.
#[derive(Debug, Subcommand)]
pub(crate) enum Files {
    /// List them.
    List(Whose),
    /// Print a context file.
    Get(Named),
    /// Write a context file: its text is read from standard input.
    Set(Named),
    /// Remove a context file.
    Remove(Named),
}

/// The owner of context files.
#[derive(Debug, Args)]
pub(crate) struct Whose {
    #[command(flatten)]
    which: Which,
    /// The user who owns the files [default: the agent's files, which all users share].
    #[arg(long, value_name = "ID")]
    user: Option<UserId>,
}

/// A context file.
#[derive(Debug, Args)]
pub(crate) struct Named {
    #[command(flatten)]
    whose: Whose,
    /// The file's name, such as `SOUL.md`.
    file: String,
}

impl Files {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::List(whose) => {
                let owner = whose.owner();
                let cards = session.app(async |app| app.context_files(&owner).await)?;
                session.list(
                    &cards,
                    &format!("agent `{}` has no context files", owner.agent),
                    &[
                        ("file", &|card| Cell::strong(&card.key.path)),
                        ("user", &|card| {
                            card.key.user.as_ref().map_or_else(|| Cell::quiet("all"), Cell::new)
                        }),
                        ("bytes", &|card| Cell::new(card.bytes)),
                        ("version", &|card| Cell::quiet(card.version)),
                    ],
                )
            }
            Self::Get(Named { whose, file }) => {
                let owner = whose.owner();
                let found = session.app(async |app| app.context_file(&owner, &file).await);
                let found = found.map_err(|failure| missing(failure, &file))?;
                let value = json!({ "file": file, "version": found.version, "text": found.text });
                session.shown(&value, |out| Ok(out.foreign(&found.text)?))
            }
            Self::Set(Named { whose, file }) => {
                let mut text = String::new();
                io::stdin().read_to_string(&mut text).map_err(|error| {
                    Failure::usage("the text could not be read from standard input").because(error)
                })?;
                let owner = whose.owner();
                let version =
                    session.app(async |app| app.write_context_file(&owner, &file, &text, None).await)?;
                let words =
                    format!("`{file}` of agent `{}` has {}", owner.agent, counted(text.len(), "byte"));
                session.told(&json!({ "set": file, "version": version }), words)
            }
            Self::Remove(Named { whose, file }) => {
                let owner = whose.owner();
                let removed = session.app(async |app| app.remove_context_file(&owner, &file, None).await);
                removed.map_err(|failure| missing(failure, &file))?;
                let words = format!("`{file}` of agent `{}` is removed", owner.agent);
                session.told(&json!({ "removed": file }), words)
            }
        }
    }
}

/// A wrong name is a mistake of the command line; a file that is not there makes the operation fail.
fn missing(failure: Failure, file: &str) -> Failure {
    match failure {
        Failure::Error(error) if CONTEXT_FILES.contains(&file) => Failure::Error(error.failing()),
        failure => failure,
    }
}

impl Whose {
    fn owner(self) -> ContextOwner {
        ContextOwner { agent: self.which.id, user: self.user }
    }
}
