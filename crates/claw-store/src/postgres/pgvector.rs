//! Vector search by pgvector, if the database has it: an HNSW index for each length.

use std::collections::BTreeSet;

use claw_core::store::{SimilarQuery, StoreError};
use sqlx::{AssertSqlSafe, Executor as _, query, query_as, query_scalar};
use tokio::sync::{Mutex, OnceCell};

use super::connections::{Connections, Link};
use super::failure::failed;
use crate::document::Standing;
use crate::row;
use crate::vectors::decode;

const INDEX: &str = "could not index the memory";
const SEARCH: &str = "could not search the memory";
/// The longest vector that a pgvector index supports.
const LONGEST: usize = 2_000;

/// The state of the pgvector extension in this database.
#[derive(Debug, Default)]
pub(super) struct Pgvector {
    /// `None` if the extension is missing; else whether it continues a search after a filter removed the
    /// first results (since 0.8).
    known: OnceCell<Option<bool>>,
    /// The lengths whose index exists.
    indexed: Mutex<BTreeSet<usize>>,
}

impl Pgvector {
    /// Detects the extension; `None` if it is missing.
    async fn known(&self, connection: &mut Link<'_>) -> Result<Option<bool>, StoreError> {
        let known = self.known.get_or_try_init(async || {
            let version: Option<String> = query_scalar(
                "SELECT extversion FROM pg_extension
                 WHERE extname = 'vector' AND to_regclass('passage_embeddings') IS NOT NULL",
            )
            .fetch_optional(connection)
            .await
            .map_err(failed(SEARCH))?;
            let is_new = |version: String| {
                let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
                (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (0, 8)
            };
            Ok(version.map(is_new))
        });
        known.await.copied()
    }

    /// Copies the vectors of a document; returns their length.
    pub(super) async fn store(
        &self,
        connection: &mut Link<'_>,
        standing: &Standing,
    ) -> Result<Option<usize>, StoreError> {
        if self.known(connection).await?.is_none() {
            return Ok(None);
        }
        let rows: Vec<(i64, Vec<u8>)> = query_as(
            "SELECT v.passage, e.vector FROM passages AS p JOIN passage_vectors AS v ON v.passage = p.id
             JOIN embeddings AS e ON e.id = v.embedding WHERE p.document = $1",
        )
        .bind(standing.id)
        .fetch_all(&mut *connection)
        .await
        .map_err(failed(INDEX))?;
        let (mut passages, mut vectors, mut length) = (Vec::new(), Vec::new(), None);
        for (passage, vector) in rows {
            let vector = decode(&vector)?;
            length = Some(vector.len());
            passages.push(passage);
            vectors.push(written(&vector)?);
        }
        query(
            "INSERT INTO passage_embeddings (passage, tenant, owner, model, dimensions, embedding)
             SELECT v.passage, v.tenant, v.owner, v.model, vector_dims(text::vector), text::vector
             FROM unnest($1::bigint[], $2::text[]) AS new (passage, text)
             JOIN passage_vectors AS v ON v.passage = new.passage
             ON CONFLICT (passage) DO UPDATE SET
                 model = excluded.model, dimensions = excluded.dimensions, embedding = excluded.embedding",
        )
        .bind(passages)
        .bind(vectors)
        .execute(connection)
        .await
        .map_err(failed(INDEX))?;
        Ok(length)
    }

    /// Creates the index for vectors of this length, if it is missing.
    pub(super) async fn index(&self, pool: &Connections, length: usize) -> Result<(), StoreError> {
        if length > LONGEST {
            return Ok(());
        }
        let mut indexed = self.indexed.lock().await;
        if indexed.contains(&length) {
            return Ok(());
        }
        let sql = format!(
            "CREATE INDEX IF NOT EXISTS passage_embeddings_{length} ON passage_embeddings
             USING hnsw ((embedding::vector({length})) vector_cosine_ops) WHERE dimensions = {length}"
        );
        let mut connection = pool.acquire().await.map_err(failed(INDEX))?;
        (&mut connection).execute(AssertSqlSafe(sql)).await.map_err(failed(INDEX))?;
        indexed.insert(length);
        Ok(())
    }

    /// Returns the nearest passages of these owners; `None` if pgvector is missing. To be called in a
    /// transaction.
    pub(super) async fn nearest(
        &self,
        connection: &mut Link<'_>,
        owners: &[i64],
        asked: &SimilarQuery,
    ) -> Result<Option<Vec<i64>>, StoreError> {
        let Some(goes_on) = self.known(connection).await? else { return Ok(None) };
        let width = asked.limit.saturating_mul(2).clamp(40, 1_000);
        let settings = match goes_on {
            true => {
                format!("SET LOCAL hnsw.ef_search = {width}; SET LOCAL hnsw.iterative_scan = strict_order")
            }
            false => format!("SET LOCAL hnsw.ef_search = {width}"),
        };
        (&mut *connection).execute(AssertSqlSafe(settings)).await.map_err(failed(SEARCH))?;
        let length = asked.vector.len();
        let sql = format!(
            "SELECT passage FROM passage_embeddings
             WHERE dimensions = {length} AND owner = ANY($1) AND model = $2
             ORDER BY embedding::vector({length}) <=> $3::vector({length}) LIMIT $4"
        );
        let found = query_scalar(AssertSqlSafe(sql))
            .bind(owners)
            .bind(&asked.model)
            .bind(written(&asked.vector)?)
            .bind(row::number(asked.limit))
            .fetch_all(connection)
            .await
            .map_err(failed(SEARCH))?;
        Ok(Some(found))
    }
}

/// A vector as pgvector reads it.
fn written(vector: &[f32]) -> Result<String, StoreError> {
    row::text(&vector)
}
