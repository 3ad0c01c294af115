//! Following a session: its events in order, and between them pieces of streaming messages and output.
//!
//! Events are rows: following from a number works after a disconnect and from another process. Pieces live in memory;
//! a piece that is missed is in the message or the result that is stored in the end, and the follower is told that it
//! missed some.

use std::collections::VecDeque;
use std::sync::Arc;

use claw_core::TenantId;
use claw_core::port::Owner;
use claw_core::store::{Delta, FeedEvent, SessionEvent, Source, Store, Topic};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use super::{Error, Sessions};

/// The number of events read at a time.
const PAGE: usize = 200;

/// An event or a piece that a follower of a session gets.
#[derive(Debug, Clone)]
pub enum Followed {
    /// An event.
    Event(SessionEvent),
    /// A piece of a streaming message, or of the output of a running call.
    Piece(Delta),
    /// Pieces were left out, since they were not read in time. `offset` of the next piece shows how much of it is missing; the
    /// stored message or result has all of it. Events are never left out.
    Lagged,
}

/// Follows one session.
pub struct Follower {
    store: Arc<dyn Store>,
    owner: Owner,
    pieces: broadcast::Receiver<Delta>,
    changes: watch::Receiver<u64>,
    deserted: CancellationToken,
    /// The number of the last event that was read.
    seen: u64,
    /// Events may have come since they were last read.
    is_behind: bool,
    ready: VecDeque<Followed>,
    /// A piece held back until its session's events are read.
    held: Option<Delta>,
    /// The message or call that the last piece was of.
    last: Option<Source>,
}

impl Sessions {
    /// Follows a session from the event after `after`; `None` means from now on.
    pub async fn follow(&self, owner: Owner, after: Option<u64>) -> Result<Follower, Error> {
        let store = Arc::clone(&self.deployment().store);
        let (pieces, changes) = (store.listen(&owner), store.session_changes(&owner));
        let mut follower = Follower {
            store,
            owner,
            pieces,
            changes,
            deserted: self.deserted().clone(),
            seen: after.unwrap_or(0),
            is_behind: true,
            ready: VecDeque::new(),
            held: None,
            last: None,
        };
        if after.is_none() {
            while let Some(last) = follower.page().await?.last() {
                follower.seen = last.seq;
            }
        }
        Ok(follower)
    }
}

/// Follows the events of all sessions of a tenant.
pub struct FeedFollower {
    store: Arc<dyn Store>,
    tenant: TenantId,
    changes: watch::Receiver<u64>,
    deserted: CancellationToken,
    /// The place of the last event that was returned.
    seen: u64,
    is_behind: bool,
    ready: VecDeque<FeedEvent>,
}

impl Sessions {
    /// Follows all sessions of a tenant from the event after place `after` of its feed; from now on where it is `None`.
    pub async fn follow_feed(&self, tenant: TenantId, after: Option<u64>) -> Result<FeedFollower, Error> {
        let store = Arc::clone(&self.deployment().store);
        let changes = store.changes(Topic::Sessions);
        let seen = match after {
            Some(after) => after,
            None => store.feed_end(&tenant).await?,
        };
        let (deserted, ready) = (self.deserted().clone(), VecDeque::new());
        Ok(FeedFollower { store, tenant, changes, deserted, seen, is_behind: true, ready })
    }
}

impl FeedFollower {
    /// The place of the last event that was returned, or after which they begin.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Waits for the next event. Nothing is lost if the returned future is dropped.
    pub async fn next(&mut self) -> Result<FeedEvent, Error> {
        loop {
            if let Some(next) = self.ready.pop_front() {
                self.seen = next.feed;
                return Ok(next);
            }
            if self.is_behind {
                self.ready = self.store.feed(&self.tenant, self.seen, PAGE).await?.into();
                self.is_behind = !self.ready.is_empty();
                continue;
            }
            tokio::select! {
                () = self.deserted.cancelled() => {
                    return Err(Error::failed("the workers of this process have stopped"));
                }
                changed = self.changes.changed() => {
                    changed.map_err(|_| Error::failed("the store was closed"))?;
                    self.is_behind = true;
                }
            }
        }
    }
}

impl Follower {
    /// The number of the last event that was read.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Waits for the next event or piece. Events before a message or a call's output come before its first
    /// piece. Nothing is lost if the returned future is dropped.
    pub async fn next(&mut self) -> Result<Followed, Error> {
        loop {
            if let Some(next) = self.ready.pop_front() {
                return Ok(next);
            }
            if self.is_behind {
                let page = self.page().await?;
                match page.last() {
                    Some(last) => self.seen = last.seq,
                    None => self.is_behind = false,
                }
                self.ready.extend(page.into_iter().map(Followed::Event));
                continue;
            }
            if let Some(piece) = self.held.take() {
                return Ok(Followed::Piece(piece));
            }
            let closed = || Error::failed("the store was closed");
            tokio::select! {
                biased;
                piece = self.pieces.recv() => match piece {
                    Ok(piece) => self.hold(piece),
                    Err(RecvError::Lagged(_)) => return Ok(Followed::Lagged),
                    Err(RecvError::Closed) => return Err(closed()),
                },
                () = self.deserted.cancelled() => {
                    return Err(Error::failed("the worker of this session has stopped")
                        .hint("the session is saved: connect again, or start `clawsmith chat` again"));
                }
                changed = self.changes.changed() => {
                    changed.map_err(|_| closed())?;
                    self.is_behind = true;
                }
            }
        }
    }

    fn hold(&mut self, piece: Delta) {
        if self.last != Some(piece.source) {
            self.last = Some(piece.source);
            self.is_behind = true;
        }
        self.held = Some(piece);
    }

    async fn page(&self) -> Result<Vec<SessionEvent>, Error> {
        let Owner { tenant, session } = &self.owner;
        let events = self.store.events(tenant, session, self.seen, PAGE).await;
        events.map_err(|error| Error::failed("the session cannot be read").because(error))
    }
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower")
            .field("owner", &self.owner)
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}
