//! `clawsmith db`: the store, for its operator.

mod status;

use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use claw_core::counted::counted;
use claw_core::store::StoreError;
use claw_store::chain::ChainReport;
use claw_store::copy::{self, Options};
use claw_store::progress::Progress;
use claw_store::{StoreLocation, backup};
use claw_terminal::{Progress as Bar, StepCount, tell};
use serde::Serialize;
use serde_json::json;

use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};
use crate::opened::runtime;

/// The data that no copy and no backup holds, for programs and for people.
const NOT_INCLUDED: [&str; 3] = [
    "kept results (files in the data directory)",
    "undo blobs (files in the data directory)",
    "the key that secrets are encrypted with",
];

/// The operations on the store.
#[derive(Debug, Subcommand)]
pub(crate) enum Db {
    /// Show the store's location, schema, size and number of rows.
    Status,
    /// Migrate the schema, and print the applied migrations.
    Migrate,
    /// Copy everything to another store, and compare every row.
    Copy(Copy),
    /// Write everything to one file, while the store is in use.
    Backup(Backup),
    /// Restore a backup into an empty store.
    Restore(Restore),
}

impl Db {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::Status => status::run(session),
            Self::Migrate => migrate(session),
            Self::Copy(copy) => copy.run(session),
            Self::Backup(backup) => backup.run(session),
            Self::Restore(restore) => restore.run(session),
        }
    }
}

/// The source and the target of a copy.
#[derive(Debug, Args)]
pub(crate) struct Copy {
    /// The source: `sqlite:PATH` or `postgres://user@host/name`. Left out: the configured store.
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// The target, in the same form; it is created if possible.
    #[arg(long, value_name = "URL")]
    to: String,
    /// Start an unfinished copy over, instead of resuming it.
    #[arg(long)]
    restart: bool,
}

impl Copy {
    fn run(self, session: &mut Session) -> Outcome {
        let (from, to) = (meant(session, self.from.as_deref())?, named(&self.to)?);
        let options = Options { restart: self.restart, online: false };
        let mut bar = Bar::new(session.out.json);
        let mut show = |progress: Progress<'_>| show(&mut bar, progress);
        let work = copy::copy(&from, &to, options, &mut show);
        let report = finish(work, "repeat the command to resume the copy")?;
        drop(bar);
        let (rows, tables, to) = (report.rows, report.tables.len(), &report.to);
        let (rows, tables) = (counted(rows, "row"), counted(tables, "table"));
        let words = format!(
            "copied {rows} in {tables} to `{to}`; compared {}, all equal; chains of the ledger: {}",
            report.verified,
            report.chains.len()
        );
        let note = (report.replaced > 0).then(|| {
            format!(
                "PostgreSQL cannot store NUL characters: U+FFFD replaces them in {}",
                counted(report.replaced, "text")
            )
        });
        told(session, &report, &report.chains, words, note)
    }
}

/// The target of a backup.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The file to write, which only its owner may read.
    file: PathBuf,
    /// The store to back up [default: the configured one].
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// Replace a file of that name.
    #[arg(long)]
    force: bool,
}

impl Backup {
    fn run(self, session: &mut Session) -> Outcome {
        let place = meant(session, self.from.as_deref())?;
        let mut bar = Bar::new(session.out.json);
        let mut show = |progress: Progress<'_>| show(&mut bar, progress);
        let work = backup::backup(&place, &self.file, self.force, &mut show);
        let report = finish(work, "nothing was written")?;
        drop(bar);
        let (from, file, bytes) = (&report.from, report.file.display(), report.bytes);
        let words = format!("backed up `{from}` to `{file}`: {bytes} bytes, checked");
        told(session, &report, &report.chains, words, None)
    }
}

/// The source of a restoration.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The file that `clawsmith db backup` wrote.
    file: PathBuf,
    /// The empty store to restore into [default: the configured one].
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// If the target is a SQLite file with data, move it aside first.
    #[arg(long)]
    force: bool,
}

