//! A file tree for one command: its reach at the usual paths, and nothing else.
//!
//! The tree is made inside a mount namespace of its own, so that it vanishes with its last process.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount, mount_change,
    mount_remount, move_mount, open_tree, unmount,
};

use super::sys;
use crate::Network;
use crate::git_control_files::{ControlFiles, control_files};
use crate::reach::{DEVICES, Execute, Grant, HOME, RESOLVER, Reach, SYSTEM, WorkspaceLayer};

const READ_ONLY: u64 = 1;
const NO_SET_ID: u64 = 2;
const NO_DEVICES: u64 = 4;
const NO_EXECUTE: u64 = 8;

const TEMPORARY: &str = "/tmp";

/// The step that fails if the file system or the kernel does not support layers.
pub(crate) const LAYER: &str = "mount a layer over the workspace";

/// A result whose error names the failed step.
pub(crate) type Step<T> = Result<T, (String, io::Error)>;

pub(crate) trait During<T> {
    /// Names the step in the error.
    fn during(self, step: impl ToString) -> Step<T>;
}

impl<T, E: Into<io::Error>> During<T> for Result<T, E> {
    fn during(self, step: impl ToString) -> Step<T> {
        self.map_err(|error| (step.to_string(), error.into()))
    }
}

/// Builds the tree and makes it the root of this process.
pub(crate) fn enter(reach: &Reach, temporary: u64, own_proc: bool) -> Step<()> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .during("make mounts private")?;
    let mut parts = Parts::take(reach)?;
    let lasting = reach.temporary.as_deref().map(|path| Parts::temporary(path, reach)).transpose()?;
    let home = reach.home.as_ref().map(|home| Parts::home(home, reach)).transpose()?;
    parts.discarded(reach)?;
    let base = ["/tmp", "/var/tmp", "/run", "/mnt"].into_iter().find(|path| Path::new(path).is_dir());
    let base =
        base.ok_or_else(|| ("find a place for the root".to_owned(), io::ErrorKind::NotFound.into()))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("sandbox", base, "tmpfs", flags, c"mode=0755,size=1m").during("make the root")?;
    std::env::set_current_dir(base).during("enter the root")?;
    skeleton(reach).during("fill the root")?;
    match lasting {
        Some(tree) => lay(&tree, Path::new("/tmp")).during("show the session's `/tmp`")?,
        None => {
            let size =
                std::ffi::CString::new(format!("mode=1777,size={temporary}")).map_err(io::Error::other);
            let size = size.during("size `/tmp`")?;
            let flags = flags
                | if is_closed(reach, Path::new(TEMPORARY)) {
                    MountFlags::NOEXEC
                } else {
                    MountFlags::empty()
                };
            mount("tmp", "tmp", "tmpfs", flags, size.as_c_str()).during("make `/tmp`")?;
        }
    }
    if let Some(tree) = home {
        place(Path::new(HOME), true).during(named(Path::new(HOME)))?;
        lay(&tree, Path::new(HOME)).during(named(Path::new(HOME)))?;
    }
    if own_proc {
        let flags = flags | MountFlags::NOEXEC | MountFlags::RDONLY;
        mount("proc", "proc", "proc", flags, None).during("make `/proc`")?;
    }
    let grants = parts.attach()?;
    if reach.writes_directly() {
        hold_repository(&reach.workspace)?;
    }
    let masked = |path: &&PathBuf| {
        let is_direct = |layer: &WorkspaceLayer| layer.direct.iter().any(|direct| path.starts_with(direct));
        grants.contains(*path)
            || (path.starts_with(&reach.workspace)
                && reach.layer.as_ref().is_some_and(|layer| !is_direct(layer)))
    };
    let hidden: Vec<&PathBuf> = reach.hidden.iter().filter(|path| !masked(path)).collect();
    for path in pinned(&hidden, reach) {
        pin(path).during(format!("pin `{}`", path.display()))?;
    }
    for path in hidden {
        hide(path).during(format!("hide `{}`", path.display()))?;
    }
    rustix::process::pivot_root(".", ".").during("switch the root")?;
    unmount(".", UnmountFlags::DETACH).during("leave the old root")?;
    std::env::set_current_dir("/").during("enter the new root")?;
    // This one mount, and not those that lie on it.
    mount_remount("/", MountFlags::BIND | MountFlags::RDONLY | flags, c"").during("close the root")
}

