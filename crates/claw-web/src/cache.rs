//! Recently fetched pages, per tenant.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use claw_core::TenantId;
use claw_core::port::{ExtractMode, WebPage};
use claw_net::Url;
use tokio::time::Instant;

/// The most bytes of text that all tenants keep together.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// The most pages.
const MOST_PAGES: usize = 4096;

/// A page with the redirects on the way to it, which every reader's lists must allow.
#[derive(Clone)]
pub(crate) struct Fetched {
    pub(crate) page: WebPage,
    pub(crate) way: Vec<Url>,
}

type Key = (TenantId, String, ExtractMode);

/// A cache with limits of age and size; the oldest page is dropped first.
pub(crate) struct Cache {
    age: Duration,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    pages: HashMap<Key, (Instant, Fetched)>,
    /// Oldest first; a page that was fetched again is here twice.
    order: VecDeque<(Instant, Key)>,
    bytes: usize,
}

impl Cache {
    pub(crate) fn new(age: Duration) -> Self {
        Self { age, inner: Mutex::default() }
    }

    pub(crate) fn get(&self, tenant: &TenantId, url: &str, mode: ExtractMode) -> Option<Fetched> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, fetched) = inner.pages.get(&(tenant.clone(), url.to_owned(), mode))?;
        (at.elapsed() < self.age).then(|| fetched.clone())
    }

    pub(crate) fn put(&self, tenant: &TenantId, url: &str, mode: ExtractMode, fetched: Fetched) {
        if self.age.is_zero() || fetched.page.text.len() > MOST_BYTES / 8 {
            return;
        }
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, key) = (Instant::now(), (tenant.clone(), url.to_owned(), mode));
        inner.bytes += fetched.page.text.len();
        if let Some((_, before)) = inner.pages.insert(key.clone(), (now, fetched)) {
            inner.bytes -= before.page.text.len();
        }
        inner.order.push_back((now, key));
        inner.shrink(self.age);
    }
}

impl Inner {
    fn shrink(&mut self, age: Duration) {
        while let Some((at, _)) = self.order.front() {
            let is_over = self.bytes > MOST_BYTES || self.order.len() > MOST_PAGES || at.elapsed() >= age;
            let Some((at, key)) = is_over.then(|| self.order.pop_front()).flatten() else { return };
            // A later fetch of the same page is further back.
            if self.pages.get(&key).is_some_and(|(stored, _)| *stored == at)
                && let Some((_, gone)) = self.pages.remove(&key)
            {
                self.bytes -= gone.page.text.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetched(bytes: usize) -> Fetched {
        Fetched { page: WebPage { text: "x".repeat(bytes), ..WebPage::default() }, way: Vec::new() }
    }

    #[tokio::test(start_paused = true)]
    async fn keeps_pages_for_their_tenant_and_time() {
        let cache = Cache::new(Duration::from_secs(900));
        let (ours, theirs) = (TenantId::main(), TenantId::new("other").unwrap());
        cache.put(&ours, "https://a.example/", ExtractMode::Markdown, fetched(10));
        assert!(cache.get(&ours, "https://a.example/", ExtractMode::Markdown).is_some());
        assert!(cache.get(&theirs, "https://a.example/", ExtractMode::Markdown).is_none());
        assert!(cache.get(&ours, "https://a.example/", ExtractMode::Raw).is_none());
        tokio::time::advance(Duration::from_secs(900)).await;
        assert!(cache.get(&ours, "https://a.example/", ExtractMode::Markdown).is_none());
    }

    #[test]
    fn forgets_the_oldest_where_it_grows_too_large() {
        let cache = Cache::new(Duration::from_secs(900));
        let tenant = TenantId::main();
        for at in 0..20 {
            cache.put(
                &tenant,
                &format!("https://a.example/{at}"),
                ExtractMode::Markdown,
                fetched(MOST_BYTES / 10),
            );
        }
        let inner = cache.inner.lock().unwrap();
        assert!(inner.bytes <= MOST_BYTES && inner.pages.len() == 10, "{}", inner.pages.len());
        drop(inner);
        assert!(cache.get(&tenant, "https://a.example/0", ExtractMode::Markdown).is_none());
        assert!(cache.get(&tenant, "https://a.example/19", ExtractMode::Markdown).is_some());
    }
}
