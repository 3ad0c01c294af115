//! Places: the requests and WebSocket connections that each key has open in this process, limited.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use claw_core::KeyId;

use crate::config::GatewayConfig;

/// The kind of connection that a key has open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceKind {
    /// A request, until its answer is whole.
    Request,
    /// A WebSocket connection.
    WebSocket,
}

/// The error of a key that has as many open as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full {
    /// The most that the key may have open at a time.
    pub most: u32,
    /// The setting that says so.
    pub setting: &'static str,
}

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    key: KeyId,
    kind: PlaceKind,
}

/// The places of all keys.
#[derive(Debug)]
pub(super) struct Places {
    requests: u32,
    websockets: u32,
    open: Mutex<HashMap<KeyId, Open>>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Open {
    requests: u32,
    websockets: u32,
}

impl Open {
    fn of(&mut self, kind: PlaceKind) -> &mut u32 {
        match kind {
            PlaceKind::Request => &mut self.requests,
            PlaceKind::WebSocket => &mut self.websockets,
        }
    }
}

impl Places {
    pub(super) fn new(config: &GatewayConfig) -> Arc<Self> {
        let (requests, websockets) = (config.requests_per_key, config.websockets_per_key);
        Arc::new(Self { requests, websockets, open: Mutex::default() })
    }

    /// Takes a place of this key.
    pub(super) fn take(self: &Arc<Self>, key: KeyId, kind: PlaceKind) -> Result<Place, Full> {
        let (most, setting) = match kind {
            PlaceKind::Request => (self.requests, "gateway.requests_per_key"),
            PlaceKind::WebSocket => (self.websockets, "gateway.websockets_per_key"),
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = open.entry(key).or_default().of(kind);
        if *taken >= most {
            return Err(Full { most, setting });
        }
        *taken += 1;
        Ok(Place { places: Arc::clone(self), key, kind })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.places.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = open.get_mut(&self.key) else { return };
        let taken = own.of(self.kind);
        *taken = taken.saturating_sub(1);
        if *own == Open::default() {
            open.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_so_many_places_and_gets_them_back() {
        let config = GatewayConfig { requests_per_key: 2, websockets_per_key: 1, ..GatewayConfig::default() };
        let (places, ann, ben) = (Places::new(&config), KeyId::new(), KeyId::new());
        let first = places.take(ann, PlaceKind::Request).unwrap();
        let second = places.take(ann, PlaceKind::Request).unwrap();
        let full = places.take(ann, PlaceKind::Request).unwrap_err();
        assert_eq!(full, Full { most: 2, setting: "gateway.requests_per_key" });
        let socket = places.take(ann, PlaceKind::WebSocket).unwrap();
        assert_eq!(places.take(ann, PlaceKind::WebSocket).unwrap_err().setting, "gateway.websockets_per_key");
        let other = places.take(ben, PlaceKind::Request).unwrap();
        drop(first);
        let third = places.take(ann, PlaceKind::Request).unwrap();
        drop((second, third, socket, other));
        assert!(places.open.lock().unwrap().is_empty(), "nothing is kept of a key that has none open");
    }
}
