//! The sessions of a person on this machine: finding, choosing, naming, forking and removing them.

use std::fs::File;
use std::path::{Path, PathBuf};

use claw_core::message::Part;
use claw_core::port::{Clock as _, UnixMillis};
use claw_core::store::{Circle, Conversation, ConversationPage, Fork, MessagePage, Role};
use claw_core::tool::{Caller, Digest};
use claw_core::{MessageId, SessionKey, TenantId};
use claw_host::SystemClock;
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use super::session_lock::{is_locked, lock};
use super::{App, Error, workspace_session};

/// The channel of sessions at a terminal.
const CHANNEL: &str = "cli";
/// The most sessions searched.
const MOST: usize = 500;
/// The longest title, in characters.
const LONGEST_TITLE: usize = 120;
/// The characters of a session's first words shown if it has no title.
const ABOUT: usize = 60;

/// A session, as its owner sees it in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionView {
    /// Short id, by which it is named at the command line.
    pub id: String,
    /// The session's key.
    pub session: SessionKey,
    /// The title that its owner gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The session's title, or its first words.
    pub about: String,
    /// The directory that the agent works in.
    pub workspace: Option<PathBuf>,
    /// The time of its first message.
    pub started: UnixMillis,
    /// The time of its last message from its owner.
    pub last: UnixMillis,
    /// The number of messages.
    pub messages: u64,
    /// True if a run of it is in progress.
    pub running: bool,
    /// True if a terminal of this machine has it open.
    pub open: bool,
}

/// The session that a chat is to be about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChoice {
    /// A new session.
    New,
    /// The latest session of the workspace that no terminal has open; a new one if there is none.
    Latest,
    /// The latest session of the workspace; an error if there is none.
    Continue,
    /// The session with this id, key or title.
    Named(String),
}

/// A session that was chosen. Dropping it lets another terminal have it.
#[derive(Debug)]
pub struct ChosenSession {
    /// The session's key.
    pub session: SessionKey,
    /// The session as it was; `None` if it is new.
    pub earlier: Option<SessionView>,
    _held: Option<File>,
}

/// The text of a message, shortened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Said {
    /// The speaker.
    pub role: Role,
    /// The words, without calls and results.
    pub text: String,
}

impl App {
    /// Returns the sessions of this caller at a terminal, the latest first; with `workspace`, only those of
    /// it.
    pub async fn session_list(
        &self,
        caller: &Caller,
        workspace: Option<&Path>,
    ) -> Result<Vec<SessionView>, Error> {
        let page = ConversationPage { since: None, after: None, limit: MOST };
        let found = self.store.conversations(&caller.tenant, &Circle::of(caller), &page).await?;
        let mut views = Vec::new();
        for found in found.into_iter().filter(|found| found.party.channel == CHANNEL) {
            let of = workspace_of(&found);
            if workspace.is_none_or(|workspace| of.as_deref() == Some(workspace)) {
                views.push(self.view(caller, found, of).await?);
            }
        }
        Ok(views)
    }

    async fn view(
        &self,
        caller: &Caller,
        found: Conversation,
        workspace: Option<PathBuf>,
    ) -> Result<SessionView, Error> {
        let first = match &found.title {
            Some(_) => Vec::new(),
            None => self.store.messages(&caller.tenant, &found.session, 0, 1).await?,
        };
        let first = first.first().map(|first| shortened(&words(&first.new.content), ABOUT));
        let open = self.lock_file(&found.session).is_some_and(|path| is_locked(&path));
        Ok(SessionView {
            id: short_id(&found.session),
            about: found.title.clone().or(first).unwrap_or_default(),
            title: found.title,
            workspace,
            started: found.started,
            last: found.last,
            messages: found.messages,
            running: found.running,
            open,
            session: found.session,
        })
    }

    /// Returns the caller's session of this id, key or title; an unambiguous beginning of an id is enough.
    pub async fn session_named(&self, caller: &Caller, name: &str) -> Result<SessionView, Error> {
        let list = self.session_list(caller, None).await?;
        let exact = |view: &&SessionView| {
            view.session.as_str() == name || view.id == name || view.title.as_deref() == Some(name)
        };
        if let Some(view) = list.iter().find(exact) {
            return Ok(view.clone());
        }
        let by_start: Vec<&SessionView> =
            list.iter().filter(|view| name.len() >= 2 && view.id.starts_with(name)).collect();
        match by_start[..] {
            [one] => Ok(one.clone()),
            [] => Err(Error::invalid(format!("there is no session `{name}` of yours"))
                .hint("clawsmith sessions list")),
            _ => Err(Error::invalid(format!("{} sessions begin with `{name}`", by_start.len()))
                .hint("give more of its id")),
        }
    }

    /// Chooses the session of a caller's chat, and locks it if `hold`.
    pub async fn choose_session(
        &self,
        caller: &Caller,
        choice: &SessionChoice,
        hold: bool,
    ) -> Result<ChosenSession, Error> {
        let of_workspace = Some(caller.workspace.as_path());
        let earlier = match choice {
            SessionChoice::New => None,
            SessionChoice::Latest => {
                let list = self.session_list(caller, of_workspace).await?;
                list.into_iter().find(|view| !hold || !view.open)
            }
            SessionChoice::Continue => {
                let none = || {
                    let shown = caller.workspace.display();
                    Error::invalid(format!("there is no session in `{shown}` yet")).hint("clawsmith chat")
                };
                Some(self.session_list(caller, of_workspace).await?.into_iter().next().ok_or_else(none)?)
            }
            SessionChoice::Named(name) => Some(self.session_named(caller, name).await?),
        };
        let session = match &earlier {
            Some(view) => view.session.clone(),
            None => workspace_session(caller, Some(&MessageId::new().to_string()[24..]))?,
        };
        let mut held = None;
        if hold && let Some(path) = self.lock_file(&session) {
            held = lock(&path);
            match (choice, &held) {
                (SessionChoice::Continue | SessionChoice::Named(_), None) => {
                    let id = short_id(&session);
                    return Err(Error::invalid(format!("session `{id}` is open in another terminal"))
                        .hint(format!("clawsmith sessions fork {id}, or `--new`")));
                }
                // Another terminal was faster.
                (SessionChoice::Latest, None) => {
                    return Box::pin(self.choose_session(caller, &SessionChoice::New, hold)).await;
                }
                _ => {}
            }
        }
        Ok(ChosenSession { session, earlier, _held: held })
    }

