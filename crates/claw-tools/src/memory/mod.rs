//! `memory`: search and read memory documents.

mod memory_get;
mod memory_search;

use crate::Builtin;

pub(crate) const TOOLS: &[Builtin] =
    &[Builtin::of::<memory_get::MemoryGet>(), Builtin::of::<memory_search::MemorySearch>()];
