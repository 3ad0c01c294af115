//! Documents of the store as the caller sees them: the user's if there is one, else the agent's own.

use std::collections::BTreeMap;
use std::sync::Arc;

use claw_core::port::{AgentDirectory, Clock, Expect, Stat, UnixMillis, Version};
use claw_core::store::{
    AgentKind, Document, DocumentCard, DocumentKey, DocumentWrite, Documents, Shelf, StoreError,
};
use claw_core::tool::{Caller, ErrorKind, ToolError};

/// The document that tells an agent how to begin. An empty one counts as none.
pub(super) const BOOTSTRAP: &str = "BOOTSTRAP.md";
/// The document that every user of every agent has for themselves.
const USER: &str = "USER.md";

/// The documents of one store.
pub(super) struct Shelves {
    pub(super) documents: Arc<dyn Documents>,
    pub(super) agents: Arc<dyn AgentDirectory>,
    pub(super) clock: Arc<dyn Clock>,
}

/// The place of one document.
pub(super) struct Spot<'a> {
    pub(super) shelf: Shelf,
    /// The document's path in the workspace.
    pub(super) path: &'a str,
    /// The document's path as the tool got it, for messages.
    pub(super) shown: &'a str,
}

/// A caller's rights to a document.
struct Rights {
    /// The user has a document of their own.
    own: bool,
    /// The caller may write the document.
    write: bool,
}

/// A document as it is read and as it is written; they differ while the user has none of their own.
struct Both {
    /// The document that writes and removals change.
    mine: Option<Document>,
    /// The document that reads return.
    seen: Option<Document>,
    /// The key that writes go to.
    key: DocumentKey,
}

impl Shelves {
    /// The kind of the caller's agent. An agent that was never set up is shaped by its users.
    async fn kind(&self, caller: &Caller) -> Result<AgentKind, ToolError> {
        let agent = self.agents.agent(&caller.tenant, &caller.agent).await?;
        Ok(agent.map_or(AgentKind::Open, |agent| agent.kind))
    }

    async fn rights(&self, caller: &Caller, shelf: Shelf, path: &str) -> Result<Rights, ToolError> {
        if shelf == Shelf::Memory {
            return Ok(Rights { own: caller.user.is_some(), write: true });
        }
        Ok(match self.kind(caller).await? {
            AgentKind::Open => Rights { own: caller.user.is_some(), write: true },
            AgentKind::Predefined => {
                let own = path == USER && caller.user.is_some();
                Rights { own, write: own }
            }
        })
    }

    async fn both(&self, caller: &Caller, spot: &Spot<'_>) -> Result<(Both, Rights), ToolError> {
        let rights = self.rights(caller, spot.shelf, spot.path).await?;
        let key = |user| DocumentKey {
            tenant: caller.tenant.clone(),
            agent: Some(caller.agent.clone()),
            user,
            shelf: spot.shelf,
            path: spot.path.to_owned(),
        };
        let find = async |key: &DocumentKey| self.documents.document(key).await.map_err(ToolError::internal);
        let base = key(None);
        let both = if rights.own {
            let own = key(caller.user.clone());
            let mine = find(&own).await?;
            let seen = match &mine {
                Some(mine) => Some(mine.clone()),
                None => find(&base).await?,
            };
            Both { mine, seen, key: own }
        } else {
            let mine = find(&base).await?;
            Both { seen: mine.clone(), mine, key: base }
        };
        let seen = both.seen.filter(|seen| !is_nothing(spot.path, &seen.text));
        Ok((Both { seen, ..both }, rights))
    }

    /// The text that is there, and whether it is untrusted; `None` where nothing is.
    pub(super) async fn get(
        &self,
        caller: &Caller,
        spot: &Spot<'_>,
    ) -> Result<Option<(String, Stat, bool)>, ToolError> {
        let (both, _) = self.both(caller, spot).await?;
        Ok(both.seen.map(|seen| {
            let stat = stat(&seen.key, seen.version, seen.text.len() as u64, seen.at);
            (seen.text, stat, seen.provenance.untrusted)
        }))
    }

