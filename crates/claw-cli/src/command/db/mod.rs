//! `clawsmith db`: copy, backup, restore.

mod backup;
mod bar;
mod copy;
mod restore;

use std::future::Future;

use clap::Subcommand;
use claw_core::store::StoreError;
use claw_store::chain::ChainReport;

use crate::cli::Session;
use crate::compose;
use crate::failure::{Failure, Outcome};
use crate::output::tell;

/// What no copy and no backup holds, for programs and for people.
const NOT_INCLUDED: [&str; 3] = [
    "artifacts (files in the data directory)",
    "undo blobs (likewise)",
    "the key that secrets are sealed with",
];

/// What to do with the store.
#[derive(Debug, Subcommand)]
pub(crate) enum Db {
    /// Copy everything to another store, and compare every row.
    Copy(copy::Copy),
    /// Write everything to one file, while the store is used.
    Backup(backup::Backup),
    /// Put a backup in the place of the store.
    Restore(restore::Restore),
}

impl Db {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::Copy(copy) => copy.run(session),
            Self::Backup(backup) => backup.run(session),
            Self::Restore(restore) => restore.run(session),
        }
    }
}

/// The store that is meant: the one that was named, or the one in the data directory.
fn store_url(session: &Session, named: Option<String>) -> Result<String, Failure> {
    if let Some(url) = named {
        return Ok(url);
    }
    let data = compose::data_dir(&session.load()?, &session.around)?;
    Ok(format!("sqlite:{}", data.join("clawsmith.db").display()))
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

/// Says what the copy or backup does not hold.
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
