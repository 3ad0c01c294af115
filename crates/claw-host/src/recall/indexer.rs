//! The indexer: indexes the words of pending documents, then computes vectors of passages that have none.
//!
//! The store holds the pending work, so an indexer can be killed at any moment and several can work at once:
//! a document is leased before its texts are sent, and vectors are kept by the hash of their text, so none is
//! requested twice.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use claw_core::port::{Clock, EmbedError, EmbedPurpose, Embedder, UnixMillis};
use claw_core::store::{EmbeddingDone, EmbeddingWork, Memories, PassageHash, StoreError, Topic, passages};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::SystemClock;

/// The lease of an indexer on a document it took.
const LEASE: Duration = Duration::from_secs(300);
/// The documents taken at a time.
const TAKEN: usize = 8;
/// The first wait after a failure; each is twice the one before.
const WAIT: Duration = Duration::from_secs(5);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);
/// The interval at which the store is polled if nothing notifies.
const LOOK: Duration = Duration::from_secs(30);

/// The work that an indexer did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Indexed {
    /// Documents whose words were indexed.
    pub words: u64,
    /// Documents whose passages got vectors.
    pub documents: u64,
    /// Vectors that a model made.
    pub embedded: u64,
    /// Vectors that were known already.
    pub cached: u64,
    /// Documents that failed; they are tried again later.
    pub failed: u64,
}

/// Gives passages their words and vectors.
#[derive(Clone)]
pub struct Indexer {
    store: Arc<dyn Memories>,
    embedder: Option<Arc<dyn Embedder>>,
}

impl Indexer {
    pub(super) fn new(store: Arc<dyn Memories>, embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self { store, embedder }
    }

    /// Indexes the words of pending documents; returns how many there were.
    pub async fn index_words(&self) -> Result<u64, StoreError> {
        let mut indexed = 0;
        loop {
            let waiting = self.store.unindexed(TAKEN * 8).await?;
            if waiting.is_empty() {
                return Ok(indexed);
            }
            for card in waiting {
                let Some(document) = self.store.document(&card.key).await? else { continue };
                let found = passages(&document.text);
                indexed += u64::from(self.store.index_document(&card.key, document.version, found).await?);
            }
        }
    }

    /// Does all that can be done now.
    pub async fn run(&self) -> Result<Indexed, StoreError> {
        let mut done = Indexed { words: self.index_words().await?, ..Indexed::default() };
        let Some(embedder) = &self.embedder else { return Ok(done) };
        loop {
            let work = self.store.claim_unembedded(embedder.model(), SystemClock.now(), LEASE, TAKEN).await?;
            if work.is_empty() {
                return Ok(done);
            }
            for document in work {
                self.embed(&**embedder, &document, &mut done).await?;
            }
        }
    }

    /// Works whenever there is something to do, until told to stop.
    pub async fn work(&self, stop: CancellationToken) {
        let mut changes = self.store.changes(Topic::Documents);
        loop {
            changes.mark_unchanged();
            tokio::select! {
                () = stop.cancelled() => return,
                ran = self.run() => match ran {
                    Ok(done) if done != Indexed::default() => tracing::info!(?done, "memory indexed"),
                    Ok(_) => {}
                    Err(error) => tracing::warn!(%error, "the memory could not be indexed; the indexing is retried"),
                },
            }
            tokio::select! {
                () = stop.cancelled() => return,
                _ = changes.changed() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// Gives the passages of one document their vectors.
    async fn embed(
        &self,
        embedder: &dyn Embedder,
        work: &EmbeddingWork,
        done: &mut Indexed,
    ) -> Result<(), StoreError> {
        let (tenant, model) = (&work.key.tenant, embedder.model());
        let hashes: Vec<PassageHash> = work.passages.iter().map(|passage| passage.hash).collect();
        let known: HashSet<PassageHash> =
            self.store.embeddings(tenant, model, &hashes).await?.into_iter().map(|(hash, _)| hash).collect();
        done.cached += known.len() as u64;
        let mut missing: Vec<(PassageHash, String)> = Vec::new();
        for passage in work.passages.iter().filter(|passage| !known.contains(&passage.hash)) {
            if !missing.iter().any(|(hash, _)| *hash == passage.hash) {
                missing.push((passage.hash, passage.text.clone()));
            }
        }
        for batch in missing.chunks(embedder.batch().max(1)) {
            let texts: Vec<String> = batch.iter().map(|(_, text)| text.clone()).collect();
            match embedder.embed(tenant, &texts, EmbedPurpose::Passage).await {
                Ok(vectors) => {
                    let vectors: Vec<_> = batch.iter().map(|(hash, _)| *hash).zip(vectors).collect();
                    match self.store.put_embeddings(tenant, model, &vectors, SystemClock.now()).await {
                        Ok(()) => done.embedded += vectors.len() as u64,
                        // Vectors of another length than the stored ones.
                        Err(StoreError::Refused { why: message, .. }) => {
                            done.failed += 1;
                            let error = EmbedError { message, transient: false, retry_after: None };
                            return self.fail(work, &error).await;
                        }
                        Err(error) => return Err(error),
                    }
                }
                Err(error) => {
                    done.failed += 1;
                    return self.fail(work, &error).await;
                }
            }
        }
        match self.store.embed_document(&work.key, work.version, model).await? {
            EmbeddingDone::Stored => done.documents += 1,
            // A newer version is work of its own.
            EmbeddingDone::Stale => {}
            EmbeddingDone::Missing => {
                let message = "a vector is missing in the store; it is computed again".to_owned();
                let error = EmbedError { message, transient: true, retry_after: None };
                self.fail(work, &error).await?;
            }
        }
        Ok(())
    }

    async fn fail(&self, work: &EmbeddingWork, error: &EmbedError) -> Result<(), StoreError> {
        let doubled = WAIT
            .saturating_mul(1_u32.checked_shl(u32::try_from(work.tries).unwrap_or(31)).unwrap_or(u32::MAX));
        // A permanent failure is still retried now and then: somebody may have fixed it.
        let wait = if error.transient { doubled.min(LONGEST_WAIT) } else { LONGEST_WAIT };
        let wait = error.retry_after.unwrap_or_default().max(wait);
        let next = SystemClock.now().0.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
        tracing::warn!(path = %work.key.path, %error, "the vectors of a document could not be computed; they are retried");
        self.store.fail_embedding(&work.key, work.version, &error.message, UnixMillis(next)).await
    }
}

impl std::fmt::Debug for Indexer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Indexer").finish_non_exhaustive()
    }
}
