//! A workspace, a shell over the real sandbox, and the results of commands in it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use claw_core::port::{RunContext, WorkspaceAccess};
use claw_core::tool::{Effects, Progress, Secrets};
use claw_sandbox::shell::{Finished, LocalShell, ShellOptions};
use claw_sandbox::{Grant, Launcher};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

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

    pub(crate) async fn script(&self, text: &str) -> Finished {
        self.finish(&["/bin/sh", "-c", text]).await
    }

    /// Runs an attack of this binary inside, with one argument.
    pub(crate) async fn attack(&self, name: &str, word: &str) -> Finished {
        let exe = std::env::current_exe().unwrap();
        self.finish(&[exe.to_str().unwrap(), "attack", name, word]).await
    }

    /// An attack that must be refused, and how.
    #[track_caller]
    pub(crate) fn refuses<'a>(
        &'a self,
        name: &'a str,
        word: &'a str,
        errors: &'a [i32],
    ) -> impl Future<Output = ()> + 'a {
        let at = std::panic::Location::caller();
        async move {
            let finished = self.attack(name, word).await;
            let expected = errors.iter().any(|error| finished.output == format!("refused {error}\n"));
            assert!(expected, "{at}: {finished:?}");
        }
    }
}

pub(crate) fn context(workspace: &Path, sandboxed: bool) -> RunContext {
    RunContext {
        workspace: workspace.canonicalize().unwrap(),
        sandbox_key: "test".into(),
        sandboxed,
        effects: Effects::ALL,
        access: WorkspaceAccess::Direct,
        network: false,
        readable: Vec::new(),
        granted: Vec::new(),
        home: None,
        hidden: Vec::new(),
        paths: Vec::new(),
        sights: Vec::new(),
        cancel: CancellationToken::new(),
        progress: Progress::silent(),
        secrets: Secrets::default(),
    }
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
