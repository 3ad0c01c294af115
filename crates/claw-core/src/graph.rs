//! The knowledge graph: entities, their relations, the time in which each is valid, and the sources of each.
//!
//! An entity is known by its mentions: the facts that one document or one person states. Each mention is
//! checked before it is stored ([`EntityFacts::checked`]). All mentions of one entity are folded into its
//! facts ([`EntityFacts::fold`]), so that removing a document removes its facts.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{EntityId, JobId, RelationId};
use crate::port::{MemoryOwner, UnixMillis};

/// The most characters of a name, an alias or an external id.
pub const LONGEST_NAME: usize = 200;
/// The most characters of a type.
const LONGEST_KIND: usize = 64;
/// The most characters of a description.
const LONGEST_DESCRIPTION: usize = 1_000;
/// The most aliases of one entity.
const MOST_ALIASES: usize = 20;
/// The most bytes of properties as JSON.
const LONGEST_PROPERTIES: usize = 4_096;
/// The deepest property within properties.
const DEEPEST_PROPERTY: usize = 16;
/// The most sources listed for one fact; further ones are only counted.
pub const NAMED_SOURCES: usize = 5;

/// The facts stated about one entity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EntityFacts {
    /// The name.
    pub name: String,
    /// The type: `person`, `organization`, `place`, ...
    #[serde(rename = "type")]
    pub kind: String,
    /// Other names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// A sentence about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Its id somewhere else, such as an address or a number; no two entities of an owner have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// The confidence, from 0 to 1.
    #[serde(default = "sure")]
    pub confidence: f64,
    /// Anything else.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, Value>,
    /// The start of its validity; `None` if unknown.
    #[serde(default, with = "moment", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub valid_from: Option<UnixMillis>,
    /// The end of its validity; `None` if it is still valid.
    #[serde(default, with = "moment", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub valid_until: Option<UnixMillis>,
    /// A document says it that a run wrote after it had read untrusted text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
}

/// The facts stated about one relation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RelationFacts {
    /// The type: `works_at`, `knows`, ...
    #[serde(rename = "type")]
    pub kind: String,
    /// A sentence about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The confidence, from 0 to 1.
    #[serde(default = "sure")]
    pub confidence: f64,
    /// Anything else.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub properties: BTreeMap<String, Value>,
    /// The start of its validity; `None` if unknown.
    #[serde(default, with = "moment", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub valid_from: Option<UnixMillis>,
    /// The end of its validity; `None` if it is still valid.
    #[serde(default, with = "moment", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub valid_until: Option<UnixMillis>,
    /// A document says it that a run wrote after it had read untrusted text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
}

/// The lines of a document that state a fact.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct GraphSource {
    /// The path of the document.
    pub path: String,
    /// The first line, counted from 1.
    pub start_line: u64,
    /// The last line.
    pub end_line: u64,
    /// The model that extracted the fact, as `provider/model`; `None` where a person stated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The run that wrote the document as the model read it; `None` where no run did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<JobId>,
}

impl GraphSource {
    /// Returns these lines of a document, with nothing known about who extracted them.
    pub fn new(path: impl Into<String>, start_line: u64, end_line: u64) -> Self {
        Self { path: path.into(), start_line, end_line, model: None, run: None }
    }
}

/// An entity of a knowledge graph.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Entity {
    /// Its id.
    pub id: EntityId,
    /// The owner of the memory that holds it.
    pub owner: MemoryOwner,
    /// The folded facts of its mentions.
    #[serde(flatten)]
    pub said: EntityFacts,
    /// The sources that state it, at most five.
    pub sources: Vec<GraphSource>,
    /// The number of mentions, by documents and by people.
    pub mentions: u64,
}

