//! `clawsmith memory`: searching and managing the memory documents of agents.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use claw_core::counted::counted;
use claw_core::port::{MemoryOwner, MemoryPart, MemoryQuery, MemoryReader};
use claw_core::provenance::Provenance;
use claw_core::store::EmbeddingFailure;
use claw_core::{AgentId, UserId};
use claw_terminal::{Cell, tell};
use clawsmith::app::words;
use serde_json::json;

use crate::choice::{Choices, one_of};
use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};
use crate::opened::runtime;

/// The operations on memory.
#[derive(Debug, Subcommand)]
pub(crate) enum Memory {
    /// Search the memory.
    Search(Search),
    /// Store the Markdown and text files of a directory as memory documents.
    Import(Import),
    /// List the documents that can be read: the user's, the agent's, the tenant's.
    List(Reader),
    /// Print a document, or some lines of it.
    Show(Show),
    /// Show the progress of indexing, and failures.
    Status,
    /// Index every document again: words and, if a model is configured, vectors.
    Reindex,
    /// Write the documents to files below a directory.
    Export(Export),
    /// Remove a document.
    Forget(Forget),
}

/// The owner of the memory.
#[derive(Debug, Clone, Args)]
pub(crate) struct Reader {
    /// The agent.
    #[arg(long, value_name = "ID", default_value = "default")]
    agent: AgentId,
    /// The user [default: `$USER`].
    #[arg(long, value_name = "ID")]
    user: Option<UserId>,
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// The question, or words that the answer may contain.
    query: String,
    /// The most hits.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..=200))]
    limit: u16,
    #[command(flatten)]
    reader: Reader,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The directory.
    directory: PathBuf,
    /// The owner of the documents.
    #[arg(long, value_name = "OWNER", value_parser = one_of(OWNERS), default_value = "user")]
    owner: MemoryOwner,
    #[command(flatten)]
    reader: Reader,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The path of the document.
    path: String,
    /// The first line.
    #[arg(long, value_name = "LINE", default_value_t = 1)]
    from: u64,
    /// The most lines.
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
    lines: u64,
    #[command(flatten)]
    reader: Reader,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The directory; existing files stay as they are.
    directory: PathBuf,
    #[command(flatten)]
    reader: Reader,
}

#[derive(Debug, Args)]
pub(crate) struct Forget {
    /// The path of the document.
    path: String,
    /// The owner of the document.
    #[arg(long, value_name = "OWNER", value_parser = one_of(OWNERS), default_value = "user")]
    owner: MemoryOwner,
    #[command(flatten)]
    reader: Reader,
}

/// Owners of documents and facts.
pub(crate) const OWNERS: Choices<MemoryOwner> = &[
    ("user", "The user, with this agent", MemoryOwner::User),
    ("agent", "The agent, for all its users", MemoryOwner::Agent),
    ("tenant", "The tenant, for all its agents", MemoryOwner::Tenant),
];

impl Reader {
    pub(crate) fn reader(&self, session: &Session) -> Result<MemoryReader, Failure> {
        let setup = session.load()?;
        runtime()?.block_on(setup.must_have_agent(self.agent.as_str()))?;
        let user = Some(session.user(self.user.clone())?);
        Ok(MemoryReader { tenant: setup.tenant().clone(), agent: self.agent.clone(), user })
    }
}

