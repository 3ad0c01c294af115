//! The failures of file operations and their messages.

use std::io;

use claw_core::tool::{ErrorKind, ToolError};
use rustix::io::Errno;
use serde_json::json;

/// The longest part of a path shown in a message.
const SHOWN: usize = 200;

/// Why an operation failed. The message for a denied file is the same as for a missing one.
#[derive(Debug)]
pub(super) enum Failure {
    NotAPath,
    TooLong,
    Outside,
    Missing,
    Denied,
    ReadOnly,
    IsDirectory,
    NotDirectory,
    Special(&'static str),
    Links,
    LinkLoop,
    /// The file changed between two steps. Retried; reported only if it persists.
    Moved,
    /// The result of an earlier lookup no longer holds. Likewise.
    Stale,
    Exists,
    Changed,
    Quota(Excess),
    TooLarge(u64),
    Full(Errno),
    Io(io::Error),
}

/// The size a workspace would have, and its limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Excess {
    pub(super) bytes: u64,
    pub(super) files: u64,
    pub(super) most_bytes: u64,
    pub(super) most_files: u64,
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::Missing,
            Errno::NOTDIR => Self::NotDirectory,
            Errno::ISDIR => Self::IsDirectory,
            Errno::LOOP => Self::LinkLoop,
            Errno::NAMETOOLONG => Self::TooLong,
            Errno::ROFS => Self::ReadOnly,
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Self::Full(errno),
            Errno::NXIO => Self::Special("a socket or a device"),
            other => Self::Io(other.into()),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => Self::Io(error),
        }
    }
}

impl Failure {
    /// Converts the failure into a tool error about this path.
    pub(super) fn about(self, path: &str) -> ToolError {
        let forbidden = |message: String| ToolError::new(ErrorKind::Forbidden, message);
        let unavailable = |message: String| ToolError::new(ErrorKind::Unavailable, message);
        let conflict = |message: String| ToolError::new(ErrorKind::Conflict, message);
        let path = shown(path);
        match self {
            Self::NotAPath => ToolError::invalid(format!("`{}` is not a path", path.escape_debug())),
            Self::TooLong => ToolError::invalid(format!("`{path}` is too long for a path")),
            Self::Outside => forbidden(format!("`{path}` is outside the workspace"))
                .try_instead("use a path relative to the workspace")
                .allowed_by("`files.read` or `files.write` grants a directory outside the workspace"),
            Self::Missing | Self::Denied => ToolError::not_found(format!("`{path}` does not exist")),
            Self::ReadOnly => forbidden(format!("`{path}` is read-only")),
            Self::IsDirectory => ToolError::invalid(format!("`{path}` is a directory")),
            Self::NotDirectory => {
                ToolError::invalid(format!("`{path}` leads through a file that is not a directory"))
            }
            Self::Special(what) => forbidden(format!("`{path}` is {what}, not a file")),
            Self::Links => forbidden(format!("`{path}` has hard links and belongs to another user"))
                .try_instead("copy it to a new file"),
            Self::LinkLoop => ToolError::invalid(format!("`{path}` leads through too many links")),
            Self::Moved | Self::Stale => unavailable(format!("`{path}` keeps changing while it is opened"))
                .try_instead("try again when nothing else works on it"),
            Self::Exists => conflict(format!("`{path}` exists already")).try_instead("read it first"),
            Self::Changed => conflict(format!("`{path}` has changed since it was last checked"))
                .try_instead("read it again"),
            Self::Quota(excess) => {
                let Excess { bytes, files, most_bytes, most_files } = excess;
                let most = |most: u64, what: &str| (most < u64::MAX).then(|| format!("{most} {what}"));
                let most: Vec<String> =
                    [most(most_bytes, "bytes"), most(most_files, "files and directories")]
                        .into_iter()
                        .flatten()
                        .collect();
                forbidden(format!(
                    "with `{path}` the workspace would hold {bytes} bytes in {files} files and directories; \
                     its quota is {}",
                    most.join(" and ")
                ))
                .try_instead("remove files that are not needed")
                .with_details(json!({
                    "bytes": bytes, "files": files, "most_bytes": most_bytes, "most_files": most_files,
                }))
            }
            Self::TooLarge(size) => {
                unavailable(format!("`{path}` has {size} bytes, more than fit in memory"))
                    .try_instead("read a part of it")
            }
            Self::Full(errno) => {
                unavailable(format!("no space is left to write `{path}`; its old content is unchanged"))
                    .because(io::Error::from(errno))
            }
            Self::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                forbidden(format!("the operating system denies Clawsmith access to `{path}`")).because(error)
            }
            Self::Io(error) => {
                unavailable(format!("`{path}` cannot be used now: {}", error.kind())).because(error)
            }
        }
    }
}

/// Returns the path, cut if it is long.
pub(super) fn shown(path: &str) -> String {
    match path.char_indices().nth(SHOWN) {
        None => path.to_owned(),
        Some((at, _)) => format!("{}...", &path[..at]),
    }
}
