//! The offers of callers that invoke tools one by one, kept between their calls.
//!
//! Making an offer decides about every tool; a call needs one. An offer stays as good as a new one while its executor,
//! registry and policy are the same, and the road decides about each call anyway. It is forgotten with its visitor, whom the
//! door reads again after a moment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use clawsmith::app::access::Visitor;
use clawsmith::{Executor, KeyId, Offer, UserId};

/// The most offers that are kept.
const MOST: usize = 1_000;

/// The key, user, agent and session that a visitor calls as.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct OfferKey {
    pub(crate) key: KeyId,
    pub(crate) user: Option<UserId>,
    pub(crate) agent: Option<String>,
    pub(crate) session: Option<String>,
}

/// The offers by what visitors asked for.
#[derive(Default)]
pub(crate) struct Offers(Mutex<HashMap<OfferKey, (Arc<Visitor>, Offer)>>);

impl Offers {
    /// Returns the offer of this visitor, if it is as good as a new one.
    pub(crate) async fn current(
        &self,
        key: &OfferKey,
        visitor: &Arc<Visitor>,
        executor: &Executor,
    ) -> Option<Offer> {
        let known = self.lock().get(key).cloned();
        let (_, offer) = known.filter(|(of, _)| Arc::ptr_eq(of, visitor))?;
        executor.is_current(&offer).await.then_some(offer)
    }

    /// Keeps an offer of this visitor.
    pub(crate) fn keep(&self, key: OfferKey, visitor: &Arc<Visitor>, offer: &Offer) {
        let mut offers = self.lock();
        if offers.len() >= MOST {
            offers.clear();
        }
        offers.insert(key, (Arc::clone(visitor), offer.clone()));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<OfferKey, (Arc<Visitor>, Offer)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
