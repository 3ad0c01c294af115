//! This program inside a container: its first process, and one beside each command.
//!
//! It is mounted there with its own loader and libraries, so that any image will do. The first process only
//! adopts orphans and ends the container when nobody uses it. Each command has a keeper of its own, which
//! confines it as the kernel sandbox does, and kills it with all its children when the program outside is
//! gone.

mod file;
mod init;
mod keep;
mod look;
mod streams;
mod sweep;

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::time::Duration;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use super::super::kernel::sys;
use super::wire::{self, Order, Told};

/// The path at which this program is mounted.
pub(crate) const PROGRAM: &str = "/.clawsmith/program";
/// Makes it the first process of a container; its idle time and its maximum age follow, in seconds.
pub(crate) const FIRST: &str = "be-the-first-process";
/// Makes it the keeper of one command.
pub(crate) const KEEP: &str = "take-an-order-from-standard-input";

/// Performs its role if this process was started inside a container, and then does not return.
pub(crate) fn enter_if_asked() {
    let arguments: Vec<_> = std::env::args_os().collect();
    let words: Vec<&OsStr> = arguments.iter().map(AsRef::as_ref).collect();
    let ended = match words.as_slice() {
        [program, word, idle, age] if *program == PROGRAM && *word == FIRST => {
            let seconds = |text: &OsStr| text.to_str()?.parse().ok().map(Duration::from_secs);
            match (seconds(idle), seconds(age)) {
                (Some(idle), Some(age)) => init::stay(idle, age),
                _ => Err(io::ErrorKind::InvalidInput.into()),
            }
        }
        [program, word] if *program == PROGRAM && *word == KEEP => serve(),
        _ => return,
    };
    sys::exit(u8::from(ended.is_err()));
}

fn serve() -> io::Result<()> {
    // Nothing of this process is to be looked at by the command, which has the same user.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    sys::reset_signals();
    // Were it to end because nobody reads, it could not end what it keeps.
    sys::ignore_broken_pipes();
    sweep::sweep();
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let length = super::super::helper::wire::frame_length(length)?;
    let mut order = vec![0; length];
    input.read_exact(&mut order)?;
    let order: Order = serde_json::from_slice(&order).map_err(io::Error::other)?;
    output.write_all(&told(&Told::Taken))?;
    match order {
        Order::Look(targets) => {
            let seen = targets.iter().map(look::look).collect();
            output.write_all(&told(&Told::Looked(seen)))
        }
        Order::Sweep => output.write_all(&told(&Told::Swept(sweep::sweep()))),
        Order::File(filing) => file::file(*filing, input, output),
        Order::Run(running) => keep::keep(*running, input, output),
    }
}

fn told(told: &Told) -> Vec<u8> {
    wire::piece(wire::TOLD, &serde_json::to_vec(told).unwrap_or_default())
}
