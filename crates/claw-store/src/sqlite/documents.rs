//! Documents, and their passages by the words in them.

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::provenance::Provenance;
use claw_core::store::{
    Document, DocumentCard, DocumentKey, DocumentWrite, Documents, FoundPassage, Passage, PassagePlace,
    PassageQuery, Shelf, StoreError, Topic,
};
use claw_core::{AgentId, TenantId, UserId};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{query, query_as, query_scalar};

use super::SqliteStore;
use super::error::{column, failed};
use crate::document_rules::{self, Standing, check_path, user};
use crate::{query_words, row, words};

const WRITE: &str = "could not write the document";
const INDEX: &str = "could not index the document";
const READ: &str = "could not read documents";
const SEARCH: &str = "could not search documents";

#[async_trait]
impl Documents for SqliteStore {
    async fn document(&self, key: &DocumentKey) -> Result<Option<Document>, StoreError> {
        check_path(READ, key)?;
        let row: Option<(i64, Vec<u8>, i64, Option<Vec<u8>>, bool)> = query_as(
            "SELECT version, text, at, run, untrusted FROM documents
             WHERE tenant = $1 AND agent = $2 AND for_user = $3 AND shelf = $4 AND path = $5
             AND text IS NOT NULL",
        )
        .bind(key.tenant.as_str())
        .bind(document_rules::agent(key.agent.as_ref()))
        .bind(user(key.user.as_ref()))
        .bind(key.shelf.name())
        .bind(&key.path)
        .fetch_optional(&self.readers)
        .await
        .map_err(failed(READ))?;
        let Some((version, text, at, run, untrusted)) = row else { return Ok(None) };
        let (version, text) = (row::count(version)?, document_rules::text("a document", text)?);
        let provenance = document_rules::provenance(run.as_deref(), untrusted)?;
        Ok(Some(Document { key: key.clone(), version, text, at: UnixMillis(at), provenance }))
    }

    async fn write_document(&self, key: &DocumentKey, write: DocumentWrite<'_>) -> Result<u64, StoreError> {
        let DocumentWrite { text, seen, at, provenance, keeps_mark } = write;
        check_path(WRITE, key)?;
        let mut transaction = self.write(WRITE).await?;
        let standing = standing(&mut transaction, key).await?;
        let version = document_rules::next(key, standing.as_ref(), seen)?;
        let owner = match &standing {
            Some(standing) => standing.owner,
            None => owner(&mut transaction, key).await?,
        };
        let id: i64 = query_scalar(
            "INSERT INTO documents
                 (tenant, agent, for_user, owner, shelf, path, version, text, at, run, untrusted)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
             ON CONFLICT (tenant, agent, shelf, path, for_user) DO UPDATE SET
                 version = excluded.version, text = excluded.text, at = excluded.at, mark = NULL,
                 embedded = NULL, embed_after = 0, embed_tries = 0, embed_error = NULL,
                 graph_after = 0, graph_tries = 0, graph_error = NULL,
                 run = excluded.run, untrusted = excluded.untrusted OR ($12 AND documents.untrusted)
             RETURNING id",
        )
        .bind(key.tenant.as_str())
        .bind(document_rules::agent(key.agent.as_ref()))
        .bind(user(key.user.as_ref()))
        .bind(owner)
        .bind(key.shelf.name())
        .bind(&key.path)
        .bind(version)
        .bind(text.as_bytes())
        .bind(at.0)
        .bind(provenance.run.map(|run| run.as_bytes().to_vec()))
        .bind(provenance.untrusted)
        .bind(keeps_mark)
        .fetch_one(&mut *transaction)
        .await
        .map_err(failed(WRITE))?;
        let standing = Standing { id, owner, version, is_there: true };
        let passages = document_rules::passages(key, text);
        replace(&mut transaction, key, &standing, &passages).await.map_err(failed(WRITE))?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.bells.ring(Topic::Documents);
        row::count(version)
    }

    async fn remove_document(&self, key: &DocumentKey, seen: u64, at: UnixMillis) -> Result<(), StoreError> {
        check_path(WRITE, key)?;
        let mut transaction = self.write(WRITE).await?;
        let standing = standing(&mut transaction, key).await?;
        let version = document_rules::next(key, standing.as_ref(), Some(seen))?;
        let Some(standing) = standing else { return Err(document_rules::stale(key, None)) };
        query("UPDATE documents SET version = $2, text = NULL, at = $3, mark = NULL, embedded = NULL WHERE id = $1")
            .bind(standing.id)
            .bind(version)
            .bind(at.0)
            .execute(&mut *transaction)
            .await
            .map_err(failed(WRITE))?;
        replace(&mut transaction, key, &standing, &[]).await.map_err(failed(WRITE))?;
        transaction.commit().await.map_err(failed(WRITE))?;
        self.bells.ring(Topic::Documents);
        Ok(())
    }

