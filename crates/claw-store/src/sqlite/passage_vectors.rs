//! Vectors of passages, and the search for the nearest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::UnixMillis;
use claw_core::store::{
    DocumentKey, EmbeddingDone, EmbeddingFailure, EmbeddingWork, Memories, MemoryState, PassageHash,
    SimilarPassage, SimilarQuery, StoreError, UnembeddedPassage,
};
use futures_util::TryStreamExt as _;
use sqlx::sqlite::SqliteConnection;
use sqlx::{query, query_as, query_scalar};

use super::SqliteStore;
use super::documents::{found, key, owners, standing};
use super::error::{column, failed};
use crate::vectors::{Index, decode, encode, product, same_length};
use crate::{document_rules, row};

const INDEX: &str = "could not index the memory";
const SEARCH: &str = "could not search the memory";
/// The most vectors held in memory for all owners together; beyond it they are read again for each query.
const MOST_HELD: usize = 2_000_000;

/// The indexes that this process holds, by owner and model.
#[derive(Debug, Default)]
pub(super) struct Held(Mutex<HashMap<(i64, String), Shared>>);

/// An index, locked while it is read or loaded further.
type Shared = Arc<tokio::sync::Mutex<Loaded>>;

/// An owner's vectors, kept in memory.
#[derive(Debug, Default)]
struct Loaded {
    /// The number of the last vector that was read.
    last: i64,
    index: Index,
}

#[async_trait]
impl Memories for SqliteStore {
    async fn claim_unembedded(
        &self,
        model: &str,
        now: UnixMillis,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<EmbeddingWork>, StoreError> {
        let mut transaction = self.write(INDEX).await?;
        let until = now.0.saturating_add(row::number(lease.as_millis()));
        let rows = query(
            "UPDATE documents SET embed_after = $3, embed_tries = embed_tries + 1 WHERE id IN (
                 SELECT id FROM documents WHERE text IS NOT NULL AND shelf = 'memory' AND mark IS NULL
                 AND embed_after <= $2 AND (embedded IS NULL OR embedded <> $1)
                 ORDER BY embed_tries, id LIMIT $4
             ) RETURNING id, tenant, agent, for_user, shelf, path, version, embed_tries - 1 AS tries",
        )
        .bind(model)
        .bind(now.0)
        .bind(until)
        .bind(row::number(limit))
        .fetch_all(&mut *transaction)
        .await
        .map_err(failed(INDEX))?;
        let mut work = Vec::with_capacity(rows.len());
        for found in &rows {
            let id: i64 = column(found, "id")?;
            work.push(EmbeddingWork {
                key: key(found)?,
                version: row::count(column(found, "version")?)?,
                tries: row::count(column(found, "tries")?)?,
                passages: passages(&mut transaction, id).await?,
            });
        }
        transaction.commit().await.map_err(failed(INDEX))?;
        Ok(work)
    }

    async fn embeddings(
        &self,
        tenant: &TenantId,
        model: &str,
        hashes: &[PassageHash],
    ) -> Result<Vec<(PassageHash, Vec<f32>)>, StoreError> {
        let mut transaction = self.readers.begin("BEGIN").await.map_err(failed(INDEX))?;
        let mut known = Vec::new();
        for hash in hashes {
            let vector: Option<Vec<u8>> =
                query_scalar("SELECT vector FROM embeddings WHERE tenant = $1 AND model = $2 AND hash = $3")
                    .bind(tenant.as_str())
                    .bind(model)
                    .bind(hash.as_slice())
                    .fetch_optional(&mut *transaction)
                    .await
                    .map_err(failed(INDEX))?;
            if let Some(vector) = vector {
                known.push((*hash, decode(&vector)?));
            }
        }
        transaction.commit().await.map_err(failed(INDEX))?;
        Ok(known)
    }