/// Creates the directories that every sandbox has and that come from nowhere else.
fn skeleton(reach: &Reach) -> io::Result<()> {
    let mut public = fs::DirBuilder::new();
    public.mode(0o755);
    for path in ["tmp", "proc", "dev", "etc", "run", "var", ".hidden"] {
        public.create(path)?;
    }
    // Paths shown below it need a directory; a link would lead elsewhere while the tree is made.
    let mut shown = reach.grants.iter().map(|grant| &grant.path).chain([&reach.workspace]);
    match shown.any(|path| path.starts_with("/var/tmp")) {
        true => public.create("var/tmp")?,
        false => symlink("/tmp", "var/tmp")?,
    }
    symlink("/tmp", "dev/shm")?;
    for (name, to) in [("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")] {
        symlink(format!("/proc/self/{to}"), format!("dev/{name}"))?;
    }
    fs::DirBuilder::new().mode(0o000).create(".hidden/directory")?;
    fs::OpenOptions::new().write(true).create_new(true).mode(0o000).open(".hidden/file")?;
    Ok(())
}

/// The parts taken from the machine, before anything covers them.
struct Parts(Vec<Part>);

enum Part {
    Tree {
        tree: OwnedFd,
        path: PathBuf,
        directory: bool,
    },
    Layer {
        lower: OwnedFd,
        upper: OwnedFd,
        work: OwnedFd,
        path: PathBuf,
        read_only: bool,
        no_execute: bool,
    },
    /// A granted directory that can only be read, without these paths in it.
    Masked {
        tree: OwnedFd,
        lower: OwnedFd,
        path: PathBuf,
        hidden: Vec<PathBuf>,
        no_execute: bool,
    },
    Link {
        path: PathBuf,
        to: PathBuf,
    },
}

impl Parts {
    fn take(reach: &Reach) -> Step<Self> {
        let mut parts = Self(Vec::new());
        let system = SYSTEM.iter().chain((reach.network != Network::None).then_some(&RESOLVER));
        for path in system {
            parts.system(Path::new(path))?;
        }
        for path in DEVICES {
            // A device on a read-only mount can be written to; its mode and owner cannot be changed.
            parts.add(Path::new(path), NO_SET_ID | NO_EXECUTE | READ_ONLY)?;
        }
        let closed =
            |path: &Path| NO_SET_ID | NO_DEVICES | if is_closed(reach, path) { NO_EXECUTE } else { 0 };
        let mut granted: Vec<(&Path, bool)> = vec![(&reach.workspace, reach.write)];
        granted.extend(reach.grants.iter().map(|grant| (grant.path.as_path(), grant.write)));
        granted.sort_by_key(|(path, _)| path.components().count());
        for (path, write) in granted {
            match &reach.layer {
                Some(layer) if path == reach.workspace => parts.layer(path, layer, closed(path))?,
                _ if !write && path != reach.workspace => {
                    parts.readable(path, hidden_in(path, reach), closed(path) | READ_ONLY)?;
                }
                _ => parts.granted(path, closed(path) | if write { 0 } else { READ_ONLY })?,
            }
        }
        Ok(parts)
    }

    /// The workspace with a layer over it. Other file systems that are mounted in it are shown as they are.
    fn layer(&mut self, path: &Path, layer: &WorkspaceLayer, closed: u64) -> Step<()> {
        let open = |path: &Path| resolved(path).during(taken(path));
        let (lower, upper, work) = (open(path)?, open(&layer.upper)?, open(&layer.work)?);
        let read_only = layer.read_only;
        let no_execute = closed & NO_EXECUTE != 0;
        self.0.push(Part::Layer { lower, upper, work, path: path.to_owned(), read_only, no_execute });
        let attributes = closed | if read_only { READ_ONLY } else { 0 };
        let mounted = mounted_below(path).during("list mounts")?;
        for path in mounted.iter().chain(&layer.direct) {
            self.granted(path, attributes)?;
        }
        Ok(())
    }

