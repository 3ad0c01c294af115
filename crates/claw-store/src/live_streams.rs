//! Streaming messages and output of running calls, in memory.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use claw_core::port::Owner;
use claw_core::store::{Delta, Source, Voice};
use tokio::sync::broadcast;

/// The most bytes kept of one message or call; beyond it, a late listener waits for the stored message.
pub(crate) const MOST_BYTES: u64 = 4 * 1024 * 1024;
/// The number of pieces that a listener may lag behind.
const MOST_BEHIND: usize = 1024;
/// The time without a piece after which a message or call counts as abandoned.
const SILENCE: Duration = Duration::from_secs(15 * 60);

/// The sessions with a stream or a listener.
#[derive(Debug, Default)]
pub(crate) struct Hub(Mutex<HashMap<Owner, Conversation>>);

#[derive(Debug)]
struct Conversation {
    drafts: Vec<Draft>,
    listeners: broadcast::Sender<Delta>,
}

impl Default for Conversation {
    fn default() -> Self {
        Self { drafts: Vec::new(), listeners: broadcast::Sender::new(MOST_BEHIND) }
    }
}

#[derive(Debug)]
struct Draft {
    source: Source,
    voice: Voice,
    /// The number of bytes so far.
    length: u64,
    /// The whole text; empty if it is too long.
    text: String,
    heard: Instant,
    /// True if it is produced on this node.
    own: bool,
}

impl Hub {
    /// Adds a piece produced here; returns its offset.
    pub(crate) fn say(&self, within: &Owner, source: Source, voice: Voice, text: &str) -> u64 {
        let mut all = self.lock();
        let conversation = all.entry(within.clone()).or_default();
        let draft = conversation.draft(source, voice, true);
        let offset = draft.length;
        draft.add(text);
        conversation.tell(Delta { source, voice, offset, text: text.to_owned() });
        offset
    }

    /// Takes a piece from another node. Returns `false` if earlier ones are missing.
    pub(crate) fn hear(&self, within: &Owner, delta: Delta) -> bool {
        let mut all = self.lock();
        let conversation = all.entry(within.clone()).or_default();
        let draft = conversation.draft(delta.source, delta.voice, false);
        let known = draft.length;
        if draft.own {
            return true;
        }
        let Some(new) =
            known.checked_sub(delta.offset).map(|skip| usize::try_from(skip).unwrap_or(usize::MAX))
        else {
            return false;
        };
        // Text already received is not sent again.
        let Some(text) = delta.text.get(new..).filter(|text| !text.is_empty()) else { return true };
        draft.add(text);
        let text = text.to_owned();
        conversation.tell(Delta { offset: known, text, ..delta });
        true
    }

    /// Forgets the pieces of a message or call.
    pub(crate) fn said(&self, within: &Owner, source: Source) {
        let mut all = self.lock();
        if let Some(conversation) = all.get_mut(within) {
            conversation.drafts.retain(|draft| draft.source != source && !draft.is_left());
        }
        all.retain(|_, conversation| conversation.is_used());
    }

    pub(crate) fn so_far(&self, within: &Owner) -> Vec<Delta> {
        self.lock().get(within).map(|conversation| conversation.so_far(|_| true)).unwrap_or_default()
    }

    /// Returns all streams of this node, for a node that has just joined.
    pub(crate) fn own(&self) -> Vec<(Owner, Delta)> {
        let all = self.lock();
        let of = |(within, conversation): (&Owner, &Conversation)| {
            let deltas = conversation.so_far(|draft| draft.own);
            deltas.into_iter().map(|delta| (within.clone(), delta)).collect::<Vec<_>>()
        };
        all.iter().flat_map(of).collect()
    }

    pub(crate) fn listen(&self, within: &Owner) -> broadcast::Receiver<Delta> {
        let mut all = self.lock();
        // Those whose listeners are gone were kept until now.
        all.retain(|_, conversation| conversation.is_used());
        all.entry(within.clone()).or_default().listeners.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Owner, Conversation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Conversation {
    fn draft(&mut self, source: Source, voice: Voice, own: bool) -> &mut Draft {
        let at = self.drafts.iter().position(|draft| draft.source == source && draft.voice == voice);
        let at = at.unwrap_or_else(|| {
            self.drafts.push(Draft {
                source,
                voice,
                length: 0,
                text: String::new(),
                heard: Instant::now(),
                own,
            });
            self.drafts.len() - 1
        });
        &mut self.drafts[at]
    }

    fn tell(&self, delta: Delta) {
        // Nobody may be listening.
        drop(self.listeners.send(delta));
    }

    fn so_far(&self, wanted: impl Fn(&Draft) -> bool) -> Vec<Delta> {
        let delta = |draft: &Draft| Delta {
            source: draft.source,
            voice: draft.voice,
            offset: 0,
            text: draft.text.clone(),
        };
        let whole = |draft: &&Draft| !draft.text.is_empty() && !draft.is_left() && wanted(draft);
        self.drafts.iter().filter(whole).map(delta).collect()
    }

    fn is_used(&self) -> bool {
        !self.drafts.is_empty() || self.listeners.receiver_count() > 0
    }
}

impl Draft {
    /// Returns whether its producer has fallen silent.
    fn is_left(&self) -> bool {
        self.heard.elapsed() > SILENCE
    }

    fn add(&mut self, text: &str) {
        self.heard = Instant::now();
        self.length += text.len() as u64;
        if self.length <= MOST_BYTES {
            self.text.push_str(text);
        } else {
            self.text = String::new();
        }
    }
}

#[cfg(test)]
mod tests;
