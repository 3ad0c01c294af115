//! Documents, and their passages by the words in them. A writer of a document holds its row's lock.

use async_trait::async_trait;
use claw_core::port::UnixMillis;
use claw_core::provenance::Provenance;
use claw_core::store::{
    Document, DocumentCard, DocumentKey, DocumentWrite, Documents, FoundPassage, Passage, PassagePlace,
    PassageQuery, Shelf, StoreError, Topic,
};
use claw_core::{AgentId, TenantId, UserId};
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, query, query_as, query_scalar};
use uuid::Uuid;

use super::connections::Link;
use super::failure::failed;
use super::{PostgresStore, get, uuid};
use crate::document_rules::{self, Standing, check_path, user};
use crate::{query_words, row, words};

const WRITE: &str = "could not write the document";
const INDEX: &str = "could not index the document";
const READ: &str = "could not read documents";
const SEARCH: &str = "could not search documents";
/// The sample, the index `passages_sample`, has one of so many passages.
const SAMPLE: u64 = 16;
/// The excess in the sample that leaves no doubt, even if few are expected.
const SURE: u64 = 50;
/// Passages that are sent together.
const BATCH: usize = 200;

#[async_trait]
impl Documents for PostgresStore {
    async fn document(&self, key: &DocumentKey) -> Result<Option<Document>, StoreError> {
        check_path(READ, key)?;
        let row: Option<(i64, Vec<u8>, i64, Option<Uuid>, bool)> = query_as(
            "SELECT version, text, at, run, untrusted FROM documents
             WHERE tenant = $1 AND agent = $2 AND for_user = $3 AND shelf = $4 AND path = $5
             AND text IS NOT NULL",
        )
        .bind(key.tenant.as_str())
        .bind(document_rules::agent(key.agent.as_ref()))
        .bind(user(key.user.as_ref()))
        .bind(key.shelf.name())
        .bind(&key.path)
        .fetch_optional(&self.pool)
        .await
        .map_err(failed(READ))?;
        let Some((version, text, at, run, untrusted)) = row else { return Ok(None) };
        let (version, text) = (row::count(version)?, document_rules::text("a document", text)?);
        let provenance = document_rules::provenance(run.as_ref().map(|run| &run.as_bytes()[..]), untrusted)?;
        Ok(Some(Document { key: key.clone(), version, text, at: UnixMillis(at), provenance }))
    }

    async fn write_document(&self, key: &DocumentKey, write: DocumentWrite<'_>) -> Result<u64, StoreError> {
        let DocumentWrite { text, seen, at, provenance, keeps_mark } = write;
        check_path(WRITE, key)?;
        let mut transaction = self.begin(WRITE).await?;
        let version = loop {
            let found = standing(&mut transaction, key).await?;
            let version = document_rules::next(key, found.as_ref(), seen)?;
            let Some(standing) = found else {
                if create(&mut transaction, key, &write).await.map_err(failed(WRITE))? {
                    let made = standing(&mut transaction, key).await?;
                    let made = made.ok_or_else(|| document_rules::stale(key, None))?;
                    let passages = document_rules::passages(key, text);
                    replace(&mut transaction, key, &made, &passages).await.map_err(failed(WRITE))?;
                    break version;
                }
                // Another node made it in between; now its row can be held.
                continue;
            };
            query(
                "UPDATE documents SET version = $2, text = $3, at = $4, mark = NULL,
                     embedded = NULL, embed_after = 0, embed_tries = 0, embed_error = NULL,
                     graph_after = 0, graph_tries = 0, graph_error = NULL,
                     run = $5, untrusted = $6 OR ($7 AND untrusted)
                 WHERE id = $1",
            )
            .bind(standing.id)
            .bind(version)
            .bind(text.as_bytes())
            .bind(at.0)
            .bind(provenance.run.as_ref().map(|run| uuid(run.as_bytes())))
            .bind(provenance.untrusted)
            .bind(keeps_mark)
            .execute(&mut *transaction)
            .await
            .map_err(failed(WRITE))?;
            let passages = document_rules::passages(key, text);
            replace(&mut transaction, key, &standing, &passages).await.map_err(failed(WRITE))?;
            break version;
        };
        transaction.commit().await.map_err(failed(WRITE))?;
        self.listener.bells.ring(Topic::Documents);
        row::count(version)
    }