    async fn put_embeddings(
        &self,
        tenant: &TenantId,
        model: &str,
        vectors: &[(PassageHash, Vec<f32>)],
        at: UnixMillis,
    ) -> Result<(), StoreError> {
        let mut transaction = self.write(INDEX).await?;
        let known: Option<i64> =
            query_scalar("SELECT length(vector) FROM embeddings WHERE tenant = $1 AND model = $2 LIMIT 1")
                .bind(tenant.as_str())
                .bind(model)
                .fetch_optional(&mut *transaction)
                .await
                .map_err(failed(INDEX))?;
        same_length(INDEX, model, known, vectors)?;
        for (hash, vector) in vectors {
            query(
                "INSERT INTO embeddings (tenant, model, hash, vector, at) VALUES ($1, $2, $3, $4, $5)
                 ON CONFLICT (tenant, model, hash) DO NOTHING",
            )
            .bind(tenant.as_str())
            .bind(model)
            .bind(hash.as_slice())
            .bind(encode(vector))
            .bind(at.0)
            .execute(&mut *transaction)
            .await
            .map_err(failed(INDEX))?;
        }
        transaction.commit().await.map_err(failed(INDEX))
    }

    async fn embed_document(
        &self,
        key: &DocumentKey,
        version: u64,
        model: &str,
    ) -> Result<EmbeddingDone, StoreError> {
        let mut transaction = self.write(INDEX).await?;
        let standing = standing(&mut transaction, key).await?;
        let Some(standing) = standing.filter(|standing| standing.now() == Some(version)) else {
            // Ended here, so that its row is free for others at once.
            transaction.commit().await.map_err(failed(INDEX))?;
            return Ok(EmbeddingDone::Stale);
        };
        let missing: i64 = query_scalar(
            "SELECT count(*) FROM passages AS p WHERE p.document = $1 AND NOT EXISTS (
                 SELECT 1 FROM embeddings AS e WHERE e.tenant = p.tenant AND e.model = $2 AND e.hash = p.hash
             )",
        )
        .bind(standing.id)
        .bind(model)
        .fetch_one(&mut *transaction)
        .await
        .map_err(failed(INDEX))?;
        if missing > 0 {
            transaction.commit().await.map_err(failed(INDEX))?;
            return Ok(EmbeddingDone::Missing);
        }
        query("DELETE FROM passage_vectors WHERE passage IN (SELECT id FROM passages WHERE document = $1)")
            .bind(standing.id)
            .execute(&mut *transaction)
            .await
            .map_err(failed(INDEX))?;
        query(
            "INSERT INTO passage_vectors (tenant, passage, owner, model, embedding)
             SELECT p.tenant, p.id, $2, $3, e.id FROM passages AS p
             JOIN embeddings AS e ON e.tenant = p.tenant AND e.model = $3 AND e.hash = p.hash
             WHERE p.document = $1 ORDER BY p.id",
        )
        .bind(standing.id)
        .bind(standing.owner)
        .bind(model)
        .execute(&mut *transaction)
        .await
        .map_err(failed(INDEX))?;
        query(
            "UPDATE documents SET embedded = $2, embed_after = 0, embed_tries = 0, embed_error = NULL WHERE id = $1",
        )
        .bind(standing.id)
        .bind(model)
        .execute(&mut *transaction)
        .await
        .map_err(failed(INDEX))?;
        transaction.commit().await.map_err(failed(INDEX))?;
        Ok(EmbeddingDone::Stored)
    }

    async fn fail_embedding(
        &self,
        key: &DocumentKey,
        version: u64,
        error: &str,
        next: UnixMillis,
    ) -> Result<(), StoreError> {
        let mut transaction = self.write(INDEX).await?;
        let standing = standing(&mut transaction, key).await?;
        if let Some(standing) = standing.filter(|standing| standing.now() == Some(version)) {
            query("UPDATE documents SET embed_error = $2, embed_after = $3 WHERE id = $1")
                .bind(standing.id)
                .bind(error.replace('\0', "\u{fffd}"))
                .bind(next.0)
                .execute(&mut *transaction)
                .await
                .map_err(failed(INDEX))?;
        }
        transaction.commit().await.map_err(failed(INDEX))
    }

    async fn similar_passages(&self, query: &SimilarQuery) -> Result<Vec<SimilarPassage>, StoreError> {
        if query.limit == 0 || query.vector.is_empty() {
            return Ok(Vec::new());
        }
        let mut transaction = self.readers.begin("BEGIN").await.map_err(failed(SEARCH))?;
        let owners = owners(&mut transaction, &query.tenant, &query.agent, query.user.as_ref()).await?;
        let candidates = self.candidates(&mut transaction, &owners, query).await?;
        let mut nearest = compared(&mut transaction, query, &candidates).await?;
        // Half of the places for those that only seemed near were taken by removed ones.
        if candidates.len() - nearest.len() > query.limit / 2 + 8 {
            let owners = with_vectors(&mut transaction, owners, &query.model).await?;
            let candidates = self.candidates(&mut transaction, &owners, query).await?;
            nearest = compared(&mut transaction, query, &candidates).await?;
        }
        transaction.commit().await.map_err(failed(SEARCH))?;
        nearest.sort_by(|one, other| {
            other.similarity.total_cmp(&one.similarity).then_with(|| place(one).cmp(&place(other)))
        });
        nearest.truncate(query.limit);
        Ok(nearest)
    }

    async fn memory_state(&self, tenant: &TenantId, model: Option<&str>) -> Result<MemoryState, StoreError> {
        let mut transaction = self.readers.begin("BEGIN").await.map_err(failed(SEARCH))?;
        let (documents, unindexed, unembedded): (i64, i64, i64) = query_as(
            "SELECT count(*), count(mark),
                 coalesce(sum($2 IS NOT NULL AND (embedded IS NULL OR embedded <> $2)), 0)
             FROM documents WHERE tenant = $1 AND shelf = 'memory' AND text IS NOT NULL",
        )
        .bind(tenant.as_str())
        .bind(model)
        .fetch_one(&mut *transaction)
        .await
        .map_err(failed(SEARCH))?;
        let (passages, vectors, cached): (i64, i64, i64) = query_as(
            "SELECT (SELECT coalesce(sum(passages), 0) FROM document_owners WHERE tenant = $1),
                 (SELECT count(*) FROM passage_vectors WHERE tenant = $1 AND model = $2),
                 (SELECT count(*) FROM embeddings WHERE tenant = $1)",
        )
        .bind(tenant.as_str())
        .bind(model)
        .fetch_one(&mut *transaction)
        .await
        .map_err(failed(SEARCH))?;
        let rows = query(
            "SELECT tenant, agent, for_user, shelf, path, embed_tries, embed_after, embed_error FROM documents
             WHERE tenant = $1 AND embed_error IS NOT NULL AND text IS NOT NULL ORDER BY embed_tries DESC, id LIMIT 10",
        )
        .bind(tenant.as_str())
        .fetch_all(&mut *transaction)
        .await
        .map_err(failed(SEARCH))?;
        transaction.commit().await.map_err(failed(SEARCH))?;
        let failures = rows.iter().map(|found| {
            Ok(EmbeddingFailure {
                key: key(found)?,
                tries: row::count(column(found, "embed_tries")?)?,
                next: UnixMillis(column(found, "embed_after")?),
                error: column(found, "embed_error")?,
            })
        });
        Ok(MemoryState {
            documents: row::count(documents)?,
            passages: row::count(passages)?,
            unindexed: row::count(unindexed)?,
            unembedded: row::count(unembedded)?,
            vectors: row::count(vectors)?,
            cached: row::count(cached)?,
            failures: failures.collect::<Result<_, StoreError>>()?,
        })
    }
}

