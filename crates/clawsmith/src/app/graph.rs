//! The knowledge graph: searching, adding, merging, forgetting, and moving it in and out.

mod formats;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use claw_core::EntityId;
use claw_core::graph::{Entity, EntityFacts, GraphSource, NAMED_SOURCES, RelationFacts, kind, time};
use claw_core::port::{
    Clock as _, GraphFound, GraphHost as _, GraphQuery, GraphStart, MemoryOwner, MemoryReader, Models,
    UnixMillis,
};
use claw_core::store::{
    EntityPair, EntityQuery, FactsFrom, GraphOwner, GraphState, GraphWalk, KeptFacts, NewEntity, NewFacts,
    NewRelation, RelationEnd, StoreError, Walked,
};
use claw_host::SystemClock;
use claw_host::recall::{Extracted, Extractor, ExtractorOptions, StoredGraph};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::formats::GraphFormat;
use super::memory::told;
use super::{App, Error};

/// Entities that are read at a time.
const PAGE: usize = 1_000;
/// The most entities that are exported.
const MOST_EXPORTED: usize = 1_000_000;
/// The most facts of one import.
const MOST_IMPORTED: usize = 200_000;
/// The most mistakes of an import that are reported.
const TOLD: usize = 10;
/// Entities that are compared with a name.
const NAMED: usize = 20;

/// A fact of an import: an entity with the name by which relations of the same import refer to it, or a
/// relation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GraphLine {
    /// A thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<EntityFacts>,
    /// A relation between two entities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<RelationFacts>,
    /// The entity's name within the import; its own name where this is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The source of a relation: an `id` or a name within the import, or the id of a known entity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The entity that it leads to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The passages that state it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<GraphSource>,
    /// The owner; set by exports, ignored by imports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
}

impl App {
    /// The knowledge graph of the store.
    pub fn graph(&self) -> Result<StoredGraph, Error> {
        Ok(StoredGraph::new(Arc::clone(&self.store) as _, self.memory()?))
    }

    /// Returns entities that answer a reader's question, and their related entities.
    pub async fn search_graph(&self, reader: &MemoryReader, query: &GraphQuery) -> Result<GraphFound, Error> {
        self.graph()?.search(reader, query).await.map_err(told)
    }

    /// Returns an entity of the reader's with its relations, of any time.
    pub async fn show_entity(&self, reader: &MemoryReader, id: EntityId) -> Result<GraphFound, Error> {
        self.store.sweep_facts(PAGE).await?;
        let Walked { mut entities, relations, is_cut } = self.walk(reader, vec![id], 1).await?;
        if entities.is_empty() {
            return Err(no_entity(&id.to_string()));
        }
        let entity = entities.remove(0);
        let found = vec![claw_core::store::FoundEntity { entity, words: Vec::new() }];
        Ok(GraphFound { found, related: entities, relations, is_cut, note: None })
    }

    /// Finds an entity by its id, or by a name that only one has.
    pub async fn find_entity(&self, reader: &MemoryReader, named: &str) -> Result<Entity, Error> {
        if let Ok(id) = named.trim().parse() {
            let walked = self.walk(reader, vec![id], 0).await?;
            return walked.entities.into_iter().next().ok_or_else(|| no_entity(named));
        }
        let query = EntityQuery {
            reader: reader.clone(),
            text: Some(named.to_owned()),
            kind: None,
            as_of: None,
            limit: NAMED,
            after: None,
        };
        let is_named = |entity: &Entity| {
            let names = std::iter::once(&entity.said.name).chain(&entity.said.aliases);
            names.into_iter().any(|name| name.to_lowercase() == named.trim().to_lowercase())
        };
        let found = self.store.entities(&query).await?.into_iter().map(|found| found.entity);
        let mut found: Vec<Entity> = found.filter(is_named).collect();
        match found.len() {
            0 => Err(no_entity(named)),
            1 => Ok(found.remove(0)),
            count => {
                let ids: Vec<String> =
                    found.iter().map(|entity| format!("`{}` ({})", entity.id, entity.said.kind)).collect();
                Err(Error::invalid(format!("{count} entities are called `{}`", shortened(named)))
                    .hint(format!("name one by its id: {}", ids.join(", "))))
            }
        }
    }

