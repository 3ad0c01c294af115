//! `tools`: tools about tools and their results.

mod result_read;
mod tool_search;

use crate::Builtin;

pub(crate) const TOOLS: &[Builtin] =
    &[Builtin::of::<result_read::ResultRead>(), Builtin::of::<tool_search::ToolSearch>()];