impl Held {
    fn of(&self, owner: i64, model: &str) -> Shared {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let size = |loaded: &Shared| loaded.try_lock().map_or(0, |loaded| loaded.index.len());
        if held.len() > 1_000 || held.values().map(size).sum::<usize>() > MOST_HELD {
            held.clear();
        }
        Arc::clone(held.entry((owner, model.to_owned())).or_default())
    }
}

impl SqliteStore {
    /// Returns the candidates of these owners, each given with the most vectors that it can have.
    async fn candidates(
        &self,
        connection: &mut SqliteConnection,
        owners: &[(i64, u64)],
        query: &SimilarQuery,
    ) -> Result<Vec<i64>, StoreError> {
        let mut candidates = Vec::new();
        for (owner, most) in owners {
            let held = self.held.of(*owner, &query.model);
            let mut loaded = held.lock().await;
            candidates.extend(loaded.candidates(connection, *owner, *most, query).await?);
        }
        Ok(candidates)
    }
}

impl Loaded {
    /// Returns the candidates of one owner, which has `most` vectors at most. Reads vectors added since first; if
    /// many of the held ones were removed, reads all again.
    async fn candidates(
        &mut self,
        connection: &mut SqliteConnection,
        owner: i64,
        most: u64,
        query: &SimilarQuery,
    ) -> Result<Vec<i64>, StoreError> {
        self.read_on(connection, owner, &query.model).await?;
        let gone = self.index.len().saturating_sub(usize::try_from(most).unwrap_or(usize::MAX));
        if gone > self.index.len() / 4 {
            *self = Self::default();
            self.read_on(connection, owner, &query.model).await?;
            return Ok(self.index.candidates(&query.vector, query.limit));
        }
        Ok(self.index.candidates(&query.vector, query.limit.saturating_add(gone)))
    }