    /// Writes a text, if the visible document meets the expectation.
    pub(super) async fn put(
        &self,
        caller: &Caller,
        spot: &Spot<'_>,
        text: &str,
        expect: Expect<'_>,
    ) -> Result<Stat, ToolError> {
        loop {
            let (both, rights) = self.both(caller, spot).await?;
            if !rights.write {
                return Err(read_only(spot.shown));
            }
            compare(expect, both.seen.as_ref(), spot.shown)?;
            let (seen, at) = (both.mine.as_ref().map(|mine| mine.version), self.clock.now());
            let written = if is_nothing(spot.path, text) && !self.has_base(&both.key).await? {
                match seen {
                    Some(seen) => self.documents.remove_document(&both.key, seen, at).await.map(|()| seen),
                    None => Ok(0),
                }
            } else {
                let provenance = caller.trace.provenance();
                // A text that was untrusted may still be in it, or come back by an undo.
                let write = DocumentWrite { text, seen, at, provenance, keeps_mark: true };
                self.documents.write_document(&both.key, write).await
            };
            match written {
                Ok(version) => return Ok(stat(&both.key, version, text.len() as u64, at)),
                // A writer without an expectation overwrites the change in between.
                Err(StoreError::Stale { .. }) if expect == Expect::Anything => {}
                Err(StoreError::Stale { .. }) if expect == Expect::Absent => return Err(exists(spot.shown)),
                Err(StoreError::Stale { .. }) => return Err(changed(spot.shown)),
                Err(error) => return Err(ToolError::internal(error)),
            }
        }
    }

    /// Returns whether the agent's own document would show if the user's were removed. If so, an empty user
    /// document stays in front of it.
    async fn has_base(&self, key: &DocumentKey) -> Result<bool, ToolError> {
        if key.user.is_none() {
            return Ok(false);
        }
        let base = DocumentKey { user: None, ..key.clone() };
        Ok(self.documents.document(&base).await.map_err(ToolError::internal)?.is_some())
    }

    /// Removes the document.
    pub(super) async fn remove(
        &self,
        caller: &Caller,
        spot: &Spot<'_>,
        expect: Expect<'_>,
    ) -> Result<(), ToolError> {
        let (both, rights) = self.both(caller, spot).await?;
        if both.seen.is_none() {
            return Err(super::absent(spot.shown));
        }
        if !rights.write {
            return Err(read_only(spot.shown));
        }
        compare(expect, both.seen.as_ref(), spot.shown)?;
        let Some(mine) = both.mine else {
            let message =
                format!("`{}` is shared by all users of the agent, so it is not removed", spot.shown);
            return Err(ToolError::new(ErrorKind::Forbidden, message)
                .try_instead("write the file instead: that creates a version for this user only"));
        };
        let removed = self.documents.remove_document(&both.key, mine.version, self.clock.now()).await;
        removed.map_err(|error| match error {
            StoreError::Stale { .. } => changed(spot.shown),
            error => ToolError::internal(error),
        })
    }

    /// The documents of a caller, by their paths.
    pub(super) async fn list(
        &self,
        caller: &Caller,
        shelf: Shelf,
    ) -> Result<BTreeMap<String, DocumentCard>, ToolError> {
        let kind = self.kind(caller).await?;
        let user = caller.user.as_ref();
        let cards = self.documents.documents(&caller.tenant, Some(&caller.agent), user, shelf).await;
        let mut listed = BTreeMap::new();
        for card in cards.map_err(ToolError::internal)? {
            let path = &card.key.path;
            let others = shelf == Shelf::Context && kind == AgentKind::Predefined && path != USER;
            if card.key.user.is_some() && others {
                continue;
            }
            // The agent's own come first, so that the user's take their place.
            listed.insert(path.clone(), card);
        }
        listed.retain(|path, card| !(path == BOOTSTRAP && card.bytes == 0));
        Ok(listed)
    }
}

/// Returns whether a text at this path counts as no document.
fn is_nothing(path: &str, text: &str) -> bool {
    path == BOOTSTRAP && text.is_empty()
}

fn stat(key: &DocumentKey, version: u64, size: u64, modified: UnixMillis) -> Stat {
    let whose = if key.user.is_some() { "user" } else { "agent" };
    let version = Version(format!("{whose}-{version}").into());
    Stat { directory: false, size, modified, version, mode: None }
}

fn compare(expect: Expect<'_>, seen: Option<&Document>, shown: &str) -> Result<(), ToolError> {
    let now = seen.map(|seen| stat(&seen.key, seen.version, 0, seen.at).version);
    match (expect, now) {
        (Expect::Anything, _) | (Expect::Absent, None) => Ok(()),
        (Expect::Version(version), Some(now)) if now == *version => Ok(()),
        (Expect::Absent, Some(_)) => Err(exists(shown)),
        (Expect::Version(_), _) => Err(changed(shown)),
    }
}

fn read_only(shown: &str) -> ToolError {
    let message = format!("`{shown}` belongs to the person who set up this agent and is read-only for tools");
    ToolError::new(ErrorKind::Forbidden, message).try_instead("write what concerns the user to `USER.md`")
}

fn exists(shown: &str) -> ToolError {
    ToolError::new(ErrorKind::Conflict, format!("`{shown}` exists already")).try_instead("read it first")
}

fn changed(shown: &str) -> ToolError {
    let message = format!("`{shown}` has changed since it was last checked");
    ToolError::new(ErrorKind::Conflict, message).try_instead("read it again")
}
