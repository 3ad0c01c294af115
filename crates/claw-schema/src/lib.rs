//! JSON Schemas of tools: the arguments of a call checked against one, and one rendered for each provider.
//!
//! - [`validate`] parses, checks and repairs arguments before a tool sees them.
//! - [`dialect`] renders a schema with the keywords that a provider knows, and estimates its tokens.

pub mod dialect;
pub mod validate;