/// A directed relation between two entities.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Relation {
    /// Its id.
    pub id: RelationId,
    /// The owner of the memory that holds it.
    pub owner: MemoryOwner,
    /// The entity that the relation starts from.
    pub source: EntityId,
    /// The entity that the relation leads to.
    pub target: EntityId,
    /// The folded facts of its mentions.
    #[serde(flatten)]
    pub said: RelationFacts,
    /// The sources that state it, at most five.
    pub sources: Vec<GraphSource>,
    /// The number of mentions.
    pub mentions: u64,
}

fn sure() -> f64 {
    1.0
}

impl EntityFacts {
    /// Returns the facts of an entity with nothing known but name and type.
    pub fn new(name: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: kind.into(),
            aliases: Vec::new(),
            description: String::new(),
            external_id: None,
            confidence: sure(),
            properties: BTreeMap::new(),
            valid_from: None,
            valid_until: None,
            untrusted: false,
        }
    }

    /// Returns the facts in the form that is stored: texts on one line without invisible characters, the type
    /// in lower case. The error names the field that is invalid.
    pub fn checked(self) -> Result<Self, String> {
        let name = line("`name`", &self.name, LONGEST_NAME)?;
        if name.is_empty() {
            return Err("`name` is empty".to_owned());
        }
        let mut aliases: Vec<String> = Vec::new();
        for alias in &self.aliases {
            let alias = line("an alias", alias, LONGEST_NAME)?;
            if !alias.is_empty() && alias != name && !aliases.contains(&alias) {
                aliases.push(alias);
            }
        }
        if aliases.len() > MOST_ALIASES {
            return Err(format!("there are {} aliases, and the maximum is {MOST_ALIASES}", aliases.len()));
        }
        let external_id = self.external_id.map(|id| line("`external_id`", &id, LONGEST_NAME)).transpose()?;
        let properties = plain(self.properties)?;
        check(self.confidence, &properties, (self.valid_from, self.valid_until))?;
        Ok(Self {
            properties,
            kind: kind(&self.kind)?,
            description: line("`description`", &self.description, LONGEST_DESCRIPTION)?,
            external_id: external_id.filter(|id| !id.is_empty()),
            name,
            aliases,
            ..self
        })
    }

    /// Folds mentions, earliest first, into one. The name is `name` if a mention still has it, otherwise the
    /// first mention's. Other names become aliases, later texts replace earlier ones, the highest confidence
    /// counts. `None` if there are no mentions.
    pub fn fold(mentions: &[Self], name: Option<&str>) -> Option<Self> {
        let first = mentions.first()?;
        let has = |name: &&str| mentions.iter().any(|mention| mention.name == *name);
        let mut folded = Self { name: name.filter(has).unwrap_or(&first.name).to_owned(), ..first.clone() };
        folded.aliases.clear();
        for mention in mentions {
            for alias in [&mention.name].into_iter().chain(&mention.aliases) {
                let is_known = *alias == folded.name || folded.aliases.contains(alias);
                if !is_known && folded.aliases.len() < MOST_ALIASES {
                    folded.aliases.push(alias.clone());
                }
            }
            if !mention.description.is_empty() {
                folded.description.clone_from(&mention.description);
            }
            folded.external_id = folded.external_id.take().or_else(|| mention.external_id.clone());
            folded.confidence = folded.confidence.max(mention.confidence);
            folded.valid_from = earliest(folded.valid_from, mention.valid_from);
            folded.valid_until = mention.valid_until.or(folded.valid_until);
            folded.untrusted |= mention.untrusted;
            extend(&mut folded.properties, &mention.properties);
        }
        Some(folded)
    }

    /// Returns whether the entity is valid at this time.
    pub fn is_valid_at(&self, at: UnixMillis) -> bool {
        is_within(at, self.valid_from, self.valid_until)
    }
}

