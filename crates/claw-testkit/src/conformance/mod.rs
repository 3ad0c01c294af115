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
mod bridge;
mod calls;
mod queue;
mod session_log;

pub use artifacts::artifacts;
pub use bridge::bridge;
pub use calls::calls;
pub use queue::queue;
pub use session_log::session_log;
