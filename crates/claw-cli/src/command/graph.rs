//! `clawsmith graph`: the knowledge graph, searched, added to and moved.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use claw_core::EntityId;
use claw_core::graph::{EntityFacts, GraphSource, RelationFacts, time};
use claw_core::port::{GraphQuery, GraphStart, UnixMillis};
use claw_core::store::{KeptFacts, NewEntity, NewFacts, NewRelation, RelationEnd};
use claw_host::recall::Extracted;
use clawsmith::app::graph::{GraphFormat, entity_kind, graph_start};
use serde_json::{Value, json};

use super::ledger::time as shown;
use super::memory::{Owner, Reader};
use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::opened::with_app;

/// The operations on the knowledge graph.
#[derive(Debug, Subcommand)]
pub(crate) enum Graph {
    /// Search entities by name or words, and follow their relations.
    #[command(after_help = "Examples:
  clawsmith graph search 'who works at Acme?'
  clawsmith graph search '*' --type person --json
  clawsmith graph search Acme --depth 3 --as-of 2021-06-01")]
    Search(Search),
    /// Show an entity and its relations, of any time.
    #[command(after_help = "Examples:
  clawsmith graph show 'Anna Müller'
  clawsmith graph show 0198c1f2-7d7e-7c3a-9f63-2f6a4b1f0c55 --json")]
    Show(Show),
    /// Add a thing, or how two things relate.
    #[command(subcommand)]
    Add(Add),
    /// List pairs of entities that may be the same, and decide: merge them, or keep them apart.
    #[command(after_help = "Examples:
  clawsmith graph merge
  clawsmith graph merge KEEP-ID OTHER-ID
  clawsmith graph merge ONE-ID OTHER-ID --apart")]
    Merge(Merge),
    /// Add the facts of a file: JSON lines or CSV.
    #[command(after_help = "A file with a wrong line is not imported at all.

Examples:
  clawsmith graph import people.jsonl
  clawsmith graph import crm.csv --owner tenant")]
    Import(Import),
    /// Print all that can be read: JSON lines, CSV or DOT.
    #[command(after_help = "Examples:
  clawsmith graph export > graph.jsonl
  clawsmith graph export --format dot | dot -Tsvg > graph.svg")]
    Export(Export),
    /// Have a model extract the facts of documents that wait for it, now.
    #[command(
        after_help = "`clawsmith serve` and `chat` do so by themselves where `[memory.graph]` is configured.

Examples:
  clawsmith graph extract"
    )]
    Extract,
    /// Have a model extract the facts of all documents again, as after a change of the model.
    #[command(
        after_help = "Facts of a document stay until those of its new reading replace them. It costs one reading of \
all memory.

Examples:
  clawsmith graph reindex"
    )]
    Reindex,
    /// Show the size of the graph, and the progress of extraction.
    #[command(after_help = "Examples:
  clawsmith graph status")]
    Status,
    /// Remove a thing with its relations.
    #[command(after_help = "Examples:
  clawsmith graph forget 0198c1f2-7d7e-7c3a-9f63-2f6a4b1f0c55")]
    Forget(Forget),
}

/// Things and relations that are added.
#[derive(Debug, Subcommand)]
pub(crate) enum Add {
    /// Add an entity; a known one gets the new facts.
    #[command(after_help = "Examples:
  clawsmith graph add entity 'Anna Müller' --type person --alias Annie --description 'runs the bakery'
  clawsmith graph add entity Acme --type organization --external-id crm:17 --property city=Bern")]
    Entity(AddEntity),
    /// Add how two things relate.
    #[command(after_help = "Examples:
  clawsmith graph add relation 'Anna Müller' works_at Acme --since 2020 --until 2022-06")]
    Relation(AddRelation),
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// Names or words; `*` lists everything.
    query: String,
    /// Only entities of this type.
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// The number of relations to follow.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=5))]
    depth: u8,
    /// Facts that held at this time, such as `2026-05-03` [default: now].
    #[arg(long, value_name = "TIME", value_parser = moment)]
    as_of: Option<UnixMillis>,
    /// The most things that are found.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    #[command(flatten)]
    reader: Reader,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The id of the thing, or its name.
    entity: String,
    #[command(flatten)]
    reader: Reader,
}

