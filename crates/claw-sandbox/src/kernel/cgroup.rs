//! Limits shared by all processes of a command: control groups of either version, if one can be created.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Limits;

/// The directories in which groups can be created. In version 2 all three are the same directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Places {
    /// In version 2: the group that we are in ourselves.
    pub(crate) unified: Option<PathBuf>,
    pub(crate) memory: Option<PathBuf>,
    pub(crate) processes: Option<PathBuf>,
    pub(crate) cpu: Option<PathBuf>,
}

/// The prefix of the name of every group of ours; the id of its supervisor follows.
const PREFIX: &str = "clawsmith-";
/// The file by which a process is put into a group.
const PROCESSES: &str = "cgroup.procs";

impl Places {
    /// Finds where this process may create groups, by creating one.
    pub(crate) fn find() -> Result<Self, String> {
        let groups = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(|error| error.to_string())?;
        let mut places = unified(&groups, &mounts).unwrap_or_default();
        if places.memory.is_none() && places.processes.is_none() {
            places = Self {
                unified: None,
                memory: single(&groups, &mounts, "memory", "memory.limit_in_bytes"),
                processes: single(&groups, &mounts, "pids", "pids.max"),
                cpu: single(&groups, &mounts, "cpu", "cpu.cfs_quota_us"),
            };
        }
        match places.memory.is_none() && places.processes.is_none() && places.cpu.is_none() {
            true => Err("no control group can be created here".to_owned()),
            false => Ok(places),
        }
    }
}

/// Version 2: our own group or the nearest above it in which children with the controllers can be made.
fn unified(groups: &str, mounts: &str) -> Option<Places> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let top = mounted(mounts, |kind, _| kind == "cgroup2")?;
    let own = top.join(own.strip_prefix('/')?);
    own.ancestors().take_while(|path| path.starts_with(&top)).find_map(|parent| {
        let test = Test::make(parent)?;
        let has = |file: &str| test.0.join(file).exists().then(|| parent.to_owned());
        let (memory, processes, cpu) = (has("memory.max"), has("pids.max"), has("cpu.max"));
        let unified = Some(own.clone());
        (memory.is_some() && processes.is_some()).then_some(Places { unified, memory, processes, cpu })
    })
}

/// Version 1: below our own group in the hierarchy of one controller.
fn single(groups: &str, mounts: &str, controller: &str, file: &str) -> Option<PathBuf> {
    let named = |list: &str| list.split(',').any(|name| name == controller);
    let own = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        named(controllers).then_some(path)
    })?;
    let top = mounted(mounts, |kind, options| kind == "cgroup" && named(options))?;
    let parent = top.join(own.strip_prefix('/')?);
    let test = Test::make(&parent)?;
    test.0.join(file).exists().then_some(parent)
}

/// Returns the mount point of a file system of this type and options.
fn mounted(mounts: &str, wanted: impl Fn(&str, &str) -> bool) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (place, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let (kind, _, options) = (kind.next()?, kind.next()?, kind.next()?);
        wanted(kind, options).then(|| place.split(' ').nth(4).map(PathBuf::from))?
    })
}

/// A test group, removed on drop.
struct Test(PathBuf);

impl Test {
    fn make(parent: &Path) -> Option<Self> {
        let path = parent.join(format!("{PREFIX}{}-probe", std::process::id()));
        fs::create_dir(&path).ok()?;
        Some(Self(path))
    }
}

impl Drop for Test {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// The groups of a supervisor and of the commands that it runs one after the other. Entering a group costs
/// more than starting a command, since the kernel waits for every processor; so the supervisor enters once,
/// and its children are born there. Dropping this leaves and removes the groups.
#[derive(Debug)]
pub(crate) struct Group {
    places: Places,
    limits: Limits,
    directories: Vec<PathBuf>,
    memory: Option<PathBuf>,
}

impl Group {
    /// Creates the groups, and enters them.
    pub(crate) fn enter(places: &Places, limits: &Limits) -> io::Result<Self> {
        let group = Self::make(places, limits)?;
        for path in &group.directories {
            set(path, PROCESSES, std::process::id())?;
        }
        Ok(group)
    }

