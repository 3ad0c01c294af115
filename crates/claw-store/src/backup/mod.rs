//! Backs up a whole store to one file, and restores it.
//!
//! A backup is a SQLite file, for either database: of SQLite a copy of the file as it stood at one moment, of
//! PostgreSQL the rows as they stood at one moment. Nobody has to stop for it. A file takes its final name
//! when it is complete, checked and synced, so a name never stands for half a backup. Nothing is deleted: a
//! restoration moves the replaced file aside.

mod file;
mod inspect;

use std::path::{Path, PathBuf};
use std::time::Duration;

use claw_core::store::StoreError;
use serde::Serialize;
use sqlx::{ConnectOptions as _, Connection as _, query, query_scalar};
use tokio::time::{MissedTickBehavior, interval};

use self::file::Partial;
use self::inspect::Inspection;
use crate::copy::{self, Options};
use crate::ledger::chain::ChainReport;
use crate::location::StoreLocation;
use crate::options::StoreOptions;
use crate::progress::{Progress, Tell};
use crate::sqlite::connect;
use crate::sqlite::error::{at, failed, is_busy};

const BACK_UP: &str = "could not back up";
const RESTORE: &str = "could not restore";
/// The interval at which the progress of a file is reported.
const LOOK: Duration = Duration::from_millis(100);

/// The result of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BackupReport {
    /// The store, without a password.
    pub from: String,
    /// The file.
    pub file: PathBuf,
    /// The file's size, in bytes.
    pub bytes: u64,
    /// The ledger's chains in it. A fault that was there before does not prevent the backup.
    pub chains: Vec<ChainReport>,
}

/// The result of a restoration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RestoreReport {
    /// The file.
    pub file: PathBuf,
    /// The store, without a password.
    pub to: String,
    /// The new path of the file that was replaced; `None` if there was none.
    pub aside: Option<PathBuf>,
    /// The ledger's chains, all sound.
    pub chains: Vec<ChainReport>,
}

/// Writes the store at `place` to `file`, which only its owner may read. `force` replaces a file of that name.
pub async fn backup(
    place: &StoreLocation,
    file: &Path,
    force: bool,
    tell: Tell<'_>,
) -> Result<BackupReport, StoreError> {
    let refuse_existing = || match file.symlink_metadata() {
        Ok(_) if !force => Err(refused(
            BACK_UP,
            format!("`{}` already exists; name another file, or replace it with `--force`", file.display()),
        )),
        _ => Ok(()),
    };
    refuse_existing()?;
    if let StoreLocation::File(path) = place
        && !path.exists()
    {
        return Err(refused(BACK_UP, format!("there is no store at `{}`", path.display())));
    }
    let partial = Partial::beside(file)?;
    match place {
        StoreLocation::Memory => {
            return Err(refused(BACK_UP, "a store in memory cannot be backed up".to_owned()));
        }
        StoreLocation::File(path) => vacuum(path, partial.path(), BACK_UP, tell).await?,
        StoreLocation::Postgres(_) => {
            let online = Options { online: true, restart: false };
            copy::copy(place, &StoreLocation::File(partial.path().to_owned()), online, tell).await?;
        }
    }
    tell(Progress::Checking);
    let Inspection { chains } = inspect::file(partial.path()).await?;
    let bytes = partial.sync()?;
    refuse_existing()?;
    partial.take_name(file)?;
    Ok(BackupReport { from: copy::label(place)?, file: file.to_owned(), bytes, chains })
}

/// Puts the backup in `file` in the place of the store at `place`. That must be empty; with `force` a SQLite file
/// that is not is moved aside.
pub async fn restore(
    file: &Path,
    place: &StoreLocation,
    force: bool,
    tell: Tell<'_>,
) -> Result<RestoreReport, StoreError> {
    if !file.is_file() {
        return Err(refused(RESTORE, format!("there is no file `{}`", file.display())));
    }
    let (aside, chains) = match place {
        StoreLocation::Memory => {
            return Err(refused(RESTORE, "a store in memory is lost when its program ends".to_owned()));
        }
        StoreLocation::File(path) => restore_file(file, path, force, tell).await?,
        StoreLocation::Postgres(_) if force => {
            let why = "a database cannot be moved aside; create an empty one and restore into that";
            return Err(refused(RESTORE, why.to_owned()));
        }
        StoreLocation::Postgres(_) => {
            tell(Progress::Checking);
            let chains = sound(file, inspect::file(file).await?)?;
            copy::copy(&StoreLocation::File(file.to_owned()), place, Options::default(), tell).await?;
            (None, chains)
        }
    };
    Ok(RestoreReport { file: file.to_owned(), to: copy::label(place)?, aside, chains })
}

