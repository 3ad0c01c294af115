//! Sealing: AES-256-GCM under keys stored apart from the store.
//!
//! [`Ring`] is the pure part: keys that seal and open. [`KeyRing`] knows the source of the keys, and makes
//! programs that share them agree on the current one. Nothing here writes a key or a plain value into a log,
//! an error or `Debug`, and their memory is wiped.

mod key;
mod key_file;
mod keyring;
mod ring;

pub use key::Key;
pub(crate) use keyring::blocking;
pub use keyring::{KeyRing, KeySource, Sealing};
pub use ring::{Ring, Unopened};

#[cfg(test)]
mod tests;
