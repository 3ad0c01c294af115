//! Streaming messages and output of running calls: in the memory of this process.

use claw_core::port::Owner;
use claw_core::store::{Delta, Source, Streams, Voice};
use tokio::sync::broadcast;

use super::SqliteStore;

impl Streams for SqliteStore {
    fn say(&self, within: &Owner, source: Source, voice: Voice, text: &str) {
        self.hub.say(within, source, voice, text);
    }

    fn said(&self, within: &Owner, source: Source) {
        self.hub.said(within, source);
    }

    fn so_far(&self, within: &Owner) -> Vec<Delta> {
        self.hub.so_far(within)
    }

    fn listen(&self, within: &Owner) -> broadcast::Receiver<Delta> {
        self.hub.listen(within)
    }
}
