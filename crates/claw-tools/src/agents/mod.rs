//! `agents`: tools about the configured agents.

mod agents_list;

use crate::Builtin;

pub(crate) const TOOLS: &[Builtin] = &[Builtin::of::<agents_list::AgentsList>()];
