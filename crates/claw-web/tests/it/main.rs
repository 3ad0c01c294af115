//! The web over real sockets on loopback: attacks, search providers, and pages in the shapes of real sites.

#![expect(clippy::unwrap_used, reason = "tests, and what helps them")]

mod attacks;
mod fetching;
mod kit;
mod pages;
mod search;
