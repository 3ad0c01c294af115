//! Sessions as tools see them, over the store: a list, the messages, sending to another one.
//!
//! The store decides who may see which session ([`Circle`]). This module makes stored messages readable and
//! delivers messages: into the queue, to be answered by a run of the receiving session, in its workspace and
//! with no more rights than the original message. Chains of sessions that write to each other end: a message
//! is forwarded through at most [`HOPS`] sessions, and to none in which [`WAITING`] messages wait.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use claw_core::message::{Args, Part, is_mark};
use claw_core::port::{
    Clock, Owner, Posted, Talk, TalkFigures, TalkHost, TalkLine, TalkLines, TalkPage, Words,
};
use claw_core::store::{
    Circle, Conversation, ConversationPage, Message, MessagePage, Store, StoreError, Usage, UsageFilter,
};
use claw_core::tool::{Block, Caller, ErrorKind, ToolError};
use claw_core::{SessionKey, TenantId};
use claw_registry::Asking;
use serde::Deserialize as _;

use crate::{Acceptance, ClientTools, Order};

/// The most sessions a message may be forwarded through.
pub(crate) const HOPS: u8 = 3;
/// The most messages that may wait in a session that gets another one.
pub(crate) const WAITING: u64 = 10;

/// The sessions of a store.
pub struct StoredTalks {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
}

impl StoredTalks {
    /// Makes the port over this store.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }
}

#[async_trait]
impl TalkHost for StoredTalks {
    async fn list(
        &self,
        tenant: &TenantId,
        circle: &Circle,
        page: &TalkPage,
    ) -> Result<Vec<Talk>, ToolError> {
        let TalkPage { since, after, limit } = page.clone();
        let found = self.store.conversations(tenant, circle, &ConversationPage { since, after, limit }).await;
        Ok(found.map_err(down)?.into_iter().map(talk).collect())
    }

    async fn history(
        &self,
        tenant: &TenantId,
        circle: &Circle,
        session: &SessionKey,
        TalkLines { before, limit }: TalkLines,
    ) -> Result<Option<Vec<TalkLine>>, ToolError> {
        let page = MessagePage { before: before.unwrap_or(u64::MAX), limit };
        let said = self.store.said_in(tenant, circle, session, page).await.map_err(down)?;
        Ok(said.map(|said| said.iter().map(line).collect()))
    }

    async fn workspace(&self, caller: &Caller, session: &SessionKey) -> Result<Option<PathBuf>, ToolError> {
        let circle = Circle::of(caller);
        let found = self.store.conversation(&caller.tenant, &circle, session).await.map_err(down)?;
        let order = found.map(|found| Order::deserialize(&found.order)).transpose();
        Ok(order.map_err(ToolError::internal)?.map(|order| order.workspace))
    }

    async fn send(&self, caller: &Caller, session: &SessionKey, text: &str) -> Result<Posted, ToolError> {
        if *session == caller.session {
            let message = format!("`{session}` is the current session; it cannot send itself a message");
            return Err(ToolError::invalid(message)
                .try_instead("say it in your answer, or send it to another session of `sessions_list`"));
        }
        if caller.hops >= HOPS {
            let message = format!(
                "the message that you are answering was already forwarded through {} sessions, and the \
                 maximum is {HOPS}",
                caller.hops
            );
            return Err(ToolError::new(ErrorKind::Forbidden, message).try_instead(
                "say it in your answer here; a chain of messages between sessions has a limit",
            ));
        }
        let circle = Circle::of(caller);
        let found = self.store.conversation(&caller.tenant, &circle, session).await.map_err(down)?;
        let Some(found) = found else { return Err(not_there(session)) };
        if found.waiting >= WAITING {
            let message = format!("{} messages wait in session `{session}` already", found.waiting);
            return Err(
                ToolError::new(ErrorKind::Conflict, message).try_instead("wait until some are answered")
            );
        }
        let theirs = Order::deserialize(&found.order).map_err(ToolError::internal)?;
        let order = Order {
            agent: caller.agent.clone(),
            user: caller.user.clone(),
            // The tool restrictions of the original message hold for everything that follows from it.
            allow: caller.request_allow.as_ref().map(|allow| allow.to_vec()),
            // Nobody watches there: an approval stays pending until someone looks.
            asking: Asking::Unwatched,
            hops: caller.hops.saturating_add(1),
            untrusted: caller.trace.is_untrusted(),
            // The client of that session does not wait for this run.
            client: ClientTools::default(),
            ..theirs
        };
        let from = &caller.session;
        let said =
            format!("[sent from session `{from}` by the agent there; the user did not type it]\n{text}");
        let place =
            Acceptance { lane: &found.lane, at: self.clock.now(), lineage: None, priority: 0, after: None };
        let owner = Owner { tenant: caller.tenant.clone(), session: session.clone() };
        let accepted = order.accept(&*self.store, &owner, &[Part::text(said)], place).await.map_err(down)?;
        Ok(Posted { seq: accepted.seq, before: found.waiting })
    }

