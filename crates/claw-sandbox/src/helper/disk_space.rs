//! The free space of the workspace's disk, watched while a command runs: one that takes too much is stopped.

use std::path::{Path, PathBuf};

use super::init::Init;

/// The disk that the workspace is on, and how much of it may go.
pub(super) struct Disk {
    path: PathBuf,
    floor: Free,
}

/// Free bytes and inodes of a disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Free {
    bytes: u64,
    inodes: u64,
}

impl Free {
    fn on(path: &Path) -> Option<Self> {
        let disk = rustix::fs::statvfs(path).ok()?;
        Some(Self { bytes: disk.f_bfree.checked_mul(disk.f_frsize)?, inodes: disk.f_ffree })
    }

    /// The least that has to stay free if a command may use `most` bytes: half of both, however large the limit is.
    fn floor(self, most: u64) -> Self {
        Self { bytes: self.bytes.saturating_sub(most).max(self.bytes / 2), inodes: self.inodes / 2 }
    }

    /// Returns whether less is free than has to stay. A file system without a fixed number of inodes reports none, so its
    /// floor is 0.
    fn is_below(self, floor: Self) -> bool {
        self.bytes < floor.bytes || self.inodes < floor.inodes
    }
}

impl Disk {
    pub(super) fn new(init: &Init<'_>, most: u64) -> Self {
        let held = init.spec.confined.as_ref();
        let path = held.map_or(&init.spec.directory, |held| &held.reach.workspace).clone();
        let floor = Free::on(&path).map_or_else(Free::default, |free| free.floor(most));
        Self { path, floor }
    }

    pub(super) fn is_full(&self) -> bool {
        Free::on(&self.path).is_some_and(|free| free.is_below(self.floor))
    }
}

#[cfg(test)]
mod tests {
    use super::Free;

    #[test]
    fn a_command_that_uses_up_inodes_is_stopped_like_one_that_uses_up_bytes() {
        let free = |bytes, inodes| Free { bytes, inodes };
        let floor = free(1000, 100).floor(300);
        assert_eq!(floor, free(700, 50));
        assert!(!free(700, 50).is_below(floor));
        assert!(free(699, 100).is_below(floor));
        assert!(free(1000, 49).is_below(floor));
        // The file system makes inodes as it needs them, and reports none.
        assert!(!free(1000, 0).is_below(free(1000, 0).floor(300)));
    }
}