    /// Stores facts stated by a person, all or none.
    pub async fn keep_facts(
        &self,
        reader: &MemoryReader,
        owner: MemoryOwner,
        facts: NewFacts,
    ) -> Result<KeptFacts, Error> {
        let from = FactsFrom::Person(graph_owner(reader, owner)?);
        self.store.keep_facts(&from, facts, SystemClock.now()).await.map_err(refused)
    }

    /// The facts of an import, checked whole; an error names the lines that are wrong.
    pub fn read_graph(&self, format: GraphFormat, text: &str) -> Result<NewFacts, Error> {
        facts_of(formats::read(format, text)?)
    }

    /// Converts lines to facts, after checking all of them.
    pub fn facts_of_lines(&self, lines: Vec<GraphLine>) -> Result<NewFacts, Error> {
        facts_of(lines.into_iter().map(Ok).zip(1..).map(|(line, number)| (number, line)).collect())
    }

    /// Exports the part of the graph that a reader can read, in a format.
    pub async fn export_graph(&self, reader: &MemoryReader, format: GraphFormat) -> Result<String, Error> {
        self.store.sweep_facts(PAGE).await?;
        let mut writer = formats::Writer::new(format)?;
        let mut query = EntityQuery {
            reader: reader.clone(),
            text: None,
            kind: None,
            as_of: None,
            limit: PAGE,
            after: None,
        };
        let mut ids = Vec::new();
        loop {
            let page = self.store.entities(&query).await?;
            let Some(last) = page.last() else { break };
            query.after = Some(last.entity.id);
            for found in &page {
                writer.entity(&found.entity)?;
                ids.push(found.entity.id);
            }
            if ids.len() > MOST_EXPORTED {
                return Err(Error::failed(format!("there are more than {MOST_EXPORTED} entities"))
                    .hint("copy the store with `clawsmith db copy` instead"));
            }
        }
        let mut known = std::collections::HashSet::new();
        for page in ids.chunks(PAGE / 10) {
            // Each relation is met from both of its ends.
            for relation in self.walk(reader, page.to_vec(), 1).await?.relations {
                if known.insert(relation.id) {
                    writer.relation(&relation)?;
                }
            }
        }
        writer.end()
    }

    /// Returns pairs of entities that may be the same, the most similar first.
    pub async fn entity_pairs(&self, reader: &MemoryReader, limit: usize) -> Result<Vec<EntityPair>, Error> {
        Ok(self.store.entity_pairs(reader, limit).await?)
    }

    /// Returns the owner of an entity that the reader can read.
    pub async fn owner_of_entity(&self, reader: &MemoryReader, id: EntityId) -> Result<MemoryOwner, Error> {
        let walked = self.walk(reader, vec![id], 0).await?;
        walked.entities.first().map(|entity| entity.owner).ok_or_else(|| no_entity(&id.to_string()))
    }

    /// Merges two entities into one, which keeps the first one's id and name.
    pub async fn merge_entities(
        &self,
        reader: &MemoryReader,
        keep: EntityId,
        gone: EntityId,
    ) -> Result<(), Error> {
        let owner = self.owner_of_both(reader, keep, gone).await?;
        self.store.merge_entities(&owner, keep, gone).await.map_err(refused)
    }

    /// Records that two entities are two.
    pub async fn part_entities(
        &self,
        reader: &MemoryReader,
        one: EntityId,
        other: EntityId,
    ) -> Result<(), Error> {
        let owner = self.owner_of_both(reader, one, other).await?;
        match self.store.part_entities(&owner, one, other).await? {
            true => Ok(()),
            false => {
                Err(Error::not_found(format!("`{one}` and `{other}` are not listed as possible duplicates"))
                    .hint("`clawsmith graph merge` lists the pairs"))
            }
        }
    }

    /// Removes an entity with its relations.
    pub async fn forget_entity(&self, reader: &MemoryReader, id: EntityId) -> Result<(), Error> {
        let owner = graph_owner(reader, self.owner_of_entity(reader, id).await?)?;
        match self.store.forget_entity(&owner, id).await? {
            true => Ok(()),
            false => Err(no_entity(&id.to_string())),
        }
    }

    /// Returns the state of this tenant's graph.
    pub async fn graph_status(&self) -> Result<GraphState, Error> {
        Ok(self.store.graph_state(self.tenant()).await?)
    }

