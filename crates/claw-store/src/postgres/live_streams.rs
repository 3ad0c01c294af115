//! Streaming messages and output of running calls: in memory here, sent to other nodes in batches.
//!
//! Pieces travel in notifications on a channel of their own, never as rows. A node that missed some, because
//! it came later or lost its connection, asks, and every sender sends its open streams again from the start.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use claw_core::port::Owner;
use claw_core::store::{Delta, Source, Streams, Voice};
use claw_core::{SessionKey, TenantId};
use serde::{Deserialize, Serialize};
use tokio::sync::{broadcast, mpsc};
use tokio::task::AbortHandle;
use uuid::Uuid;

use super::PostgresStore;
use super::connections::Connections;
use crate::live_streams::{Hub, MOST_BYTES};

pub(super) const CHANNEL: &str = "clawsmith_streams";
/// The time for which pieces are gathered before they are sent.
const GATHER: Duration = Duration::from_millis(50);
/// The most messages queued; beyond it, everything is sent again from its start.
const MOST_WAITING: usize = 4096;
/// The wait before a retry.
const RETRY: Duration = Duration::from_millis(500);
/// The longest text in one notification, in bytes. PostgreSQL takes 8,000, and JSON may need six for one.
const MOST_TEXT: usize = 1200;

/// A message from one node to the others.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct NodeMessage {
    /// The id of the sending program.
    from: Uuid,
    #[serde(flatten)]
    what: StreamMessage,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "lowercase")]
enum StreamMessage {
    /// A piece of a message or of a call's output.
    Piece {
        tenant: TenantId,
        session: SessionKey,
        #[serde(flatten)]
        delta: Delta,
    },
    /// A message or call is over.
    Said {
        tenant: TenantId,
        session: SessionKey,
        #[serde(flatten)]
        source: Source,
    },
    /// Asks every sender to send its open streams again from the start.
    Again,
}

/// An order to the sending task.
#[derive(Debug)]
enum Task {
    Tell(StreamMessage),
    /// Sends all open streams of this node.
    TellAll,
}

/// The streams of this node, and those received from others.
#[derive(Debug)]
pub(super) struct Wire {
    ours: Arc<Ours>,
    task: AbortHandle,
}

#[derive(Debug)]
pub(super) struct Ours {
    from: Uuid,
    hub: Hub,
    waiting: mpsc::Sender<Task>,
    /// True if something could not be sent: everything is sent again.
    lost: AtomicBool,
}

impl Wire {
    pub(super) fn start(pool: Connections) -> Self {
        let (waiting, gathered) = mpsc::channel(MOST_WAITING);
        let ours = Ours { from: Uuid::now_v7(), hub: Hub::default(), waiting, lost: AtomicBool::new(false) };
        let ours = Arc::new(ours);
        let task = tokio::spawn(tell(pool, Arc::clone(&ours), gathered)).abort_handle();
        Self { ours, task }
    }

