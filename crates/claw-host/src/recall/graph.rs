//! The knowledge graph of a store, searched by words, by the meaning of passages, and along relations.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use claw_core::EntityId;
use claw_core::graph::{Entity, GraphSource};
use claw_core::port::{
    Clock as _, GraphFound, GraphHost, GraphQuery, GraphStart, MemoryOwner, MemoryReader, UnixMillis,
};
use claw_core::store::{EntityQuery, FoundEntity, GraphStore, GraphWalk, StoreError, Walked};
use claw_core::tool::{ErrorKind, ToolError};

use super::{StoredMemory, combine_rankings, owner};
use crate::SystemClock;

/// The number of entities found by words, and of similar passages, before they are fused.
const DEPTH: usize = 50;
/// The number of passages whose entities count as similar.
const PASSAGES: usize = 8;
/// The most entities of one answer.
const MOST_ENTITIES: usize = 100;
/// The most relations that are followed out of an entity, and into it.
const MOST_EACH: usize = 20;
/// The number of removed documents whose facts are forgotten before a search.
const SWEPT: usize = 8;

/// The knowledge graph of a store.
#[derive(Clone)]
pub struct StoredGraph {
    store: Arc<dyn GraphStore>,
    memory: StoredMemory,
}

impl StoredGraph {
    /// The graph of this store; its documents are searched as this memory is.
    pub fn new(store: Arc<dyn GraphStore>, memory: StoredMemory) -> Self {
        Self { store, memory }
    }

    /// Returns entities found by words and those of similar passages, fused by rank.
    async fn answering(
        &self,
        reader: &MemoryReader,
        text: &str,
        query: &GraphQuery,
        as_of: UnixMillis,
    ) -> Result<(Vec<FoundEntity>, Option<String>), StoreError> {
        let by_words = EntityQuery {
            reader: reader.clone(),
            text: Some(text.to_owned()),
            kind: query.kind.clone(),
            as_of: Some(as_of),
            limit: DEPTH.max(query.limit),
            after: None,
        };
        let by_words = self.store.entities(&by_words).await?;
        let (similar, note) = match self.memory.similar(reader, text, PASSAGES).await {
            Ok(passages) => {
                let place = |similar: &claw_core::store::SimilarPassage| {
                    let passage = &similar.found.passage;
                    let (path, start_line) = (similar.found.key.path.clone(), passage.first_line);
                    (owner(&similar.found.key), GraphSource::new(path, start_line, passage.last_line))
                };
                let places: Vec<(MemoryOwner, GraphSource)> = passages.iter().map(place).collect();
                (self.store.entities_in(reader, &places, Some(as_of)).await?, None)
            }
            Err(note) => (Vec::new(), Some(note)),
        };
        let is_meant = |entity: &Entity| query.kind.as_ref().is_none_or(|kind| *kind == entity.said.kind);
        let similar = similar.into_iter().filter(is_meant).collect();
        Ok((fused(by_words, similar, query.limit), note))
    }

    async fn found(&self, reader: &MemoryReader, query: &GraphQuery) -> Result<GraphFound, StoreError> {
        self.store.sweep_facts(SWEPT).await?;
        let as_of = query.as_of.unwrap_or_else(|| SystemClock.now());
        let (mut found, mut note) = (Vec::new(), None);
        let mut from: Vec<EntityId> = Vec::new();
        match &query.start {
            GraphStart::All => {
                let all = EntityQuery {
                    reader: reader.clone(),
                    text: None,
                    kind: query.kind.clone(),
                    as_of: Some(as_of),
                    limit: query.limit.saturating_add(1),
                    after: None,
                };
                found = self.store.entities(&all).await?;
                let is_cut = found.len() > query.limit;
                found.truncate(query.limit);
                return Ok(GraphFound { found, related: Vec::new(), relations: Vec::new(), is_cut, note });
            }
            GraphStart::Words(text) => {
                (found, note) = self.answering(reader, text, query, as_of).await?;
                from.extend(found.iter().map(|found| found.entity.id));
            }
            GraphStart::Entity(id) => from.push(*id),
        }
        let walk = GraphWalk {
            reader: reader.clone(),
            from,
            depth: query.depth.min(GraphQuery::DEEPEST),
            as_of: Some(as_of),
            most_entities: MOST_ENTITIES,
            most_each: MOST_EACH,
        };
        let Walked { entities, relations, is_cut } = self.store.walk_graph(&walk).await?;
        let mut related = Vec::new();
        for entity in entities {
            if query.start == GraphStart::Entity(entity.id) {
                found.push(FoundEntity { entity, words: Vec::new() });
            } else if !found.iter().any(|found| found.entity.id == entity.id) {
                related.push(entity);
            }
        }
        Ok(GraphFound { found, related, relations, is_cut, note })
    }
}

#[async_trait]
impl GraphHost for StoredGraph {
    async fn search(&self, reader: &MemoryReader, query: &GraphQuery) -> Result<GraphFound, ToolError> {
        let found = self.found(reader, query).await.map(|mut found| {
            if self.memory.hides_untrusted {
                found.keep_trusted();
            }
            found
        });
        found.map_err(|error| {
            ToolError::new(ErrorKind::Unavailable, "the knowledge graph cannot be reached right now")
                .try_instead("try again later")
                .because(error)
        })
    }
}

/// Fuses both lists, best first.
fn fused(by_words: Vec<FoundEntity>, similar: Vec<Entity>, limit: usize) -> Vec<FoundEntity> {
    let mut scores: HashMap<EntityId, f64> = HashMap::new();
    let ranked = by_words.iter().map(|found| &found.entity).zip(1_u32..);
    for (entity, rank) in ranked.chain(similar.iter().zip(1_u32..)) {
        *scores.entry(entity.id).or_default() +=
            combine_rankings::reciprocal(rank) * combine_rankings::weight(entity.owner);
    }
    let mut all = by_words;
    for entity in similar {
        if !all.iter().any(|found| found.entity.id == entity.id) {
            all.push(FoundEntity { entity, words: Vec::new() });
        }
    }
    let score = |found: &FoundEntity| scores.get(&found.entity.id).copied().unwrap_or_default();
    all.sort_by(|one, other| score(other).total_cmp(&score(one)));
    all.truncate(limit);
    all
}

impl std::fmt::Debug for StoredGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredGraph").field("memory", &self.memory).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