    async fn remove_document(&self, key: &DocumentKey, seen: u64, at: UnixMillis) -> Result<(), StoreError> {
        check_path(WRITE, key)?;
        let mut transaction = self.begin(WRITE).await?;
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
        self.listener.bells.ring(Topic::Documents);
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
            "SELECT tenant, agent, for_user, shelf, path, version, octet_length(text)::bigint AS bytes, at,
                 run, untrusted
             FROM documents
             WHERE tenant = $1 AND agent = $2 AND shelf = $3 AND for_user IN ('', $4) AND text IS NOT NULL
             ORDER BY path, for_user",
        )
        .bind(tenant.as_str())
        .bind(document_rules::agent(agent))
        .bind(shelf.name())
        .bind(user(for_user))
        .fetch_all(&self.pool)
        .await
        .map_err(failed(READ))?;
        rows.iter().map(card).collect()
    }

    async fn mark_unindexed(&self, tenant: &TenantId) -> Result<u64, StoreError> {
        let marked = query(
            "UPDATE documents SET mark = coalesce(mark, nextval('document_marks'))
             WHERE tenant = $1 AND shelf = 'memory' AND text IS NOT NULL",
        )
        .bind(tenant.as_str())
        .execute(&self.pool)
        .await
        .map_err(failed(INDEX))?;
        Ok(marked.rows_affected())
    }

    async fn unindexed(&self, limit: usize) -> Result<Vec<DocumentCard>, StoreError> {
        let rows = query(
            "SELECT tenant, agent, for_user, shelf, path, version, octet_length(text)::bigint AS bytes, at,
                 run, untrusted
             FROM documents WHERE mark IS NOT NULL ORDER BY mark LIMIT $1",
        )
        .bind(row::number(limit))
        .fetch_all(&self.pool)
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
        let mut transaction = self.begin(INDEX).await?;
        let standing = standing(&mut transaction, key).await?;
        let Some(standing) = standing.filter(|standing| standing.now() == Some(version)) else {
            return Ok(false);
        };
        query("UPDATE documents SET mark = NULL, embedded = NULL, embed_after = 0 WHERE id = $1")
            .bind(standing.id)
            .execute(&mut *transaction)
            .await
            .map_err(failed(INDEX))?;
        replace(&mut transaction, key, &standing, &passages).await.map_err(failed(INDEX))?;
        transaction.commit().await.map_err(failed(INDEX))?;
        Ok(true)
    }

    async fn search_passages(&self, asked: &PassageQuery) -> Result<Vec<FoundPassage>, StoreError> {
        let written = words::asked_as_written(&asked.text);
        let words: Vec<String> = written.iter().map(|(word, _)| word.clone()).collect();
        if words.is_empty() || asked.limit == 0 {
            return Ok(Vec::new());
        }
        let mut connection = self.pool.acquire().await.map_err(failed(SEARCH))?;
        let owners = owners(&mut connection, &asked.tenant, &asked.agent, asked.user.as_ref()).await?;
        let passages: u64 = owners.iter().map(|(_, passages)| passages).sum();
        if passages == 0 {
            return Ok(Vec::new());
        }
        let owners: Vec<i64> = owners.into_iter().map(|(owner, _)| owner).collect();
        let telling = telling(&mut connection, &owners, words, passages).await?;
        if telling.is_empty() {
            return Ok(Vec::new());
        }
        let terms: Vec<String> = telling.iter().map(|(word, _)| term(&owners, word)).collect();
        let weights: Vec<f64> =
            telling.iter().map(|(_, count)| query_words::weight(*count, passages)).collect();
        let score = score(terms.len());
        let rows = query(AssertSqlSafe(format!(
            "WITH found AS MATERIALIZED (
                 SELECT id, {score} AS score FROM passages WHERE words @@ $1::tsquery AND tenant = $4
                 ORDER BY score DESC, id LIMIT $5
             )
             SELECT d.tenant, d.agent, d.for_user, d.shelf, d.path, d.version, d.run, d.untrusted,
                 p.first_line, p.last_line, p.heading, p.text
             FROM found JOIN passages AS p ON p.id = found.id JOIN documents AS d ON d.id = p.document
             ORDER BY found.score DESC, found.id",
        )))
        .bind(terms.join(" | "))
        .bind(&terms)
        .bind(&weights)
        .bind(asked.tenant.as_str())
        .bind(row::number(asked.limit))
        .fetch_all(&mut connection)
        .await
        .map_err(failed(SEARCH))?;
        rows.iter().map(|row| found(row, &written)).collect()
    }

    async fn passages_near(
        &self,
        places: &[PassagePlace],
        limit: usize,
    ) -> Result<Vec<Vec<FoundPassage>>, StoreError> {
        let (mut tenants, mut agents, mut users, mut shelves, mut paths) =
            <(Vec<_>, Vec<_>, Vec<_>, Vec<_>, Vec<_>)>::default();
        let (mut versions, mut firsts, mut lasts) = <(Vec<_>, Vec<_>, Vec<_>)>::default();
        for PassagePlace { key, version, first_line, last_line } in places {
            tenants.push(key.tenant.as_str());
            agents.push(document_rules::agent(key.agent.as_ref()));
            users.push(user(key.user.as_ref()));
            shelves.push(key.shelf.name());
            paths.push(key.path.as_str());
            versions.push(row::number(*version));
            firsts.push(row::number(*first_line));
            lasts.push(row::number(*last_line));
        }
        let mut connection = self.pool.acquire().await.map_err(failed(SEARCH))?;
        // All places in one statement: each would be a round trip.
        let rows = query(
            "SELECT at.place, near.* FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[],
                     $6::bigint[], $7::bigint[], $8::bigint[])
                 WITH ORDINALITY AS at (tenant, agent, for_user, shelf, path, version, first, last, place)
             CROSS JOIN LATERAL (
                 SELECT d.tenant, d.agent, d.for_user, d.shelf, d.path, d.version, d.run, d.untrusted,
                     p.first_line, p.last_line, p.heading, p.text,
                     greatest(at.first - p.last_line, p.first_line - at.last) AS distance, p.id
                 FROM documents AS d JOIN passages AS p ON p.document = d.id
                 WHERE d.tenant = at.tenant AND d.agent = at.agent AND d.for_user = at.for_user
                     AND d.shelf = at.shelf AND d.path = at.path AND d.version = at.version
                     AND (p.last_line < at.first OR p.first_line > at.last)
                 ORDER BY distance, p.first_line, p.id LIMIT $9
             ) AS near
             ORDER BY at.place, near.distance, near.first_line, near.id",
        )
        .bind(tenants)
        .bind(agents)
        .bind(users)
        .bind(shelves)
        .bind(paths)
        .bind(versions)
        .bind(firsts)
        .bind(lasts)
        .bind(row::number(limit))
        .fetch_all(&mut connection)
        .await
        .map_err(failed(SEARCH))?;
        let mut near: Vec<Vec<FoundPassage>> = places.iter().map(|_| Vec::new()).collect();
        for row in &rows {
            let place: i64 = get(row, "place")?;
            let place = usize::try_from(place - 1).ok().and_then(|place| near.get_mut(place));
            if let Some(place) = place {
                place.push(found(row, &[])?);
            }
        }
        Ok(near)
    }
}

