//! The door: checks keys and caches valid ones for a moment. The requests and connections of each are counted beside it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use claw_core::port::Clock as _;
use claw_core::store::{ApiKey, Topic};
use claw_core::tool::Digest;
use claw_host::SystemClock;
use claw_store::Backend;
use tokio::sync::watch;

use super::Visitor;
use super::key_rate::Rates;
use super::open_requests::{Full, Place, PlaceKind, Places};
use crate::app::{App, Error};

/// The time for which a valid key is cached. A change of access is noticed sooner.
const REMEMBERED: Duration = Duration::from_secs(1);
/// The most keys that are remembered.
const MOST_REMEMBERED: usize = 10_000;

/// Checks keys, and caches valid ones for a moment. Cheap to share.
pub struct Door {
    store: Arc<dyn Backend>,
    known: Mutex<Known>,
    rates: Rates,
    places: Arc<Places>,
}

struct Known {
    visitors: HashMap<Digest, (Instant, Arc<Visitor>)>,
    changes: watch::Receiver<u64>,
}

impl Door {
    /// Returns the visitor of this key; `None` if the key is invalid.
    pub async fn admit(&self, key: &str) -> Result<Option<Arc<Visitor>>, Error> {
        let Ok(key) = key.parse::<ApiKey>() else { return Ok(None) };
        let hash = key.hash();
        if let Some(visitor) = self.known(&hash) {
            return Ok(Some(visitor));
        }
        let admitted = self.store.authenticate(&hash, SystemClock.now()).await;
        let Some(admitted) = admitted? else { return Ok(None) };
        let visitor = Arc::new(Visitor::from(admitted));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.visitors.len() >= MOST_REMEMBERED {
            known.visitors.clear();
        }
        known.visitors.insert(hash, (Instant::now(), Arc::clone(&visitor)));
        Ok(Some(visitor))
    }

    /// Counts a request of a key with a rate limit; the error is the time to wait if it has made too many. A
    /// whole minute's requests may come at once.
    pub fn count(&self, visitor: &Visitor) -> Result<(), Duration> {
        visitor.limits.per_minute.map_or(Ok(()), |per_minute| self.rates.count(visitor.key, per_minute))
    }

    /// Takes a place of the visitor's key, until it is dropped; refused if the key has as many open as it may. Each process
    /// counts for itself.
    pub fn enter(&self, visitor: &Visitor, kind: PlaceKind) -> Result<Place, Full> {
        self.places.take(visitor.key, kind)
    }

    fn known(&self, hash: &Digest) -> Option<Arc<Visitor>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.changes.has_changed().unwrap_or(true) {
            known.changes.mark_unchanged();
            known.visitors.clear();
        }
        let (since, visitor) = known.visitors.get(hash)?;
        (since.elapsed() < REMEMBERED).then(|| Arc::clone(visitor))
    }
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door").finish_non_exhaustive()
    }
}

impl App {
    /// A door of this deployment, for all its tenants.
    pub fn door(&self) -> Door {
        let changes = self.store.changes(Topic::Access);
        Door {
            store: Arc::clone(&self.store),
            known: Mutex::new(Known { visitors: HashMap::new(), changes }),
            rates: Rates::default(),
            places: Places::new(&self.setup().config().gateway),
        }
    }
}
