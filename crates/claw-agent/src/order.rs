//! What a run is asked to do: the job that goes with a message.

use std::path::PathBuf;
use std::sync::Arc;

use claw_core::message::Part;
use claw_core::port::UnixMillis;
use claw_core::store::{
    Accepted, Blobs, Conversations, Job, Lineage, NewJob, NewMessage, Party, Role, StoreError,
};
use claw_core::tool::{Caller, PeerKind};
use claw_core::{AgentId, JobId, MessageId, SessionKey, TenantId, UserId};
use claw_registry::Asking;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;

use crate::{Profile, RunError, images};

/// The queue counts attempts; how many there may be is the agent's to say, and a run that is given up has to be
/// reported by someone who holds it.
const ATTEMPTS: u16 = 10_000;

/// Who is to answer, for whom and where: what a job says of its run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Which agent.
    pub agent: AgentId,
    /// For whom.
    pub user: Option<UserId>,
    /// The channel that the message came by.
    pub channel: SmolStr,
    /// The chat within it.
    pub chat: Option<SmolStr>,
    /// One person or several.
    pub peer: PeerKind,
    /// The directory that the agent works in.
    pub workspace: PathBuf,
    /// The tools that the message itself allows; `None` where it says nothing.
    pub allow: Option<Vec<String>>,
    /// The thread within the chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<SmolStr>,
    /// How calls get the approvals that they need.
    pub asking: Asking,
    /// How many sessions the message went through before this one; 0 where a person wrote it.
    #[serde(default)]
    pub hops: u8,
    /// The budget of the run and all runs that it starts.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
}

/// The budget that a run and all runs below it share; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Budget {
    /// Tokens, read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Cost, in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// The time at which it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
}

impl Budget {
    /// Whether it limits nothing.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}

/// The place of a message in the queue.
#[derive(Debug, Clone, Copy)]
pub struct Acceptance<'a> {
    /// The lane that its run waits in.
    pub lane: &'a str,
    /// The time now.
    pub at: UnixMillis,
    /// The place of its run below the run that started it; `None` for the root of a tree.
    pub lineage: Option<Lineage>,
    /// The priority of its job: 0, or [`Order::INJECTED`] for a message to the run that goes on.
    pub priority: i16,
}

impl Order {
    /// The priority of a message that the run of its session reads before it asks its model again, whatever the agent does
    /// with other messages.
    pub const INJECTED: i16 = 1;

    /// Whose conversation it is.
    pub fn party(&self) -> Party {
        Party {
            agent: self.agent.clone(),
            user: self.user.clone(),
            channel: self.channel.clone(),
            chat: self.chat.clone(),
            peer: self.peer,
        }
    }

    /// Stores what was said, its images first, and the job that answers it, in this lane. A session that belongs to
    /// somebody else is refused.
    pub async fn accept(
        &self,
        store: &(impl Conversations + Blobs + ?Sized),
        (tenant, session): (&TenantId, &SessionKey),
        parts: &[Part],
        Acceptance { lane, at, lineage, priority }: Acceptance<'_>,
    ) -> Result<Accepted, StoreError> {
        images::store(store, tenant, parts, at).await?;
        let content = json(parts)?;
        let message = NewMessage {
            id: MessageId::new(),
            tenant: tenant.clone(),
            session: session.clone(),
            role: Role::User,
            content,
            at,
        };
        let job = NewJob {
            id: JobId::new(),
            tenant: tenant.clone(),
            lane: lane.into(),
            session: Some(session.clone()),
            priority,
            payload: json(self)?,
            accepted: at,
            visible: at,
            max_attempts: ATTEMPTS,
            lineage,
        };
        store.accept_from(&self.party(), message, job).await
    }

    /// The order of a job, and its conversation.
    pub(crate) fn of(job: &Job) -> Result<(Self, SessionKey), RunError> {
        let order = Self::deserialize(&job.new.payload)
            .map_err(|error| RunError::Unreadable(format!("its payload: {error}")))?;
        let session = job.new.session.clone();
        Ok((order, session.ok_or_else(|| RunError::Unreadable("it has no session".to_owned()))?))
    }

    /// Who calls tools in this run.
    pub(crate) fn caller(&self, tenant: &TenantId, session: &SessionKey, profile: &Profile) -> Caller {
        let mut caller = Caller::new(self.agent.clone(), session.clone(), &self.workspace);
        caller.tenant = tenant.clone();
        caller.user = self.user.clone();
        caller.channel = self.channel.clone();
        caller.chat_id = self.chat.clone();
        caller.peer_kind = self.peer;
        caller.config = Arc::clone(&profile.tools);
        caller.request_allow = self.allow.clone().map(Into::into);
        caller.hops = self.hops;
        profile.sandbox.apply(&mut caller);
        caller
    }
}

/// What goes into the store.
pub(crate) fn json(value: impl Serialize) -> Result<Value, StoreError> {
    serde_json::to_value(value).map_err(|error| StoreError::Refused {
        what: "could not store what was said",
        why: error.to_string(),
    })
}
