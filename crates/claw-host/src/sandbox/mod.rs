//! Where commands run: what they reach, what holds them, and the helper that puts them there.
//!
//! The kernel sandbox needs no set-up and no other program. What it is made of is probed once ([`Layers`]); a
//! layer that is required and missing refuses the command. Between the program and a command stands a helper:
//! this very program, executed again, with one thread and an empty environment. A program that embeds us lets it
//! in by calling [`enter_if_asked`] first in `main`; without that no sandbox is entered, and the layers say so.

#[cfg(feature = "docker")]
pub mod docker;
mod error;
mod helper;
mod kernel;
mod launcher;
mod layers;
mod reach;

pub use error::SandboxError;
pub use helper::enter_if_asked;
pub use launcher::{Confinement, Ended, Launch, Launcher, REQUIRED, Running, Stopped};
pub use layers::{Layer, LayerName, Layers, Standing};
pub use reach::{Execute, Grant, HOME, Limits, Network, Reach, WorkspaceLayer};

/// Returns whether this kernel can close TCP ports to commands that have the machine's network. Where it cannot, such
/// commands of a program that listens are refused.
pub fn can_close_ports() -> bool {
    kernel::sys::landlock_version().is_ok_and(|version| version >= 4)
}