    /// Returns the configured extractor; `None` if no facts are extracted.
    pub fn extractor(&self, models: Arc<dyn Models>) -> Result<Option<Extractor>, Error> {
        let Some(config) = &self.setup().config().memory.graph else { return Ok(None) };
        if !(0.0..=1.0).contains(&config.min_confidence) {
            return Err(Error::invalid(format!(
                "`memory.graph.min_confidence` is {}",
                config.min_confidence
            ))
            .hint("give a number from 0 to 1"));
        }
        let options = ExtractorOptions {
            provider: config.provider.clone(),
            model: config.model.clone(),
            min_confidence: config.min_confidence,
            quiet: Duration::from_secs(config.quiet_seconds),
        };
        Ok(Some(Extractor::new(Arc::clone(&self.store) as _, models, options)))
    }

    /// Extracts facts of all pending documents now.
    pub async fn extract_graph(&self) -> Result<Extracted, Error> {
        let models = Arc::new(self.setup().models(self.keys(None)?, None)?);
        let Some(extractor) = self.extractor(models)? else {
            return Err(Error::invalid("no facts are extracted here")
                .hint("add `[memory.graph]` to the configuration; see docs/graph.md"));
        };
        Ok(extractor.run(Duration::ZERO).await?)
    }

    /// Marks every memory document of this tenant to be extracted again, and extracts what can be extracted now.
    pub async fn reindex_graph(&self) -> Result<Extracted, Error> {
        if self.setup().config().memory.graph.is_some() {
            self.store.mark_unextracted(self.tenant()).await?;
        }
        self.extract_graph().await
    }

    async fn owner_of_both(
        &self,
        reader: &MemoryReader,
        one: EntityId,
        other: EntityId,
    ) -> Result<GraphOwner, Error> {
        let owner = self.owner_of_entity(reader, one).await?;
        let others = self.owner_of_entity(reader, other).await?;
        if owner != others {
            let (one, other) = (owner.name(), others.name());
            return Err(Error::invalid(format!(
                "one entity belongs to the {one} and the other to the {other}"
            ))
            .hint("only entities of the same owner can be merged"));
        }
        graph_owner(reader, owner)
    }

    /// Returns the entities within so many steps, of any time.
    async fn walk(&self, reader: &MemoryReader, from: Vec<EntityId>, depth: usize) -> Result<Walked, Error> {
        let reader = reader.clone();
        let (most_entities, most_each) = (MOST_EXPORTED, MOST_EXPORTED);
        let walk = GraphWalk { reader, from, depth, as_of: None, most_entities, most_each };
        Ok(self.store.walk_graph(&walk).await?)
    }
}

/// Parses a time such as `2026-05-03`.
pub fn parse_time(written: &str) -> Result<UnixMillis, String> {
    time(written).ok_or_else(|| "write `2026-05-03` or `2026-05-03T10:00:00Z`".to_owned())
}

/// Parses the lines of a document that state a fact: `PATH:LINE` or `PATH:FIRST-LAST`.
pub fn parse_source(written: &str) -> Result<GraphSource, String> {
    let wrong = "write PATH:LINE or PATH:FIRST-LAST";
    let (path, lines) = written.rsplit_once(':').ok_or(wrong)?;
    let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
    let (start_line, end_line) = (first.parse().map_err(|_| wrong)?, last.parse().map_err(|_| wrong)?);
    Ok(GraphSource::new(path, start_line, end_line))
}

/// Parses the start of a search as people write it: `*` or words.
pub fn graph_start(text: &str) -> GraphStart {
    match text.trim() {
        "*" => GraphStart::All,
        text => GraphStart::Words(text.to_owned()),
    }
}

/// Returns the normalized form of a type.
pub fn entity_kind(written: &str) -> Result<String, Error> {
    kind(written).map_err(Error::invalid)
}

/// Applies `said` to every text of facts.
pub fn scrub_facts(facts: &mut NewFacts, said: &impl Fn(&str) -> String) {
    let scrub = |text: &mut String| *text = said(text);
    for NewEntity { said, .. } in &mut facts.entities {
        scrub(&mut said.name);
        scrub(&mut said.kind);
        scrub(&mut said.description);
        said.aliases.iter_mut().for_each(scrub);
        said.external_id.iter_mut().for_each(scrub);
        said.properties.values_mut().for_each(|value| scrub_value(value, &scrub));
    }
    for NewRelation { said, .. } in &mut facts.relations {
        scrub(&mut said.kind);
        scrub(&mut said.description);
        said.properties.values_mut().for_each(|value| scrub_value(value, &scrub));
    }
}

