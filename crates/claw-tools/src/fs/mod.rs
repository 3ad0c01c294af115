//! `fs`: files of the workspace.

mod edit;
mod read_file;
mod write_file;

use crate::Builtin;

pub(crate) const TOOLS: &[Builtin] = &[
    Builtin::of::<edit::EditFile>(),
    Builtin::of::<read_file::ReadFile>(),
    Builtin::of::<write_file::WriteFile>(),
];

#[cfg(test)]
mod tests;