/// The properties of an entity or a relation.
#[derive(Debug, Args)]
pub(crate) struct Said {
    /// A sentence about it.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    description: String,
    /// The confidence, from 0 to 1.
    #[arg(long, value_name = "NUMBER", default_value_t = 1.0)]
    confidence: f64,
    /// Another property; may be given several times.
    #[arg(long = "property", value_name = "NAME=VALUE", value_parser = property)]
    properties: Vec<(String, Value)>,
    /// The time it began, such as `2020` or `2020-05-03`.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<UnixMillis>,
    /// The time it ended.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<UnixMillis>,
    /// The document that states it.
    #[arg(long, value_name = "PATH:LINE[-LINE]", value_parser = source)]
    source: Option<GraphSource>,
    /// The owner of the fact.
    #[arg(long, value_name = "OWNER", value_enum, default_value_t = Owner::User)]
    owner: Owner,
}

#[derive(Debug, Args)]
pub(crate) struct AddEntity {
    /// The name.
    name: String,
    /// The type: `person`, `organization`, `place`, ...
    #[arg(long = "type", value_name = "TYPE")]
    kind: String,
    /// Another name; may be given several times.
    #[arg(long = "alias", value_name = "NAME")]
    aliases: Vec<String>,
    /// The entity's id in another system; entities with the same id are one.
    #[arg(long, value_name = "ID")]
    external_id: Option<String>,
    #[command(flatten)]
    said: Said,
    #[command(flatten)]
    reader: Reader,
}

#[derive(Debug, Args)]
pub(crate) struct AddRelation {
    /// The source entity: its id or its name.
    from: String,
    /// The type: `works_at`, `knows`, ...
    kind: String,
    /// The thing that it leads to: its id or its name.
    to: String,
    #[command(flatten)]
    said: Said,
    #[command(flatten)]
    reader: Reader,
}

#[derive(Debug, Args)]
pub(crate) struct Merge {
    /// The thing that stays.
    #[arg(requires = "gone")]
    keep: Option<EntityId>,
    /// The thing that becomes part of it.
    gone: Option<EntityId>,
    /// Keep them as two entities; the pair is not shown again.
    #[arg(long, requires = "gone")]
    apart: bool,
    #[command(flatten)]
    reader: Reader,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The file: `.jsonl` or `.csv`.
    file: PathBuf,
    /// The owner of the facts.
    #[arg(long, value_name = "OWNER", value_enum, default_value_t = Owner::User)]
    owner: Owner,
    #[command(flatten)]
    reader: Reader,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The format: `jsonl`, `csv` or `dot`.
    #[arg(long, value_name = "FORMAT", default_value = "jsonl")]
    format: String,
    #[command(flatten)]
    reader: Reader,
}

#[derive(Debug, Args)]
pub(crate) struct Forget {
    /// The id of the thing.
    entity: EntityId,
    #[command(flatten)]
    reader: Reader,
}

fn moment(written: &str) -> Result<UnixMillis, String> {
    time(written).ok_or_else(|| "write `2026-05-03` or `2026-05-03T10:00:00Z`".to_owned())
}

fn property(written: &str) -> Result<(String, Value), String> {
    let (name, value) = written.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), Value::String(value.to_owned())))
}

fn source(written: &str) -> Result<GraphSource, String> {
    let wrong = "write PATH:LINE or PATH:FIRST-LAST";
    let (path, lines) = written.rsplit_once(':').ok_or(wrong)?;
    let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
    let (start_line, end_line) = (first.parse().map_err(|_| wrong)?, last.parse().map_err(|_| wrong)?);
    Ok(GraphSource::new(path, start_line, end_line))
}

impl Graph {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::Search(search) => search.run(session),
            Self::Show(show) => show.run(session),
            Self::Add(Add::Entity(entity)) => entity.run(session),
            Self::Add(Add::Relation(relation)) => relation.run(session),
            Self::Merge(merge) => merge.run(session),
            Self::Import(import) => import.run(session),
            Self::Export(export) => export.run(session),
            Self::Extract => extract(session, false),
            Self::Reindex => extract(session, true),
            Self::Status => status(session),
            Self::Forget(forget) => forget.run(session),
        }
    }
}

