//! The file of a program with credentials: whether others could replace it, and its digest.

use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use claw_core::tool::Digest;
use sha2::{Digest as _, Sha256};

/// Refuses a file that is not a program, or that anybody but its owner or root can change or replace: it and
/// every directory above it must belong to root or to us, and be writable by nobody else.
pub fn check(path: &Path) -> Result<(), String> {
    check_as(path, true)
}

/// Refuses a directory that anybody but its owner or root can change or replace.
pub(super) fn check_directory(path: &Path) -> Result<(), String> {
    check_as(path, false)
}

fn check_as(path: &Path, program: bool) -> Result<(), String> {
    let shown = path.display();
    let real = path.canonicalize().map_err(|error| format!("`{shown}` cannot be run: {error}"))?;
    let us = rustix::process::geteuid().as_raw();
    for above in real.ancestors() {
        let found = above
            .metadata()
            .map_err(|error| format!("`{}` cannot be inspected: {error}", above.display()))?;
        let (mode, owner, shown) = (found.mode(), found.uid(), above.display());
        let itself = above == real;
        if itself && program && (!found.is_file() || mode & 0o111 == 0) {
            return Err(format!("`{shown}` is not a program"));
        }
        if owner != 0 && owner != us {
            return Err(format!("`{shown}` belongs to somebody else (user {owner}), who can change it"));
        }
        // In a directory with the sticky bit nobody replaces what is not theirs.
        let kept = !itself && mode & 0o1000 != 0;
        if mode & 0o022 != 0 && !kept {
            let what = if itself { "it" } else { "what is in it" };
            let mode = mode & 0o7777;
            return Err(format!(
                "`{shown}` can be written by others than its owner (mode {mode:o}), who could change {what}; `chmod go-w {shown}`"
            ));
        }
    }
    Ok(())
}

/// Returns the digest of a file.
pub fn digest(path: &Path) -> io::Result<Digest> {
    let mut file = std::fs::File::open(path)?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Digest::from_bytes(hash.finalize().into())),
            count => hash.update(&buffer[..count]),
        }
    }
}

#[cfg(test)]
mod tests;
