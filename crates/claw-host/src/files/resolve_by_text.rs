//! Resolves paths by their text alone, for file systems without links.

use std::path::{Component, Path, PathBuf};

use claw_core::port::{Access, FilePlace};

use super::failure::Failure;

/// The longest name in a path, in bytes, as on a disk.
const LONGEST_NAME: usize = 255;

/// Resolves `path`, or returns why it does not exist for this caller. The innermost root decides the access.
pub(super) fn resolve(place: &FilePlace<'_>, path: &str, access: Access) -> Result<PathBuf, Failure> {
    if path.is_empty() || path.contains('\0') {
        return Err(Failure::NotAPath);
    }
    if path.split('/').any(|name| name.len() > LONGEST_NAME) {
        return Err(Failure::TooLong);
    }
    let full = normal(&place.directory.join(path)).ok_or(Failure::Outside)?;
    let within = |path: &Path| place.scope.roots.iter().any(|root| path.starts_with(&root.path));
    if !path.starts_with('/') && !normal(place.directory).is_some_and(|directory| within(&directory)) {
        return Err(Failure::Outside);
    }
    let roots = place.scope.roots.iter().filter(|root| full.starts_with(&root.path));
    let root = roots.rev().max_by_key(|root| root.path.components().count()).ok_or(Failure::Outside)?;
    if is_denied(place, &full) {
        return Err(Failure::Denied);
    }
    if access == Access::Write && root.access == Access::Read {
        return Err(Failure::ReadOnly);
    }
    Ok(full)
}

/// Returns whether the path is denied to this caller, for whom it then does not exist.
pub(super) fn is_denied(place: &FilePlace<'_>, full: &Path) -> bool {
    place.scope.denied.iter().any(|denied| full.starts_with(denied))
}

/// Returns the outermost root that contains a path: ignore rules count from there.
pub(super) fn outermost(place: &FilePlace<'_>, full: &Path) -> PathBuf {
    let roots = place.scope.roots.iter().filter(|root| full.starts_with(&root.path));
    let root = roots.min_by_key(|root| root.path.components().count());
    root.and_then(|root| normal(&root.path)).unwrap_or_else(|| full.to_owned())
}

/// Returns the path without `.` and `..`; `None` if `..` climbs past the top or the path is not absolute.
pub(super) fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if !normal.pop() => return None,
            Component::ParentDir => {}
            other => normal.push(other),
        }
    }
    normal.is_absolute().then_some(normal)
}
