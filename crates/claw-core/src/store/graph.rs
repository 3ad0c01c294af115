//! The knowledge graph of documents' owners: facts by their mentions, found by words, by place and along relations.
//!
//! Entities and relations belong to one owner, and a relation joins two entities of the same. What a document says
//! replaces what it said before, in one transaction; what nobody says any more is gone.

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
    /// The agent; `None` is the tenant's, for all its agents.
    pub agent: Option<AgentId>,
    /// The user; `None` is the agent's, for all its users.
    pub user: Option<UserId>,
}

impl GraphOwner {
    /// One of a reader's owners; `None` is the user of a reader without one.
    pub fn of(reader: &MemoryReader, owner: MemoryOwner) -> Option<Self> {
        let (agent, user) = match owner {
            MemoryOwner::User => (Some(reader.agent.clone()), Some(reader.user.clone()?)),
            MemoryOwner::Agent => (Some(reader.agent.clone()), None),
            MemoryOwner::Tenant => (None, None),
        };
        Some(Self { tenant: reader.tenant.clone(), agent, user })
    }
}

/// The one who says something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FactsFrom {
    /// A version of a document; all that it said before is replaced.
    Document {
        /// The document.
        key: DocumentKey,
        /// The version; facts of another one are not stored.
        version: u64,
    },
    /// A person; what was said before stays.
    Person(GraphOwner),
}

/// Facts to be kept.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NewFacts {
    /// Things.
    pub entities: Vec<NewEntity>,
    /// How they relate.
    pub relations: Vec<NewRelation>,
}

/// A mention of a thing.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEntity {
    /// What is said.
    pub said: EntityFacts,
    /// Where.
    pub source: Option<GraphSource>,
}

/// A mention of a relation.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRelation {
    /// The entity that it goes out from.
    pub source: RelationEnd,
    /// The entity that it leads to.
    pub target: RelationEnd,
    /// What is said.
    pub said: RelationFacts,
    /// Where.
    pub place: Option<GraphSource>,
}

/// An end of a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelationEnd {
    /// An entity of the same facts, by its place among them.
    New(usize),
    /// An entity that is known to the same owner.
    Known(EntityId),
}

/// The outcome of keeping facts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct KeptFacts {
    /// The entity of each that was given, in their order.
    pub entities: Vec<EntityId>,
    /// Entities that were not known before.
    pub added: u64,
    /// Entities that were known, by their external id or their name.
    pub merged: u64,
    /// Relations that were kept.
    pub relations: u64,
    /// Pairs that may be one thing, for a person to decide.
    pub doubtful: u64,
    /// The document is another version by now, or gone; nothing was stored.
    pub is_stale: bool,
}

/// Entities that are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityQuery {
    /// The one who asks.
    pub reader: MemoryReader,
    /// Words; `None` lists all by name.
    pub text: Option<String>,
    /// The type.
    pub kind: Option<String>,
    /// The time at which they must have been there; `None` is any.
    pub as_of: Option<UnixMillis>,
    /// The most entities.
    pub limit: usize,
    /// Of a list: those after this one.
    pub after: Option<EntityId>,
}

/// An entity that was found, best first.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FoundEntity {
    /// The entity.
    #[serde(flatten)]
    pub entity: Entity,
    /// The words of the question that it has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
}

/// A walk along relations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphWalk {
    /// The one who walks.
    pub reader: MemoryReader,
    /// Where it begins; those that the reader has not are left out.
    pub from: Vec<EntityId>,
    /// The most steps.
    pub depth: usize,
    /// The time at which entities and relations must have been there; `None` is any.
    pub as_of: Option<UnixMillis>,
    /// The most entities.
    pub most_entities: usize,
    /// The most relations that are followed out of one entity and into it, the surest first.
    pub most_each: usize,
}

/// The part of a graph that a walk came by.
#[derive(Debug, Clone, PartialEq, Default, Serialize, schemars::JsonSchema)]
pub struct Walked {
    /// The entities, in the order in which they were reached.
    pub entities: Vec<Entity>,
    /// The relations between them.
    pub relations: Vec<Relation>,
    /// There is more than was walked.
    pub is_cut: bool,
}

