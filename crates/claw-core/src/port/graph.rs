//! The knowledge graph: entities and their relations.

use std::collections::{HashMap, HashSet};
use std::fmt;

use async_trait::async_trait;
use serde::Serialize;

use super::{MemoryReader, UnixMillis};
use crate::graph::{Entity, GraphSource, Relation, shown};
use crate::id::EntityId;
use crate::store::FoundEntity;
use crate::tool::ToolError;

/// The caller's graph: the facts of the user, the agent and the tenant.
#[async_trait]
pub trait Graph: Send + Sync {
    /// Returns the matching entities and their relations.
    async fn search(&self, query: &GraphQuery) -> Result<GraphFound, ToolError>;
}

/// The graphs of all tenants.
#[async_trait]
pub trait GraphHost: Send + Sync {
    /// Returns the entities that match a reader's query, and their relations.
    async fn search(&self, reader: &MemoryReader, query: &GraphQuery) -> Result<GraphFound, ToolError>;
}

/// A query of the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphQuery {
    /// The entities to begin with.
    pub start: GraphStart,
    /// The type of the entities to begin with; `None` for all.
    pub kind: Option<String>,
    /// The number of steps to follow relations; 0 follows none.
    pub depth: usize,
    /// The time asked about; `None` for now.
    pub as_of: Option<UnixMillis>,
    /// The most entities to begin with.
    pub limit: usize,
}

impl GraphQuery {
    /// The greatest depth.
    pub const DEEPEST: usize = 5;
    /// The longest query, in bytes.
    pub const LONGEST: usize = 4_000;
}

/// The entities to begin a search with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraphStart {
    /// All entities, by name.
    All,
    /// Entities that match these words or their meaning.
    Words(String),
    /// One entity.
    Entity(EntityId),
}

/// The outcome of a graph search.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct GraphFound {
    /// The matching entities, best first.
    pub found: Vec<FoundEntity>,
    /// The entities that relations lead to from there, nearest first.
    pub related: Vec<Entity>,
    /// The relations between all of them.
    pub relations: Vec<Relation>,
    /// True if there are more results than returned.
    pub is_cut: bool,
    /// The reason why similarity was not used, or not fully; `None` if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Said of facts whose document a run wrote after it had read untrusted text.
const UNTRUSTED: &str = "untrusted source";

impl GraphFound {
    /// Returns whether any of the facts is untrusted.
    pub fn is_untrusted(&self) -> bool {
        self.found.iter().any(|found| found.entity.said.untrusted)
            || self.related.iter().any(|entity| entity.said.untrusted)
            || self.relations.iter().any(|relation| relation.said.untrusted)
    }

    /// Removes untrusted entities and relations, and relations that lead to them.
    pub fn keep_trusted(&mut self) {
        self.found.retain(|found| !found.entity.said.untrusted);
        self.related.retain(|entity| !entity.said.untrusted);
        let every = self.found.iter().map(|found| &found.entity).chain(&self.related);
        let there: HashSet<EntityId> = every.map(|entity| entity.id).collect();
        self.relations.retain(|relation| {
            !relation.said.untrusted && there.contains(&relation.source) && there.contains(&relation.target)
        });
    }
}

/// Readable lines: entities, relations, and the sources of each.
impl fmt::Display for GraphFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.found.is_empty() {
            write!(f, "nothing in the knowledge graph matches; try other words, or `*` for all")?;
        }
        for (FoundEntity { entity, words }, n) in self.found.iter().zip(1..) {
            let blank = if n == 1 { "" } else { "\n" };
            let words = if words.is_empty() { String::new() } else { format!("words: {}", words.join(", ")) };
            write!(f, "{blank}{n}. {}", line(entity, words))?;
        }
        let every = self.found.iter().map(|found| &found.entity).chain(&self.related);
        let names: HashMap<EntityId, &str> =
            every.map(|entity| (entity.id, entity.said.name.as_str())).collect();
        let name = |id: &EntityId| names.get(id).copied().unwrap_or("?");
        if !self.relations.is_empty() {
            write!(f, "\n\nrelations:")?;
        }
        for relation in &self.relations {
            let Relation { source, target, said, .. } = relation;
            write!(f, "\n- {} {} {}", name(source), said.kind, name(target))?;
            if !said.description.is_empty() {
                write!(f, ": {}", said.description)?;
            }
            let mut about = about(said.confidence, said.valid_from, said.valid_until, &relation.sources);
            about.extend(said.untrusted.then(|| UNTRUSTED.to_owned()));
            if !about.is_empty() {
                write!(f, " ({})", about.join("; "))?;
            }
        }
        if !self.related.is_empty() {
            write!(f, "\n\nrelated:")?;
        }
        for entity in &self.related {
            write!(f, "\n- {}", line(entity, String::new()))?;
        }
        if self.is_cut {
            write!(f, "\n\n(there is more; ask for one entity by its id, or for fewer steps)")?;
        }
        self.note.as_ref().map_or(Ok(()), |note| write!(f, "\n\n({note})"))
    }
}

/// Formats an entity in a line: name, type, owner, id, description and sources.
fn line(entity: &Entity, words: String) -> String {
    let said = &entity.said;
    let also =
        if said.aliases.is_empty() { String::new() } else { format!(", also {}", said.aliases.join(", ")) };
    let description =
        if said.description.is_empty() { String::new() } else { format!(": {}", said.description) };
    let mut about = about(said.confidence, said.valid_from, said.valid_until, &entity.sources);
    about.insert(0, format!("{}'s", entity.owner.name()));
    about.extend((!words.is_empty()).then_some(words));
    about.extend(said.untrusted.then(|| UNTRUSTED.to_owned()));
    let properties = said
        .properties
        .iter()
        .map(|(name, value)| format!("{}: {}", one_line(name), one_line(&value.to_string())));
    about.extend(properties);
    about.push(format!("id {}", entity.id));
    format!("{} ({}{also}){description} ({})", said.name, said.kind, about.join("; "))
}

/// A text without line breaks and other control characters, so that it cannot begin a line of its own.
fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')).collect::<Vec<_>>().join(" ")
}

fn about(
    confidence: f64,
    from: Option<UnixMillis>,
    until: Option<UnixMillis>,
    sources: &[GraphSource],
) -> Vec<String> {
    let mut about = Vec::new();
    about.extend(from.map(|from| format!("since {}", shown(from))));
    about.extend(until.map(|until| format!("until {}", shown(until))));
    about.extend((confidence < 1.0).then(|| format!("confidence {confidence:.2}")));
    about.extend(sources.iter().map(GraphSource::to_string));
    about
}
