//! `runtime`: tools that run commands.

mod credentialed_exec;
pub(crate) mod exec;
mod process;

use crate::Builtin;

pub(crate) const TOOLS: &[Builtin] = &[
    Builtin::of::<credentialed_exec::CredentialedExec>(),
    Builtin::of::<exec::Exec>(),
    Builtin::of::<process::Process>(),
];
