//! Entering a sandbox: from the namespaces inwards to the rules that the command itself cannot shed.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use super::super::kernel::mounts::{During as _, Step};
use super::super::kernel::seccomp::{self, Filter, Renaming};
use super::super::kernel::{landlock, mounts, privileges, sys};
use super::super::{HOME, Network};
use super::wire::{Confined, Spec};

/// A command, and all that is needed to shut it in.
pub(super) struct Init<'a> {
    pub(super) spec: &'a Spec,
    /// The command's temporary directory.
    pub(super) temporary: PathBuf,
    user: u32,
    group: u32,
}

/// Step that keeps a command with the machine's network from this program's own address.
const CLOSE_PORTS: &str = "block the port on which this program listens (needs Linux 6.7 or newer)";

/// The restrictions applied last, by the process that becomes the command.
pub(super) struct Rules {
    landlock: Option<OwnedFd>,
    /// Keeps the ports open that are not closed.
    ports: Option<OwnedFd>,
    seccomp: Option<Vec<sys::Instruction>>,
    /// Renames are handed to the process that looks after the command.
    pub(super) hands_over: bool,
}

impl<'a> Init<'a> {
    /// Must be created before the namespaces: inside a new one, ids are not mapped.
    pub(super) fn new(spec: &'a Spec, temporary: &Path) -> Self {
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Self { spec, temporary: temporary.to_owned(), user, group }
    }

    /// Returns the command's home directory as it sees it; `None` if its environment decides.
    pub(super) fn home(&self) -> Option<&Path> {
        let home = self.spec.confined.as_ref()?.reach.home.as_ref()?;
        let is_mounted = self.namespaces() & libc::CLONE_NEWNS != 0;
        Some(if is_mounted { Path::new(HOME) } else { &home.path })
    }

    pub(super) fn namespaces(&self) -> i32 {
        self.spec.confined.as_ref().map_or(0, |held| held.namespaces)
    }

    /// Sets up the namespaces of this process, and gives up its rights over them.
    pub(super) fn enter(&self) -> Step<()> {
        let Some(held) = &self.spec.confined else { return Ok(()) };
        if held.namespaces & libc::CLONE_NEWUSER != 0 {
            self.name_user(held).during("map the user")?;
        }
        if held.namespaces & libc::CLONE_NEWUTS != 0 {
            sys::set_host_name("sandbox").during("name the host")?;
        }
        if held.namespaces & libc::CLONE_NEWNET != 0 && held.reach.network == Network::Loopback {
            loopback().during("bring loopback up")?;
        }
        if held.namespaces & libc::CLONE_NEWNS != 0 {
            mounts::enter(&held.reach, self.spec.limits.temporary, held.own_proc)?;
        }
        privileges::drop_capabilities().during("give up capabilities")
    }

    /// The user keeps the number it has outside: files have the owners that they have.
    fn name_user(&self, held: &Confined) -> io::Result<()> {
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{0} {0} 1", self.user))?;
        fs::write("/proc/self/gid_map", format!("{0} {0} 1", self.group))?;
        match fs::write("/proc/sys/user/max_user_namespaces", "0") {
            // The filter of calls refuses them too.
            Err(_) if held.seccomp => Ok(()),
            written => written,
        }
    }

    /// Prepares the restrictions, so that they only have to be applied. `looks_after` says that the caller
    /// can handle renames.
    pub(super) fn rules(&self, looks_after: bool) -> Step<Rules> {
        let Some(held) = &self.spec.confined else {
            return Ok(Rules { landlock: None, ports: None, seccomp: None, hands_over: false });
        };
        let landlock =
            held.landlock.map(|version| landlock::rules(version, &held.reach, &self.temporary, self.home()));
        let landlock = landlock.transpose().during("create the Landlock rules")?;
        let closed = &held.reach.closed_ports;
        let ports = landlock::closing(closed).during(CLOSE_PORTS)?;
        if ports.is_some() && !held.seccomp {
            // There are ways to connect that Landlock does not see.
            return Err((CLOSE_PORTS.into(), io::ErrorKind::Unsupported.into()));
        }
        let hands_over =
            looks_after && held.seccomp && held.reach.layer.is_some() && sys::seccomp_can_notify();
        let renaming = if hands_over { Renaming::HandedOver } else { Renaming::Direct };
        let filter = Filter {
            network: held.reach.network,
            closes_ports: ports.is_some(),
            renames: renaming,
            shares_files: held.shares_files,
            shares_processes: held.shares_processes,
        };
        let seccomp = held.seccomp.then(|| seccomp::program(&filter));
        let seccomp = match seccomp {
            Some(None) => return Err(("build the seccomp filter".into(), io::ErrorKind::Unsupported.into())),
            Some(program) => program,
            None => None,
        };
        Ok(Rules { landlock, ports, seccomp, hands_over })
    }
}

impl Rules {
    /// Puts the rules on this process, for good. Returns the descriptor on which renames are handed over, if they are.
    pub(super) fn put_on(&self) -> Step<Option<OwnedFd>> {
        if let Some(rules) = &self.landlock {
            sys::landlock_restrict(rules).during("apply the Landlock rules")?;
        }
        if let Some(ports) = &self.ports {
            sys::landlock_restrict(ports).during(CLOSE_PORTS)?;
        }
        match &self.seccomp {
            Some(program) if self.hands_over => {
                sys::seccomp_filter_listening(program).during("install the seccomp filter").map(Some)
            }
            Some(program) => sys::seccomp_filter(program).during("install the seccomp filter").map(|()| None),
            None => Ok(None),
        }
    }
}

fn loopback() -> io::Result<()> {
    use rustix::net::{AddressFamily, SocketType, socket};
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    sys::loopback_up(socket.as_fd())
}
