//! Applies the operations of a manifest to the workspace; `undo.rs` takes them back.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use super::conflict::{self, Conflict};
use super::entry;
use super::manifest::{Manifest, State};
use super::swap::{Roots, Swapped};

impl Manifest {
    pub(super) fn roots(&self) -> io::Result<(OwnedFd, OwnedFd)> {
        Ok((entry::open_root(&self.workspace)?, entry::open_root(&self.stage)?))
    }

    /// Carries the operations out, from any intermediate state. If one fails, those before it are reverted.
    pub(super) fn apply(&mut self, layer: &Path) -> io::Result<Vec<Conflict>> {
        let (workspace, stage) = self.roots()?;
        let roots = Roots { workspace: workspace.as_fd(), stage: stage.as_fd() };
        let suffix = conflict::suffix(layer);
        let mut conflicts = Vec::new();
        for at in 0..self.operations.len() {
            let operation = &mut self.operations[at];
            let swapped = match operation.conflict {
                true => Ok(Swapped::Conflict),
                false => roots.apply(operation),
            };
            let kept = swapped.and_then(|swapped| match swapped {
                Swapped::Done => Ok(None),
                Swapped::Conflict => conflict::keep_beside(roots, operation, &suffix).map(Some),
            });
            match kept {
                Ok(conflict) => conflicts.extend(conflict),
                Err(error) => {
                    let path = self.operations[at].path.0.display().to_string();
                    self.operations.truncate(at);
                    self.revert(layer, false)?;
                    return Err(io::Error::new(error.kind(), format!("`{path}`: {error}")));
                }
            }
        }
        self.set_directories(roots, true);
        // An operation that came to nothing has nothing to be taken back.
        self.operations.retain(|operation| operation.old.is_some() || operation.new.is_some());
        self.state = State::Applied;
        self.write(layer, false)?;
        Ok(conflicts)
    }

    /// Sets the modes and times of directories. This fails for directories of other owners, which undoes
    /// nothing.
    pub(super) fn set_directories(&self, roots: Roots<'_>, forwards: bool) {
        for directory in &self.directories {
            if let Err(error) = roots.set(directory, forwards) {
                tracing::debug!(%error, path = %directory.path.0.display(), "a directory keeps its mode and time");
            }
        }
    }
}
