//! `clawsmith memory`: searching and managing the memory documents of agents.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use claw_core::port::{MemoryHit, MemoryOwner, MemoryPart, MemoryQuery, MemoryReader};
use claw_core::provenance::Provenance;
use claw_core::{AgentId, UserId};
use claw_host::recall::Indexed;
use claw_terminal::{Cell, Table, tell};
use clawsmith::app::Setup;
use clawsmith::app::words::time;
use serde_json::json;

use crate::caller;
use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::opened::with_app;

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
    agent: String,
    /// The user [default: `$USER`].
    #[arg(long, value_name = "ID")]
    user: Option<String>,
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
    #[arg(long, value_name = "OWNER", value_enum, default_value_t = Owner::User)]
    owner: Owner,
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
    #[arg(long, value_name = "OWNER", value_enum, default_value_t = Owner::User)]
    owner: Owner,
    #[command(flatten)]
    reader: Reader,
}

/// Owners of documents.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Owner {
    /// The user, with this agent.
    User,
    /// The agent, for all its users.
    Agent,
    /// The tenant, for all its agents.
    Tenant,
}

impl From<Owner> for MemoryOwner {
    fn from(owner: Owner) -> Self {
        match owner {
            Owner::User => Self::User,
            Owner::Agent => Self::Agent,
            Owner::Tenant => Self::Tenant,
        }
    }
}

impl Reader {
    pub(crate) fn reader(&self, session: &Session, setup: &Setup) -> Result<MemoryReader, Failure> {
        let wrong = |flag: &str, error: claw_core::InvalidId| Failure::usage(format!("`{flag}`: {error}"));
        let agent = AgentId::new(&self.agent).map_err(|error| wrong("--agent", error))?;
        caller::must_be_set_up(agent.as_str(), setup)?;
        let user = match &self.user {
            Some(user) => UserId::new(user),
            None => caller::user_of(&session.around),
        };
        let user = Some(user.map_err(|error| wrong("--user", error))?);
        Ok(MemoryReader { tenant: setup.tenant().clone(), agent, user })
    }
}

impl Memory {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::Search(search) => search.run(session),
            Self::Import(import) => import.run(session),
            Self::List(reader) => reader.list(session),
            Self::Show(show) => show.run(session),
            Self::Status => status(session),
            Self::Reindex => reindex(session),
            Self::Export(export) => export.run(session),
            Self::Forget(forget) => forget.run(session),
        }
    }
}

