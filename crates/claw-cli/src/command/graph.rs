//! `clawsmith graph`: the knowledge graph, searched, added to and moved.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use claw_core::EntityId;
use claw_core::graph::{EntityFacts, GraphSource, RelationFacts};
use claw_core::port::{GraphFound, GraphQuery, GraphStart, MemoryOwner, UnixMillis};
use claw_core::store::{
    EntityPair, ExtractionFailure, KeptFacts, NewEntity, NewFacts, NewRelation, RelationEnd,
};
use claw_host::recall::Extracted;
use clawsmith::app::graph::{GraphFormat, entity_kind, graph_start, parse_source, parse_time};
use clawsmith::app::words;
use serde_json::{Value, json};

use super::memory::{OWNERS, Reader};
use crate::choice::one_of;
use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};

/// The operations on the knowledge graph.
#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "a program reads one command")]
pub(crate) enum Graph {
    /// Search entities by name or words, and follow their relations.
    Search(Search),
    /// Show an entity and all its relations, including past ones.
    Show(Show),
    /// Add an entity, or a relation between two entities.
    #[command(subcommand)]
    Add(Add),
    /// List pairs of entities that may be the same, and decide: merge them, or keep them apart.
    Merge(Merge),
    /// Add the facts of a file: JSON lines or CSV.
    Import(Import),
    /// Print all facts that you can read, as JSON lines, CSV or DOT.
    Export(Export),
    /// Extract the facts of waiting documents now, with a model.
    Extract,
    /// Extract the facts of all documents again, for example after a change of the model.
    Reindex,
    /// Show the size of the graph, and the progress of extraction.
    Status,
    /// Remove an entity and its relations.
    Forget(Forget),
}

/// The kinds of facts that can be added.
#[derive(Debug, Subcommand)]
pub(crate) enum Add {
    /// Add an entity, or add facts to a known entity.
    Entity(AddEntity),
    /// Add a relation between two entities.
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
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=5))]
    depth: u8,
    /// Facts that held at this time, such as `2026-05-03` [default: now].
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    as_of: Option<UnixMillis>,
    /// The most entities to return.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    #[command(flatten)]
    reader: Reader,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The entity's id or name.
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
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    since: Option<UnixMillis>,
    /// The time it ended.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<UnixMillis>,
    /// The document that states it.
    #[arg(long, value_name = "PATH:LINE[-LINE]", value_parser = parse_source)]
    source: Option<GraphSource>,
    /// The owner of the fact.
    #[arg(long, value_name = "OWNER", value_parser = one_of(OWNERS), default_value = "user")]
    owner: MemoryOwner,
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
    /// The entity's id in another system; entities with the same external id are the same entity.
    #[arg(long, value_name = "ID")]
    external_id: Option<String>,
    #[command(flatten)]
    said: Said,
    #[command(flatten)]
    reader: Reader,
}

#[derive(Debug, Args)]
pub(crate) struct AddRelation {
    /// The source entity: its id or name.
    from: String,
    /// The type: `works_at`, `knows`, ...
    kind: String,
    /// The target entity: its id or name.
    to: String,
    #[command(flatten)]
    said: Said,
    #[command(flatten)]
    reader: Reader,
}

#[derive(Debug, Args)]
pub(crate) struct Merge {
    /// The id of the entity to keep.
    #[arg(requires = "gone")]
    keep: Option<EntityId>,
    /// The id of the entity to merge into it.
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
    #[arg(long, value_name = "OWNER", value_parser = one_of(OWNERS), default_value = "user")]
    owner: MemoryOwner,
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
    /// The entity's id.
    entity: EntityId,
    #[command(flatten)]
    reader: Reader,
}

fn property(written: &str) -> Result<(String, Value), String> {
    let (name, value) = written.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), Value::String(value.to_owned())))
}

impl Graph {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::Search(search) => search.run(session),
            Self::Show(Show { entity, reader }) => {
                let reader = reader.reader(session)?;
                let found = session.app(async |app| {
                    let entity = app.find_entity(&reader, &entity).await?;
                    app.show_entity(&reader, entity.id).await
                })?;
                told(session, &found)
            }
            Self::Add(Add::Entity(entity)) => entity.run(session),
            Self::Add(Add::Relation(relation)) => relation.run(session),
            Self::Merge(merge) => merge.run(session),
            Self::Import(import) => import.run(session),
            Self::Export(Export { format, reader }) => {
                let reader = reader.reader(session)?;
                let format = GraphFormat::named(&format).ok_or_else(|| {
                    Failure::usage(format!("`{format}` is not an export format"))
                        .hint("use jsonl, csv or dot")
                })?;
                let text = session.app(async |app| app.export_graph(&reader, format).await)?;
                session.out.raw(text.as_bytes())?;
                Ok(ExitCode::SUCCESS)
            }
            Self::Extract => {
                let done = session.app(async |app| app.extract_graph().await)?;
                extracted(session, &done)
            }
            Self::Reindex => {
                let done = session.app(async |app| app.reindex_graph().await)?;
                extracted(session, &done)
            }
            Self::Status => {
                let state = session.app(async |app| app.graph_status().await)?;
                session.shown(&state, |out| {
                    out.fields([
                        ("entities", Some(state.entities.to_string())),
                        ("relations", Some(state.relations.to_string())),
                        ("possible duplicates", Some(state.doubtful.to_string())),
                        (
                            "documents",
                            Some(format!("{} extracted, {} not", state.extracted, state.unextracted)),
                        ),
                    ])?;
                    for ExtractionFailure { key, tries, next, error, .. } in &state.failures {
                        out.line(words::failed(&key.path, *tries, *next, error))?;
                    }
                    Ok(())
                })
            }
            Self::Forget(Forget { entity, reader }) => {
                let reader = reader.reader(session)?;
                session.app(async |app| app.forget_entity(&reader, entity).await)?;
                session.told(&json!({ "forgotten": entity }), format_args!("`{entity}` is forgotten"))
            }
        }
    }
}