impl RelationFacts {
    /// Returns the facts of a relation with nothing known but its type.
    pub fn new(kind: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            description: String::new(),
            confidence: sure(),
            properties: BTreeMap::new(),
            valid_from: None,
            valid_until: None,
            untrusted: false,
        }
    }

    /// Returns the facts in the form that is stored; see [`EntityFacts::checked`].
    pub fn checked(self) -> Result<Self, String> {
        let properties = plain(self.properties)?;
        check(self.confidence, &properties, (self.valid_from, self.valid_until))?;
        let description = line("`description`", &self.description, LONGEST_DESCRIPTION)?;
        Ok(Self { kind: kind(&self.kind)?, description, properties, ..self })
    }

    /// Folds mentions, earliest first, into one. `None` if there are no mentions.
    pub fn fold(mentions: &[Self]) -> Option<Self> {
        let mut folded = mentions.first()?.clone();
        for mention in mentions {
            if !mention.description.is_empty() {
                folded.description.clone_from(&mention.description);
            }
            folded.confidence = folded.confidence.max(mention.confidence);
            folded.valid_from = earliest(folded.valid_from, mention.valid_from);
            folded.valid_until = mention.valid_until.or(folded.valid_until);
            folded.untrusted |= mention.untrusted;
            extend(&mut folded.properties, &mention.properties);
        }
        Some(folded)
    }

    /// Returns whether the relation is valid at this time.
    pub fn is_valid_at(&self, at: UnixMillis) -> bool {
        is_within(at, self.valid_from, self.valid_until)
    }

    /// Returns whether both can describe one relation: same type, and no gap between their times of validity.
    pub fn may_be(&self, other: &Self) -> bool {
        let ends_before = |one: &Self, other: &Self| match (one.valid_until, other.valid_from) {
            (Some(until), Some(from)) => until < from,
            _ => false,
        };
        self.kind == other.kind && !ends_before(self, other) && !ends_before(other, self)
    }
}

impl fmt::Display for GraphSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}-{}", self.path, self.start_line, self.end_line)?;
        if let Some(model) = &self.model {
            write!(f, " extracted by {model}")?;
        }
        match self.run {
            Some(run) => write!(f, " from run {run}"),
            None => Ok(()),
        }
    }
}

/// Returns a type in the form that is stored: one word in lower case.
pub fn kind(written: &str) -> Result<String, String> {
    let line = line("`type`", written, LONGEST_KIND)?;
    let word =
        line.to_lowercase().split(|c: char| c.is_whitespace() || c == '-').collect::<Vec<_>>().join("_");
    match word.chars().any(char::is_alphanumeric) {
        true => Ok(word),
        false => Err("`type` is empty; say `person`, `organization`, `works_at` or the like".to_owned()),
    }
}

/// Returns a text on one line, without invisible characters.
fn line(what: &str, text: &str, most: usize) -> Result<String, String> {
    // The length is checked first, so that a megabyte is rejected without being processed.
    if text.len() > most.saturating_mul(8) {
        return Err(format!("{what} has {} bytes, and the maximum is {most} characters", text.len()));
    }
    let seen = text.chars().filter(|c| !is_hidden(*c)).map(|c| if c.is_control() { ' ' } else { c });
    let line = seen.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ");
    match line.chars().count() {
        count if count > most => {
            Err(format!("{what} has {count} characters, and the maximum is {most}; shorten it"))
        }
        _ => Ok(line),
    }
}

/// Properties whose names and texts are lines like all else.
fn plain(properties: BTreeMap<String, Value>) -> Result<BTreeMap<String, Value>, String> {
    let mut kept = BTreeMap::new();
    for (name, value) in properties {
        let name = line("the name of a property", &name, LONGEST_NAME)?;
        if !name.is_empty() {
            kept.insert(name, plain_value(value, 0)?);
        }
    }
    Ok(kept)
}

