//! Graphs as text: JSON lines and CSV, which are read too, and DOT for drawing.
//!
//! Other programs open the output, so nothing in a name may mean something to them: a CSV cell that a
//! spreadsheet would take for a formula gets an apostrophe, which reading removes again; in DOT every text is
//! quoted.

use claw_core::graph::{Entity, EntityFacts, Relation, RelationFacts, shown, time};
use claw_core::port::UnixMillis;

use super::{GraphLine, ReadLine};
use crate::app::Error;

/// The longest line of an import, in bytes.
const LONGEST_LINE: usize = 64 * 1024;
const COLUMNS: [&str; 16] = [
    "record",
    "id",
    "type",
    "name",
    "source",
    "target",
    "description",
    "aliases",
    "external_id",
    "confidence",
    "valid_from",
    "valid_until",
    "properties",
    "sources",
    "owner",
    "untrusted",
];

/// A format of graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphFormat {
    /// A JSON object per line.
    JsonLines,
    /// Comma-separated values with a header.
    Csv,
    /// A drawing for Graphviz; it is written only.
    Dot,
}

impl GraphFormat {
    /// Returns the format of a file name or a word; `None` if it is unknown.
    pub fn named(name: &str) -> Option<Self> {
        match name.rsplit('.').next()?.to_ascii_lowercase().as_str() {
            "jsonl" | "ndjson" | "json" => Some(Self::JsonLines),
            "csv" => Some(Self::Csv),
            "dot" | "gv" => Some(Self::Dot),
            _ => None,
        }
    }

    /// The type that it is served as.
    pub const fn mime(self) -> &'static str {
        match self {
            Self::JsonLines => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Dot => "text/vnd.graphviz; charset=utf-8",
        }
    }
}

/// The lines of an import with their numbers.
pub(super) fn read(format: GraphFormat, text: &str) -> Result<Vec<ReadLine>, Error> {
    match format {
        GraphFormat::JsonLines => Ok(text.lines().zip(1..).filter_map(json_line).collect()),
        GraphFormat::Csv => csv_lines(text),
        GraphFormat::Dot => {
            Err(Error::invalid("DOT files can only be exported").hint("import JSON lines or CSV"))
        }
    }
}

fn json_line((line, number): (&str, usize)) -> Option<ReadLine> {
    if line.trim().is_empty() {
        return None;
    }
    let read = match line.len() {
        length if length > LONGEST_LINE => {
            Err(format!("it has {length} bytes; at most {LONGEST_LINE} are allowed"))
        }
        _ => serde_json::from_str(line).map_err(|error| error.to_string()),
    };
    Some((number, read))
}

fn csv_lines(text: &str) -> Result<Vec<ReadLine>, Error> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let header =
        reader.headers().map_err(|error| Error::invalid("the header cannot be read").because(error))?;
    let header: Vec<String> =
        header.iter().map(|name| name.trim_start_matches('\u{feff}').trim().to_owned()).collect();
    if let Some(unknown) = header.iter().find(|name| !COLUMNS.contains(&name.as_str())) {
        let short: String = unknown.chars().take(40).collect();
        return Err(Error::invalid(format!("`{short}` is not a known column"))
            .hint(format!("the columns are {}", COLUMNS.join(", "))));
    }
    let mut lines = Vec::new();
    for (record, n) in reader.records().zip(2..) {
        let read = match record {
            Ok(record) => {
                let number = record.position().map_or(n, |at| usize::try_from(at.line()).unwrap_or(n));
                (number, csv_line(&header, &record))
            }
            Err(error) => (n, Err(error.to_string())),
        };
        lines.push(read);
    }
    Ok(lines)
}

