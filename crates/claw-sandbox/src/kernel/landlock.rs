//! Rules about files and TCP that a process puts on itself, without any privilege.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags};

use super::{mounts, sys};
use crate::Network;
use crate::reach::{DEVICES, Execute, RESOLVER, Reach, SYSTEM};

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_BLOCK: u64 = 1 << 11;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;
const READ: u64 = EXECUTE | READ_FILE | READ_DIR;
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

/// Binding to and connecting with TCP ports.
const TCP: u64 = 0b11;
/// Connecting with TCP ports.
const CONNECT_TCP: u64 = 0b10;
/// Abstract sockets and signals of processes outside.
const SCOPES: u64 = 0b11;

/// Returns all file rights that a kernel of this version knows.
const fn known(version: u32) -> u64 {
    match version {
        0 => 0,
        1 => (1 << 13) - 1,
        2 => (1 << 14) - 1,
        3 | 4 => (1 << 15) - 1,
        _ => (1 << 16) - 1,
    }
}

/// Builds the rules for a reach, ready to be applied; the paths are those of the tree that the caller sees
/// now.
pub(crate) fn rules(
    version: u32,
    reach: &Reach,
    temporary: &Path,
    home: Option<&Path>,
) -> io::Result<OwnedFd> {
    let known = known(version);
    let tcp = if reach.network == Network::None { TCP } else { 0 };
    let words = match version {
        ..=3 => 1,
        4 | 5 => 2,
        _ => 3,
    };
    let rules = sys::landlock_ruleset([known, tcp, SCOPES], words)?;
    let executable: &[PathBuf] = match &reach.execute {
        Execute::Any => &[],
        Execute::Only(files) => files,
    };
    let kept = if reach.execute == Execute::Any { known } else { known & !EXECUTE };
    let (read, write) = (READ & kept, kept & !MAKE_CHAR & !MAKE_BLOCK & !IOCTL_DEV);
    let system = SYSTEM.iter().chain((reach.network != Network::None).then_some(&RESOLVER));
    for path in system.chain(reach.processes.then_some(&"/proc")).chain(&["/dev"]) {
        allow(&rules, Path::new(path), read, Absent::Fine)?;
    }
    for path in DEVICES {
        allow(&rules, Path::new(path), (READ_FILE | WRITE_FILE) & known, Absent::Fine)?;
    }
    allow(&rules, temporary, write, Absent::Wrong)?;
    if let (Some(path), Some(home)) = (home, &reach.home) {
        allow(&rules, path, if home.write { write } else { read }, Absent::Wrong)?;
    }
    let workspace = if reach.write { write } else { read };
    allow(&rules, &reach.workspace, workspace, Absent::Wrong)?;
    for grant in &reach.grants {
        let access = if grant.write { write } else { read };
        allow(&rules, &grant.path, access, Absent::Wrong)?;
    }
    for path in executable {
        allow(&rules, path, READ & known, Absent::Wrong)?;
    }
    Ok(rules)
}

/// Rules that leave every TCP port open to be connected to but these; `None` where there are none. The kernel knows only
/// rules that allow, so each other port has one: some milliseconds for a command that has the machine's network while this
/// program listens. Fails on a kernel before Linux 6.7.
pub(crate) fn closing(ports: &[u16]) -> io::Result<Option<OwnedFd>> {
    if ports.is_empty() {
        return Ok(None);
    }
    let rules = sys::landlock_ruleset([0, CONNECT_TCP, 0], 2)?;
    for port in (1..=u16::MAX).filter(|port| !ports.contains(port)) {
        sys::landlock_allow_port(&rules, port, CONNECT_TCP)?;
    }
    Ok(Some(rules))
}

#[derive(PartialEq, Eq)]
enum Absent {
    Fine,
    Wrong,
}

fn allow(rules: &OwnedFd, path: &Path, access: u64, absent: Absent) -> io::Result<()> {
    let opened = match absent {
        Absent::Fine => rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()),
        Absent::Wrong => mounts::resolved(path),
    };
    let file = match opened {
        Err(rustix::io::Errno::NOENT) if absent == Absent::Fine => return Ok(()),
        Err(error) => return Err(io::Error::other(format!("`{}`: {error}", path.display()))),
        Ok(file) => file,
    };
    let directory = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) == FileType::Directory;
    let access = if directory { access } else { access & OF_FILES };
    sys::landlock_allow(rules, &file, access)
}