fn plain_value(value: Value, depth: usize) -> Result<Value, String> {
    if depth > DEEPEST_PROPERTY {
        return Err(format!("`properties` is nested deeper than {DEEPEST_PROPERTY}; say it flatter"));
    }
    Ok(match value {
        Value::String(text) => Value::String(line("the text of a property", &text, LONGEST_PROPERTIES)?),
        Value::Array(items) => {
            let items = items.into_iter().map(|item| plain_value(item, depth + 1));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(fields) => {
            let mut kept = serde_json::Map::new();
            for (name, field) in fields {
                let name = line("the name of a property", &name, LONGEST_NAME)?;
                kept.insert(name, plain_value(field, depth + 1)?);
            }
            Value::Object(kept)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    })
}

/// Returns whether a character has no width or changes the direction of the text after it.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

type Validity = (Option<UnixMillis>, Option<UnixMillis>);

fn check(
    confidence: f64,
    properties: &BTreeMap<String, Value>,
    (from, until): Validity,
) -> Result<(), String> {
    if !(0.0..=1.0).contains(&confidence) {
        return Err(format!("`confidence` is {confidence}; give a number from 0 to 1"));
    }
    let bytes = serde_json::to_string(properties).map_or(usize::MAX, |json| json.len());
    if bytes > LONGEST_PROPERTIES {
        return Err(format!("`properties` has {bytes} bytes, and the maximum is {LONGEST_PROPERTIES}"));
    }
    if let Some(at) =
        [from, until].into_iter().flatten().find(|at| Timestamp::from_millisecond(at.0).is_err())
    {
        return Err(format!("{} milliseconds is beyond the calendar; give a time of our era", at.0));
    }
    match (from, until) {
        (Some(from), Some(until)) if until < from => {
            Err(format!("`valid_until` ({}) is before `valid_from` ({})", shown(until), shown(from)))
        }
        _ => Ok(()),
    }
}

fn extend(properties: &mut BTreeMap<String, Value>, more: &BTreeMap<String, Value>) {
    for (name, value) in more {
        let before = properties.insert(name.clone(), value.clone());
        let bytes = serde_json::to_string(properties).map_or(usize::MAX, |json| json.len());
        if bytes > LONGEST_PROPERTIES {
            match before {
                Some(before) => properties.insert(name.clone(), before),
                None => properties.remove(name),
            };
        }
    }
}

fn earliest(one: Option<UnixMillis>, other: Option<UnixMillis>) -> Option<UnixMillis> {
    [one, other].into_iter().flatten().min()
}

fn is_within(at: UnixMillis, from: Option<UnixMillis>, until: Option<UnixMillis>) -> bool {
    from.is_none_or(|from| from <= at) && until.is_none_or(|until| at < until)
}

/// Parses a time as people write it: `2026-05-03`, `2026-05-03T10:00` in UTC, or with an offset. A year or a
/// month means its first day. `None` if the text is not a time.
pub fn time(written: &str) -> Option<UnixMillis> {
    let text = written.trim();
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(UnixMillis(at.as_millisecond()));
    }
    let whole = match text.len() {
        4 => format!("{text}-01-01"),
        7 => format!("{text}-01"),
        _ => text.to_owned(),
    };
    let civil = match whole.parse::<Date>() {
        Ok(date) if whole.len() == 10 => date.to_datetime(jiff::civil::Time::midnight()),
        _ => whole.parse::<DateTime>().ok()?,
    };
    Some(UnixMillis(civil.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond()))
}

/// Formats a time so that [`time`] can parse it; midnight is shown as the date alone.
pub fn shown(at: UnixMillis) -> String {
    match Timestamp::from_millisecond(at.0) {
        Ok(at) => {
            let text = at.to_string();
            text.strip_suffix("T00:00:00Z").map(str::to_owned).unwrap_or(text)
        }
        // The time is outside the range of the calendar.
        Err(_) => at.0.to_string(),
    }
}

/// Times as text in JSON.
mod moment {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::port::UnixMillis;

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(
        at: &Option<UnixMillis>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match at {
            Some(at) => serializer.serialize_str(&super::shown(*at)),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<UnixMillis>, D::Error> {
        let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
        let short: String = text.chars().take(40).collect();
        let wrong = || {
            D::Error::custom(format!("`{short}` is not a time; write `2026-05-03` or `2026-05-03T10:00:00Z`"))
        };
        super::time(&text).map(Some).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests;
