//! The file systems in memory that a command can fill: `/tmp`, and in a container `/dev/shm` and volumes.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// The smallest file system that is watched; smaller ones only cover paths.
const LEAST: u64 = 1 << 20;

/// The writable file systems in memory, and whether each was seen full.
#[derive(Default)]
pub(super) struct MemoryDisks(Vec<(PathBuf, bool)>);

impl MemoryDisks {
    /// Finds those of this mount namespace.
    pub(super) fn find() -> Self {
        let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self(writable(&text).into_iter().map(|path| (path, false)).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes those that are full now.
    pub(super) fn look(&mut self) {
        for (path, full) in &mut self.0 {
            *full |= rustix::fs::statvfs(&*path).is_ok_and(|disk| {
                let is_watched = disk.f_blocks.saturating_mul(disk.f_frsize) >= LEAST;
                is_watched && (disk.f_bfree == 0 || disk.f_files > 0 && disk.f_ffree == 0)
            });
        }
    }

    /// Returns those that were seen full, with their sizes in bytes. One that is mounted at several places is named once.
    pub(super) fn full(mut self) -> Vec<(PathBuf, u64)> {
        self.look();
        let mut devices = Vec::new();
        let full = self.0.into_iter().filter(|(_, full)| *full);
        let sized = full.filter_map(|(path, _)| {
            let disk = rustix::fs::statvfs(&path).ok()?;
            let device = fs::metadata(&path).ok()?.dev();
            let is_new = !devices.contains(&device);
            devices.push(device);
            is_new.then(|| (path, disk.f_blocks.saturating_mul(disk.f_frsize)))
        });
        sized.collect()
    }
}

/// Returns where file systems in memory are mounted to be written, `/tmp` first.
fn writable(mountinfo: &str) -> Vec<PathBuf> {
    let is_watched = |path: &&str| {
        let is_of_kernel = ["/proc", "/sys", "/dev"]
            .iter()
            .any(|top| path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
        *path == "/dev/shm" || !is_of_kernel && !path.contains('\\')
    };
    let mount = |line: &str| {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(4);
        let (path, options) = (fields.next()?.to_owned(), fields.next()?);
        let is_writable = options.split(',').any(|option| option == "rw");
        (file_system.starts_with("tmpfs ") && is_writable && is_watched(&path.as_str())).then_some(path)
    };
    let mut paths: Vec<String> = mountinfo.lines().filter_map(mount).collect();
    paths.sort_by_key(|path| (path != "/tmp", path.clone()));
    paths.into_iter().map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_command_can_fill_is_watched() {
        let mounts = "1 0 0:1 / / ro,relatime - overlay overlay rw\n\
                      2 1 0:2 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k\n\
                      3 2 0:3 / /dev/shm rw,nosuid - tmpfs shm rw,size=65536k\n\
                      4 1 0:4 / /data rw,relatime shared:1 - tmpfs tmpfs rw,size=1024k\n\
                      5 1 0:5 / /tmp rw,nosuid - tmpfs tmpfs rw,size=1024k\n\
                      6 1 0:6 / /proc/acpi ro,relatime - tmpfs tmpfs ro\n\
                      7 1 0:7 / /workspace/.env ro,noexec - tmpfs tmpfs ro,size=4k\n\
                      8 1 0:8 / /workspace rw - ext4 /dev/sda1 rw\n";
        assert_eq!(writable(mounts), ["/tmp", "/data", "/dev/shm"].map(PathBuf::from));
    }
}