impl Search {
    fn run(self, session: &mut Session) -> Outcome {
        let reader = self.reader.reader(session)?;
        let start = graph_start(&self.query);
        if matches!(&start, GraphStart::Words(words) if words.is_empty() || words.len() > GraphQuery::LONGEST)
        {
            return Err(Failure::usage("the query is empty or too long")
                .hint("search for a name, or for '*' to list all"));
        }
        let kind = self.kind.as_deref().map(entity_kind).transpose()?;
        let (depth, limit) = (usize::from(self.depth), usize::from(self.limit));
        let query = GraphQuery { start, kind, depth, as_of: self.as_of, limit };
        let found = session.app(async |app| app.search_graph(&reader, &query).await)?;
        told(session, &found)
    }
}

fn told(session: &mut Session, found: &GraphFound) -> Outcome {
    session.shown(found, |out| {
        out.foreign(&found.to_string())?;
        Ok(out.line("")?)
    })
}

impl AddEntity {
    fn run(self, session: &mut Session) -> Outcome {
        let reader = self.reader.reader(session)?;
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
        let kept = session.app(async |app| app.keep_facts(&reader, owner, facts).await)?;
        kept_facts(session, &kept)
    }
}

impl AddRelation {
    fn run(self, session: &mut Session) -> Outcome {
        let reader = self.reader.reader(session)?;
        let Said { description, confidence, properties, since, until, source: place, owner } = self.said;
        let said = RelationFacts {
            description,
            confidence,
            properties: properties.into_iter().collect(),
            valid_from: since,
            valid_until: until,
            ..RelationFacts::new(self.kind)
        };
        let kept = session.app(async |app| {
            let source = RelationEnd::Known(app.find_entity(&reader, &self.from).await?.id);
            let target = RelationEnd::Known(app.find_entity(&reader, &self.to).await?.id);
            let relations = vec![NewRelation { source, target, said, place }];
            app.keep_facts(&reader, owner, NewFacts { entities: Vec::new(), relations }).await
        })?;
        kept_facts(session, &kept)
    }
}

impl Merge {
    fn run(self, session: &mut Session) -> Outcome {
        let reader = self.reader.reader(session)?;
        let (Some(keep), Some(gone)) = (self.keep, self.gone) else {
            let pairs = session.app(async |app| app.entity_pairs(&reader, 100).await)?;
            return session.shown(&json!({ "pairs": pairs }), |out| {
                for EntityPair { one, other, likeness, .. } in &pairs {
                    let (name, kind, also) = (&one.said.name, &one.said.kind, &other.said.name);
                    out.line(format_args!(
                        "{likeness:.2}  {} {name} ({kind})\n      {} {also}",
                        one.id, other.id
                    ))?;
                }
                if pairs.is_empty() {
                    out.line("no possible duplicates")?;
                }
                Ok(())
            });
        };
        session.app(async |app| match self.apart {
            true => app.part_entities(&reader, keep, gone).await,
            false => app.merge_entities(&reader, keep, gone).await,
        })?;
        let (done, words) = match self.apart {
            true => ("apart", format!("`{keep}` and `{gone}` stay separate entities")),
            false => ("merged", format!("merged `{gone}` into `{keep}`")),
        };
        session.told(&json!({ done: [keep.to_string(), gone.to_string()] }), words)
    }
}

impl Import {
    fn run(self, session: &mut Session) -> Outcome {
        let reader = self.reader.reader(session)?;
        let shown = self.file.display().to_string();
        let format = GraphFormat::named(&shown).ok_or_else(|| {
            Failure::usage(format!("`{shown}` has no known format")).hint("name it .jsonl or .csv")
        })?;
        let text = session.text_of(&self.file)?;
        let kept = session.app(async |app| {
            let facts = app.read_graph(format, &text)?;
            app.keep_facts(&reader, self.owner, facts).await
        })?;
        kept_facts(session, &kept)
    }
}

fn extracted(session: &mut Session, done: &Extracted) -> Outcome {
    session.shown(done, |out| Ok(words::extracted(done).iter().try_for_each(|line| out.line(line))?))
}

fn kept_facts(session: &mut Session, kept: &KeptFacts) -> Outcome {
    session.shown(kept, |out| {
        if let ([id], 0) = (kept.entities.as_slice(), kept.relations) {
            out.line(id)?;
        }
        Ok(words::kept(kept).iter().try_for_each(|line| out.line(line))?)
    })
}