    /// Returns whether the group fits a command with these limits. Memory left in use by earlier commands,
    /// such as files on a memory disk, must not count against it.
    pub(crate) fn suits(&self, places: &Places, limits: &Limits) -> bool {
        let free = limits.memory.is_none_or(|most| self.in_use() <= most / 16);
        self.places == *places && self.limits == *limits && free
    }

    fn in_use(&self) -> u64 {
        let Some(path) = &self.memory else { return 0 };
        let file = if self.places.unified.is_some() { "memory.current" } else { "memory.usage_in_bytes" };
        // Where it cannot be told it may be much.
        fs::read_to_string(path.join(file)).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX)
    }

    fn make(places: &Places, limits: &Limits) -> io::Result<Self> {
        let mut group =
            Self { places: places.clone(), limits: limits.clone(), directories: Vec::new(), memory: None };
        let (unified, name) = (places.unified.is_some(), format!("{PREFIX}{}", std::process::id()));
        if let (Some(parent), Some(most)) = (&places.memory, limits.memory) {
            let path = group.directory(parent, &name)?;
            if unified {
                set(&path, "memory.max", most)?;
                // Where swapping is not accounted there is nothing to forbid.
                let _ = set(&path, "memory.swap.max", 0);
            } else {
                set(&path, "memory.limit_in_bytes", most)?;
                let _ = set(&path, "memory.memsw.limit_in_bytes", most);
            }
            group.memory = Some(path);
        }
        if let (Some(parent), Some(most)) = (&places.processes, limits.processes) {
            // The supervisor and the first process of the namespace count too.
            set(&group.directory(parent, &name)?, "pids.max", most.saturating_add(2))?;
        }
        if let (Some(parent), Some(percent)) = (&places.cpu, limits.cpu_percent) {
            let path = group.directory(parent, &name)?;
            let quota = percent.saturating_mul(1000).max(1000);
            match unified {
                true => set(&path, "cpu.max", format!("{quota} 100000"))?,
                false => set(&path, "cpu.cfs_quota_us", quota)?,
            }
        }
        Ok(group)
    }

    fn directory(&mut self, parent: &Path, name: &str) -> io::Result<PathBuf> {
        let path = parent.join(name);
        if !self.directories.contains(&path) {
            sweep(parent);
            fs::create_dir(&path)?;
            self.directories.push(path.clone());
        }
        Ok(path)
    }

    /// Returns the number of processes killed because memory ran out, since the group was created.
    pub(crate) fn out_of_memory(&self) -> u64 {
        let Some(path) = &self.memory else { return 0 };
        let unified = self.places.unified.is_some();
        let file = path.join(if unified { "memory.events" } else { "memory.oom_control" });
        let text = fs::read_to_string(file).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok());
        count.unwrap_or(0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for path in &self.directories {
            // Back to where it came from: a group is removed when nobody is in it.
            if let Some(home) = self.places.unified.as_deref().or_else(|| path.parent()) {
                let _ = set(home, PROCESSES, std::process::id());
            }
            // A process that has just ended may be counted for a moment longer.
            for _ in 0..200 {
                match fs::remove_dir(path) {
                    Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                    _ => break,
                }
            }
        }
    }
}

/// Makes this process and its children the first victims when memory runs out, before the supervisor in the
/// same group.
pub(crate) fn go_first() {
    let _ = fs::write("/proc/self/oom_score_adj", "500");
}

/// Removes groups whose supervisor was killed before it could remove them.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let Some(owner) = owner.and_then(|owner| owner.split('-').next()) else { continue };
        if !Path::new("/proc").join(owner).exists() {
            // Only version 2 has it; what is still in a group of version 1 keeps it there for the next time.
            let kill = fs::OpenOptions::new().write(true).open(entry.path().join("cgroup.kill"));
            let _ = kill.and_then(|mut kill| kill.write_all(b"1"));
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn set(group: &Path, file: &str, value: impl ToString) -> io::Result<()> {
    let path = group.join(file);
    fs::write(&path, value.to_string())
        .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", path.display())))
}

#[cfg(test)]
mod tests;
