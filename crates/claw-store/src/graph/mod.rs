//! The knowledge graph: one implementation for both databases.
//!
//! The rows are JSON texts with search columns beside them, so the statements are the same in both dialects,
//! except for reading a list and skipping locked rows. A transaction that changes facts of an owner first
//! locks the owner's row; SQLite has one writer and needs no lock. A document's row is locked before that, as
//! its writers do.

pub(crate) mod rank;
pub(crate) mod same_name;
mod store;
mod walk;
mod writing;

use claw_core::EntityId;
use claw_core::graph::{Entity, EntityFacts, GraphSource, NAMED_SOURCES, Relation, RelationFacts};
use claw_core::port::{MemoryOwner, UnixMillis};
use claw_core::store::{
    DocumentKey, ExtractionFailure, ExtractionWork, FactsFrom, NewFacts, Shelf, StoreError,
};
use serde::{Deserialize, Serialize};

pub(crate) use self::store::graph_store;
pub(crate) use self::walk::graph_reading;
pub(crate) use self::writing::graph_writing;
use crate::{document_rules, row};

pub(crate) const WRITE: &str = "could not write the knowledge graph";
pub(crate) const READ: &str = "could not read the knowledge graph";
/// The most entities over which words are counted; more change no ranking.
pub(crate) const COUNTED: i64 = 10_000;
/// The names compared with a new one.
pub(crate) const COMPARED: i64 = 200;
/// The most pairs of possible duplicates for a new entity.
pub(crate) const MOST_PAIRS: usize = 3;

/// The known facts of an entity or relation, as its row holds them.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Known<F> {
    pub(crate) said: F,
    pub(crate) sources: Vec<GraphSource>,
    pub(crate) mentions: u64,
}

/// The destination and the origin of facts being written.
#[derive(Debug, Clone)]
pub(crate) struct Desk {
    pub(crate) tenant: String,
    pub(crate) owner: i64,
    pub(crate) by_hand: bool,
    /// The document that states the facts; a person may name another for each.
    pub(crate) path: String,
    /// The model that extracted the facts; `None` for those of a person.
    pub(crate) model: Option<String>,
    /// The run that wrote the document.
    pub(crate) run: Option<uuid::Uuid>,
    pub(crate) at: i64,
}

/// The entities that a relation connects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends<'a> {
    pub(crate) source: &'a str,
    pub(crate) target: &'a str,
}

/// A mention of a fact, to be stored.
#[derive(Debug)]
pub(crate) struct NewMention<'a> {
    /// The id of the entity or relation.
    pub(crate) fact: &'a str,
    pub(crate) is_relation: bool,
    pub(crate) body: String,
    /// The lines that state it; `None` for the whole document of the desk.
    pub(crate) source: Option<&'a GraphSource>,
}

/// A mention from its row: path, lines and body, the extracting model and the document's run.
pub(crate) type MentionRow = (String, i64, i64, String, Option<String>, Option<uuid::Uuid>);

/// Combines all mentions of one fact; `None` if there are none.
pub(crate) fn folded<'r, F: Deserialize<'r>>(
    rows: &'r [MentionRow],
    fold: impl Fn(&[F]) -> Option<F>,
) -> Result<Option<Known<F>>, StoreError> {
    let said: Vec<F> =
        rows.iter().map(|(_, _, _, body, ..)| row::json("a mention", body)).collect::<Result<_, _>>()?;
    let Some(said) = fold(&said) else { return Ok(None) };
    let mut sources: Vec<GraphSource> = Vec::new();
    for (path, first, last, _, model, run) in rows.iter().filter(|(path, ..)| !path.is_empty()) {
        let source = GraphSource {
            model: model.clone(),
            run: document_rules::provenance(run.as_ref().map(|run| &run.as_bytes()[..]), false)?.run,
            ..GraphSource::new(path, row::count(*first)?, row::count(*last)?)
        };
        if sources.len() < NAMED_SOURCES && !sources.contains(&source) {
            sources.push(source);
        }
    }
    Ok(Some(Known { said, sources, mentions: rows.len() as u64 }))
}

/// An entity from its row.
pub(crate) fn entity(owner: MemoryOwner, (id, body): &(String, String)) -> Result<Entity, StoreError> {
    let Known { said, sources, mentions } = row::json::<Known<EntityFacts>>("an entity", body)?;
    Ok(Entity { id: row::word("an entity's id", id)?, owner, said, sources, mentions })
}

/// A relation from its row: id, source, target and body.
pub(crate) type RelationRow = (String, String, String, String);

