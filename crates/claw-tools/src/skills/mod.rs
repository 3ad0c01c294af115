//! `skills`: taking up a skill, and giving one to others.

mod publish_skill;
mod use_skill;

use crate::Builtin;

pub(crate) const TOOLS: &[Builtin] =
    &[Builtin::of::<publish_skill::PublishSkill>(), Builtin::of::<use_skill::UseSkill>()];
