//! Messages while they are being said: in the memory of this process.

use claw_core::MessageId;
use claw_core::port::Owner;
use claw_core::store::{Delta, Streams, Voice};
use tokio::sync::broadcast;

use super::SqliteStore;

impl Streams for SqliteStore {
    fn say(&self, within: &Owner, message: MessageId, voice: Voice, text: &str) {
        self.hub.say(within, message, voice, text);
    }

    fn said(&self, within: &Owner, message: MessageId) {
        self.hub.said(within, message);
    }

    fn so_far(&self, within: &Owner) -> Vec<Delta> {
        self.hub.so_far(within)
    }

    fn listen(&self, within: &Owner) -> broadcast::Receiver<Delta> {
        self.hub.listen(within)
    }
}
