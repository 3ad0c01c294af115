//! `knowledge`: what is known of how things are done.

mod skill_search;

use crate::Builtin;

pub(crate) const TOOLS: &[Builtin] = &[Builtin::of::<skill_search::SkillSearch>()];
