//! The door: checks keys and caches valid ones for a moment. The requests and connections of each are counted beside it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use claw_core::port::Clock as _;
use claw_core::store::{ApiKey, Topic};
use claw_core::tool::Digest;
use claw_core::{KeyId, UserId};
use claw_host::SystemClock;
use claw_store::Backend;
use tokio::sync::watch;

use super::key_rate::Rates;
use super::open_requests::{Full, Place, PlaceKind, Places};
use super::{Permission, Visitor};
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
    /// Visitors that act for another user, each with the visitor of the key. They are as good as that one is.
    acting: HashMap<(KeyId, UserId), (Arc<Visitor>, Arc<Visitor>)>,
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
        let mut known = self.lock();
        if known.visitors.len() >= MOST_REMEMBERED {
            known.visitors.clear();
        }
        known.visitors.insert(hash, (Instant::now(), Arc::clone(&visitor)));
        Ok(Some(visitor))
    }

    /// Returns the visitor of this key, acting for the named user if one is named.
    pub async fn admit_for(&self, key: &str, user: Option<&UserId>) -> Result<Option<Arc<Visitor>>, Error> {
        match (self.admit(key).await?, user) {
            (Some(own), Some(user)) => self.acting(&own, user).await.map(Some),
            (own, _) => Ok(own),
        }
    }

    /// Returns the visitor of the same key that acts for another user of its tenant.
    pub async fn acting(&self, own: &Arc<Visitor>, user: &UserId) -> Result<Arc<Visitor>, Error> {
        own.may(Permission::ActForUsers)?;
        let place = (own.key, user.clone());
        if let Some((of, acting)) = self.lock().acting.get(&place)
            && Arc::ptr_eq(of, own)
        {
            return Ok(Arc::clone(acting));
        }
        let found = self.store.user(&own.tenant, user).await?;
        let found = found.ok_or_else(|| {
            Error::not_found(format!("there is no user `{user}`")).hint("`GET /v1/users` lists the users")
        })?;
        own.may_act_as(&found)?;
        if found.disabled {
            let what = format!("the user `{user}` is disabled");
            return Err(Error::invalid(what).hint("enable the user, or act for another").refusing());
        }
        let acting = Arc::new(own.acting_for(&found));
        let mut known = self.lock();
        if known.acting.len() >= MOST_REMEMBERED {
            known.acting.clear();
        }
        known.acting.insert(place, (Arc::clone(own), Arc::clone(&acting)));
        Ok(acting)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut known = self.lock();
        if known.changes.has_changed().unwrap_or(true) {
            known.changes.mark_unchanged();
            known.visitors.clear();
            known.acting.clear();
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
            known: Mutex::new(Known { visitors: HashMap::new(), acting: HashMap::new(), changes }),
            rates: Rates::default(),
            places: Places::new(&self.setup().config().gateway),
        }
    }
}

#[cfg(test)]
mod tests {
    use claw_core::store::{AccessRole, KeyLimits, UserChange};

    use super::*;
    use crate::app::Setup;
    use crate::app::access::KeyRequest;
    use crate::config::Surroundings;

    async fn app(home: &tempfile::TempDir) -> App {
        let around = Surroundings {
            directory: home.path().to_owned(),
            variables: vec![("HOME".into(), home.path().into())],
        };
        Setup::load(None, &around).unwrap().open().await.unwrap()
    }

    fn user(name: &str) -> UserId {
        UserId::new(name).unwrap()
    }

    fn request(name: &str, role: AccessRole) -> KeyRequest {
        KeyRequest {
            user: user(name),
            role,
            label: String::new(),
            scopes: "tools:read users:act".parse().unwrap(),
            lasts: None,
            limits: KeyLimits::default(),
        }
    }

    #[tokio::test]
    async fn a_key_that_is_revoked_is_refused_at_once() {
        let home = tempfile::tempdir().unwrap();
        let app = app(&home).await;
        let door = app.door();
        let (key, new) = app.create_key(request("ann", AccessRole::Operator)).await.unwrap();
        let key = key.reveal().to_string();
        assert!(door.admit(&key).await.unwrap().is_some());
        assert!(door.admit(&key).await.unwrap().is_some(), "from memory");
        app.revoke_key(&new.id.to_string()).await.unwrap();
        assert!(door.admit(&key).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn who_is_acted_for_changes_with_that_user_at_once() {
        let home = tempfile::tempdir().unwrap();
        let app = app(&home).await;
        let door = app.door();
        let (key, _) = app.create_key(request("front", AccessRole::Admin)).await.unwrap();
        app.add_user(user("ann"), None, AccessRole::Operator).await.unwrap();
        let key = key.reveal().to_string();
        let acting = async |name: &str| door.admit_for(&key, Some(&user(name))).await;
        let ann = acting("ann").await.unwrap().unwrap();
        assert_eq!((ann.role, ann.signature().as_str()), (AccessRole::Operator, "ann, by front"));
        // The visitor of a key is remembered for a moment; whom it acts for, as long as that visitor.
        let front = door.admit(&key).await.unwrap().unwrap();
        let first = door.acting(&front, &user("ann")).await.unwrap();
        assert!(Arc::ptr_eq(&first, &door.acting(&front, &user("ann")).await.unwrap()), "from memory");
        let change = UserChange { role: Some(AccessRole::Viewer), ..UserChange::default() };
        app.edit_user(&user("ann"), change).await.unwrap();
        assert_eq!(acting("ann").await.unwrap().unwrap().role, AccessRole::Viewer);
        let change = UserChange { disabled: Some(true), ..UserChange::default() };
        app.edit_user(&user("ann"), change).await.unwrap();
        assert!(acting("ann").await.unwrap_err().message().contains("is disabled"));
        assert!(acting("nobody").await.unwrap_err().message().contains("there is no user"));
        app.add_user(user("olga"), None, AccessRole::Owner).await.unwrap();
        let refused = acting("olga").await.unwrap_err();
        assert_eq!(refused.kind(), crate::app::Kind::Refused, "{refused}");
        assert_eq!(door.admit(&key).await.unwrap().unwrap().name(), "front", "the key is still good");
    }
}