    async fn figures(&self, owner: &Owner) -> Result<TalkFigures, ToolError> {
        let Owner { tenant, session } = owner;
        let circle = Circle::Session(session.clone());
        let talk = self.store.conversation(tenant, &circle, session).await.map_err(down)?;
        let filter = UsageFilter { session: Some(session.clone()), ..UsageFilter::default() };
        let usage: Usage = self.store.usage(tenant, &filter).await.map_err(down)?;
        let last = self.store.last_usage(tenant, session).await.map_err(down)?;
        let processes = self.store.processes(tenant, session).await.map_err(down)?;
        Ok(TalkFigures {
            messages: talk.map_or(0, |talk| talk.messages),
            usage,
            context_used: last.as_ref().map_or(0, |last| {
                let tokens = last.tokens;
                tokens.input + tokens.cache_read + tokens.cache_write + tokens.output
            }),
            model: last.map(|last| (last.provider, last.model)),
            processes: processes.iter().filter(|process| process.ended.is_none()).count(),
        })
    }
}

/// Returns one error for sessions outside the circle and for missing ones, so that they look alike.
fn not_there(session: &SessionKey) -> ToolError {
    ToolError::not_found(format!("there is no session `{session}` that you may use"))
        .try_instead("call `sessions_list` for the sessions that you may use")
}

fn down(error: StoreError) -> ToolError {
    ToolError::new(ErrorKind::Unavailable, "sessions cannot be reached right now")
        .try_instead("try again later")
        .because(error)
}

fn talk(found: Conversation) -> Talk {
    let Conversation { session, party, started, last, messages, waiting, running, .. } = found;
    let (channel, chat, peer) = (party.channel, party.chat, party.peer);
    Talk { session, channel, chat, peer, started, last, messages, waiting, running }
}

fn line(message: &Message) -> TalkLine {
    let parts = crate::history::parts(message);
    let words = parts.into_iter().filter_map(words).collect();
    TalkLine { seq: message.seq, role: message.new.role, at: message.new.at, words }
}

/// Converts a part of a message; reasoning is left out.
fn words(part: Part) -> Option<Words> {
    Some(match part {
        Part::Text { text } => Words::Text { text },
        Part::Thinking { .. } => return None,
        Part::Image(image) => Words::Image(image),
        Part::Call(wanted) => Words::Call {
            tool: wanted.tool,
            args: match wanted.args {
                Args::Json(args) => args.to_string(),
                Args::Broken { text, .. } => text,
            },
        },
        Part::Result(told) => {
            let texts = told.content.iter().filter_map(|block| match block {
                Block::Text { text } => Some(Cow::Borrowed(text.as_str())),
                Block::Resource { text, .. } => text.as_deref().map(Cow::Borrowed),
                Block::Image(image) => Some(Cow::Owned(image.to_string())),
                Block::Attachment(attachment) => Some(Cow::Owned(attachment.to_string())),
            });
            let texts: Vec<Cow<'_, str>> = texts.collect();
            let lines = texts.iter().flat_map(|text| text.lines()).filter(|line| !is_mark(line));
            let text = lines.collect::<Vec<_>>().join("\n");
            Words::Result { tool: told.tool, text, failed: told.failed }
        }
    })
}

impl std::fmt::Debug for StoredTalks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredTalks").finish_non_exhaustive()
    }
}