impl Restore {
    fn run(self, session: &mut Session) -> Outcome {
        let place = meant(session, self.to.as_deref())?;
        let mut bar = Bar::new(session.out.json);
        let mut show = |progress: Progress<'_>| show(&mut bar, progress);
        let work = backup::restore(&self.file, &place, self.force, &mut show);
        let report = finish(work, "repeat the command")?;
        drop(bar);
        let (file, to, chains) = (report.file.display(), &report.to, report.chains.len());
        let words = format!("restored `{file}` to `{to}`; chains of the ledger: {chains}, all sound");
        let note = report
            .aside
            .as_ref()
            .map(|aside| format!("the previous store was moved to `{}`", aside.display()));
        // A restoration fails on a chain that is not sound.
        told(session, &report, &[], words, note)
    }
}

fn migrate(session: &mut Session) -> Outcome {
    let setup = session.load()?;
    let place = setup.place()?;
    let applied = runtime()?.block_on(setup.migrate())?;
    session.shown(&json!({ "store": place.to_string(), "applied": applied }), |out| {
        out.line(format_args!("store: {place}"))?;
        for step in &applied {
            out.line(format_args!("applied: {:04} {}", step.version, step.name))?;
        }
        if applied.is_empty() {
            out.line("nothing to apply: the schema is up to date")?;
        }
        Ok(())
    })
}

/// The store that a URL on the command line names.
fn named(url: &str) -> Result<StoreLocation, Failure> {
    url.parse().map_err(|error: StoreError| Failure::usage(error.to_string()))
}

/// Returns the named store, or the configured one.
fn meant(session: &Session, url: Option<&str>) -> Result<StoreLocation, Failure> {
    match url {
        Some(url) => named(url),
        None => Ok(session.load()?.place()?),
    }
}

/// Shows a step of copying or checking.
fn show(bar: &mut Bar, progress: Progress<'_>) {
    match progress {
        Progress::Copied { table, rows, of } => {
            bar.show(format!("copying {table}"), StepCount { unit: "rows", done: rows, of });
        }
        Progress::Compared { table, rows, of } => {
            bar.show(format!("comparing {table}"), StepCount { unit: "rows", done: rows, of });
        }
        Progress::Written { bytes, of } => {
            bar.show("writing".to_owned(), StepCount { unit: "bytes", done: bytes, of });
        }
        Progress::Checking => bar.show("checking the file".to_owned(), StepCount::NONE),
        Progress::Chains => bar.show("verifying the ledger".to_owned(), StepCount::NONE),
    }
}

/// Does the work to its end, or to Ctrl-C.
fn finish<T>(work: impl Future<Output = Result<T, StoreError>>, given_up: &str) -> Result<T, Failure> {
    runtime()?.block_on(async {
        tokio::select! {
            done = work => done.map_err(|error| Failure::failed(error.to_string())),
            _ = tokio::signal::ctrl_c() => Err(Failure::failed(format!("interrupted; {given_up}"))),
        }
    })
}

/// Prints a report, and what is not in the copy. A chain that was damaged before is an exit code of 1.
fn told(
    session: &mut Session,
    report: &impl Serialize,
    chains: &[ChainReport],
    words: String,
    note: Option<String>,
) -> Outcome {
    let faulty: Vec<_> = chains.iter().filter(|chain| chain.fault.is_some()).collect();
    let mut value = serde_json::to_value(report)?;
    value["not_included"] = json!(NOT_INCLUDED);
    session.shown(&value, |out| {
        for chain in &faulty {
            out.line(format_args!("damaged: the source's ledger was already damaged: {chain}"))?;
        }
        out.line(words)?;
        note.iter().for_each(|note| tell(format_args!("note: {note}")));
        tell(format_args!("note: not included: {}", NOT_INCLUDED.join(", ")));
        Ok(())
    })?;
    Ok(ExitCode::from(u8::from(!faulty.is_empty())))
}
