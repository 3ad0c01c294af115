//! Context files of agents: `SOUL.md`, `AGENTS.md` and their like, kept in the store for an agent or for one of its users.

use claw_core::port::Clock as _;
use claw_core::store::{Document, DocumentCard, DocumentKey, Shelf};
use claw_core::{AgentId, UserId};
use claw_host::SystemClock;

use super::{App, Error};

/// The names that context files have.
pub const CONTEXT_FILES: &[&str] =
    &["SOUL.md", "IDENTITY.md", "AGENTS.md", "TOOLS.md", "HEARTBEAT.md", "USER.md", "BOOTSTRAP.md"];

/// The longest context file, in bytes.
const LONGEST: usize = 256 * 1024;

/// The agent of a context file, and its user, if it is a user's own.
#[derive(Debug, Clone)]
pub struct ContextOwner {
    /// The agent.
    pub agent: AgentId,
    /// The user who owns the file; `None` for the agent's file, which all users share.
    pub user: Option<UserId>,
}

impl App {
    /// Returns the context files of an agent, and those of a user beside them.
    pub async fn context_files(&self, owner: &ContextOwner) -> Result<Vec<DocumentCard>, Error> {
        let (agent, user) = (Some(&owner.agent), owner.user.as_ref());
        let files = self.store.documents(self.tenant(), agent, user, Shelf::Context).await?;
        // Files of a removed agent are still shown; a misspelt one has none.
        if files.is_empty() {
            self.must_have_agent(owner.agent.as_str()).await?;
        }
        Ok(files)
    }

    /// Returns a context file; an error if it does not exist.
    pub async fn context_file(&self, owner: &ContextOwner, name: &str) -> Result<Document, Error> {
        let found = self.store.document(&self.context_key(owner, name)?).await?;
        found.ok_or_else(|| missing(owner, name))
    }

    /// Writes a context file; returns its version. If `seen` is given, the file must have that version.
    pub async fn write_context_file(
        &self,
        owner: &ContextOwner,
        name: &str,
        text: &str,
        seen: Option<u64>,
    ) -> Result<u64, Error> {
        let key = self.context_key(owner, name)?;
        self.must_have_agent(owner.agent.as_str()).await?;
        if text.len() > LONGEST || text.contains('\0') {
            return Err(Error::invalid(format!(
                "a context file has at most {LONGEST} bytes and no NUL; this has {}",
                text.len()
            )));
        }
        let before = self.store.document(&key).await?.map(|document| document.version);
        Ok(self.store.put_document(&key, text, seen.or(before), SystemClock.now()).await?)
    }

    /// Removes a context file. If `seen` is given, the file must have that version.
    pub async fn remove_context_file(
        &self,
        owner: &ContextOwner,
        name: &str,
        seen: Option<u64>,
    ) -> Result<(), Error> {
        let before = self.context_file(owner, name).await?.version;
        let key = self.context_key(owner, name)?;
        Ok(self.store.remove_document(&key, seen.unwrap_or(before), SystemClock.now()).await?)
    }

    fn context_key(&self, owner: &ContextOwner, name: &str) -> Result<DocumentKey, Error> {
        if !CONTEXT_FILES.contains(&name) {
            let shown: String = name.chars().take(100).collect();
            let error = Error::not_found(format!("`{shown}` is not the name of a context file"));
            return Err(error.hint(format!("one of {}", CONTEXT_FILES.join(", "))));
        }
        Ok(DocumentKey {
            tenant: self.tenant().clone(),
            agent: Some(owner.agent.clone()),
            user: owner.user.clone(),
            shelf: Shelf::Context,
            path: name.to_owned(),
        })
    }
}

fn missing(owner: &ContextOwner, name: &str) -> Error {
    let of = owner.user.as_ref().map(|user| format!(" for user `{user}`")).unwrap_or_default();
    Error::not_found(format!("agent `{}` has no `{name}`{of}", owner.agent))
        .hint(format!("clawsmith agent files list {}", owner.agent))
}
