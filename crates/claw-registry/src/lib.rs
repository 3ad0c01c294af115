//! The one road to a tool.

pub mod limit;
pub mod validate;
