//! `clawsmith`: tools for agents, from the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    claw_cli::run(std::env::args_os())
}
