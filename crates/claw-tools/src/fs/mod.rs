//! `fs`: files of the workspace.

mod edit;
mod glob;
mod list_files;
mod read_file;
mod search;
mod write_file;

use crate::Builtin;

pub(crate) const TOOLS: &[Builtin] = &[
    Builtin::of::<edit::EditFile>(),
    Builtin::of::<glob::Glob>(),
    Builtin::of::<list_files::ListFiles>(),
    Builtin::of::<read_file::ReadFile>(),
    Builtin::of::<search::Search>(),
    Builtin::of::<write_file::WriteFile>(),
];

#[cfg(test)]
mod tests;