    /// A granted directory that can only be read. Paths in it are hidden by whiteouts in a layer over it: they stay hidden
    /// even if somebody replaces them, and any number of them is one mount.
    fn readable(&mut self, path: &Path, hidden: Vec<PathBuf>, attributes: u64) -> Step<()> {
        self.granted(path, attributes)?;
        if hidden.is_empty() {
            return Ok(());
        }
        let Some(Part::Tree { tree, path, .. }) = self.0.pop() else { return Ok(()) };
        let lower = resolved(&path).during(taken(&path))?;
        let no_execute = attributes & NO_EXECUTE != 0;
        // Other file systems that are mounted in it are shown as they are.
        let mounted = mounted_below(&path).during("list mounts")?;
        self.0.push(Part::Masked { tree, lower, path, hidden, no_execute });
        mounted.iter().try_for_each(|path| self.granted(path, attributes))
    }

    /// Layers over `/tmp` and the home of a command whose changes are discarded.
    fn discarded(&mut self, reach: &Reach) -> Step<()> {
        let Some(layer) = &reach.layer else { return Ok(()) };
        let home = reach.home.as_ref().map(|home| &home.path);
        let places = [(TEMPORARY, reach.temporary.as_ref(), &layer.temporary), (HOME, home, &layer.home)];
        for (at, lower, discarded) in places {
            let (Some(lower), Some(discarded)) = (lower, discarded) else { continue };
            let open = |path: &Path| resolved(path).during(taken(path));
            self.0.push(Part::Layer {
                lower: open(lower)?,
                upper: open(&discarded.upper)?,
                work: open(&discarded.work)?,
                path: at.into(),
                read_only: false,
                no_execute: is_closed(reach, Path::new(at)),
            });
        }
        Ok(())
    }

    /// The directory that is to be `/tmp`.
    fn temporary(path: &Path, reach: &Reach) -> Step<OwnedFd> {
        let closed = if is_closed(reach, Path::new(TEMPORARY)) { NO_EXECUTE } else { 0 };
        Self::tree(path, NO_SET_ID | NO_DEVICES | closed)
    }

    /// The directory that is to be the home.
    fn home(home: &Grant, reach: &Reach) -> Step<OwnedFd> {
        let closed = if is_closed(reach, Path::new(HOME)) { NO_EXECUTE } else { 0 };
        let read_only = if home.write { 0 } else { READ_ONLY };
        Self::tree(&home.path, NO_SET_ID | NO_DEVICES | closed | read_only)
    }

    /// Takes a directory that is shown at another path.
    fn tree(path: &Path, attributes: u64) -> Step<OwnedFd> {
        let mut parts = Self(Vec::new());
        parts.granted(path, attributes)?;
        match parts.0.pop() {
            Some(Part::Tree { tree, .. }) => Ok(tree),
            _ => Err((taken(path), io::ErrorKind::NotFound.into())),
        }
    }

    /// Adds a path of the system. At the top level a link stays one, as `/bin` often is; below, its target is
    /// shown.
    fn system(&mut self, path: &Path) -> Step<()> {
        match fs::read_link(path) {
            Ok(to) if path.parent() == Some(Path::new("/")) => {
                self.0.push(Part::Link { path: path.to_owned(), to });
                Ok(())
            }
            _ => self.add(path, NO_SET_ID | NO_DEVICES | READ_ONLY),
        }
    }

