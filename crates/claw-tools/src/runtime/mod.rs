//! `runtime`: running commands.

mod exec;
mod process;

use crate::Builtin;

pub(crate) const TOOLS: &[Builtin] = &[Builtin::of::<exec::Exec>(), Builtin::of::<process::Process>()];
