//! `clawsmith agent files`: the texts an agent lives by, as the store keeps them.

use std::io::{self, Read as _};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use claw_core::port::Clock as _;
use claw_core::store::{DocumentCard, DocumentKey, Shelf, StoreError};
use claw_core::{AgentId, TenantId, UserId};
use claw_host::SystemClock;
use claw_store::Backend;
use clawsmith::app::Setup;
use clawsmith::app::context::CONTEXT_FILES;
use serde_json::json;

use super::{Which, failed};
use crate::caller;
use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::opened::with_app;
use crate::output::{Cell, Table};

/// The operations on context files.
#[derive(Debug, Subcommand)]
pub(crate) enum Files {
    /// List them.
    #[command(after_help = "Examples:
  clawsmith agent files list researcher
  clawsmith agent files list researcher --user ada")]
    List(Whose),
    /// Print a context file.
    #[command(after_help = "Examples:
  clawsmith agent files get researcher SOUL.md")]
    Get(Named),
    /// Write a context file: its text is read from standard input.
    #[command(after_help = "Examples:
  clawsmith agent files set researcher SOUL.md < soul.md")]
    Set(Named),
    /// Remove a context file.
    #[command(after_help = "Examples:
  clawsmith agent files remove researcher BOOTSTRAP.md")]
    Remove(Named),
}

/// The owner of context files.
#[derive(Debug, Args)]
pub(crate) struct Whose {
    #[command(flatten)]
    which: Which,
    /// The user who owns the files [default: the agent's own, for all users].
    #[arg(long, value_name = "ID")]
    user: Option<String>,
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
            Self::List(whose) => whose.list(session),
            Self::Get(named) => named.get(session),
            Self::Set(named) => named.set(session),
            Self::Remove(named) => named.remove(session),
        }
    }
}

/// Returns the context files of an agent, and a user's beside them.
pub(super) async fn cards(
    store: &Arc<dyn Backend>,
    tenant: &TenantId,
    agent: &AgentId,
    user: Option<&UserId>,
) -> Result<Vec<DocumentCard>, Failure> {
    store.documents(tenant, Some(agent), user, Shelf::Context).await.map_err(failed)
}

impl Whose {
    fn user(&self) -> Result<Option<UserId>, Failure> {
        let user = self.user.as_ref().map(UserId::new).transpose();
        user.map_err(|error| Failure::usage(error.to_string()))
    }

    fn list(&self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let (id, user) = (self.which.id()?, self.user()?);
        let cards = with_app(&setup, async |app| {
            let store = app.store();
            cards(store, app.tenant(), &id, user.as_ref()).await
        })?;
        if session.out.json {
            session.out.json(&cards)?;
            return Ok(ExitCode::SUCCESS);
        }
        if cards.is_empty() {
            // Files of a removed agent are still shown; a misspelt one has none.
            caller::must_be_set_up(id.as_str(), &setup)?;
            session.out.line(format_args!("agent `{id}` has no context files"))?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut table = Table::new(["file", "user", "bytes", "version"]);
        for card in &cards {
            let user = match &card.key.user {
                Some(user) => Cell::new(user),
                None => Cell::quiet("all"),
            };
            table.row([Cell::strong(&card.key.path), user, Cell::new(card.bytes), Cell::quiet(card.version)]);
        }
        session.out.table(&table)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Named {
    fn key(&self, setup: &Setup) -> Result<DocumentKey, Failure> {
        if !CONTEXT_FILES.contains(&self.file.as_str()) {
            let failure = Failure::usage(format!("`{}` is not the name of a context file", self.file));
            return Err(failure.hint(format!("one of {}", CONTEXT_FILES.join(", "))));
        }
        Ok(DocumentKey {
            tenant: setup.config().tenant.clone(),
            agent: Some(self.whose.which.id()?),
            user: self.whose.user()?,
            shelf: Shelf::Context,
            path: self.file.clone(),
        })
    }

    fn get(&self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let key = self.key(&setup)?;
        let document = with_app(&setup, async |app| {
            let store = app.store();
            store.document(&key).await.map_err(failed)
        })?;
        let document = document.ok_or_else(|| self.missing(&key))?;
        if session.out.json {
            session
                .out
                .json(&json!({ "file": key.path, "version": document.version, "text": document.text }))?;
        } else {
            session.out.foreign(&document.text)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn set(&self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let key = self.key(&setup)?;
        caller::must_be_set_up(agent_of(&key), &setup)?;
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map_err(|error| {
            Failure::usage("the text could not be read from standard input").because(error)
        })?;
        let version = with_app(&setup, async |app| {
            let store = app.store();
            let seen = store.document(&key).await.map_err(failed)?.map(|document| document.version);
            store.put_document(&key, &text, seen, SystemClock.now()).await.map_err(changed)
        })?;
        if session.out.json {
            session.out.json(&json!({ "set": key.path, "version": version }))?;
        } else {
            session.out.line(format_args!(
                "`{}` of agent `{}` has {} bytes",
                key.path,
                agent_of(&key),
                text.len()
            ))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn remove(&self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let key = self.key(&setup)?;
        with_app(&setup, async |app| {
            let store = app.store();
            let document = store.document(&key).await.map_err(failed)?.ok_or_else(|| self.missing(&key))?;
            store.remove_document(&key, document.version, SystemClock.now()).await.map_err(changed)
        })?;
        if session.out.json {
            session.out.json(&json!({ "removed": key.path }))?;
        } else {
            session.out.line(format_args!("`{}` of agent `{}` is removed", key.path, agent_of(&key)))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn missing(&self, key: &DocumentKey) -> Failure {
        let of = key.user.as_ref().map(|user| format!(" for user `{user}`")).unwrap_or_default();
        Failure::failed(format!("agent `{}` has no `{}`{of}", agent_of(key), key.path))
            .hint(format!("clawsmith agent files list {}", agent_of(key)))
    }
}

fn agent_of(key: &DocumentKey) -> &str {
    key.agent.as_ref().map_or("", AgentId::as_str)
}

fn changed(error: StoreError) -> Failure {
    match error {
        StoreError::Stale { .. } => {
            Failure::failed("somebody else wrote the file meanwhile, and nothing was changed")
                .hint("try again")
        }
        error => failed(error),
    }
}