fn scrub_value(value: &mut Value, scrub: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => scrub(text),
        Value::Array(items) => items.iter_mut().for_each(|item| scrub_value(item, scrub)),
        Value::Object(fields) => fields.values_mut().for_each(|field| scrub_value(field, scrub)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

type ReadLine = (usize, Result<GraphLine, String>);

/// Converts lines to facts; relations find their ends by ids and names of the same lines, then by known ids.
fn facts_of(lines: Vec<ReadLine>) -> Result<NewFacts, Error> {
    let (mut facts, mut relations) = (NewFacts::default(), Vec::new());
    let mut named: HashMap<String, usize> = HashMap::new();
    let mut wrong: Vec<String> = Vec::new();
    let count = lines.len();
    if count > MOST_IMPORTED {
        return Err(Error::invalid(format!(
            "there are {count} facts; at most {MOST_IMPORTED} are allowed at a time"
        ))
        .hint("import them in parts"));
    }
    for (number, line) in lines {
        let read = line.and_then(|line| match (&line.entity, &line.relation) {
            (Some(entity), None) => Ok((Some(entity.clone().checked()?), line)),
            (None, Some(relation)) => relation.clone().checked().map(|_| (None, line)),
            _ => Err("it must have either `entity` or `relation`".to_owned()),
        });
        match read {
            Ok((Some(said), line)) => {
                let at = facts.entities.len();
                let name = line.id.unwrap_or_else(|| said.name.clone());
                named.entry(said.name.clone()).or_insert(at);
                if named.insert(name.clone(), at).is_some_and(|before| before != at) {
                    wrong.push(format!("line {number}: `{}` is there twice", shortened(&name)));
                }
                // Each source is a mention of its own.
                let mut sources: Vec<_> = line.sources.into_iter().take(NAMED_SOURCES).map(Some).collect();
                if sources.is_empty() {
                    sources.push(None);
                }
                let mention = |source| NewEntity { said: said.clone(), source };
                facts.entities.extend(sources.into_iter().map(mention));
            }
            Ok((None, line)) => relations.push((number, line)),
            Err(why) => wrong.push(format!("line {number}: {why}")),
        }
    }
    for (number, line) in relations {
        let end = |what: &str, end: Option<&String>| match end {
            None => Err(format!("line {number}: `{what}` is missing")),
            Some(end) => match (named.get(end), end.parse()) {
                (Some(at), _) => Ok(RelationEnd::New(*at)),
                (None, Ok(id)) => Ok(RelationEnd::Known(id)),
                (None, Err(_)) => Err(format!(
                    "line {number}: `{what}` is `{}`, which is neither an entity of this import nor an id",
                    shortened(end)
                )),
            },
        };
        let ends = (end("source", line.source.as_ref()), end("target", line.target.as_ref()));
        match (ends, line.relation) {
            ((Ok(source), Ok(target)), Some(said)) => {
                facts.relations.push(NewRelation {
                    source,
                    target,
                    said,
                    place: line.sources.into_iter().next(),
                });
            }
            ((one, other), _) => wrong.extend([one.err(), other.err()].into_iter().flatten()),
        }
    }
    if wrong.is_empty() {
        return Ok(facts);
    }
    let more = wrong.len().saturating_sub(TOLD);
    let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
    wrong.truncate(TOLD);
    Err(Error::invalid(format!("nothing was imported: {}{rest}", wrong.join("; ")))
        .hint("correct these lines and import again; docs/graph.md has the formats"))
}

fn graph_owner(reader: &MemoryReader, owner: MemoryOwner) -> Result<GraphOwner, Error> {
    GraphOwner::of(reader, owner).ok_or_else(|| {
        Error::invalid("no user is given, so it is unknown whose knowledge this is")
            .hint("name a user, or the agent")
    })
}

/// Converts a refusal by the store into an invalid request.
fn refused(error: StoreError) -> Error {
    match error {
        StoreError::Refused { why, .. } => Error::invalid(why),
        error => error.into(),
    }
}

fn no_entity(named: &str) -> Error {
    Error::not_found(format!("there is no entity `{}`", shortened(named)))
        .hint("`clawsmith graph search '*'` lists all entities")
}

fn shortened(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

#[cfg(test)]
mod tests;
