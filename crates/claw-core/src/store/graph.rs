//! Knowledge graphs of documents' owners: facts by their mentions, found by words, by source and along
//! relations.
//!
//! Entities and relations belong to one owner, and a relation joins two entities of the same owner. Facts of
//! a document replace those of its previous version in one transaction; facts without a mention are removed.

use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;

use super::{DocumentKey, Documents, StoreError};
use crate::graph::{Entity, EntityFacts, GraphSource, Relation, RelationFacts};
use crate::id::{AgentId, EntityId, TenantId, UserId};
use crate::port::{MemoryOwner, MemoryReader, UnixMillis};

/// The owner of facts, as of documents.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GraphOwner {
    /// The tenant.
    pub tenant: TenantId,
    /// The agent; `None` for the tenant's, shared by all its agents.
    pub agent: Option<AgentId>,
    /// The user; `None` for the agent's, shared by all its users.
    pub user: Option<UserId>,
}

impl GraphOwner {
    /// Returns one of a reader's owners; `None` for the user of a reader without one.
    pub fn of(reader: &MemoryReader, owner: MemoryOwner) -> Option<Self> {
        let (agent, user) = match owner {
            MemoryOwner::User => (Some(reader.agent.clone()), Some(reader.user.clone()?)),
            MemoryOwner::Agent => (Some(reader.agent.clone()), None),
            MemoryOwner::Tenant => (None, None),
        };
        Some(Self { tenant: reader.tenant.clone(), agent, user })
    }
}

/// The source of new facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FactsFrom {
    /// A version of a document; replaces all its earlier facts.
    Document {
        /// The document.
        key: DocumentKey,
        /// The version; nothing is stored if the stored document has another one.
        version: u64,
        /// The model that extracted them, as `provider/model`.
        model: String,
    },
    /// A person; earlier facts stay.
    Person(GraphOwner),
}

/// Facts to store.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NewFacts {
    /// Mentions of entities.
    pub entities: Vec<NewEntity>,
    /// Mentions of relations.
    pub relations: Vec<NewRelation>,
}

/// A mention of an entity.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEntity {
    /// The stated facts.
    pub said: EntityFacts,
    /// The lines that state them; `None` for facts of a person.
    pub source: Option<GraphSource>,
}

/// A mention of a relation.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRelation {
    /// The entity that the relation starts from.
    pub source: RelationEnd,
    /// The entity that the relation leads to.
    pub target: RelationEnd,
    /// The stated facts.
    pub said: RelationFacts,
    /// The lines that state them; `None` for facts of a person.
    pub place: Option<GraphSource>,
}

/// An end of a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelationEnd {
    /// An entity of the same facts, by its index among them.
    New(usize),
    /// A stored entity of the same owner.
    Known(EntityId),
}

/// The outcome of storing facts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct KeptFacts {
    /// The entity of each given mention, in their order.
    pub entities: Vec<EntityId>,
    /// Entities that are new.
    pub added: u64,
    /// Entities that were already known, by their external id or their name.
    pub merged: u64,
    /// Relations that were stored.
    pub relations: u64,
    /// Pairs of entities that may be the same, for a person to decide.
    pub doubtful: u64,
    /// The document has another version by now, or is gone; nothing was stored.
    pub is_stale: bool,
}

/// A query for entities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityQuery {
    /// The reader.
    pub reader: MemoryReader,
    /// The words to search for; `None` lists all by name.
    pub text: Option<String>,
    /// The type; `None` for all.
    pub kind: Option<String>,
    /// The time at which they must be valid; `None` for any time.
    pub as_of: Option<UnixMillis>,
    /// The most entities.
    pub limit: usize,
    /// For a list: only entities after this one.
    pub after: Option<EntityId>,
}

/// An entity that was found, best first.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FoundEntity {
    /// The entity.
    #[serde(flatten)]
    pub entity: Entity,
    /// The words of the query that it contains.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
}

/// A walk along relations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphWalk {
    /// The reader.
    pub reader: MemoryReader,
    /// The entities to begin with; those that the reader cannot read are left out.
    pub from: Vec<EntityId>,
    /// The most steps.
    pub depth: usize,
    /// The time at which entities and relations must be valid; `None` for any time.
    pub as_of: Option<UnixMillis>,
    /// The most entities.
    pub most_entities: usize,
    /// The most relations to follow out of and into one entity, highest confidence first.
    pub most_each: usize,
}

/// The part of a graph that a walk reached.
#[derive(Debug, Clone, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct Walked {
    /// The entities, in the order in which they were reached.
    pub entities: Vec<Entity>,
    /// The relations between them.
    pub relations: Vec<Relation>,
    /// True if the walk stopped at a limit.
    pub is_cut: bool,
}