impl Search {
    fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let reader = self.reader.reader(session, &setup)?;
        let start = graph_start(&self.query);
        if matches!(&start, GraphStart::Words(words) if words.is_empty() || words.len() > GraphQuery::LONGEST)
        {
            return Err(
                Failure::usage("the query is empty or too long").hint("ask with a name, or '*' for all")
            );
        }
        let kind = self.kind.as_deref().map(entity_kind).transpose()?;
        let (depth, limit) = (usize::from(self.depth), usize::from(self.limit));
        let query = GraphQuery { start, kind, depth, as_of: self.as_of, limit };
        let found = with_app(&setup, async |app| Ok(app.search_graph(&reader, &query).await?))?;
        told(session, &found)
    }
}

impl Show {
    fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let reader = self.reader.reader(session, &setup)?;
        let found = with_app(&setup, async |app| {
            let entity = app.find_entity(&reader, &self.entity).await?;
            Ok(app.show_entity(&reader, entity.id).await?)
        })?;
        told(session, &found)
    }
}

fn told(session: &mut Session, found: &claw_core::port::GraphFound) -> Outcome {
    if session.out.json {
        session.out.json(found)?;
    } else {
        session.out.foreign(&found.to_string())?;
        session.out.line("")?;
    }
    Ok(ExitCode::SUCCESS)
}

impl AddEntity {
    fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let reader = self.reader.reader(session, &setup)?;
        let Said { description, confidence, properties, since, until, source, owner } = self.said;
        let said = EntityFacts {
            aliases: self.aliases,
            description,
            external_id: self.external_id,
            confidence,
            properties: properties.into_iter().collect(),
            valid_from: since,
            valid_until: until,
            ..EntityFacts::new(self.name, self.kind)
        };
        let facts = NewFacts { entities: vec![NewEntity { said, source }], relations: Vec::new() };
        let kept = with_app(&setup, async |app| Ok(app.keep_facts(&reader, owner.into(), facts).await?))?;
        kept_facts(session, &kept)
    }
}

impl AddRelation {
    fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let reader = self.reader.reader(session, &setup)?;
        let Said { description, confidence, properties, since, until, source, owner } = self.said;
        let said = RelationFacts {
            description,
            confidence,
            properties: properties.into_iter().collect(),
            valid_from: since,
            valid_until: until,
            ..RelationFacts::new(self.kind)
        };
        let kept = with_app(&setup, async |app| {
            let from = app.find_entity(&reader, &self.from).await?.id;
            let to = app.find_entity(&reader, &self.to).await?.id;
            let (source, target, place) = (RelationEnd::Known(from), RelationEnd::Known(to), source);
            let relations = vec![NewRelation { source, target, said, place }];
            let facts = NewFacts { entities: Vec::new(), relations };
            Ok(app.keep_facts(&reader, owner.into(), facts).await?)
        })?;
        kept_facts(session, &kept)
    }
}

