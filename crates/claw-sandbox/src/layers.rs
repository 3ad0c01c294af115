//! The layers of a sandbox, and which of them work here.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A kind of confinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerName {
    /// The program lets its helper in; all others need it.
    Helper,
    /// No program gains more rights than its caller has.
    NoNewPrivileges,
    /// Restricts the reachable files, and TCP.
    Landlock,
    /// Restricts system calls.
    Seccomp,
    /// Rights that hold inside only.
    Users,
    /// A tree of files of its own.
    Mounts,
    /// No process outside is visible, and all end together.
    Processes,
    /// No interface of this machine.
    Network,
    /// No shared memory and message queues of others.
    Ipc,
    /// A host name of its own.
    HostName,
    /// A `/proc` of its own.
    Proc,
    /// A limit on memory, of all processes together.
    Memory,
    /// A limit on the number of processes.
    ProcessCount,
    /// A limit on processors.
    Cpu,
    /// Limits for each process: open files, file size, processor time.
    ResourceLimits,
}

impl LayerName {
    /// All layers, from the outside in.
    pub const ALL: [Self; 15] = [
        Self::Helper,
        Self::NoNewPrivileges,
        Self::Landlock,
        Self::Seccomp,
        Self::Users,
        Self::Mounts,
        Self::Processes,
        Self::Network,
        Self::Ipc,
        Self::HostName,
        Self::Proc,
        Self::Memory,
        Self::ProcessCount,
        Self::Cpu,
        Self::ResourceLimits,
    ];

    /// Returns the name for display.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Helper => "helper",
            Self::NoNewPrivileges => "no-new-privileges",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::Users => "users",
            Self::Mounts => "mounts",
            Self::Processes => "processes",
            Self::Network => "network",
            Self::Ipc => "ipc",
            Self::HostName => "host-name",
            Self::Proc => "proc",
            Self::Memory => "memory",
            Self::ProcessCount => "process-count",
            Self::Cpu => "cpu",
            Self::ResourceLimits => "resource-limits",
        }
    }
}

impl fmt::Display for LayerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A layer, and whether it works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// The layer's name.
    pub name: LayerName,
    /// Says whether it works.
    pub standing: Standing,
}

/// Says whether a layer works here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "standing", content = "detail")]
pub enum Standing {
    /// The layer was tried and works; the text says by what means.
    Works(String),
    /// The layer does not work; the text says why.
    Missing(String),
}

/// The layers with their standing: probed once, by the helper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Layers(Vec<Layer>);

impl Layers {
    pub(super) fn new(mut standing: impl FnMut(LayerName) -> Standing) -> Self {
        Self(LayerName::ALL.into_iter().map(|name| Layer { name, standing: standing(name) }).collect())
    }

    /// Returns layers that are all missing, for one reason.
    pub(super) fn none(reason: &str) -> Self {
        Self::new(|_| Standing::Missing(reason.to_owned()))
    }

    /// Iterates over all layers, from the outside in.
    pub fn iter(&self) -> impl Iterator<Item = &Layer> {
        self.0.iter()
    }

    /// Returns whether a layer works.
    pub fn works(&self, name: LayerName) -> bool {
        self.missing(name).is_none()
    }

    /// Returns why a layer does not work; `None` if it does.
    pub fn missing(&self, name: LayerName) -> Option<&str> {
        match self.0.iter().find(|layer| layer.name == name).map(|layer| &layer.standing) {
            Some(Standing::Works(_)) => None,
            Some(Standing::Missing(reason)) => Some(reason),
            None => Some("it was not probed"),
        }
    }
}