/// Two entities that may be the same.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct EntityPair {
    /// The one that was stored first.
    pub one: Entity,
    /// The other.
    pub other: Entity,
    /// The similarity of their names, from 0 to 1.
    pub likeness: f64,
}

/// A document that waits for the extraction of its facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractionWork {
    /// The document.
    pub key: DocumentKey,
    /// Its version.
    pub version: u64,
    /// The number of earlier attempts.
    pub tries: u64,
    /// Its text.
    pub text: String,
}

/// A document whose extraction failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ExtractionFailure {
    /// The document.
    #[serde(flatten)]
    pub key: DocumentKey,
    /// The number of attempts.
    pub tries: u64,
    /// The time of the next attempt.
    pub next: UnixMillis,
    /// The error of the last attempt.
    pub error: String,
}

/// The progress of a tenant's graph.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct GraphState {
    /// Entities.
    pub entities: u64,
    /// Relations.
    pub relations: u64,
    /// Pairs of entities that wait for a person's decision.
    pub doubtful: u64,
    /// Documents whose facts are extracted from their present version.
    pub extracted: u64,
    /// Documents whose facts are not.
    pub unextracted: u64,
    /// Documents that failed, most attempts first; at most ten.
    pub failures: Vec<ExtractionFailure>,
}

/// Stores knowledge graphs.
#[async_trait]
pub trait GraphStore: Documents {
    /// Stores facts, all or none. An entity matches a stored one if the external ids are equal, or if the
    /// types are equal and the names differ only in case, accents and punctuation. Names that are merely
    /// similar make a pair for a person to decide.
    async fn keep_facts(
        &self,
        from: &FactsFrom,
        facts: NewFacts,
        at: UnixMillis,
    ) -> Result<KeptFacts, StoreError>;
    /// Removes the facts of removed documents; returns the number of documents. Entities that wait for their words,
    /// as after a migration that changes the words, get them first.
    async fn sweep_facts(&self, limit: usize) -> Result<u64, StoreError>;
    /// Returns entities that match the words, best first, or all by name.
    async fn entities(&self, query: &EntityQuery) -> Result<Vec<FoundEntity>, StoreError>;
    /// Returns the entities that these lines of documents mention, in the order of the lines.
    async fn entities_in(
        &self,
        reader: &MemoryReader,
        places: &[(MemoryOwner, GraphSource)],
        as_of: Option<UnixMillis>,
    ) -> Result<Vec<Entity>, StoreError>;
    /// Walks along relations within the walk's bounds, visiting no entity twice.
    async fn walk_graph(&self, walk: &GraphWalk) -> Result<Walked, StoreError>;
    /// Removes an entity with its relations and their mentions. `false` if the owner has no such entity.
    async fn forget_entity(&self, owner: &GraphOwner, id: EntityId) -> Result<bool, StoreError>;
    /// Merges two entities of an owner into one, which keeps the first one's id and name.
    async fn merge_entities(
        &self,
        owner: &GraphOwner,
        keep: EntityId,
        gone: EntityId,
    ) -> Result<(), StoreError>;
    /// Records that two entities are not the same. `false` if they are no pair.
    async fn part_entities(
        &self,
        owner: &GraphOwner,
        one: EntityId,
        other: EntityId,
    ) -> Result<bool, StoreError>;
    /// Returns the reader's pairs of entities that may be the same, most similar first.
    async fn entity_pairs(&self, reader: &MemoryReader, limit: usize) -> Result<Vec<EntityPair>, StoreError>;
    /// Leases documents of every tenant whose present version has no extracted facts and that were not
    /// written after `quiet`. Nobody else gets them before the lease ends.
    async fn claim_unextracted(
        &self,
        now: UnixMillis,
        quiet: UnixMillis,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<ExtractionWork>, StoreError>;
    /// Marks the memory documents of a tenant to be extracted again, as after a change of the model; returns how many. Their
    /// facts stay until others replace them.
    async fn mark_unextracted(&self, tenant: &TenantId) -> Result<u64, StoreError>;
    /// Records that an extraction failed, and when to try again. Does nothing if the version differs.
    async fn fail_extraction(
        &self,
        work: &ExtractionWork,
        error: &str,
        next: UnixMillis,
    ) -> Result<(), StoreError>;
    /// Returns the progress of a tenant's graph.
    async fn graph_state(&self, tenant: &TenantId) -> Result<GraphState, StoreError>;
}
