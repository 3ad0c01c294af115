//! `agents`: which agents there are.

mod agents_list;

use crate::Builtin;

pub(crate) const TOOLS: &[Builtin] = &[Builtin::of::<agents_list::AgentsList>()];