/// Two entities that may be one thing.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct EntityPair {
    /// The one that was known first.
    pub one: Entity,
    /// The other.
    pub other: Entity,
    /// How alike their names are, from 0 to 1.
    pub likeness: f64,
}

/// A document whose facts wait to be extracted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractionWork {
    /// The document.
    pub key: DocumentKey,
    /// Its version.
    pub version: u64,
    /// How often it was tried before.
    pub tries: u64,
    /// Its text.
    pub text: String,
}

/// A document whose facts could not be extracted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ExtractionFailure {
    /// The document.
    #[serde(flatten)]
    pub key: DocumentKey,
    /// How often it was tried.
    pub tries: u64,
    /// When it is tried again.
    pub next: UnixMillis,
    /// Why it failed the last time.
    pub error: String,
}

/// How far a tenant's graph is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct GraphState {
    /// Entities.
    pub entities: u64,
    /// Relations.
    pub relations: u64,
    /// Pairs that wait for a person.
    pub doubtful: u64,
    /// Documents whose facts were extracted as they stand.
    pub extracted: u64,
    /// Documents whose facts were not.
    pub unextracted: u64,
    /// Documents that failed, those with the most tries first; at most ten.
    pub failures: Vec<ExtractionFailure>,
}

/// Keeps knowledge graphs.
#[async_trait]
pub trait GraphStore: Documents {
    /// Keeps facts, all or none. An entity is one that is known where the external id is the same, or the type and the
    /// name but for case, accents and punctuation. Names that are only alike make a pair for a person.
    async fn keep_facts(
        &self,
        from: &FactsFrom,
        facts: NewFacts,
        at: UnixMillis,
    ) -> Result<KeptFacts, StoreError>;
    /// Forgets what removed documents said; returns of how many.
    async fn sweep_facts(&self, limit: usize) -> Result<u64, StoreError>;
    /// Entities by words, best first, or all by name.
    async fn entities(&self, query: &EntityQuery) -> Result<Vec<FoundEntity>, StoreError>;
    /// Entities that these parts of documents mention, in the order of the parts.
    async fn entities_in(
        &self,
        reader: &MemoryReader,
        places: &[(MemoryOwner, GraphSource)],
        as_of: Option<UnixMillis>,
    ) -> Result<Vec<Entity>, StoreError>;
    /// Walks along relations, never in circles, within its bounds.
    async fn walk_graph(&self, walk: &GraphWalk) -> Result<Walked, StoreError>;
    /// Removes an entity with its relations and all that was said of them. `false` where the owner has none.
    async fn forget_entity(&self, owner: &GraphOwner, id: EntityId) -> Result<bool, StoreError>;
    /// Makes two entities of an owner one, which keeps the first one's id and name.
    async fn merge_entities(
        &self,
        owner: &GraphOwner,
        keep: EntityId,
        gone: EntityId,
    ) -> Result<(), StoreError>;
    /// Records that two entities are two. `false` where they are no pair.
    async fn part_entities(
        &self,
        owner: &GraphOwner,
        one: EntityId,
        other: EntityId,
    ) -> Result<bool, StoreError>;
    /// Pairs of the reader's that may be one thing, the most alike first.
    async fn entity_pairs(&self, reader: &MemoryReader, limit: usize) -> Result<Vec<EntityPair>, StoreError>;
    /// Leases documents whose facts were not extracted as they stand and that were not written after `quiet`, of every
    /// tenant, so that nobody else gets them before the lease ends.
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
    /// Records that facts could not be extracted, and when to try again. Nothing where the version is another.
    async fn fail_extraction(
        &self,
        work: &ExtractionWork,
        error: &str,
        next: UnixMillis,
    ) -> Result<(), StoreError>;
    /// How far a tenant's graph is.
    async fn graph_state(&self, tenant: &TenantId) -> Result<GraphState, StoreError>;
}
