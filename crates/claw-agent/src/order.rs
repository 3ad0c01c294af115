//! Orders: the payload of the job that answers a message.

use std::path::PathBuf;
use std::sync::Arc;

use claw_core::message::Part;
use claw_core::port::{Owner, UnixMillis};
use claw_core::store::{
    Accepted, Blobs, Conversations, Job, Lineage, NewJob, NewMessage, Party, Role, StoreError,
};
use claw_core::tool::{Caller, PeerKind};
use claw_core::{AgentId, JobId, MessageId, SessionKey, TenantId, UserId};
use claw_policy::approval::Narrowing;
use claw_registry::Asking;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smol_str::SmolStr;

use crate::{ClientTools, Profile, RunError, images};

/// The queue's limit of attempts, practically unlimited: the agent's own limit counts, and a run that is
/// given up has to be reported by the worker that holds it.
const ATTEMPTS: u16 = 10_000;

/// The payload of a run's job: the agent, the user, the channel and the limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The agent.
    pub agent: AgentId,
    /// The user the agent acts for; `None` if there is none.
    pub user: Option<UserId>,
    /// The channel that the message came by.
    pub channel: SmolStr,
    /// The chat within it.
    pub chat: Option<SmolStr>,
    /// One person or several.
    pub peer: PeerKind,
    /// The directory that the agent works in.
    pub workspace: PathBuf,
    /// The tools that the message itself allows; `None` if it does not restrict them.
    pub allow: Option<Vec<String>>,
    /// The thread within the chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<SmolStr>,
    /// The way calls get the approvals that they need.
    pub asking: Asking,
    /// The number of sessions the message was forwarded through before this one; 0 if a person wrote it.
    #[serde(default)]
    pub hops: u8,
    /// The sender was a run that had read untrusted text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// The budget of the run and all runs that it starts.
    #[serde(default, skip_serializing_if = "Budget::is_unlimited")]
    pub budget: Budget,
    /// The mode that the message was sent in: it holds for all calls of the run, whichever process carries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub narrowing: Option<Narrowing>,
    /// The tools that the client makes itself.
    #[serde(default, skip_serializing_if = "ClientTools::is_empty")]
    pub client: ClientTools,
}

/// The budget that a run and all runs below it share; `None` for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Budget {
    /// Tokens, read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Cost, in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// The deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
}

impl Budget {
    /// Returns whether nothing is limited.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}

/// The queue's parameters for a message.
#[derive(Debug, Clone, Copy)]
pub struct Acceptance<'a> {
    /// The lane in which its run waits.
    pub lane: &'a str,
    /// The present time.
    pub at: UnixMillis,
    /// The place of its run below the run that started it; `None` for the root of a tree.
    pub lineage: Option<Lineage>,
    /// The priority of its job: 0, or [`Order::INJECTED`] for a message to the run that goes on.
    pub priority: i16,
    /// The job that must be the latest of the session and over, or the message is refused; `None` for any message.
    pub after: Option<JobId>,
}

impl Order {
    /// The priority of a message that the run of its session reads before it asks its model again, whatever the agent does
    /// with other messages.
    pub const INJECTED: i16 = 1;

    /// Returns the owner of the session.
    pub fn party(&self) -> Party {
        Party {
            agent: self.agent.clone(),
            user: self.user.clone(),
            channel: self.channel.clone(),
            chat: self.chat.clone(),
            peer: self.peer,
        }
    }

    /// Stores a message, its images first, and the job that answers it, in this lane. Refused if another
    /// party owns the session.
    pub async fn accept(
        &self,
        store: &(impl Conversations + Blobs + ?Sized),
        Owner { tenant, session }: &Owner,
        parts: &[Part],
        Acceptance { lane, at, lineage, priority, after }: Acceptance<'_>,
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
        match after {
            Some(last) => store.accept_after(last, &self.party(), message, job).await,
            None => store.accept_from(&self.party(), message, job).await,
        }
    }

    /// Returns the order of a job, and its session.
    pub(crate) fn of(job: &Job) -> Result<(Self, SessionKey), RunError> {
        let order = Self::deserialize(&job.new.payload)
            .map_err(|error| RunError::Unreadable(format!("its payload: {error}")))?;
        let session = job.new.session.clone();
        Ok((order, session.ok_or_else(|| RunError::Unreadable("it has no session".to_owned()))?))
    }

    /// Returns the caller of tools in this run.
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

/// Serialises a value for the store.
pub(crate) fn json(value: impl Serialize) -> Result<Value, StoreError> {
    serde_json::to_value(value)
        .map_err(|error| StoreError::Refused { what: "could not store the message", why: error.to_string() })
}
