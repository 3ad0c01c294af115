//! The location of a store, as one line of configuration.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use claw_core::store::StoreError;
use sqlx::postgres::PgConnectOptions;

const FORMS: &str = "write `sqlite:PATH`, `sqlite::memory:` or `postgres://user@host/name`";

/// The location of a store. Displayed without the password that it may hold.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreLocation {
    /// The memory of this process.
    Memory,
    /// One SQLite file.
    File(PathBuf),
    /// A PostgreSQL database.
    Postgres(PostgresUrl),
}

/// The URL of a PostgreSQL database. It may hold a password, so nothing shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(String);

impl FromStr for StoreLocation {
    type Err = StoreError;

    /// Reads it from a URL. No error quotes more of it than the scheme: the rest may hold a password.
    fn from_str(url: &str) -> Result<Self, StoreError> {
        match url.split_once(':') {
            Some(("sqlite", ":memory:")) => Ok(Self::Memory),
            Some(("sqlite", path)) => file(path.strip_prefix("//").unwrap_or(path)),
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(PostgresUrl(url.to_owned()))),
            Some((scheme, _)) if is_scheme(scheme) => {
                Err(refused(format!("`{scheme}` is not a kind of store; {FORMS}")))
            }
            _ => Err(refused(format!("the URL does not say what kind of store it is; {FORMS}"))),
        }
    }
}

impl PostgresUrl {
    /// Returns the whole URL with its password, for connecting.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("sqlite::memory:"),
            Self::File(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => url.fmt(f),
        }
    }
}

impl fmt::Debug for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreLocation({self})")
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Put together again from what was understood, so that nothing else can slip through.
        let Ok(options) = PgConnectOptions::from_str(&self.0) else { return f.write_str("postgres://…") };
        write!(f, "postgres://{}@", options.get_username())?;
        if options.get_socket().is_none() {
            write!(f, "{}:{}", options.get_host(), options.get_port())?;
        }
        write!(f, "/{}", options.get_database().unwrap_or_default())?;
        match options.get_socket() {
            Some(socket) => write!(f, "?host={}", socket.display()),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresUrl({self})")
    }
}

/// Returns whether the text before a colon can be shown as a scheme: any other text may be part of a
/// password.
fn is_scheme(text: &str) -> bool {
    !text.is_empty() && text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn file(path: &str) -> Result<StoreLocation, StoreError> {
    if path.is_empty() {
        return Err(refused(format!("its path is empty; {FORMS}")));
    }
    if path.contains('?') {
        return Err(refused("options after `?` are not supported; write `sqlite:PATH`".to_owned()));
    }
    Ok(StoreLocation::File(path.into()))
}

fn refused(why: String) -> StoreError {
    StoreError::Database { what: "could not open the store", why, transient: false }
}

#[cfg(test)]
mod tests;
