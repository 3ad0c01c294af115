//! The knowledge graph: things that are known, and how they relate.

use async_trait::async_trait;
use serde::Serialize;

use super::{MemoryReader, UnixMillis};
use crate::graph::{Entity, Relation};
use crate::id::EntityId;
use crate::store::FoundEntity;
use crate::tool::ToolError;

/// The caller's graph: the user's facts, the agent's and the tenant's.
#[async_trait]
pub trait Graph: Send + Sync {
    /// Entities that answer, and what they relate to.
    async fn search(&self, query: &GraphQuery) -> Result<GraphFound, ToolError>;
}

/// The graphs of everyone.
#[async_trait]
pub trait GraphHost: Send + Sync {
    /// Entities that answer a reader's question, and what they relate to.
    async fn search(&self, reader: &MemoryReader, query: &GraphQuery) -> Result<GraphFound, ToolError>;
}

/// A question to the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphQuery {
    /// Where it begins.
    pub start: GraphStart,
    /// The type of the entities that it begins with.
    pub kind: Option<String>,
    /// How many steps relations are followed; 0 follows none.
    pub depth: usize,
    /// The time that is asked about; `None` is now.
    pub as_of: Option<UnixMillis>,
    /// The most entities that it begins with.
    pub limit: usize,
}

impl GraphQuery {
    /// The most steps.
    pub const DEEPEST: usize = 5;
    /// The longest question, in bytes.
    pub const LONGEST: usize = 4_000;
}

/// Where a search begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraphStart {
    /// Everything, by name.
    All,
    /// Entities that words, or what they mean, find.
    Words(String),
    /// One entity.
    Entity(EntityId),
}

/// Entities that answer, and what they relate to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GraphFound {
    /// Entities that were found, best first.
    pub found: Vec<FoundEntity>,
    /// Entities that relations lead to from there, nearest first.
    pub related: Vec<Entity>,
    /// The relations between all of them.
    pub relations: Vec<Relation>,
    /// There is more than is told.
    pub is_cut: bool,
    /// How it was searched, where not by similarity too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
