//! Vectors of passages, and the search for the nearest.

use std::time::Duration;

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::UnixMillis;
use claw_core::store::{
    DocumentKey, EmbeddingDone, EmbeddingFailure, EmbeddingWork, Memories, MemoryState, PassageHash,
    SimilarPassage, SimilarQuery, StoreError, UnembeddedPassage,
};
use sqlx::{query, query_as, query_scalar};

use super::connections::Link;
use super::documents::{found, key, owners, standing};
use super::failure::failed;
use super::{PostgresStore, get};
use crate::vectors::{decode, encode, product, same_length};
use crate::{document_rules, row};

const INDEX: &str = "could not index the memory";
const SEARCH: &str = "could not search the memory";

#[async_trait]
impl Memories for PostgresStore {
    async fn claim_unembedded(
        &self,
        model: &str,
        now: UnixMillis,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<EmbeddingWork>, StoreError> {
        let mut transaction = self.begin(INDEX).await?;
        let until = now.0.saturating_add(row::number(lease.as_millis()));
        let rows = query(
            "UPDATE documents SET embed_after = $3, embed_tries = embed_tries + 1 WHERE id IN (
                 SELECT id FROM documents WHERE text IS NOT NULL AND shelf = 'memory' AND mark IS NULL
                 AND embed_after <= $2 AND (embedded IS NULL OR embedded <> $1)
                 ORDER BY embed_tries, id LIMIT $4 FOR NO KEY UPDATE SKIP LOCKED
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
            let id: i64 = get(found, "id")?;
            work.push(EmbeddingWork {
                key: key(found)?,
                version: row::count(get(found, "version")?)?,
                tries: row::count(get(found, "tries")?)?,
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
        let hashes: Vec<&[u8]> = hashes.iter().map(<[u8; 32]>::as_slice).collect();
        let rows: Vec<(Vec<u8>, Vec<u8>)> = query_as(
            "SELECT hash, vector FROM embeddings WHERE tenant = $1 AND model = $2 AND hash = ANY($3)",
        )
        .bind(tenant.as_str())
        .bind(model)
        .bind(hashes)
        .fetch_all(&self.pool)
        .await
        .map_err(failed(INDEX))?;
        let known = rows.into_iter().map(|(hash, vector)| {
            let hash =
                hash.try_into().map_err(|_| row::damaged("a vector's hash", "it does not have 32 bytes"))?;
            Ok((hash, decode(&vector)?))
        });
        known.collect()
    }

    async fn put_embeddings(
        &self,
        tenant: &TenantId,
        model: &str,
        vectors: &[(PassageHash, Vec<f32>)],
        at: UnixMillis,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin(INDEX).await?;
        let known: Option<i64> = query_scalar(
            "SELECT octet_length(vector)::bigint FROM embeddings WHERE tenant = $1 AND model = $2 LIMIT 1",
        )
        .bind(tenant.as_str())
        .bind(model)
        .fetch_optional(&mut *transaction)
        .await
        .map_err(failed(INDEX))?;
        same_length(INDEX, model, known, vectors)?;
        let hashes: Vec<&[u8]> = vectors.iter().map(|(hash, _)| hash.as_slice()).collect();
        let encoded: Vec<Vec<u8>> = vectors.iter().map(|(_, vector)| encode(vector)).collect();
        query(
            "INSERT INTO embeddings (tenant, model, hash, vector, at)
             SELECT $1, $2, hash, vector, $5 FROM unnest($3::bytea[], $4::bytea[]) AS v (hash, vector)
             ORDER BY hash ON CONFLICT (tenant, model, hash) DO NOTHING",
        )
        .bind(tenant.as_str())
        .bind(model)
        .bind(hashes)
        .bind(encoded)
        .bind(at.0)
        .execute(&mut *transaction)
        .await
        .map_err(failed(INDEX))?;
        transaction.commit().await.map_err(failed(INDEX))
    }

    async fn embed_document(
        &self,
        key: &DocumentKey,
        version: u64,
        model: &str,
    ) -> Result<EmbeddingDone, StoreError> {
        let mut transaction = self.begin(INDEX).await?;
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
        let length = self.pgvector.store(&mut transaction, &standing).await?;
        transaction.commit().await.map_err(failed(INDEX))?;
        if let Some(length) = length {
            self.pgvector.index(&self.pool, length).await?;
        }
        Ok(EmbeddingDone::Stored)
    }

    async fn fail_embedding(
        &self,
        key: &DocumentKey,
        version: u64,
        error: &str,
        next: UnixMillis,
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin(INDEX).await?;
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
        let mut transaction = self.begin(SEARCH).await?;
        let owners = owners(&mut transaction, &query.tenant, &query.agent, query.user.as_ref()).await?;
        let mut nearest = match self.pgvector.nearest(&mut transaction, &owners, query).await? {
            Some(nearest) => nearest,
            None => {
                let candidates = candidates(&mut transaction, &owners, query).await?;
                compared(&mut transaction, query, &candidates).await?
            }
        };
        transaction.commit().await.map_err(failed(SEARCH))?;
        nearest.sort_by(|one, other| {
            other.similarity.total_cmp(&one.similarity).then_with(|| place(one).cmp(&place(other)))
        });
        nearest.truncate(query.limit);
        Ok(nearest)
    }

    async fn memory_state(&self, tenant: &TenantId, model: Option<&str>) -> Result<MemoryState, StoreError> {
        let mut transaction = self.begin(SEARCH).await?;
        let (documents, unindexed, unembedded): (i64, i64, i64) = query_as(
            "SELECT count(*), count(mark),
                 count(*) FILTER (WHERE $2::text IS NOT NULL AND (embedded IS NULL OR embedded <> $2))
             FROM documents WHERE tenant = $1 AND shelf = 'memory' AND text IS NOT NULL",
        )
        .bind(tenant.as_str())
        .bind(model)
        .fetch_one(&mut *transaction)
        .await
        .map_err(failed(SEARCH))?;
        let (passages, vectors, cached): (i64, i64, i64) = query_as(
            "SELECT (SELECT coalesce(sum(passages), 0)::bigint FROM document_owners WHERE tenant = $1),
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
                tries: row::count(get(found, "embed_tries")?)?,
                next: UnixMillis(get(found, "embed_after")?),
                error: get(found, "embed_error")?,
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

/// The passages of the nearest vectors, without pgvector. All of the owners' vectors are read and compared.
async fn candidates(
    connection: &mut Link<'_>,
    owners: &[(i64, u64)],
    asked: &SimilarQuery,
) -> Result<Vec<i64>, StoreError> {
    let owners: Vec<i64> = owners.iter().map(|(owner, _)| *owner).collect();
    let rows: Vec<(i64, Vec<u8>)> = query_as(
        "SELECT v.passage, e.vector FROM passage_vectors AS v JOIN embeddings AS e ON e.id = v.embedding
         WHERE v.owner = ANY($1) AND v.model = $2",
    )
    .bind(owners)
    .bind(&asked.model)
    .fetch_all(connection)
    .await
    .map_err(failed(SEARCH))?;
    let mut scored = Vec::with_capacity(rows.len());
    for (id, vector) in rows {
        let vector = decode(&vector)?;
        if vector.len() == asked.vector.len() {
            scored.push((product(&vector, &asked.vector), id));
        }
    }
    scored.sort_by(|one, other| other.0.total_cmp(&one.0));
    Ok(scored.into_iter().take(asked.limit).map(|(_, id)| id).collect())
}

/// The passages of candidates with their exact similarities.
async fn compared(
    connection: &mut Link<'_>,
    asked: &SimilarQuery,
    candidates: &[i64],
) -> Result<Vec<SimilarPassage>, StoreError> {
    let rows = query(
        "SELECT d.tenant, d.agent, d.for_user, d.shelf, d.path, d.version, d.run, d.untrusted,
             p.first_line, p.last_line, p.heading, p.text, e.vector
         FROM passage_vectors AS v
         JOIN embeddings AS e ON e.id = v.embedding
         JOIN passages AS p ON p.id = v.passage
         JOIN documents AS d ON d.id = p.document
         WHERE v.passage = ANY($1) AND d.tenant = $2 AND v.model = $3",
    )
    .bind(candidates)
    .bind(asked.tenant.as_str())
    .bind(&asked.model)
    .fetch_all(connection)
    .await
    .map_err(failed(SEARCH))?;
    let similar = |row| {
        let vector: Vec<u8> = get(row, "vector")?;
        Ok(SimilarPassage { found: found(row, &[])?, similarity: product(&decode(&vector)?, &asked.vector) })
    };
    rows.iter().map(similar).collect()
}

/// Returns the texts from which the vectors of a document's passages are computed.
async fn passages(connection: &mut Link<'_>, document: i64) -> Result<Vec<UnembeddedPassage>, StoreError> {
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
