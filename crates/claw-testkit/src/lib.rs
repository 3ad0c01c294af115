//! Fakes and conformance suites, for tests alone.
//!
//! A fake behaves like the real part: [`MemoryFiles`] refuses files outside the scope, [`FakeShell`] compares
//! targets with what was seen, and a store passes the same [suite](conformance) as the real one.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "this is test code, kept in a library"
)]

mod clock;
pub mod conformance;
mod files;
pub mod fixture;
pub mod killing;
mod listener;
#[cfg(feature = "models")]
pub mod models;
#[cfg(feature = "postgres")]
pub mod postgres;
mod programs;
mod settings;
mod shell;
mod store;
mod undo;
mod work;

pub use clock::ManualClock;
pub use files::MemoryFiles;
pub use listener::Recorder;
pub use programs::FakePrograms;
pub use settings::MemorySettings;
pub use shell::{FakeShell, Reply, Run};
pub use store::{FailingStore, StoreMethod};
pub use undo::{Kept, MemoryJournal, MemorySeen};
pub use work::MemoryWork;
