//! `workspace`: where an agent's files are.

mod workspace_dir;

use crate::Builtin;

pub(crate) const TOOLS: &[Builtin] = &[Builtin::of::<workspace_dir::WorkspaceDir>()];
