//! Vector search by pgvector, if the database has it: an HNSW index for each length.

use std::collections::BTreeSet;

use claw_core::store::{SimilarPassage, SimilarQuery, StoreError};
use sqlx::{AssertSqlSafe, Executor as _, query, query_as, query_scalar};
use tokio::sync::{Mutex, OnceCell};

use super::connections::{Connections, Link};
use super::documents::found;
use super::failure::failed;
use super::get;
use crate::document_rules::Standing;
use crate::row;
use crate::vectors::decode;

const INDEX: &str = "could not index the memory";
const SEARCH: &str = "could not search the memory";
/// The longest vector that a pgvector index supports.
const LONGEST: usize = 2_000;
/// The narrowest search of an index: of 40 vectors, pgvector's own value, it loses one in six of the nearest ten.
const NARROWEST: usize = 200;
/// Owners with so many passages or fewer have all their vectors compared.
const FEW: u64 = 2_000;

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

    /// Returns the nearest passages of these owners, each given with its number of passages; `None` if pgvector is
    /// missing. To be called in a transaction.
    ///
    /// The index has the vectors of all owners, and a search of it ends after a number of them. Owners that it could
    /// overlook have their vectors compared one by one: those with few, and those of whom it found too few.
    pub(super) async fn nearest(
        &self,
        connection: &mut Link<'_>,
        owners: &[(i64, u64)],
        asked: &SimilarQuery,
    ) -> Result<Option<Vec<SimilarPassage>>, StoreError> {
        let Some(goes_on) = self.known(connection).await? else { return Ok(None) };
        let passages: u64 = owners.iter().map(|(_, passages)| passages).sum();
        let owners: Vec<i64> = owners.iter().map(|(owner, _)| *owner).collect();
        if passages > FEW {
            widen(connection, goes_on, asked.limit).await?;
            let found = run(connection, by_index(asked.vector.len()), &owners, asked).await?;
            if found.len() >= asked.limit {
                return Ok(Some(found));
            }
        }
        run(connection, one_by_one(asked.vector.len()), &owners, asked).await.map(Some)
    }
}

/// Makes searches of an index wide enough for `limit` results, until the transaction ends. A plan is made for these owners:
/// one for all would not tell an owner of half the vectors from one of a thousandth.
async fn widen(connection: &mut Link<'_>, goes_on: bool, limit: usize) -> Result<(), StoreError> {
    let width = limit.saturating_mul(2).clamp(NARROWEST, 1_000);
    let goes_on = if goes_on { "SET LOCAL hnsw.iterative_scan = strict_order;" } else { "" };
    let settings = format!(
        "{goes_on} SET LOCAL hnsw.ef_search = {width}; SET LOCAL plan_cache_mode = force_custom_plan"
    );
    connection.execute(AssertSqlSafe(settings)).await.map(drop).map_err(failed(SEARCH))
}

/// The vectors of the owners that have the length and the model of the question.
fn own(length: usize) -> String {
    format!("passage_embeddings WHERE dimensions = {length} AND owner = ANY($1) AND model = $2")
}

/// The statement that finds the nearest passages by the index for this length. With its own `SELECT` the vector is
/// read once and not for every row.
fn by_index(length: usize) -> String {
    let (own, distance) =
        (own(length), format!("embedding::vector({length}) <=> (SELECT $3::text::vector({length}))"));
    format!("SELECT passage, {distance} AS distance FROM {own} ORDER BY {distance} LIMIT $4")
}

/// The statement that compares all vectors of the owners. They are compared before they are sorted, so that no plan takes
/// the index.
fn one_by_one(length: usize) -> String {
    let own = own(length);
    format!(
        "SELECT passage, distance FROM (
             SELECT passage, embedding <=> (SELECT $3::text::vector({length})) AS distance FROM {own} OFFSET 0
         ) AS compared ORDER BY distance LIMIT $4"
    )
}

/// Runs one of these statements, and reads the passages that it finds.
async fn run(
    connection: &mut Link<'_>,
    nearest: String,
    owners: &[i64],
    asked: &SimilarQuery,
) -> Result<Vec<SimilarPassage>, StoreError> {
    let sql = format!(
        "WITH near AS MATERIALIZED ({nearest})
         SELECT d.tenant, d.agent, d.for_user, d.shelf, d.path, d.version, d.run, d.untrusted,
             p.first_line, p.last_line, p.heading, p.text, near.distance
         FROM near JOIN passages AS p ON p.id = near.passage JOIN documents AS d ON d.id = p.document
         WHERE d.tenant = $5"
    );
    let rows = query(AssertSqlSafe(sql))
        .bind(owners)
        .bind(&asked.model)
        .bind(written(&asked.vector)?)
        .bind(row::number(asked.limit))
        .bind(asked.tenant.as_str())
        .fetch_all(connection)
        .await
        .map_err(failed(SEARCH))?;
    let similar = |row| {
        let distance: f64 = get(row, "distance")?;
        #[expect(clippy::cast_possible_truncation, reason = "a cosine, of which less is shown")]
        let similarity = (1.0 - distance) as f32;
        Ok(SimilarPassage { found: found(row, &[])?, similarity })
    };
    rows.iter().map(similar).collect()
}

/// A vector as pgvector reads it.
fn written(vector: &[f32]) -> Result<String, StoreError> {
    row::text(&vector)
}
