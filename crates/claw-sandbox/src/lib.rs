//! Commands and the sandboxes they run in: their reach, their confinement, and the helper that starts them.
//!
//! The kernel sandbox needs no set-up and no other program. Its layers are probed once ([`Layers`]); if a
//! required layer is missing, the command is refused. Between the program and a command stands a helper: this
//! very program, executed again, with one thread and an empty environment. An embedding program enables it by
//! calling [`enter_if_asked`] first in `main`; without that no sandbox is entered, and the layers say so.

#![cfg_attr(
    not(feature = "docker"),
    expect(dead_code, unused_imports, reason = "the Docker sandbox shares these parts of the kernel's")
)]

#[cfg(feature = "docker")]
pub mod docker;
mod error;
mod git_control_files;
mod helper;
mod kernel;
mod launcher;
mod layers;
mod limits;
mod reach;
pub mod shell;

pub use error::SandboxError;
pub use helper::enter_if_asked;
pub use launcher::{Confinement, Ended, Launch, Launcher, REQUIRED, Running, Stopped};
pub use layers::{Layer, LayerName, Layers, Standing};
pub use limits::Limits;
pub use reach::{Discarded, Execute, Grant, HOME, Network, Reach, WorkspaceLayer};

/// Returns whether this kernel can close TCP ports to commands that have the machine's network. Where it cannot, such
/// commands of a program that listens are refused.
pub fn can_close_ports() -> bool {
    kernel::sys::landlock_version().is_ok_and(|version| version >= 4)
}

/// Limits the heaps of the C library to one for each processor, to be called before threads are started. Otherwise glibc makes
/// one for nearly every thread, and memory that was freed in one serves no other.
pub fn limit_heaps() {
    // With a single one, threads would wait for each other.
    kernel::sys::limit_heaps(
        std::thread::available_parallelism().map_or(2, |processors| processors.get().max(2)),
    );
}

/// Gives the memory back that a start needed and nothing uses any more: pages of the program's code are unmapped, and mapped
/// again when they are next executed. Saves a process that waits most of its resident memory.
pub fn release_code() -> std::io::Result<()> {
    kernel::sys::release_code()
}