impl Search {
    fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let reader = self.reader.reader(session, &setup)?;
        let query = MemoryQuery { text: self.query, limit: usize::from(self.limit) };
        let found = with_app(&setup, async |app| Ok(app.search_memory(&reader, &query).await?))?;
        if session.out.json {
            session.out.json(&found)?;
            return Ok(ExitCode::SUCCESS);
        }
        for hit in &found.hits {
            let MemoryHit { path, start_line, end_line, score, heading, text, why, provenance } = hit;
            let under = if heading.is_empty() { String::new() } else { format!(" · {heading}") };
            let mut reasons = vec![why.owner.name().to_owned()];
            reasons.extend((!why.words.is_empty()).then(|| why.words.join(", ")));
            reasons.extend(why.similarity.map(|similarity| format!("similarity {similarity:.2}")));
            reasons.extend(provenance.untrusted.then(|| "untrusted".to_owned()));
            let reasons = reasons.join(" · ");
            session
                .out
                .line(format_args!("{path}:{start_line}-{end_line}{under} · {score:.2} · {reasons}"))?;
            session.out.foreign(text)?;
            session.out.line("\n")?;
        }
        if found.hits.is_empty() {
            session.out.line("nothing in memory matches; try other words")?;
        }
        if let Some(note) = &found.note {
            session.out.line(note)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Import {
    fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let reader = self.reader.reader(session, &setup)?;
        let directory = session.around.directory.join(&self.directory);
        let (files, indexed) = with_app(&setup, async |app| {
            let files = app.import_memory(&reader, self.owner.into(), &directory).await?;
            // Vectors that cannot be made now are made later.
            Ok((files, app.index_memory().await?))
        })?;
        if session.out.json {
            session.out.json(&json!({ "files": files, "indexed": indexed }))?;
            return Ok(ExitCode::SUCCESS);
        }
        for file in files.iter().filter(|file| file.state == "skipped") {
            session.out.line(format_args!(
                "skipped {}: {}",
                file.path,
                file.why.as_deref().unwrap_or_default()
            ))?;
        }
        let count = |state: &str| files.iter().filter(|file| file.state == state).count();
        let (added, changed, unchanged) = (count("added"), count("changed"), count("unchanged"));
        session.out.line(format_args!("{added} added, {changed} changed, {unchanged} unchanged"))?;
        told(session, &indexed)
    }
}

impl Reader {
    fn list(&self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let reader = self.reader(session, &setup)?;
        let cards = with_app(&setup, async |app| Ok(app.list_memory(&reader).await?))?;
        if session.out.json {
            session.out.json(&cards)?;
            return Ok(ExitCode::SUCCESS);
        }
        if cards.is_empty() {
            session.out.line("no memory documents; `clawsmith memory import DIR` stores some")?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut table = Table::new(["path", "owner", "bytes", "version", "written", "by"]);
        for entry in &cards {
            let card = &entry.card;
            table.row([
                Cell::strong(&card.key.path),
                Cell::new(entry.owner.name()),
                Cell::new(card.bytes),
                Cell::quiet(card.version),
                Cell::quiet(time(card.at)),
                Cell::quiet(origin(&card.provenance)),
            ]);
        }
        session.out.table(&table)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Show {
    fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let reader = self.reader.reader(session, &setup)?;
        let part = MemoryPart { path: self.path, from: self.from.max(1), lines: self.lines };
        let found = with_app(&setup, async |app| Ok(app.read_memory(&reader, &part).await?))?;
        if session.out.json {
            session.out.json(&found)?;
        } else {
            if found.provenance != Provenance::default() {
                // Beside the text, which may be piped into a file.
                tell(format_args!("written by {}", origin(&found.provenance)));
            }
            session.out.foreign(&found.text)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The origin of a document in words.
fn origin(provenance: &Provenance) -> String {
    let writer = provenance.run.map_or_else(|| "a person".to_owned(), |run| format!("run {run}"));
    if provenance.untrusted { format!("{writer}, untrusted") } else { writer }
}

fn status(session: &mut Session) -> Outcome {
    let setup = session.load()?;
    let status = with_app(&setup, async |app| Ok(app.memory_status().await?))?;
    if session.out.json {
        session.out.json(&status)?;
        return Ok(ExitCode::SUCCESS);
    }
    let state = &status.state;
    let waits = |count: u64, what: &str| {
        if count == 0 { String::new() } else { format!(", {count} wait for {what}") }
    };
    let documents = format!("{}{}", state.documents, waits(state.unindexed, "their words"));
    session.out.field("documents", &documents)?;
    session.out.field("passages", &state.passages.to_string())?;
    match &status.model {
        Some(model) => {
            session.out.field("model", model)?;
            let vectors = format!("{}{}", state.vectors, waits(state.unembedded, "vectors"));
            session.out.field("vectors", &vectors)?;
        }
        None => session.out.field("model", "none; words alone find (see `memory.embeddings`)")?,
    }
    for failure in &state.failures {
        let next = time(failure.next);
        session.out.line(format_args!(
            "{} failed {} times, next try {next}: {}",
            failure.key.path, failure.tries, failure.error
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn reindex(session: &mut Session) -> Outcome {
    let setup = session.load()?;
    let indexed = with_app(&setup, async |app| Ok(app.reindex_memory().await?))?;
    if session.out.json {
        session.out.json(&indexed)?;
        return Ok(ExitCode::SUCCESS);
    }
    session.out.line(format_args!("words of {} documents indexed", indexed.words))?;
    told(session, &indexed)
}

/// Prints the result of computing vectors.
fn told(session: &mut Session, indexed: &Indexed) -> Outcome {
    let Indexed { documents, embedded, cached, failed, .. } = indexed;
    if documents + failed > 0 {
        session.out.line(format_args!(
            "vectors of {documents} documents: {embedded} made, {cached} known already"
        ))?;
    }
    if *failed > 0 {
        session
            .out
            .line(format_args!("{failed} documents got none yet; `clawsmith memory status` says why"))?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Export {
    fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let reader = self.reader.reader(session, &setup)?;
        let directory = session.around.directory.join(&self.directory);
        let written = with_app(&setup, async |app| Ok(app.export_memory(&reader, &directory).await?))?;
        if session.out.json {
            session.out.json(&json!({ "written": written }))?;
        } else {
            session.out.line(format_args!(
                "{} documents written to `{}`",
                written.len(),
                self.directory.display()
            ))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Forget {
    fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let reader = self.reader.reader(session, &setup)?;
        with_app(&setup, async |app| Ok(app.forget_memory(&reader, self.owner.into(), &self.path).await?))?;
        if session.out.json {
            session.out.json(&json!({ "forgotten": self.path }))?;
        } else {
            session.out.line(format_args!("`{}` is forgotten", self.path))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