    /// Adds a path that may be missing, following links.
    fn add(&mut self, path: &Path, attributes: u64) -> Step<()> {
        match rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Ok(found) => self.take_tree(&found, path, attributes).during(taken(path)),
            Err(_) => Ok(()),
        }
    }

    /// Adds a resolved path, following no link: a link on the way was put there since, perhaps by a command.
    fn granted(&mut self, path: &Path, attributes: u64) -> Step<()> {
        let found = resolved(path).during(taken(path))?;
        self.take_tree(&found, path, attributes).during(taken(path))
    }

    fn take_tree(&mut self, found: &OwnedFd, path: &Path, attributes: u64) -> io::Result<()> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE
            | OpenTreeFlags::AT_EMPTY_PATH;
        let tree = open_tree(found, "", flags)?;
        sys::set_mount_attributes(tree.as_fd(), attributes)?;
        let directory = FileType::from_raw_mode(rustix::fs::fstat(found)?.st_mode) == FileType::Directory;
        self.0.push(Part::Tree { tree, path: path.to_owned(), directory });
        Ok(())
    }

    /// Shows the parts in the new root. Returns the paths that layers over granted directories hide.
    fn attach(self) -> Step<Vec<PathBuf>> {
        let mut masked = Vec::new();
        for part in self.0 {
            match part {
                Part::Link { path, to } => symlink(to, inside(&path)).during(named(&path))?,
                Part::Layer { lower, upper, work, path, read_only, no_execute } => {
                    place(&path, true).during(named(&path))?;
                    let own = |fd: &OwnedFd| format!("/proc/self/fd/{}", fd.as_raw_fd());
                    let (lower, upper, work) = (own(&lower), own(&upper), own(&work));
                    let mut flags = MountFlags::NOSUID | MountFlags::NODEV;
                    if no_execute {
                        flags |= MountFlags::NOEXEC;
                    }
                    let options = if read_only {
                        flags |= MountFlags::RDONLY;
                        format!("userxattr,lowerdir={upper}:{lower}")
                    } else {
                        format!("userxattr,lowerdir={lower},upperdir={upper},workdir={work}")
                    };
                    let options = std::ffi::CString::new(options).map_err(io::Error::other).during(LAYER)?;
                    mount("layer", inside(&path), "overlay", flags, options.as_c_str()).during(LAYER)?;
                }
                Part::Masked { tree, lower, path, hidden, no_execute } => {
                    place(&path, true).during(named(&path))?;
                    match mask(&lower, &path, &hidden, no_execute) {
                        Ok(()) => masked.extend(hidden),
                        // Where no layer can be made, the paths are covered one by one.
                        Err(_) => lay(&tree, &path).during(named(&path))?,
                    }
                }
                Part::Tree { tree, path, directory } => {
                    place(&path, directory).during(named(&path))?;
                    lay(&tree, &path).during(named(&path))?;
                }
            }
        }
        Ok(masked)
    }
}

/// The hidden paths that a granted directory shows itself: not those in another shown path inside it, and not those
/// that hold such a path.
fn hidden_in(grant: &Path, reach: &Reach) -> Vec<PathBuf> {
    let shown = || reach.grants.iter().map(|grant| grant.path.as_path()).chain([reach.workspace.as_path()]);
    let is_its = |path: &&PathBuf| {
        let inside = |shown: &Path| shown != grant && shown.starts_with(grant);
        path.starts_with(grant)
            && path.as_path() != grant
            && !shown().any(|shown| inside(shown) && (path.starts_with(shown) || shown.starts_with(path)))
    };
    let mut hidden: Vec<PathBuf> = reach.hidden.iter().filter(is_its).cloned().collect();
    hidden.sort_unstable();
    hidden.dedup();
    hidden
}

/// Shows a directory at its path without the hidden paths: whiteouts, in copies of the directories that hold them,
/// lie over it.
fn mask(lower: &OwnedFd, path: &Path, hidden: &[PathBuf], no_execute: bool) -> io::Result<()> {
    let copy = PathBuf::from(format!(".hidden/mask-{}", lower.as_raw_fd()));
    let private = |path: &Path| fs::DirBuilder::new().mode(0o700).create(path);
    let original = PathBuf::from(format!("/proc/self/fd/{}", lower.as_raw_fd()));
    private(&copy)?;
    let (mut copied, mut last) = (vec![PathBuf::new()], None);
    for hidden in hidden {
        // One in a hidden directory is hidden with it; they are sorted.
        if last.is_some_and(|last| hidden.starts_with(last)) {
            continue;
        }
        last = Some(hidden);
        let below = hidden.strip_prefix(path).map_err(io::Error::other)?;
        let mut above: Vec<&Path> = below.ancestors().skip(1).filter(|path| *path != Path::new("")).collect();
        above.reverse();
        for above in above {
            if !copied.iter().any(|copied| copied == above) {
                private(&copy.join(above))?;
                copied.push(above.to_owned());
            }
        }
        let kind = FileType::CharacterDevice;
        rustix::fs::mknodat(CWD, copy.join(below), kind, Mode::empty(), 0)?;
    }
    // A directory is shown with the mode of its copy.
    for directory in copied.iter().rev() {
        let mode = fs::metadata(original.join(directory))?.permissions();
        fs::set_permissions(copy.join(directory), mode)?;
    }
    let mut flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::RDONLY;
    if no_execute {
        flags |= MountFlags::NOEXEC;
    }
    let options = format!("userxattr,lowerdir={}:{}", copy.display(), original.display());
    let options = std::ffi::CString::new(options).map_err(io::Error::other)?;
    Ok(mount("granted", inside(path), "overlay", flags, options.as_c_str())?)
}

