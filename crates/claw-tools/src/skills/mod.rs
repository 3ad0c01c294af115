//! `skills`: tools that use and publish skills.

mod publish_skill;
mod use_skill;

use crate::Builtin;

pub(crate) const TOOLS: &[Builtin] =
    &[Builtin::of::<publish_skill::PublishSkill>(), Builtin::of::<use_skill::UseSkill>()];
