//! The three clients against a server that speaks their wire formats, over real sockets.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests, and what helps them")]

mod answers;
mod bodies;
mod embeddings;
mod endpoints;
mod failures;
mod kit;
mod switching;
