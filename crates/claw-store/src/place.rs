//! Where a store is, as one line of configuration says it.

use std::path::Path;

use claw_core::store::StoreError;

const FORMS: &str = "write `sqlite:PATH`, `sqlite::memory:` or `postgres://user@host/name`";

/// Where a store is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    Memory,
    File(&'a Path),
    Postgres(&'a str),
}

impl<'a> Place<'a> {
    /// Reads it from a URL. No error quotes more of it than the scheme: the rest may hold a password.
    pub(crate) fn of(url: &'a str) -> Result<Self, StoreError> {
        match url.split_once(':') {
            Some(("sqlite", ":memory:")) => Ok(Self::Memory),
            Some(("sqlite", path)) => file(path.strip_prefix("//").unwrap_or(path)),
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(url)),
            Some((scheme, _)) => Err(refused(format!("`{scheme}` is no kind of store; {FORMS}"))),
            None => Err(refused(format!("it is not said what kind of store it is; {FORMS}"))),
        }
    }
}

fn file(path: &str) -> Result<Place<'_>, StoreError> {
    if path.is_empty() {
        return Err(refused(format!("its path is empty; {FORMS}")));
    }
    if path.contains('?') {
        return Err(refused("options after `?` are not taken; write `sqlite:PATH`".to_owned()));
    }
    Ok(Place::File(Path::new(path)))
}

fn refused(why: String) -> StoreError {
    StoreError::Database { what: "could not open the store", why, transient: false }
}

#[cfg(test)]
mod tests;