impl Memory {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::Search(search) => search.run(session),
            Self::Import(import) => import.run(session),
            Self::List(reader) => {
                let reader = reader.reader(session)?;
                let cards = session.app(async |app| app.list_memory(&reader).await)?;
                session.list(
                    &cards,
                    "no memory documents; `clawsmith memory import DIR` stores some",
                    &[
                        ("path", &|entry| Cell::strong(&entry.card.key.path)),
                        ("owner", &|entry| Cell::new(entry.owner.name())),
                        ("bytes", &|entry| Cell::new(entry.card.bytes)),
                        ("version", &|entry| Cell::quiet(entry.card.version)),
                        ("written", &|entry| Cell::quiet(words::time(entry.card.at))),
                        ("by", &|entry| Cell::quiet(words::origin(&entry.card.provenance))),
                    ],
                )
            }
            Self::Show(Show { path, from, lines, reader }) => {
                let reader = reader.reader(session)?;
                let part = MemoryPart { path, from: from.max(1), lines };
                let found = session.app(async |app| app.read_memory(&reader, &part).await)?;
                session.shown(&found, |out| {
                    if found.provenance != Provenance::default() {
                        // Beside the text, which may be piped into a file.
                        tell(format_args!("written by {}", words::origin(&found.provenance)));
                    }
                    Ok(out.foreign(&found.text)?)
                })
            }
            Self::Status => status(session),
            Self::Reindex => {
                let indexed = session.app(async |app| app.reindex_memory().await)?;
                session.shown(&indexed, |out| {
                    out.line(format_args!("indexed the words of {}", counted(indexed.words, "document")))?;
                    Ok(words::indexed(&indexed).iter().try_for_each(|line| out.line(line))?)
                })
            }
            Self::Export(Export { directory, reader }) => {
                let reader = reader.reader(session)?;
                let target = session.around.directory.join(&directory);
                let written = session.app(async |app| app.export_memory(&reader, &target).await)?;
                let documents = counted(written.len(), "document");
                let words = format!("{documents} written to `{}`", directory.display());
                session.told(&json!({ "written": written }), words)
            }
            Self::Forget(Forget { path, owner, reader }) => {
                let reader = reader.reader(session)?;
                session.app(async |app| app.forget_memory(&reader, owner, &path).await)?;
                session.told(&json!({ "forgotten": path }), format_args!("`{path}` is forgotten"))
            }
        }
    }
}

impl Search {
    fn run(self, session: &mut Session) -> Outcome {
        let reader = self.reader.reader(session)?;
        let query = MemoryQuery { text: self.query, limit: usize::from(self.limit) };
        let found = session.app(async |app| app.search_memory(&reader, &query).await)?;
        session.shown(&found, |out| {
            for hit in &found.hits {
                out.line(words::found_at(hit))?;
                out.foreign(&hit.text)?;
                out.line("\n")?;
            }
            if found.hits.is_empty() {
                out.line("nothing in memory matches; try other words")?;
            }
            Ok(found.note.iter().try_for_each(|note| out.line(note))?)
        })
    }
}

impl Import {
    fn run(self, session: &mut Session) -> Outcome {
        let reader = self.reader.reader(session)?;
        let directory = session.around.directory.join(&self.directory);
        let (files, indexed) = session.app(async |app| {
            let files = app.import_memory(&reader, self.owner, &directory).await?;
            // Vectors that cannot be made now are made later.
            app.index_memory().await.map(|indexed| (files, indexed))
        })?;
        session.shown(&json!({ "files": files, "indexed": indexed }), |out| {
            let lines = [words::imported(&files), words::indexed(&indexed)].concat();
            Ok(lines.iter().try_for_each(|line| out.line(line))?)
        })
    }
}

fn status(session: &mut Session) -> Outcome {
    let status = session.app(async |app| app.memory_status().await)?;
    let state = &status.state;
    let waits = |count: u64, what: &str| {
        if count == 0 { String::new() } else { format!(", {count} waiting for {what}") }
    };
    let vectors = format!("{}{}", state.vectors, waits(state.unembedded, "vectors"));
    let none = || "none; searches match words only (see `memory.embeddings`)".to_owned();
    session.shown(&status, |out| {
        out.fields([
            ("documents", Some(format!("{}{}", state.documents, waits(state.unindexed, "indexing")))),
            ("passages", Some(state.passages.to_string())),
            ("model", Some(status.model.clone().unwrap_or_else(none))),
            ("vectors", status.model.as_ref().map(|_| vectors)),
        ])?;
        for EmbeddingFailure { key, tries, next, error, .. } in &state.failures {
            out.line(words::failed(&key.path, *tries, *next, error))?;
        }
        Ok(())
    })
}