/// Returns and locks the row of a document, if it ever had one.
pub(super) async fn standing(
    connection: &mut Link<'_>,
    key: &DocumentKey,
) -> Result<Option<Standing>, StoreError> {
    let row = query_as(
        "SELECT id, owner, version, text IS NOT NULL FROM documents
         WHERE tenant = $1 AND agent = $2 AND for_user = $3 AND shelf = $4 AND path = $5
         FOR NO KEY UPDATE",
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

/// Creates the first version of a document; returns `false` and creates nothing if another writer did.
async fn create(
    connection: &mut Link<'_>,
    key: &DocumentKey,
    write: &DocumentWrite<'_>,
) -> Result<bool, sqlx::Error> {
    query(
        "INSERT INTO document_owners (tenant, agent, for_user) VALUES ($1, $2, $3)
         ON CONFLICT (tenant, agent, for_user) DO NOTHING",
    )
    .bind(key.tenant.as_str())
    .bind(document_rules::agent(key.agent.as_ref()))
    .bind(user(key.user.as_ref()))
    .execute(&mut *connection)
    .await?;
    let made = query(
        "INSERT INTO documents
             (tenant, agent, for_user, owner, shelf, path, version, text, at, run, untrusted)
         SELECT tenant, agent, for_user, id, $4, $5, 1, $6, $7, $8, $9
         FROM document_owners WHERE tenant = $1 AND agent = $2 AND for_user = $3
         ON CONFLICT (tenant, agent, shelf, path, for_user) DO NOTHING",
    )
    .bind(key.tenant.as_str())
    .bind(document_rules::agent(key.agent.as_ref()))
    .bind(user(key.user.as_ref()))
    .bind(key.shelf.name())
    .bind(&key.path)
    .bind(write.text.as_bytes())
    .bind(write.at.0)
    .bind(write.provenance.run.as_ref().map(|run| uuid(run.as_bytes())))
    .bind(write.provenance.untrusted)
    .execute(connection)
    .await?;
    Ok(made.rows_affected() == 1)
}

/// Replaces the passages of a document.
async fn replace(
    connection: &mut Link<'_>,
    key: &DocumentKey,
    standing: &Standing,
    passages: &[Passage],
) -> Result<(), sqlx::Error> {
    let forgotten = forget(connection, standing).await?;
    for batch in passages.chunks(BATCH) {
        insert(connection, key, standing, batch).await?;
    }
    count_passages(connection, standing, row::number(passages.len()) - forgotten).await
}

/// Removes the index of a document; returns its number of passages.
async fn forget(connection: &mut Link<'_>, standing: &Standing) -> Result<i64, sqlx::Error> {
    query("DELETE FROM passage_vectors WHERE passage IN (SELECT id FROM passages WHERE document = $1)")
        .bind(standing.id)
        .execute(&mut *connection)
        .await?;
    let forgotten =
        query("DELETE FROM passages WHERE document = $1").bind(standing.id).execute(connection).await?;
    Ok(row::number(forgotten.rows_affected()))
}

/// Updates the passage count of a document's owner. All writers for this owner change this row, so it comes
/// last.
async fn count_passages(
    connection: &mut Link<'_>,
    standing: &Standing,
    more: i64,
) -> Result<(), sqlx::Error> {
    if more == 0 {
        return Ok(());
    }
    query("UPDATE document_owners SET passages = passages + $2 WHERE id = $1")
        .bind(standing.owner)
        .bind(more)
        .execute(connection)
        .await?;
    Ok(())
}

async fn insert(
    connection: &mut Link<'_>,
    key: &DocumentKey,
    standing: &Standing,
    passages: &[Passage],
) -> Result<(), sqlx::Error> {
    let first: Vec<i64> = passages.iter().map(|passage| row::number(passage.first_line)).collect();
    let last: Vec<i64> = passages.iter().map(|passage| row::number(passage.last_line)).collect();
    let texts: Vec<&[u8]> = passages.iter().map(|passage| passage.text.as_bytes()).collect();
    let headings: Vec<&[u8]> = passages.iter().map(|passage| passage.heading.as_bytes()).collect();
    let hashes: Vec<Vec<u8>> =
        passages.iter().map(|passage| document_rules::hash(passage).to_vec()).collect();
    let vector = |passage| words::vector(standing.owner, &document_rules::indexed(&key.path, passage));
    let vectors: Vec<String> = passages.iter().map(vector).collect();
    query(
        "INSERT INTO passages (tenant, document, first_line, last_line, text, words, heading, hash)
         SELECT $1, $2, first, last, text, words::tsvector, heading, hash
         FROM unnest($3::bigint[], $4::bigint[], $5::bytea[], $6::text[], $7::bytea[], $8::bytea[])
             WITH ORDINALITY AS p (first, last, text, words, heading, hash, place)
         ORDER BY place",
    )
    .bind(key.tenant.as_str())
    .bind(standing.id)
    .bind(first)
    .bind(last)
    .bind(texts)
    .bind(vectors)
    .bind(headings)
    .bind(hashes)
    .execute(connection)
    .await?;
    Ok(())
}

/// Returns the owners whose documents are searched, each with its number of passages.
pub(super) async fn owners(
    connection: &mut Link<'_>,
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

/// Selects the words to search for, each with its number of passages. A single word is not counted.
async fn telling(
    connection: &mut Link<'_>,
    owners: &[i64],
    asked: Vec<String>,
    passages: u64,
) -> Result<Vec<(String, u64)>, StoreError> {
    if let [word] = asked.as_slice() {
        return Ok(vec![(word.clone(), 0)]);
    }
    let common = query_words::common(passages);
    let counted = count(connection, owners, asked, common + 1).await?;
    let telling = query_words::telling(&counted, common);
    if !telling.is_empty() {
        return Ok(telling);
    }
    let asked = counted.into_iter().map(|(word, _)| word).collect();
    Ok(query_words::rarest(count(connection, owners, asked, passages).await?))
}

/// Counts the passages that have each word, up to `most`. If a sample already has clearly more hits than
/// `most` would give, the count is `most`: a full count would read the whole list first.
async fn count(
    connection: &mut Link<'_>,
    owners: &[i64],
    words: Vec<String>,
    most: u64,
) -> Result<Vec<(String, u64)>, StoreError> {
    let terms: Vec<String> = words.iter().map(|word| term(owners, word)).collect();
    let counts: Vec<i64> = query_scalar(
        "SELECT CASE WHEN (SELECT count(*) FROM (
                 SELECT FROM passages WHERE words @@ term::tsquery AND (id * 40503 & 65535) < 4096 LIMIT $3
             ) AS sampled) = $3 THEN $2
         ELSE (SELECT count(*) FROM (
                 SELECT FROM passages WHERE words @@ term::tsquery LIMIT $2
             ) AS found) END
         FROM unnest($1::text[]) WITH ORDINALITY AS t (term, place) ORDER BY place",
    )
    .bind(terms)
    .bind(row::number(most))
    .bind(row::number(most / SAMPLE * 2 + SURE))
    .fetch_all(connection)
    .await
    .map_err(failed(SEARCH))?;
    words.into_iter().zip(counts).map(|(word, count)| Ok((word, row::count(count)?))).collect()
}

/// Returns the SQL that scores a passage for `terms` words, which are in `$2` with their weights in `$3`.
/// Written out, it takes two thirds of the time of a sum over rows; with its own `SELECT` a word is read once
/// and not for every passage.
fn score(terms: usize) -> String {
    let each = (1..=terms)
        .map(|n| format!("($3::float8[])[{n}] * ts_rank(words, (SELECT ($2::text[])[{n}]::tsquery), 1)"));
    each.collect::<Vec<_>>().join(" + ")
}

/// Returns a `tsquery` for a word of any of the owners. A word has no quotes in it.
fn term(owners: &[i64], word: &str) -> String {
    let each: Vec<String> = owners.iter().map(|owner| format!("'{}'", words::owned(*owner, word))).collect();
    each.join(" | ")
}

pub(super) fn key(row: &PgRow) -> Result<DocumentKey, StoreError> {
    Ok(DocumentKey {
        tenant: row::word("a document's tenant", get(row, "tenant")?)?,
        agent: document_rules::agent_of(get(row, "agent")?)?,
        user: document_rules::user_of(get(row, "for_user")?)?,
        shelf: row::word("a document's shelf", get(row, "shelf")?)?,
        path: get(row, "path")?,
    })
}

fn provenance(row: &PgRow) -> Result<Provenance, StoreError> {
    let run: Option<Uuid> = get(row, "run")?;
    document_rules::provenance(run.as_ref().map(|run| &run.as_bytes()[..]), get(row, "untrusted")?)
}

fn card(row: &PgRow) -> Result<DocumentCard, StoreError> {
    Ok(DocumentCard {
        key: key(row)?,
        version: row::count(get(row, "version")?)?,
        bytes: row::count(get(row, "bytes")?)?,
        at: UnixMillis(get(row, "at")?),
        provenance: provenance(row)?,
    })
}

pub(super) fn found(row: &PgRow, asked: &[(String, String)]) -> Result<FoundPassage, StoreError> {
    let passage = Passage {
        first_line: row::count(get(row, "first_line")?)?,
        last_line: row::count(get(row, "last_line")?)?,
        heading: document_rules::text("a passage's heading", get(row, "heading")?)?,
        text: document_rules::text("a passage", get(row, "text")?)?,
    };
    let key = key(row)?;
    let words = words::matched(asked, &document_rules::indexed(&key.path, &passage));
    let version = row::count(get(row, "version")?)?;
    Ok(FoundPassage { key, words, version, provenance: provenance(row)?, passage })
}