fn csv_line(header: &[String], record: &csv::StringRecord) -> Result<GraphLine, String> {
    if record.len() > header.len() {
        return Err(format!("it has {} cells, but the header has {}", record.len(), header.len()));
    }
    if record.as_slice().len() > LONGEST_LINE {
        return Err(format!("it has {} bytes; at most {LONGEST_LINE} are allowed", record.as_slice().len()));
    }
    let cell = |name: &str| {
        let at = header.iter().position(|column| column == name);
        let cell = at.and_then(|at| record.get(at)).map(unguarded).unwrap_or_default();
        (!cell.is_empty()).then(|| cell.to_owned())
    };
    // A single alias may stand there as people write it.
    let aliases = cell("aliases").map(|text| serde_json::from_str(&text).unwrap_or_else(|_| vec![text]));
    let properties = match cell("properties").map(|text| serde_json::from_str(&text)) {
        None => Default::default(),
        Some(read) => read.map_err(|_| "`properties` is not a JSON object".to_owned())?,
    };
    let sources = match cell("sources").map(|text| serde_json::from_str(&text)) {
        None => Vec::new(),
        Some(read) => read.map_err(|error: serde_json::Error| format!("`sources`: {error}"))?,
    };
    let confidence = match cell("confidence").map(|text| text.parse::<f64>()) {
        None => 1.0,
        Some(read) => read.map_err(|_| "`confidence` is not a number".to_owned())?,
    };
    let moment = |name: &str| -> Result<Option<UnixMillis>, String> {
        let Some(text) = cell(name) else { return Ok(None) };
        time(&text).map(Some).ok_or_else(|| format!("`{name}` is not a time; write `2026-05-03`"))
    };
    let (valid_from, valid_until) = (moment("valid_from")?, moment("valid_until")?);
    let untrusted = match cell("untrusted").as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err("`untrusted` is neither `true` nor `false`".to_owned()),
    };
    let kind = cell("type").unwrap_or_default();
    let description = cell("description").unwrap_or_default();
    let mut line = GraphLine { id: cell("id"), sources, ..GraphLine::default() };
    match cell("record").as_deref() {
        Some("entity") => {
            let (name, aliases) = (cell("name").unwrap_or_default(), aliases.unwrap_or_default());
            let external_id = cell("external_id");
            let facts = EntityFacts {
                name,
                kind,
                aliases,
                description,
                external_id,
                confidence,
                properties,
                valid_from,
                valid_until,
                untrusted,
            };
            line.entity = Some(facts);
        }
        Some("relation") => {
            (line.id, line.source, line.target) = (None, cell("source"), cell("target"));
            line.relation = Some(RelationFacts {
                kind,
                description,
                confidence,
                properties,
                valid_from,
                valid_until,
                untrusted,
            });
        }
        _ => return Err("`record` must be `entity` or `relation`".to_owned()),
    }
    Ok(line)
}

/// Characters that make a spreadsheet take a cell for a formula, and the apostrophe that keeps it from it.
fn is_active(c: char) -> bool {
    matches!(c, '=' | '+' | '-' | '@' | '\t' | '\r' | '\n' | '|' | '%' | '\'')
}

fn guarded(cell: &str) -> String {
    if cell.starts_with(is_active) { format!("'{cell}") } else { cell.to_owned() }
}

fn unguarded(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|rest| rest.starts_with(is_active)).unwrap_or(cell)
}

/// The mark of an untrusted fact; empty of others.
fn mark(untrusted: bool) -> &'static str {
    if untrusted { "true" } else { "" }
}

/// Writes a graph in a format.
pub(super) enum Writer {
    JsonLines(String),
    Csv(Box<csv::Writer<Vec<u8>>>),
    Dot(String),
}

impl Writer {
    pub(super) fn new(format: GraphFormat) -> Result<Self, Error> {
        Ok(match format {
            GraphFormat::JsonLines => Self::JsonLines(String::new()),
            GraphFormat::Csv => {
                let mut writer = csv::Writer::from_writer(Vec::new());
                writer.write_record(COLUMNS).map_err(unwritten)?;
                Self::Csv(Box::new(writer))
            }
            GraphFormat::Dot => Self::Dot("digraph knowledge {\n  rankdir=LR;\n".to_owned()),
        })
    }

