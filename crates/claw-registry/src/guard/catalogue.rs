//! Guard of the catalogue: searches the tools that the caller may use and was not sent.

use std::sync::Arc;

use claw_core::port::{Catalogue, Hit};

use super::{Grant, Site};
use crate::Offer;

pub(super) fn guard(site: &Site<'_>) -> Arc<dyn Catalogue> {
    Arc::new(OwnCatalogue { offer: site.offer.clone(), grant: site.grant() })
}

struct OwnCatalogue {
    offer: Offer,
    grant: Arc<Grant>,
}

impl Catalogue for OwnCatalogue {
    fn search(&self, query: &str, limit: usize) -> Vec<Hit> {
        if self.grant.live().is_err() {
            return Vec::new();
        }
        self.offer.search(query, limit)
    }

    fn deferred(&self) -> usize {
        self.offer.deferred()
    }
}