async fn restore_file(
    file: &Path,
    path: &Path,
    force: bool,
    tell: Tell<'_>,
) -> Result<(Option<PathBuf>, Vec<ChainReport>), StoreError> {
    // The file itself is moved and replaced, not a link to it.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if file.canonicalize().is_ok_and(|file| file == target) {
        return Err(refused(RESTORE, "the backup and the store are the same file".to_owned()));
    }
    let is_there = target.symlink_metadata().is_ok();
    if is_there && !force && !inspect::is_empty(&target).await? {
        return Err(refused(
            RESTORE,
            format!("`{}` contains a store; with `--force` it is moved aside", target.display()),
        ));
    }
    file::make_directory(&target)?;
    let partial = Partial::beside(&target)?;
    vacuum(file, partial.path(), RESTORE, &mut *tell).await?;
    tell(Progress::Checking);
    let chains = sound(file, inspect::file(partial.path()).await?)?;
    partial.sync()?;
    let aside = match is_there {
        false => None,
        true => {
            take_hold(&target).await?;
            Some(file::move_aside(&target)?)
        }
    };
    partial.take_name(&target)?;
    Ok((aside, chains))
}

/// Refuses a backup whose ledger was changed.
fn sound(file: &Path, inspection: Inspection) -> Result<Vec<ChainReport>, StoreError> {
    match inspection.chains.iter().find(|chain| chain.fault.is_some()) {
        None => Ok(inspection.chains),
        Some(chain) => Err(StoreError::Damaged {
            what: format!("`{}`", file.display()),
            why: format!("the ledger's chain {chain}; restore another backup"),
        }),
    }
}

/// Writes the content of a file, as it stands at one moment, to an empty file. Concurrent readers and writers
/// are not blocked.
async fn vacuum(path: &Path, into: &Path, what: &'static str, tell: Tell<'_>) -> Result<(), StoreError> {
    let name = into.to_str().ok_or_else(|| refused(what, format!("`{}` is not UTF-8", into.display())))?;
    let mut connection = async {
        let options = connect(&StoreOptions::default()).filename(path).create_if_missing(false);
        let mut connection = options.connect().await.map_err(failed(what))?;
        inspect::check_store(&mut connection).await?;
        Ok(connection)
    }
    .await
    .map_err(|error| at(path, error))?;
    let of: i64 = query_scalar(
        "SELECT (page_count - freelist_count) * page_size
         FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
    )
    .fetch_one(&mut connection)
    .await
    .map_err(failed(what))?;
    let of = u64::try_from(of).unwrap_or(0);
    tell(Progress::Written { bytes: 0, of });
    {
        let writing = query("VACUUM INTO ?1").bind(name).execute(&mut connection);
        tokio::pin!(writing);
        let mut ticks = interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                written = &mut writing => break written.map_err(failed(what))?,
                _ = ticks.tick() => {
                    let bytes = into.metadata().map_or(0, |file| file.len());
                    // It is whole when it is done, not when it is large enough.
                    tell(Progress::Written { bytes: bytes.min(of.saturating_sub(1)), of });
                }
            };
        }
    };
    tell(Progress::Written { bytes: of, of });
    connection.close().await.map_err(failed(what))
}

/// Checks that nobody has the store open, and that all of it is in its one file. A store too damaged for that
/// check is in use by nobody.
async fn take_hold(path: &Path) -> Result<(), StoreError> {
    let alone = async {
        let options = connect(&StoreOptions::default()).filename(path).create_if_missing(false);
        let mut connection = options.connect().await?;
        query("PRAGMA journal_mode = DELETE").execute(&mut connection).await?;
        connection.close().await
    };
    match alone.await {
        Err(error) if is_busy(&error) => {
            Err(refused(RESTORE, format!("another program has `{}` open; stop it first", path.display())))
        }
        _ => Ok(()),
    }
}

fn refused(what: &'static str, why: String) -> StoreError {
    StoreError::Database { what, why, transient: false }
}