    pub(super) fn entity(&mut self, entity: &Entity) -> Result<(), Error> {
        let (id, said) = (entity.id.to_string(), &entity.said);
        match self {
            Self::JsonLines(text) => push(
                text,
                &GraphLine {
                    entity: Some(said.clone()),
                    id: Some(id),
                    sources: entity.sources.clone(),
                    owner: Some(entity.owner.name().to_owned()),
                    ..GraphLine::default()
                },
            ),
            Self::Csv(writer) => {
                let cells = [
                    "entity",
                    &id,
                    &said.kind,
                    &said.name,
                    "",
                    "",
                    &said.description,
                    &json(&said.aliases, said.aliases.is_empty())?,
                    said.external_id.as_deref().unwrap_or_default(),
                    &said.confidence.to_string(),
                    &moment(said.valid_from),
                    &moment(said.valid_until),
                    &json(&said.properties, said.properties.is_empty())?,
                    &json(&entity.sources, entity.sources.is_empty())?,
                    entity.owner.name(),
                    mark(said.untrusted),
                ];
                writer.write_record(cells.map(guarded)).map_err(unwritten)
            }
            Self::Dot(text) => {
                let label = format!("{} ({})", said.name, said.kind);
                text.push_str(&format!("  {} [label={}];\n", quoted(&id), quoted(&label)));
                Ok(())
            }
        }
    }

    pub(super) fn relation(&mut self, relation: &Relation) -> Result<(), Error> {
        let (source, target) = (relation.source.to_string(), relation.target.to_string());
        let said = &relation.said;
        match self {
            Self::JsonLines(text) => push(
                text,
                &GraphLine {
                    relation: Some(said.clone()),
                    source: Some(source),
                    target: Some(target),
                    sources: relation.sources.clone(),
                    owner: Some(relation.owner.name().to_owned()),
                    ..GraphLine::default()
                },
            ),
            Self::Csv(writer) => {
                let cells = [
                    "relation",
                    "",
                    &said.kind,
                    "",
                    &source,
                    &target,
                    &said.description,
                    "",
                    "",
                    &said.confidence.to_string(),
                    &moment(said.valid_from),
                    &moment(said.valid_until),
                    &json(&said.properties, said.properties.is_empty())?,
                    &json(&relation.sources, relation.sources.is_empty())?,
                    relation.owner.name(),
                    mark(said.untrusted),
                ];
                writer.write_record(cells.map(guarded)).map_err(unwritten)
            }
            Self::Dot(text) => {
                let (source, target) = (quoted(&source), quoted(&target));
                text.push_str(&format!("  {source} -> {target} [label={}];\n", quoted(&said.kind)));
                Ok(())
            }
        }
    }

    pub(super) fn end(self) -> Result<String, Error> {
        match self {
            Self::JsonLines(text) => Ok(text),
            Self::Csv(writer) => {
                let bytes = writer.into_inner().map_err(|error| unwritten(error.into_error().into()))?;
                String::from_utf8(bytes).map_err(|error| Error::failed("the CSV is not text").because(error))
            }
            Self::Dot(text) => Ok(format!("{text}}}\n")),
        }
    }
}

fn push(text: &mut String, line: &GraphLine) -> Result<(), Error> {
    let line = serde_json::to_string(line)
        .map_err(|error| Error::failed("a fact cannot be written").because(error))?;
    text.push_str(&line);
    text.push('\n');
    Ok(())
}

fn json(value: &impl serde::Serialize, is_empty: bool) -> Result<String, Error> {
    if is_empty {
        return Ok(String::new());
    }
    serde_json::to_string(value).map_err(|error| Error::failed("a fact cannot be written").because(error))
}

fn moment(at: Option<UnixMillis>) -> String {
    at.map(shown).unwrap_or_default()
}

/// A text in DOT's quotes, within which a backslash and a quote mean something.
fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace(|c: char| c.is_control(), " "))
}

fn unwritten(error: csv::Error) -> Error {
    Error::failed("the CSV cannot be written").because(error)
}
