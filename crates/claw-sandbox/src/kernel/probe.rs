//! Probes which sandbox features work here, by trying each in a process of its own.

use std::io::{self, Read as _};
use std::path::PathBuf;

use rustix::process::{WaitOptions, waitpid};
use serde::{Deserialize, Serialize};

use super::cgroup::Places;
use super::{mounts, seccomp, sys};
use crate::Reach;
use crate::layers::{LayerName, Layers, Standing};

type Tried = Result<(), String>;

/// The sandbox features that work here.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) landlock: Result<u32, String>,
    pub(crate) seccomp: Tried,
    pub(crate) no_new_privileges: Tried,
    pub(crate) users: Tried,
    pub(crate) mounts: Tried,
    pub(crate) processes: Tried,
    pub(crate) network: Tried,
    pub(crate) ipc: Tried,
    pub(crate) host_name: Tried,
    pub(crate) own_proc: Tried,
    pub(crate) cgroup: Result<Places, String>,
    pub(crate) root: bool,
}

impl Found {
    /// Tries everything once. Leaves nothing behind.
    pub(crate) fn look() -> Self {
        let users = try_in(libc::CLONE_NEWUSER, || Ok(()));
        let base = if users.is_ok() { libc::CLONE_NEWUSER } else { 0 };
        let namespace = |flag: i32| try_in(base | flag, || Ok(()));
        let reach = Reach { write: false, ..Reach::workspace("/usr") };
        let tree = |own_proc: bool| {
            let reach = reach.clone();
            try_in(base | libc::CLONE_NEWNS | libc::CLONE_NEWPID, move || {
                mounts::enter(&reach, 1 << 20, own_proc)
                    .map_err(|(step, error)| io::Error::other(format!("{step}: {error}")))
            })
        };
        let mounts = tree(false);
        let own_proc = if mounts.is_ok() { tree(true) } else { mounts.clone() };
        Self {
            landlock: sys::landlock_version().map_err(|error| error.to_string()),
            seccomp: match seccomp::MACHINE {
                Some(_) => sys::seccomp_can_refuse().map_err(|error| error.to_string()),
                None => Err(format!("there is no list of system calls for {}", std::env::consts::ARCH)),
            },
            no_new_privileges: try_in(0, || Ok(rustix::thread::set_no_new_privs(true)?)),
            mounts,
            processes: namespace(libc::CLONE_NEWPID),
            network: namespace(libc::CLONE_NEWNET),
            ipc: namespace(libc::CLONE_NEWIPC),
            host_name: namespace(libc::CLONE_NEWUTS),
            own_proc,
            users,
            cgroup: Places::find(),
            root: rustix::process::geteuid().is_root(),
        }
    }

    /// Returns the namespaces that work, as flags of `clone`; the network's only with `own_network`.
    pub(crate) fn namespaces(&self, own_network: bool) -> i32 {
        let flags = [
            (self.users.is_ok(), libc::CLONE_NEWUSER),
            (self.mounts.is_ok(), libc::CLONE_NEWNS),
            (self.processes.is_ok(), libc::CLONE_NEWPID),
            (self.network.is_ok() && own_network, libc::CLONE_NEWNET),
            (self.ipc.is_ok(), libc::CLONE_NEWIPC),
            (self.host_name.is_ok(), libc::CLONE_NEWUTS),
        ];
        flags.iter().filter(|(works, _)| *works).fold(0, |all, (_, flag)| all | flag)
    }

    pub(crate) fn layers(&self) -> Layers {
        Layers::new(|name| self.standing(name))
    }

    fn standing(&self, name: LayerName) -> Standing {
        let by = |tried: &Tried, by: &str| match tried {
            Ok(()) => Standing::Works(by.to_owned()),
            Err(reason) => Standing::Missing(reason.clone()),
        };
        let counted = |place: fn(&Places) -> &Option<PathBuf>| match &self.cgroup {
            Ok(places) if place(places).is_some() && places.unified.is_some() => {
                Some("control groups, version 2")
            }
            Ok(places) if place(places).is_some() => Some("control groups, version 1"),
            _ => None,
        };
        let works = |by: &str| Standing::Works(by.to_owned());
        let missing = |reason: &str| Standing::Missing(reason.to_owned());
        match name {
            LayerName::Helper => works("this program, executed again"),
            LayerName::NoNewPrivileges => by(&self.no_new_privileges, "prctl; capabilities dropped"),
            LayerName::Landlock => match &self.landlock {
                Ok(version) => works(&format!("version {version}{}", lacks(*version))),
                Err(reason) => missing(reason),
            },
            LayerName::Seccomp => by(&self.seccomp, "a seccomp filter"),
            LayerName::Users => by(&self.users, "namespace"),
            LayerName::Mounts => by(&self.mounts, "namespace, private root, private /tmp"),
            LayerName::Processes => by(&self.processes, "namespace"),
            LayerName::Network => by(&self.network, "namespace"),
            LayerName::Ipc => by(&self.ipc, "namespace"),
            LayerName::HostName => by(&self.host_name, "namespace"),
            LayerName::Proc => by(&self.own_proc, "mounted anew, read-only"),
            LayerName::Memory => match counted(|places| &places.memory) {
                Some(by) => works(by),
                None => {
                    works("a limit on the address space of each process (no control group can be created)")
                }
            },
            LayerName::ProcessCount => match (counted(|places| &places.processes), self.root) {
                (Some(by), _) => works(by),
                (None, true) => {
                    missing("no control group can be created, and the kernel sets no such limit for root")
                }
                (None, false) => {
                    works("a limit on the processes of the user (no control group can be created)")
                }
            },
            LayerName::Cpu => match counted(|places| &places.cpu) {
                Some(by) => works(by),
                None => missing("no control group can be created; seconds are limited for each process"),
            },
            LayerName::ResourceLimits => works("setrlimit"),
        }
    }
}

/// Names the operations that an older version of Landlock does not restrict.
fn lacks(version: u32) -> &'static str {
    match version {
        ..=2 => "; too old for truncation, TCP, signals and abstract sockets",
        3 => "; too old for TCP, signals and abstract sockets",
        4 | 5 => "; too old for signals and abstract sockets",
        _ => "",
    }
}

/// Runs `work` in a process with namespaces of its own, and returns whether it succeeded.
fn try_in(flags: i32, work: impl FnOnce() -> io::Result<()>) -> Tried {
    let (read, write) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|e| e.to_string())?;
    let mut write = Some(write);
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let pid = sys::fork(flags, || {
        let named = || {
            if flags & libc::CLONE_NEWUSER != 0 {
                std::fs::write("/proc/self/setgroups", "deny")?;
                std::fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
                std::fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
            }
            Ok(())
        };
        match named().and_then(|()| work()) {
            Ok(()) => 0,
            Err(error) => {
                if let Some(write) = write.take() {
                    let _ = rustix::io::write(&write, error.to_string().as_bytes());
                }
                1
            }
        }
    });
    let pid = pid.map_err(|error| error.to_string())?;
    drop(write.take());
    let mut said = String::new();
    let _ = std::fs::File::from(read).read_to_string(&mut said);
    match waitpid(Some(pid), WaitOptions::empty()) {
        Ok(Some((_, status))) if status.exit_status() == Some(0) => Ok(()),
        _ if said.is_empty() => Err("the process that tried it was killed".to_owned()),
        _ => Err(said),
    }
}
