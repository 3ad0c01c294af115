//! A listener that records events.

use std::sync::Mutex;

use claw_core::event::{Event, Listener};

/// Keeps every event, in order.
#[derive(Debug, Default)]
pub struct Recorder(Mutex<Vec<Event>>);

impl Recorder {
    /// Returns the events recorded so far.
    pub fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }

    /// Returns the names of the recorded events: `call_started`, `call_finished`, ...
    pub fn names(&self) -> Vec<String> {
        let name = |event: &Event| {
            let event = serde_json::to_value(event).expect("events serialise");
            event["event"].as_str().expect("events have a name").to_owned()
        };
        self.0.lock().unwrap().iter().map(name).collect()
    }
}

impl Listener for Recorder {
    fn hear(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }
}