    pub(super) fn ours(&self) -> Arc<Ours> {
        Arc::clone(&self.ours)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Ours {
    /// Asks for all streams again, because this node begins to listen and may have missed something.
    pub(super) fn joined(&self) {
        self.push(Task::Tell(StreamMessage::Again));
    }

    pub(super) fn heard(&self, payload: &str) {
        let told = match serde_json::from_str::<NodeMessage>(payload) {
            Ok(told) if told.from == self.from => return,
            Ok(told) => told,
            // From a newer node, perhaps.
            Err(error) => return tracing::debug!(%error, "a piece of a message cannot be read"),
        };
        match told.what {
            StreamMessage::Piece { tenant, session, delta } => {
                if !self.hub.hear(&Owner { tenant, session }, delta) {
                    self.push(Task::Tell(StreamMessage::Again));
                }
            }
            StreamMessage::Said { tenant, session, source } => {
                self.hub.said(&Owner { tenant, session }, source);
            }
            StreamMessage::Again => self.push(Task::TellAll),
        }
    }

    fn push(&self, task: Task) {
        if self.waiting.try_send(task).is_err() {
            self.lost.store(true, Ordering::Release);
        }
    }
}

/// Sends the gathered pieces to the other nodes.
async fn tell(pool: Connections, ours: Arc<Ours>, mut waiting: mpsc::Receiver<Task>) {
    while let Some(first) = waiting.recv().await {
        tokio::time::sleep(GATHER).await;
        let mut tasks = vec![first];
        while let Ok(more) = waiting.try_recv() {
            tasks.push(more);
        }
        let mut all = ours.lost.swap(false, Ordering::AcqRel);
        let mut batch = Vec::with_capacity(tasks.len());
        for task in tasks {
            match task {
                Task::Tell(what) => batch.push(what),
                Task::TellAll => all = true,
            }
        }
        let mut batch = gather(batch);
        if all {
            let own = ours.hub.own().into_iter();
            batch.extend(own.map(|(Owner { tenant, session }, delta)| StreamMessage::Piece {
                tenant,
                session,
                delta,
            }));
        }
        while let Err(error) = send(&pool, &ours, &batch).await {
            tracing::warn!(%error, "could not send pieces of messages to other nodes; trying again");
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Puts pieces that follow each other together.
fn gather(batch: Vec<StreamMessage>) -> Vec<StreamMessage> {
    let mut gathered: Vec<StreamMessage> = Vec::with_capacity(batch.len());
    for what in batch {
        if let StreamMessage::Piece { tenant, session, delta } = &what {
            let before = gathered.iter_mut().rev().find_map(|before| match before {
                StreamMessage::Piece { tenant: t, session: s, delta: d }
                    if (&*t, &*s, d.source, d.voice) == (tenant, session, delta.source, delta.voice) =>
                {
                    Some(d)
                }
                _ => None,
            });
            if let Some(before) = before
                && before.offset + before.text.len() as u64 == delta.offset
            {
                before.text.push_str(&delta.text);
                continue;
            }
        }
        gathered.push(what);
    }
    gathered
}

async fn send(pool: &Connections, ours: &Ours, batch: &[StreamMessage]) -> Result<(), sqlx::Error> {
    let mut payloads = Vec::new();
    for what in batch.iter().flat_map(split) {
        let told = NodeMessage { from: ours.from, what };
        // These types always serialise; what would not is left out.
        payloads.extend(serde_json::to_string(&told).ok());
    }
    let tell =
        "SELECT pg_notify($1, payload) FROM unnest($2::text[]) WITH ORDINALITY AS told (payload, place)
                ORDER BY place";
    sqlx::query(tell).bind(CHANNEL).bind(payloads).execute(pool).await?;
    Ok(())
}

/// Cuts a piece so that each part fits a notification.
fn split(what: &StreamMessage) -> Vec<StreamMessage> {
    let StreamMessage::Piece { tenant, session, delta } = what else { return vec![what.clone()] };
    let mut parts = Vec::new();
    let mut rest = delta.text.as_str();
    let mut offset = delta.offset;
    while !rest.is_empty() {
        let mut most = rest.len().min(MOST_TEXT);
        while !rest.is_char_boundary(most) {
            most -= 1;
        }
        let (text, more) = rest.split_at(most);
        let delta = Delta { offset, text: text.to_owned(), ..*delta };
        parts.push(StreamMessage::Piece { tenant: tenant.clone(), session: session.clone(), delta });
        offset += text.len() as u64;
        rest = more;
    }
    parts
}

impl Streams for PostgresStore {
    fn say(&self, within: &Owner, source: Source, voice: Voice, text: &str) {
        let ours = &self.wire.ours;
        let offset = ours.hub.say(within, source, voice, text);
        // A command can print without end: other nodes hear as much of it as is kept.
        if voice == Voice::Output && offset >= MOST_BYTES {
            return;
        }
        let delta = Delta { source, voice, offset, text: text.to_owned() };
        let Owner { tenant, session } = within.clone();
        ours.push(Task::Tell(StreamMessage::Piece { tenant, session, delta }));
    }

    fn said(&self, within: &Owner, source: Source) {
        self.wire.ours.hub.said(within, source);
        let Owner { tenant, session } = within.clone();
        self.wire.ours.push(Task::Tell(StreamMessage::Said { tenant, session, source }));
    }

    fn so_far(&self, within: &Owner) -> Vec<Delta> {
        self.wire.ours.hub.so_far(within)
    }

    fn listen(&self, within: &Owner) -> broadcast::Receiver<Delta> {
        self.wire.ours.hub.listen(within)
    }
}