    async fn documents(
        &self,
        tenant: &TenantId,
        agent: Option<&AgentId>,
        for_user: Option<&UserId>,
        shelf: Shelf,
    ) -> Result<Vec<DocumentCard>, StoreError> {
        let rows = query(
            "SELECT tenant, agent, for_user, shelf, path, version, length(text) AS bytes, at,
                 run, untrusted
             FROM documents
             WHERE tenant = $1 AND agent = $2 AND shelf = $3 AND for_user IN ('', $4) AND text IS NOT NULL
             ORDER BY path, for_user",
        )
        .bind(tenant.as_str())
        .bind(document_rules::agent(agent))
        .bind(shelf.name())
        .bind(user(for_user))
        .fetch_all(&self.readers)
        .await
        .map_err(failed(READ))?;
        rows.iter().map(card).collect()
    }

    async fn mark_unindexed(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        let mut transaction = self.write(INDEX).await?;
        let marked = query(
            "UPDATE documents SET mark = coalesce(mark, id) WHERE tenant = $1 AND shelf = 'memory' AND text IS NOT NULL",
        )
        .bind(tenant.as_str())
        .execute(&mut *transaction)
        .await
        .map_err(failed(INDEX))?;
        transaction.commit().await.map_err(failed(INDEX))?;
        Ok(marked.rows_affected())
    }

    async fn unindexed(&self, limit: usize) -> Result<Vec<DocumentCard>, StoreError> {
        let rows = query(
            "SELECT tenant, agent, for_user, shelf, path, version, length(text) AS bytes, at,
                 run, untrusted
             FROM documents
             WHERE mark IS NOT NULL ORDER BY mark LIMIT $1",
        )
        .bind(row::number(limit))
        .fetch_all(&self.readers)
        .await
        .map_err(failed(READ))?;
        rows.iter().map(card).collect()
    }

    async fn index_document(
        &self,
        key: &DocumentKey,
        version: u64,
        passages: Vec<Passage>,
    ) -> Result<bool, StoreError> {
        check_path(INDEX, key)?;
        let mut transaction = self.write(INDEX).await?;
        let standing = standing(&mut transaction, key).await?;
        let Some(standing) = standing.filter(|standing| standing.now() == Some(version)) else {
            return Ok(false);
        };
        replace(&mut transaction, key, &standing, &passages).await.map_err(failed(INDEX))?;
        query("UPDATE documents SET mark = NULL, embedded = NULL, embed_after = 0 WHERE id = $1")
            .bind(standing.id)
            .execute(&mut *transaction)
            .await
            .map_err(failed(INDEX))?;
        transaction.commit().await.map_err(failed(INDEX))?;
        Ok(true)
    }

    async fn search_passages(&self, query: &PassageQuery) -> Result<Vec<FoundPassage>, StoreError> {
        let written = words::asked_as_written(&query.text);
        let asked: Vec<String> = written.iter().map(|(word, _)| word.clone()).collect();
        if asked.is_empty() || query.limit == 0 {
            return Ok(Vec::new());
        }
        // One look at the file for all of it.
        let mut transaction = self.readers.begin("BEGIN").await.map_err(failed(SEARCH))?;
        let owners = owners(&mut transaction, &query.tenant, &query.agent, query.user.as_ref()).await?;
        let passages = owners.iter().map(|(_, passages)| passages).sum();
        if passages == 0 {
            return Ok(Vec::new());
        }
        let owners: Vec<i64> = owners.into_iter().map(|(owner, _)| owner).collect();
        let asked = telling(&mut transaction, &owners, asked, passages).await?;
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let rows = sqlx::query(
            "SELECT d.tenant, d.agent, d.for_user, d.shelf, d.path, d.version, d.run, d.untrusted,
                 p.first_line, p.last_line, p.heading, p.text
             FROM (
                 SELECT rowid AS id, bm25(passage_words) AS score FROM passage_words
                 WHERE passage_words MATCH $1 ORDER BY score, id LIMIT $2
             ) AS found
             JOIN passages AS p ON p.id = found.id
             JOIN documents AS d ON d.id = p.document
             WHERE d.tenant = $3 ORDER BY found.score, found.id",
        )
        .bind(matching(&owners, &asked))
        .bind(row::number(query.limit))
        .bind(query.tenant.as_str())
        .fetch_all(&mut *transaction)
        .await
        .map_err(failed(SEARCH))?;
        transaction.commit().await.map_err(failed(SEARCH))?;
        rows.iter().map(|row| found(row, &written)).collect()
    }

