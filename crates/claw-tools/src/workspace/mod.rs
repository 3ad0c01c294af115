//! `workspace`: the directory of an agent's files.

mod workspace_dir;

use crate::Builtin;

pub(crate) const TOOLS: &[Builtin] = &[Builtin::of::<workspace_dir::WorkspaceDir>()];