/// A relation from its row.
pub(crate) fn relation(
    owner: MemoryOwner,
    (id, source, target, body): &RelationRow,
) -> Result<Relation, StoreError> {
    let Known { said, sources, mentions } = row::json::<Known<RelationFacts>>("a relation", body)?;
    Ok(Relation {
        id: row::word("a relation's id", id)?,
        owner,
        source: row::word("a relation's source", source)?,
        target: row::word("a relation's target", target)?,
        said,
        sources,
        mentions,
    })
}

/// Normalizes facts for storage; an invalid one is refused and named.
pub(crate) fn checked(mut facts: NewFacts) -> Result<NewFacts, StoreError> {
    let refused =
        |what: String, why: String| StoreError::Refused { what: WRITE, why: format!("{what}: {why}") };
    for entity in &mut facts.entities {
        let short: String = entity.said.name.chars().take(40).collect();
        let said = entity.said.clone().checked();
        entity.said = said.map_err(|why| refused(format!("entity {short:?}"), why))?;
    }
    for relation in &mut facts.relations {
        let short: String = relation.said.kind.chars().take(40).collect();
        let said = relation.said.clone().checked();
        relation.said = said.map_err(|why| refused(format!("relation {short:?}"), why))?;
    }
    let paths = facts.entities.iter().filter_map(|entity| entity.source.as_ref());
    let paths = paths.chain(facts.relations.iter().filter_map(|relation| relation.place.as_ref()));
    for source in paths {
        if source.path.len() > 1_024 || source.path.chars().any(char::is_control) {
            return Err(refused("a source".to_owned(), "its path is not the path of a document".to_owned()));
        }
    }
    Ok(facts)
}

/// Marks facts as those of an untrusted document.
pub(crate) fn distrust(facts: &mut NewFacts) {
    facts.entities.iter_mut().for_each(|entity| entity.said.untrusted = true);
    facts.relations.iter_mut().for_each(|relation| relation.said.untrusted = true);
}

/// Returns the error for an entity that does not exist or has another owner.
pub(crate) fn no_entity(id: EntityId) -> StoreError {
    let why =
        format!("there is no entity `{id}` of this owner; `clawsmith graph search '*'` lists all entities");
    StoreError::Refused { what: "unknown entity", why }
}

/// The two ids of a pair, the smaller first.
pub(crate) fn ordered(one: EntityId, other: EntityId) -> (String, String) {
    (one.min(other).to_string(), one.max(other).to_string())
}

/// Returns the id of the entity at index `at`; rejects an index out of range.
pub(crate) fn end(ids: &[EntityId], at: usize) -> Result<EntityId, StoreError> {
    ids.get(at).copied().ok_or_else(|| StoreError::Refused {
        what: WRITE,
        why: format!("a relation names entity {at} of {}; name one that is there", ids.len()),
    })
}

/// Returns the desk for facts from this source; `run` wrote the document.
pub(crate) fn desk(from: &FactsFrom, owner: i64, run: Option<uuid::Uuid>, at: UnixMillis) -> Desk {
    let (tenant, by_hand, path, model) = match from {
        FactsFrom::Document { key, model, .. } => {
            (&key.tenant, false, key.path.clone(), Some(model.replace('\0', "")))
        }
        FactsFrom::Person(owner) => (&owner.tenant, true, String::new(), None),
    };
    Desk { tenant: tenant.to_string(), owner, by_hand, path, model, run, at: at.0 }
}

/// Tenant, agent, user and path of a document.
pub(crate) type KeyRow = (String, String, String, String);

fn document_key((tenant, agent, user, path): KeyRow) -> Result<DocumentKey, StoreError> {
    Ok(DocumentKey {
        tenant: row::word("a document's tenant", &tenant)?,
        agent: document_rules::agent_of(&agent)?,
        user: document_rules::user_of(&user)?,
        shelf: Shelf::Memory,
        path,
    })
}

/// Work from its row: the document's key, its version, tries and text.
pub(crate) fn work(
    key: KeyRow,
    version: i64,
    tries: i64,
    text: Vec<u8>,
) -> Result<ExtractionWork, StoreError> {
    Ok(ExtractionWork {
        key: document_key(key)?,
        version: row::count(version)?,
        tries: row::count(tries)?,
        text: document_rules::text("a document", text)?,
    })
}

/// A failure from its row.
pub(crate) fn failure(
    key: KeyRow,
    tries: i64,
    next: i64,
    error: String,
) -> Result<ExtractionFailure, StoreError> {
    Ok(ExtractionFailure {
        key: document_key(key)?,
        tries: row::count(tries)?,
        next: UnixMillis(next),
        error,
    })
}