    async fn passages_near(
        &self,
        places: &[PassagePlace],
        limit: usize,
    ) -> Result<Vec<Vec<FoundPassage>>, StoreError> {
        let mut transaction = self.readers.begin("BEGIN").await.map_err(failed(SEARCH))?;
        let mut near = Vec::with_capacity(places.len());
        for PassagePlace { key, version, first_line, last_line } in places {
            let rows = query(
                "SELECT d.tenant, d.agent, d.for_user, d.shelf, d.path, d.version, d.run, d.untrusted,
                     p.first_line, p.last_line, p.heading, p.text
                 FROM documents AS d JOIN passages AS p ON p.document = d.id
                 WHERE d.tenant = $1 AND d.agent = $2 AND d.for_user = $3 AND d.shelf = $4 AND d.path = $5
                 AND d.version = $6 AND (p.last_line < $7 OR p.first_line > $8)
                 ORDER BY max($7 - p.last_line, p.first_line - $8), p.first_line, p.id LIMIT $9",
            )
            .bind(key.tenant.as_str())
            .bind(document_rules::agent(key.agent.as_ref()))
            .bind(user(key.user.as_ref()))
            .bind(key.shelf.name())
            .bind(&key.path)
            .bind(row::number(*version))
            .bind(row::number(*first_line))
            .bind(row::number(*last_line))
            .bind(row::number(limit))
            .fetch_all(&mut *transaction)
            .await
            .map_err(failed(SEARCH))?;
            near.push(rows.iter().map(|row| found(row, &[])).collect::<Result<_, _>>()?);
        }
        transaction.commit().await.map_err(failed(SEARCH))?;
        Ok(near)
    }
}

/// Returns the row of a document, if it ever had one.
pub(super) async fn standing(
    connection: &mut SqliteConnection,
    key: &DocumentKey,
) -> Result<Option<Standing>, StoreError> {
    let row = query_as(
        "SELECT id, owner, version, text IS NOT NULL FROM documents
         WHERE tenant = $1 AND agent = $2 AND for_user = $3 AND shelf = $4 AND path = $5",
    )
    .bind(key.tenant.as_str())
    .bind(document_rules::agent(key.agent.as_ref()))
    .bind(user(key.user.as_ref()))
    .bind(key.shelf.name())
    .bind(&key.path)
    .fetch_optional(connection)
    .await
    .map_err(failed(READ))?;
    Ok(row.map(Standing::of))
}

/// Returns the id of a document's owner, making its row if missing.
async fn owner(connection: &mut SqliteConnection, key: &DocumentKey) -> Result<i64, StoreError> {
    query_scalar(
        "INSERT INTO document_owners (tenant, agent, for_user) VALUES ($1, $2, $3)
         ON CONFLICT (tenant, agent, for_user) DO UPDATE SET passages = passages RETURNING id",
    )
    .bind(key.tenant.as_str())
    .bind(document_rules::agent(key.agent.as_ref()))
    .bind(user(key.user.as_ref()))
    .fetch_one(connection)
    .await
    .map_err(failed(WRITE))
}

/// Replaces the passages of a document.
async fn replace(
    connection: &mut SqliteConnection,
    key: &DocumentKey,
    standing: &Standing,
    passages: &[Passage],
) -> Result<(), sqlx::Error> {
    let forgotten = forget(connection, standing).await?;
    for passage in passages {
        insert(connection, key, standing, passage).await?;
    }
    count_passages(connection, standing, row::number(passages.len()) - forgotten).await
}

/// Removes the index of a document; returns its number of passages.
async fn forget(connection: &mut SqliteConnection, standing: &Standing) -> Result<i64, sqlx::Error> {
    query("DELETE FROM passage_words WHERE rowid IN (SELECT id FROM passages WHERE document = $1)")
        .bind(standing.id)
        .execute(&mut *connection)
        .await?;
    query("DELETE FROM passage_vectors WHERE passage IN (SELECT id FROM passages WHERE document = $1)")
        .bind(standing.id)
        .execute(&mut *connection)
        .await?;
    let forgotten =
        query("DELETE FROM passages WHERE document = $1").bind(standing.id).execute(connection).await?;
    Ok(row::number(forgotten.rows_affected()))
}

/// Updates the passage count of a document's owner.
async fn count_passages(
    connection: &mut SqliteConnection,
    standing: &Standing,
    more: i64,
) -> Result<(), sqlx::Error> {
    query("UPDATE document_owners SET passages = passages + $2 WHERE id = $1")
        .bind(standing.owner)
        .bind(more)
        .execute(connection)
        .await?;
    Ok(())
}

