//! The registry of tools and the one road every call takes.

pub mod validate;
