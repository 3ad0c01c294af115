//! A shell that says which setting lets commands find a program of the user's own toolchains.

use async_trait::async_trait;
use claw_core::port::{Child, HostRan, MissingProgram, Ran, RunContext, ShellHost, Start};
use claw_core::tool::{Argv, Script, Sight, Target, ToolError};
use claw_sandbox::shell::LocalShell;

use crate::app::{Setup, real};

/// The exit code of a shell that does not find a program.
const NOT_FOUND: i32 = 127;

/// Runs commands, and explains programs that were not found in the sandbox although the user has them.
pub(in crate::app) struct HintingShell {
    pub(in crate::app) shell: LocalShell,
    pub(in crate::app) setup: Setup,
}

#[async_trait]
impl ShellHost for HintingShell {
    async fn look(&self, context: &RunContext, targets: &[Target]) -> Result<Vec<Sight>, ToolError> {
        self.shell.look(context, targets).await
    }

    async fn run(&self, context: &RunContext, script: &Script) -> Result<HostRan, ToolError> {
        let mut ended = self.shell.run(context, script).await?;
        if context.sandboxed && ended.ran.exit == Some(NOT_FOUND) {
            ended.ran.missing = missing(&self.setup, &ended.ran);
        }
        Ok(ended)
    }

    async fn spawn(&self, context: &RunContext, argv: &Argv) -> Result<HostRan, ToolError> {
        self.shell.spawn(context, argv).await
    }

    async fn start(&self, context: &RunContext, start: &Start) -> Result<Child, ToolError> {
        self.shell.start(context, start).await
    }
}

/// Finds the program that a shell says it did not find, in a toolchain that commands may not read.
fn missing(setup: &Setup, ran: &Ran) -> Option<MissingProgram> {
    let lines = ran.errors.lines().rev().chain(ran.output.lines().rev());
    let names: Vec<&str> = lines.filter_map(not_found).collect();
    let toolchains = setup.toolchains().into_iter().filter(|toolchain| !toolchain.granted);
    for toolchain in toolchains {
        let Some(directory) = toolchain.program.parent() else { continue };
        let Some(name) = names.iter().find(|name| directory.join(name).is_file()) else { continue };
        let read = setup.read_setting(&toolchain.directories);
        return Some(MissingProgram {
            program: (*name).to_owned(),
            directory: real(directory).display().to_string(),
            setting: format!("`files.read = {}` in {}", read.list, read.place),
        });
    }
    None
}

/// The name of a program in the complaint of a shell: `sh: 1: cargo: not found`.
fn not_found(line: &str) -> Option<&str> {
    let rest = line.trim_end().strip_suffix("not found")?.trim_end_matches("command ").trim_end();
    let name = rest.strip_suffix(':')?.rsplit(':').next()?.trim();
    let is_name = !name.is_empty() && !name.contains(|c: char| c == '/' || c.is_whitespace());
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_read_from_the_complaints_of_shells() {
        assert_eq!(not_found("sh: 1: cargo: not found"), Some("cargo"));
        assert_eq!(not_found("/bin/sh: line 1: cargo: command not found"), Some("cargo"));
        assert_eq!(not_found("the file was not found"), None);
        assert_eq!(not_found("sh: 1: ../cargo: not found"), None);
    }
}
