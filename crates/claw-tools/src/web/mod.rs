//! `web`: search the web and fetch pages.

mod web_fetch;
mod web_search;

use crate::Builtin;

pub(crate) const TOOLS: &[Builtin] =
    &[Builtin::of::<web_fetch::WebFetch>(), Builtin::of::<web_search::WebSearch>()];
