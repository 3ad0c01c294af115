//! A workspace, a shell over the real sandbox, and the results of commands in it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use claw_core::port::{RunContext, ShellHost};
use claw_sandbox::shell::{Finished, LocalShell, ShellOptions};
use claw_sandbox::{Grant, Launcher};
use tempfile::TempDir;

use crate::sandboxes::Sandbox;

pub(crate) struct Kit {
    pub(crate) workspace: TempDir,
    /// A directory beside the workspace, which no sandbox shows.
    pub(crate) outside: TempDir,
    pub(crate) options: ShellOptions,
    pub(crate) launcher: Arc<Launcher>,
    pub(crate) context: RunContext,
}

impl Kit {
    pub(crate) fn new() -> Self {
        let workspace = tempfile::tempdir().unwrap();
        let context = context(workspace.path(), true);
        let mut options = ShellOptions { grace: Duration::from_millis(300), ..ShellOptions::default() };
        options.grants = vec![Grant { path: std::env::current_exe().unwrap(), write: false }];
        let outside = tempfile::tempdir().unwrap();
        Self { workspace, outside, options, launcher: Arc::new(Launcher::new()), context }
    }

    pub(crate) fn on_the_host() -> Self {
        let mut kit = Self::new();
        kit.context.sandboxed = false;
        kit
    }

    pub(crate) fn shell(&self) -> LocalShell {
        LocalShell::new(Arc::clone(&self.launcher), self.options.clone())
    }

    pub(crate) async fn finish(&self, argv: &[&str]) -> Finished {
        let shell = self.shell();
        let argv = argv.iter().map(|word| (*word).to_owned()).collect();
        let command = shell.command(&self.context, argv, "", &[]).await;
        shell.finish(&self.context, command).await.unwrap()
    }
}

impl Sandbox for Kit {
    fn host(&self) -> Arc<dyn ShellHost> {
        Arc::new(self.shell())
    }

    fn workspace(&self) -> &Path {
        self.workspace.path()
    }

    fn context(&self) -> &RunContext {
        &self.context
    }

    fn context_mut(&mut self) -> &mut RunContext {
        &mut self.context
    }

    fn options_mut(&mut self) -> &mut ShellOptions {
        &mut self.options
    }

    async fn script(&self, text: &str) -> Finished {
        self.finish(&["/bin/sh", "-c", text]).await
    }

    async fn attack(&self, name: &str, word: &str) -> Finished {
        let exe = std::env::current_exe().unwrap();
        self.finish(&[exe.to_str().unwrap(), "attack", name, word]).await
    }
}

pub(crate) fn context(workspace: &Path, sandboxed: bool) -> RunContext {
    RunContext { sandboxed, ..RunContext::new(workspace.canonicalize().unwrap(), "test") }
}

/// Creates a directory outside `/tmp`, wherever the tests are built: where a workspace lies in `/tmp`, every command has a
/// `/tmp` of its own.
pub(crate) fn outside_tmp() -> TempDir {
    let home = std::env::var("HOME").unwrap_or_default();
    [env!("CARGO_TARGET_TMPDIR"), &home, "/srv", "/opt"]
        .into_iter()
        .filter(|path| !path.is_empty() && !path.starts_with("/tmp") && !path.starts_with("/var/tmp"))
        .find_map(|path| tempfile::tempdir_in(path).ok())
        .unwrap()
}

/// Returns the processes that have this word among their arguments or in their environment.
pub(crate) fn processes_with(word: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &u32| {
        let has = |file: &str| {
            let bytes = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            bytes.windows(word.len()).any(|window| window == word.as_bytes())
        };
        *pid != std::process::id() && (has("cmdline") || has("environ"))
    })
    .collect()
}
