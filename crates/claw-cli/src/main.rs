//! `clawsmith`: tools for agents, from the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: this process may have been started to hold commands, or to read a document.
    clawsmith::app::enter_if_asked();
    claw_cli::run(std::env::args_os())
}