    /// Sets the title of a caller's session; an empty one removes it.
    pub async fn rename_session(
        &self,
        caller: &Caller,
        session: &SessionKey,
        title: &str,
    ) -> Result<(), Error> {
        self.rename_session_of(&caller.tenant, &Circle::of(caller), session, title).await
    }

    /// Sets the title of a session of a circle; an empty one removes it.
    pub async fn rename_session_of(
        &self,
        tenant: &TenantId,
        circle: &Circle,
        session: &SessionKey,
        title: &str,
    ) -> Result<(), Error> {
        let title = title.trim();
        if title.chars().count() > LONGEST_TITLE || title.chars().any(char::is_control) {
            let message = format!("a title has at most {LONGEST_TITLE} characters and is one line");
            return Err(Error::invalid(message));
        }
        self.must_hold_no_secret("the title", title).await?;
        let title = Some(title).filter(|title| !title.is_empty());
        let found = self.store.rename_conversation(tenant, circle, session, title).await?;
        found.then_some(()).ok_or_else(|| gone(session))
    }

    /// Copies the messages of a session to a new one of the same owner and workspace; returns the new key.
    pub async fn fork_session(&self, caller: &Caller, session: &SessionKey) -> Result<SessionKey, Error> {
        self.fork_session_of(&caller.tenant, &Circle::of(caller), session).await
    }

    /// Copies the messages of a circle's session to a new one; returns the new key.
    pub async fn fork_session_of(
        &self,
        tenant: &TenantId,
        circle: &Circle,
        session: &SessionKey,
    ) -> Result<SessionKey, Error> {
        let new = &MessageId::new().to_string()[24..];
        // The last part of some keys is the user, and another name there would be another's.
        let ends_with_user =
            session.as_str().split(':').count() == 5 && session.as_str().contains(":direct:");
        let fork = if ends_with_user { format!("{session}:fork-{new}") } else { format!("{session}-{new}") };
        let fork = SessionKey::new(fork).map_err(|error| Error::invalid(error.to_string()))?;
        let at = SystemClock.now();
        match self.store.fork_conversation(tenant, circle, session, Fork { to: &fork, at }).await? {
            true => Ok(fork),
            false => Err(gone(session)),
        }
    }

    /// Removes a caller's session and its messages. The ledger and file changes stay.
    pub async fn remove_session(&self, caller: &Caller, session: &SessionView) -> Result<(), Error> {
        self.remove_session_of(&caller.tenant, &Circle::of(caller), &session.session).await
    }

    /// Removes a session of a circle and its messages. The ledger and file changes stay.
    pub async fn remove_session_of(
        &self,
        tenant: &TenantId,
        circle: &Circle,
        session: &SessionKey,
    ) -> Result<(), Error> {
        if self.lock_file(session).is_some_and(|path| is_locked(&path)) {
            let message = format!("session `{}` is open in another terminal", short_id(session));
            return Err(Error::invalid(message).hint("close it there first"));
        }
        let found = self.store.remove_conversation(tenant, circle, session).await?;
        found.then_some(()).ok_or_else(|| gone(session))
    }

    /// Returns the last messages of the user and the agent in a session, oldest first.
    pub async fn recap(
        &self,
        caller: &Caller,
        session: &SessionKey,
        most: usize,
    ) -> Result<Vec<Said>, Error> {
        let circle = Circle::of(caller);
        let page = MessagePage::last(most.saturating_mul(8));
        let said = self.store.said_in(&caller.tenant, &circle, session, page).await?;
        let said = said.unwrap_or_default().into_iter().filter_map(|message| {
            let text = words(&message.new.content);
            let is_said = matches!(message.new.role, Role::User | Role::Assistant) && !text.is_empty();
            is_said.then_some(Said { role: message.new.role, text })
        });
        let said: Vec<Said> = said.collect();
        Ok(said[said.len().saturating_sub(most)..].to_vec())
    }
}

/// The id by which a session is named at the command line.
pub fn short_id(session: &SessionKey) -> String {
    let digest = Digest::of_bytes(session.as_str().as_bytes()).to_string();
    digest.trim_start_matches("sha256:").chars().take(8).collect()
}

/// Returns the text of a message in one line, without calls and results.
pub fn words(content: &Value) -> String {
    let parts = Vec::<Part>::deserialize(content).unwrap_or_default();
    let text = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let text: Vec<&str> = text.flat_map(str::split_whitespace).collect();
    text.join(" ")
}

/// A text of at most so many characters.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

fn workspace_of(found: &Conversation) -> Option<PathBuf> {
    found.order.get("workspace")?.as_str().map(PathBuf::from)
}

fn gone(session: &SessionKey) -> Error {
    Error::invalid(format!("session `{session}` is gone")).hint("clawsmith sessions list")
}