async fn insert(
    connection: &mut SqliteConnection,
    key: &DocumentKey,
    standing: &Standing,
    passage: &Passage,
) -> Result<(), sqlx::Error> {
    let inserted = query(
        "INSERT INTO passages (tenant, document, first_line, last_line, heading, text, hash)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(key.tenant.as_str())
    .bind(standing.id)
    .bind(row::number(passage.first_line))
    .bind(row::number(passage.last_line))
    .bind(passage.heading.as_bytes())
    .bind(passage.text.as_bytes())
    .bind(document_rules::hash(passage).as_slice())
    .execute(&mut *connection)
    .await?;
    query("INSERT INTO passage_words (rowid, words) VALUES ($1, $2)")
        .bind(inserted.last_insert_rowid())
        .bind(words::spaced(standing.owner, &document_rules::indexed(&key.path, passage)))
        .execute(connection)
        .await?;
    Ok(())
}

/// Returns the owners whose documents are searched, each with its number of passages.
pub(super) async fn owners(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    agent: &AgentId,
    for_user: Option<&UserId>,
) -> Result<Vec<(i64, u64)>, StoreError> {
    let rows: Vec<(i64, i64)> = query_as(
        "SELECT id, passages FROM document_owners
         WHERE tenant = $1 AND (agent = $2 AND for_user IN ('', $3) OR agent = '' AND for_user = '') AND passages > 0",
    )
    .bind(tenant.as_str())
    .bind(agent.as_str())
    .bind(user(for_user))
    .fetch_all(connection)
    .await
    .map_err(failed(SEARCH))?;
    rows.into_iter().map(|(id, passages)| Ok((id, row::count(passages)?))).collect()
}

/// Selects the words to search for: all of them, if there are few passages or one word.
async fn telling(
    connection: &mut SqliteConnection,
    owners: &[i64],
    asked: Vec<String>,
    passages: u64,
) -> Result<Vec<String>, StoreError> {
    let common = query_words::common(passages);
    if passages <= common || asked.len() == 1 {
        return Ok(asked);
    }
    let mut counted = count(connection, owners, asked, common + 1).await?;
    let mut telling = query_words::telling(&counted, common);
    if telling.is_empty() {
        let asked = counted.into_iter().map(|(word, _)| word).collect();
        counted = count(connection, owners, asked, passages).await?;
        telling = query_words::rarest(counted);
    }
    Ok(telling.into_iter().map(|(word, _)| word).collect())
}

/// Counts the passages that have each word, up to `most`.
async fn count(
    connection: &mut SqliteConnection,
    owners: &[i64],
    words: Vec<String>,
    most: u64,
) -> Result<Vec<(String, u64)>, StoreError> {
    let mut counted = Vec::with_capacity(words.len());
    for word in words {
        let count = query_scalar(
            "SELECT count(*) FROM (SELECT rowid FROM passage_words WHERE passage_words MATCH $1 LIMIT $2)",
        )
        .bind(matching(owners, std::slice::from_ref(&word)))
        .bind(row::number(most))
        .fetch_one(&mut *connection)
        .await
        .map_err(failed(SEARCH))?;
        counted.push((word, row::count(count)?));
    }
    Ok(counted)
}

/// Returns the FTS5 query for passages with any of the words of any of the owners. A word has no quotes in
/// it.
fn matching(owners: &[i64], words: &[String]) -> String {
    let quoted = |owner, word| format!("\"{}\"", words::owned(owner, word));
    let each = owners.iter().flat_map(|owner| words.iter().map(|word| quoted(*owner, word)));
    each.collect::<Vec<_>>().join(" OR ")
}

pub(super) fn key(row: &SqliteRow) -> Result<DocumentKey, StoreError> {
    Ok(DocumentKey {
        tenant: row::word("a document's tenant", column(row, "tenant")?)?,
        agent: document_rules::agent_of(column(row, "agent")?)?,
        user: document_rules::user_of(column(row, "for_user")?)?,
        shelf: row::word("a document's shelf", column(row, "shelf")?)?,
        path: column(row, "path")?,
    })
}

fn provenance(row: &SqliteRow) -> Result<Provenance, StoreError> {
    let run: Option<Vec<u8>> = column(row, "run")?;
    document_rules::provenance(run.as_deref(), column(row, "untrusted")?)
}

fn card(row: &SqliteRow) -> Result<DocumentCard, StoreError> {
    Ok(DocumentCard {
        key: key(row)?,
        version: row::count(column(row, "version")?)?,
        bytes: row::count(column(row, "bytes")?)?,
        at: UnixMillis(column(row, "at")?),
        provenance: provenance(row)?,
    })
}

pub(super) fn found(row: &SqliteRow, asked: &[(String, String)]) -> Result<FoundPassage, StoreError> {
    let passage = Passage {
        first_line: row::count(column(row, "first_line")?)?,
        last_line: row::count(column(row, "last_line")?)?,
        heading: document_rules::text("a passage's heading", column(row, "heading")?)?,
        text: document_rules::text("a passage", column(row, "text")?)?,
    };
    let key = key(row)?;
    let words = words::matched(asked, &document_rules::indexed(&key.path, &passage));
    let version = row::count(column(row, "version")?)?;
    Ok(FoundPassage { key, words, version, provenance: provenance(row)?, passage })
}