/// Returns whether nothing in a place may be run, or mapped as code by a program loader.
fn is_closed(reach: &Reach, path: &Path) -> bool {
    match &reach.execute {
        Execute::Any => false,
        Execute::Only(files) => {
            let is_written = path == Path::new(TEMPORARY) || path.starts_with(&reach.workspace);
            is_written || !files.iter().any(|file| file.starts_with(path))
        }
    }
}

/// Mount points strictly below a directory, in the order in which they were mounted.
fn mounted_below(path: &Path) -> io::Result<Vec<PathBuf>> {
    let table = fs::read("/proc/self/mountinfo")?;
    let points =
        table.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    let points = points.map(|point| PathBuf::from(OsString::from_vec(unescaped(point))));
    Ok(points.filter(|point| point.starts_with(path) && point != path).collect())
}

/// Decodes a path of the kernel's tables, which escape blanks and backslashes as octal numbers.
fn unescaped(path: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| byte == b'\\');
        let code = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(code.unwrap_or(byte));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    plain
}

/// Opens a path that must contain no link.
pub(crate) fn resolved(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

fn taken(path: &Path) -> String {
    format!("take `{}`", path.display())
}

fn named(path: &Path) -> String {
    format!("show `{}`", path.display())
}

/// A path of the machine, inside the root that is being built.
fn inside(path: &Path) -> &Path {
    path.strip_prefix("/").unwrap_or(path)
}

/// Makes a mount point, if the path does not exist yet.
fn place(path: &Path, directory: bool) -> io::Result<()> {
    let path = inside(path);
    if fs::symlink_metadata(path).is_ok() {
        return Ok(());
    }
    let mut public = fs::DirBuilder::new();
    public.mode(0o755).recursive(true);
    if directory {
        return public.create(path);
    }
    if let Some(parent) = path.parent() {
        public.create(parent)?;
    }
    fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o644).open(path).map(drop)
}

fn lay(tree: &OwnedFd, path: &Path) -> io::Result<()> {
    Ok(move_mount(tree, "", CWD, inside(path), MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// The directories between what can be written and a hidden path, each once, those that hold others first.
fn pinned<'a>(hidden: &[&'a PathBuf], reach: &Reach) -> Vec<&'a Path> {
    let grants = reach.grants.iter().map(|grant| (grant.path.as_path(), grant.write));
    let shown: Vec<(&Path, bool)> =
        grants.chain([(&*reach.workspace, reach.write || reach.layer.is_some())]).collect();
    let is_writable = |path: &&Path| {
        let around = shown.iter().filter(|(shown, _)| path.starts_with(shown) && path != shown);
        around.max_by_key(|(shown, _)| shown.components().count()).is_some_and(|(_, write)| *write)
    };
    let mut above: Vec<&Path> =
        hidden.iter().flat_map(|path| path.ancestors().skip(1)).filter(is_writable).collect();
    above.sort_by_key(|path| (path.components().count(), *path));
    above.dedup();
    above
}

/// Makes a directory a mount of its own: it cannot be renamed, and so a path in it stays where the next command hides it
/// too. Everything mounted in it is mounted once more, so that each directory is pinned once and before what it holds.
fn pin(path: &Path) -> io::Result<()> {
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    lay(&open_tree(CWD, inside(path), flags)?, path)
}

/// Makes git's control files read-only, in a repository that keeps its name.
fn hold_repository(workspace: &Path) -> Step<()> {
    let ControlFiles { directory, held } = control_files(inside(workspace));
    if let Some(path) = &directory {
        pin(path).during(format!("pin `{}`", path.display()))?;
    }
    for path in held {
        hold(&path).during(format!("make `{}` read-only", path.display()))?;
    }
    Ok(())
}

/// Makes a path read-only.
fn hold(path: &Path) -> io::Result<()> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    let tree = open_tree(resolved(path)?, "", flags)?;
    sys::set_mount_attributes(tree.as_fd(), READ_ONLY | NO_SET_ID | NO_DEVICES)?;
    lay(&tree, path)
}

/// Lays nothing over something.
fn hide(path: &Path) -> io::Result<()> {
    let Ok(found) = fs::symlink_metadata(inside(path)) else { return Ok(()) };
    let nothing = if found.is_dir() { ".hidden/directory" } else { ".hidden/file" };
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = open_tree(CWD, nothing, flags)?;
    sys::set_mount_attributes(tree.as_fd(), READ_ONLY | NO_SET_ID | NO_DEVICES | NO_EXECUTE)?;
    lay(&tree, path)
}