impl Merge {
    fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let reader = self.reader.reader(session, &setup)?;
        let (Some(keep), Some(gone)) = (self.keep, self.gone) else {
            let pairs = with_app(&setup, async |app| Ok(app.entity_pairs(&reader, 100).await?))?;
            if session.out.json {
                session.out.json(&json!({ "pairs": pairs }))?;
                return Ok(ExitCode::SUCCESS);
            }
            for pair in &pairs {
                session.out.line(format_args!(
                    "{:.2}  {} {} ({})\n      {} {}",
                    pair.likeness,
                    pair.one.id,
                    pair.one.said.name,
                    pair.one.said.kind,
                    pair.other.id,
                    pair.other.said.name
                ))?;
            }
            if pairs.is_empty() {
                session.out.line("no pairs may be one thing")?;
            }
            return Ok(ExitCode::SUCCESS);
        };
        with_app(&setup, async |app| match self.apart {
            true => Ok(app.part_entities(&reader, keep, gone).await?),
            false => Ok(app.merge_entities(&reader, keep, gone).await?),
        })?;
        let done = if self.apart { "apart" } else { "merged" };
        if session.out.json {
            session.out.json(&json!({ done: [keep.to_string(), gone.to_string()] }))?;
        } else if self.apart {
            session.out.line(format_args!("`{keep}` and `{gone}` are two things"))?;
        } else {
            session.out.line(format_args!("`{gone}` is part of `{keep}` now"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Import {
    fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let reader = self.reader.reader(session, &setup)?;
        let file = session.around.directory.join(&self.file);
        let format = GraphFormat::named(&file.to_string_lossy()).ok_or_else(|| {
            Failure::usage(format!("`{}` has no known format", self.file.display()))
                .hint("name it .jsonl or .csv")
        })?;
        let text = std::fs::read_to_string(&file).map_err(|error| {
            Failure::usage(format!("`{}` cannot be read", self.file.display())).because(error)
        })?;
        let kept = with_app(&setup, async |app| {
            let facts = app.read_graph(format, &text)?;
            Ok(app.keep_facts(&reader, self.owner.into(), facts).await?)
        })?;
        kept_facts(session, &kept)
    }
}

impl Export {
    fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let reader = self.reader.reader(session, &setup)?;
        let format = GraphFormat::named(&self.format).ok_or_else(|| {
            Failure::usage(format!("`{}` is no format", self.format)).hint("use jsonl, csv or dot")
        })?;
        let text = with_app(&setup, async |app| Ok(app.export_graph(&reader, format).await?))?;
        session.out.raw(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Forget {
    fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let reader = self.reader.reader(session, &setup)?;
        with_app(&setup, async |app| Ok(app.forget_entity(&reader, self.entity).await?))?;
        if session.out.json {
            session.out.json(&json!({ "forgotten": self.entity }))?;
        } else {
            session.out.line(format_args!("`{}` is forgotten", self.entity))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn extract(session: &mut Session, again: bool) -> Outcome {
    let setup = session.load()?;
    let done = with_app(&setup, async |app| {
        Ok(if again { app.reindex_graph().await? } else { app.extract_graph().await? })
    })?;
    if session.out.json {
        session.out.json(&done)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Extracted { documents, entities, relations, doubtful, failed } = done;
    session.out.line(format_args!("{documents} documents: {entities} entities, {relations} relations"))?;
    if doubtful > 0 {
        session
            .out
            .line(format_args!("{doubtful} may be known by another name; see `clawsmith graph merge`"))?;
    }
    if failed > 0 {
        session.out.line(format_args!("{failed} documents failed; `clawsmith graph status` says why"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn status(session: &mut Session) -> Outcome {
    let setup = session.load()?;
    let state = with_app(&setup, async |app| Ok(app.graph_status().await?))?;
    if session.out.json {
        session.out.json(&state)?;
        return Ok(ExitCode::SUCCESS);
    }
    session.out.field("entities", &state.entities.to_string())?;
    session.out.field("relations", &state.relations.to_string())?;
    session.out.field("doubtful pairs", &state.doubtful.to_string())?;
    let documents = format!("{} extracted, {} not", state.extracted, state.unextracted);
    session.out.field("documents", &documents)?;
    for failure in &state.failures {
        session.out.line(format_args!(
            "{} failed {} times, next try {}: {}",
            failure.key.path,
            failure.tries,
            shown(failure.next),
            failure.error
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn kept_facts(session: &mut Session, kept: &KeptFacts) -> Outcome {
    if session.out.json {
        session.out.json(kept)?;
        return Ok(ExitCode::SUCCESS);
    }
    let KeptFacts { entities, added, merged, relations, doubtful, .. } = kept;
    if let ([id], 0) = (entities.as_slice(), *relations) {
        session.out.line(id)?;
    }
    session.out.line(format_args!("{added} added, {merged} known already, {relations} relations"))?;
    if *doubtful > 0 {
        session
            .out
            .line(format_args!("{doubtful} may be known by another name; see `clawsmith graph merge`"))?;
    }
    Ok(ExitCode::SUCCESS)
}