    async fn read_on(
        &mut self,
        connection: &mut SqliteConnection,
        owner: i64,
        model: &str,
    ) -> Result<(), StoreError> {
        // One after the other: all of them together take several times the memory of the index.
        let mut rows = query_as::<_, (i64, Vec<u8>)>(
            "SELECT v.id, e.vector FROM passage_vectors AS v JOIN embeddings AS e ON e.id = v.embedding
             WHERE v.owner = $1 AND v.model = $2 AND v.id > $3 ORDER BY v.id",
        )
        .bind(owner)
        .bind(model)
        .bind(self.last)
        .fetch(connection);
        while let Some((id, vector)) = rows.try_next().await.map_err(failed(SEARCH))? {
            self.index.push(id, &decode(&vector)?);
            self.last = id;
        }
        Ok(())
    }
}

/// Returns the owners with their numbers of vectors instead of passages. Counting reads an entry for each, so it is not
/// done for every search.
async fn with_vectors(
    connection: &mut SqliteConnection,
    owners: Vec<(i64, u64)>,
    model: &str,
) -> Result<Vec<(i64, u64)>, StoreError> {
    let mut counted = Vec::with_capacity(owners.len());
    for (owner, _) in owners {
        let count = query_scalar("SELECT count(*) FROM passage_vectors WHERE owner = $1 AND model = $2")
            .bind(owner)
            .bind(model)
            .fetch_one(&mut *connection)
            .await
            .map_err(failed(SEARCH))?;
        counted.push((owner, row::count(count)?));
    }
    Ok(counted)
}

/// The passages of candidates with their exact similarities. `CROSS JOIN` makes SQLite begin with the list.
async fn compared(
    connection: &mut SqliteConnection,
    asked: &SimilarQuery,
    candidates: &[i64],
) -> Result<Vec<SimilarPassage>, StoreError> {
    let rows = query(
        "SELECT d.tenant, d.agent, d.for_user, d.shelf, d.path, d.version, d.run, d.untrusted,
             p.first_line, p.last_line, p.heading, p.text, e.vector
         FROM json_each($1) AS wanted
         CROSS JOIN passage_vectors AS v ON v.id = wanted.value
         CROSS JOIN embeddings AS e ON e.id = v.embedding
         CROSS JOIN passages AS p ON p.id = v.passage
         CROSS JOIN documents AS d ON d.id = p.document
         WHERE d.tenant = $2 AND v.model = $3",
    )
    .bind(row::text(&candidates)?)
    .bind(asked.tenant.as_str())
    .bind(&asked.model)
    .fetch_all(connection)
    .await
    .map_err(failed(SEARCH))?;
    let similar = |row| {
        let vector: Vec<u8> = column(row, "vector")?;
        Ok(SimilarPassage { found: found(row, &[])?, similarity: product(&decode(&vector)?, &asked.vector) })
    };
    rows.iter().map(similar).collect()
}

/// Returns the texts from which the vectors of a document's passages are computed.
async fn passages(
    connection: &mut SqliteConnection,
    document: i64,
) -> Result<Vec<UnembeddedPassage>, StoreError> {
    let rows: Vec<(Vec<u8>, Vec<u8>, Vec<u8>)> =
        query_as("SELECT hash, heading, text FROM passages WHERE document = $1 ORDER BY id")
            .bind(document)
            .fetch_all(connection)
            .await
            .map_err(failed(INDEX))?;
    rows.into_iter().map(document_rules::unembedded).collect()
}

fn place(similar: &SimilarPassage) -> (&DocumentKey, u64) {
    (&similar.found.key, similar.found.passage.first_line)
}
