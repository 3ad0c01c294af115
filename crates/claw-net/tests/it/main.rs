//! The client over real sockets, against hostile servers.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests, and what helps them")]

mod attacks;
mod limits;
mod server;
