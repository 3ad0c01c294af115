//! Sealing: AES-256-GCM under keys stored apart from the store.
//!
//! [`Ring`] is the pure part: keys that seal and open. [`KeyRing`] knows the source of the keys, and makes
//! programs that share them agree on the current one. Nothing here writes a key or a plain value into a log,
//! an error or `Debug`, and their memory is wiped.

mod encrypt;
mod key;
mod key_ring_file;
mod key_source;

pub use encrypt::{Ring, Unopened};
pub use key::Key;
pub(crate) use key_source::blocking;
pub use key_source::{KeyRing, KeySource, Sealing};

#[cfg(test)]
mod tests;
