//! `clawsmith db`: the store, for its operator.

mod backup;
mod copy;
mod migrate;
mod restore;
mod status;

use std::future::Future;

use clap::Subcommand;
use claw_core::store::StoreError;
use claw_store::StoreLocation;
use claw_store::chain::ChainReport;
use claw_store::progress::Progress;
use claw_terminal::{Progress as Bar, tell};

use crate::cli::Session;
use crate::failure::{Failure, Outcome};

/// The data that no copy and no backup holds, for programs and for people.
const NOT_INCLUDED: [&str; 3] = [
    "kept results (files in the data directory)",
    "undo blobs (likewise)",
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
    Copy(copy::Copy),
    /// Write everything to one file, while the store is in use.
    Backup(backup::Backup),
    /// Put a backup in the place of the store.
    Restore(restore::Restore),
}

impl Db {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::Status => status::run(session),
            Self::Migrate => migrate::run(session),
            Self::Copy(copy) => copy.run(session),
            Self::Backup(backup) => backup.run(session),
            Self::Restore(restore) => restore.run(session),
        }
    }
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
        Progress::Copied { table, rows, of } => bar.show(format!("copying {table}"), "rows", (rows, of)),
        Progress::Compared { table, rows, of } => bar.show(format!("comparing {table}"), "rows", (rows, of)),
        Progress::Written { bytes, of } => bar.show("writing".to_owned(), "bytes", (bytes, of)),
        Progress::Checking => bar.show("checking the file".to_owned(), "", (0, 0)),
        Progress::Chains => bar.show("verifying the ledger".to_owned(), "", (0, 0)),
    }
}

/// Does the work to its end, or to Ctrl-C.
fn finish<T>(work: impl Future<Output = Result<T, StoreError>>, given_up: &str) -> Result<T, Failure> {
    super::tools::runtime()?.block_on(async {
        tokio::select! {
            done = work => done.map_err(|error| Failure::failed(error.to_string())),
            _ = tokio::signal::ctrl_c() => Err(Failure::failed(format!("interrupted; {given_up}"))),
        }
    })
}

/// Prints what the copy or backup does not hold.
fn remind(session: &Session) {
    if !session.out.json {
        tell(format_args!("note: not in it: {}", NOT_INCLUDED.join(", ")));
    }
}

/// The chains in a sentence, and whether all of them are sound.
fn sound(session: &mut Session, chains: &[ChainReport]) -> Result<bool, Failure> {
    let faulty: Vec<_> = chains.iter().filter(|chain| chain.fault.is_some()).collect();
    if !session.out.json {
        for chain in &faulty {
            session.out.line(format_args!("damaged: the ledger was so before: {chain}"))?;
        }
    }
    Ok(faulty.is_empty())
}
