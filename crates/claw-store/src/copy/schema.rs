//! Checks that a database has exactly the schema of this Clawsmith.

use claw_core::store::StoreError;
use sqlx::migrate::Migrator;

use super::refused;

/// The table of applied migrations.
pub(crate) const TABLE: &str = "_sqlx_migrations";
/// Reads them.
pub(crate) const APPLIED: &str = "SELECT version, checksum FROM _sqlx_migrations ORDER BY version";

/// Checks that exactly our migrations were applied.
pub(crate) fn check(applied: &[(i64, Vec<u8>)], known: &Migrator) -> Result<(), StoreError> {
    check_known(applied, known)?;
    let is_missing = |version: i64| applied.iter().all(|(applied, _)| *applied != version);
    match known.iter().find(|migration| is_missing(migration.version)) {
        None => Ok(()),
        Some(migration) => Err(refused(format!(
            "its schema is older than this Clawsmith (migration {} is missing); open it once with this \
             Clawsmith, which brings it up to date",
            migration.version
        ))),
    }
}

/// Checks that it is a store, and not one of a newer Clawsmith.
pub(crate) fn check_known(applied: &[(i64, Vec<u8>)], known: &Migrator) -> Result<(), StoreError> {
    if applied.is_empty() {
        return Err(refused("it is not a Clawsmith store; name another one".to_owned()));
    }
    for (version, checksum) in applied {
        let why = match known.iter().find(|migration| migration.version == *version) {
            Some(migration) if *migration.checksum == **checksum => continue,
            Some(_) => format!("migration {version} was applied with other contents"),
            None => format!("it was created by a newer Clawsmith (its schema is {version}); update this one"),
        };
        return Err(refused(why));
    }
    Ok(())
}
