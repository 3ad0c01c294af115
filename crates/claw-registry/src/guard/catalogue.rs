//! Searching the tools that the caller may use and was not sent.

use std::sync::Arc;

use claw_core::port::{Catalogue, Hit};

use crate::Offer;

pub(super) fn guard(offer: &Offer) -> Arc<dyn Catalogue> {
    Arc::new(OwnCatalogue(offer.clone()))
}

struct OwnCatalogue(Offer);

impl Catalogue for OwnCatalogue {
    fn search(&self, query: &str, limit: usize) -> Vec<Hit> {
        self.0.search(query, limit)
    }

    fn deferred(&self) -> usize {
        self.0.deferred()
    }
}
