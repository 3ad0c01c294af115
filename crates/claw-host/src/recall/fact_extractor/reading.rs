//! Parses a model's answer into facts: strict in form, and each fact checked.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use claw_core::graph::{EntityFacts, GraphSource, RelationFacts, time};
use claw_core::store::{NewEntity, NewFacts, NewRelation, RelationEnd};
use serde::Deserialize;
use serde_json::Value;

/// The most entities and relations that one answer can bring.
const MOST_FACTS: usize = 500;

/// The form of an answer.
#[derive(Debug, Deserialize)]
struct Extraction {
    entities: Vec<SaidEntity>,
    relations: Vec<SaidRelation>,
}

#[derive(Debug, Deserialize)]
struct SaidEntity {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    aliases: Option<Vec<String>>,
    #[serde(default)]
    description: Option<String>,
    confidence: f64,
    #[serde(default)]
    lines: Option<(u64, u64)>,
    #[serde(default)]
    valid_from: Option<String>,
    #[serde(default)]
    valid_until: Option<String>,
    #[serde(default)]
    properties: Option<BTreeMap<String, Value>>,
}

#[derive(Debug, Deserialize)]
struct SaidRelation {
    source: String,
    #[serde(rename = "type")]
    kind: String,
    target: String,
    #[serde(default)]
    description: Option<String>,
    confidence: f64,
    #[serde(default)]
    lines: Option<(u64, u64)>,
    #[serde(default)]
    valid_from: Option<String>,
    #[serde(default)]
    valid_until: Option<String>,
}

/// The facts of a document, piece by piece.
pub(super) struct Reading<'a> {
    path: &'a str,
    least: f64,
    facts: NewFacts,
    /// Entities by their names and aliases.
    named: HashMap<String, usize>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(path: &'a str, least: f64) -> Self {
        Self { path, least, facts: NewFacts::default(), named: HashMap::new() }
    }

    /// Takes the answer for a piece; an error says why the answer is invalid. A fact that is invalid by
    /// itself, is not sure enough or relates unknown entities is left out.
    pub(super) fn take(&mut self, answer: &str, piece: Range<usize>) -> Result<(), String> {
        let (Some(start), Some(end)) = (answer.find('{'), answer.rfind('}')) else {
            return Err("it has no JSON object".to_owned());
        };
        let json = answer.get(start..=end).ok_or("it has no JSON object")?;
        let said: Extraction =
            serde_json::from_str(json).map_err(|error| format!("it is not of the form: {error}"))?;
        let count = said.entities.len() + said.relations.len();
        if count > MOST_FACTS {
            return Err(format!("it has {count} facts, and the maximum is {MOST_FACTS}"));
        }
        for entity in said.entities {
            let source = self.source(entity.lines, &piece);
            let facts = EntityFacts {
                aliases: entity.aliases.unwrap_or_default(),
                description: entity.description.unwrap_or_default(),
                confidence: entity.confidence,
                properties: entity.properties.unwrap_or_default(),
                valid_from: entity.valid_from.as_deref().and_then(time),
                valid_until: entity.valid_until.as_deref().and_then(time),
                ..EntityFacts::new(entity.name, entity.kind)
            };
            let Ok(said) = facts.checked() else { continue };
            if said.confidence < self.least {
                continue;
            }
            let at = self.facts.entities.len();
            for name in [&said.name].into_iter().chain(&said.aliases) {
                self.named.entry(name.to_lowercase()).or_insert(at);
            }
            self.facts.entities.push(NewEntity { said, source: Some(source) });
        }
        for relation in said.relations {
            let place = self.source(relation.lines, &piece);
            let end = |name: &str| self.named.get(&name.trim().to_lowercase()).copied();
            let (Some(source), Some(target)) = (end(&relation.source), end(&relation.target)) else {
                continue;
            };
            let facts = RelationFacts {
                description: relation.description.unwrap_or_default(),
                confidence: relation.confidence,
                valid_from: relation.valid_from.as_deref().and_then(time),
                valid_until: relation.valid_until.as_deref().and_then(time),
                ..RelationFacts::new(relation.kind)
            };
            let Ok(said) = facts.checked() else { continue };
            if said.confidence >= self.least {
                let (source, target) = (RelationEnd::New(source), RelationEnd::New(target));
                self.facts.relations.push(NewRelation { source, target, said, place: Some(place) });
            }
        }
        Ok(())
    }

    pub(super) fn facts(self) -> NewFacts {
        self.facts
    }

    /// Returns the named lines if they are within the piece, else the whole piece.
    fn source(&self, lines: Option<(u64, u64)>, piece: &Range<usize>) -> GraphSource {
        let (first, last) = (piece.start as u64 + 1, piece.end as u64);
        let is_within = |(start, end): &(u64, u64)| first <= *start && start <= end && *end <= last;
        let (start_line, end_line) = lines.filter(is_within).unwrap_or((first, last));
        GraphSource::new(self.path, start_line, end_line)
    }
}
