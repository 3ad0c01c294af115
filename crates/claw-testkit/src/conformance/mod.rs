//! What every implementation of a store must do, as suites that any of them can be put through.
//!
//! ```
//! # tokio_test(async {
//! claw_testkit::conformance::calls(async || claw_host::MemoryStore::new()).await;
//! # });
//! # fn tokio_test(f: impl Future<Output = ()>) {
//! #     tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(f);
//! # }
//! ```

mod artifacts;
mod calls;
mod queue;
mod sealed;
mod secrets;
mod session_log;

pub use artifacts::artifacts;
pub use calls::calls;
pub use queue::queue;
pub use sealed::sealed_values;
pub use secrets::{programs, secrets};
pub use session_log::session_log;
