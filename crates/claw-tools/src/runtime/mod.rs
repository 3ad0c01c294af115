//! `runtime`: running commands.

mod exec;

use crate::Builtin;

pub(crate) const TOOLS: &[Builtin] = &[Builtin::of::<exec::Exec>()];
