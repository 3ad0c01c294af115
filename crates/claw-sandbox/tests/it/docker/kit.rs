//! A workspace, a shell over a real engine, and the results of commands in its containers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use claw_core::port::{RunContext, ShellHost};
use claw_sandbox::Launcher;
use claw_sandbox::docker::{DockerCommand, DockerError, DockerOptions, DockerShell};
use claw_sandbox::shell::{Finished, LocalShell, ShellOptions};
use tempfile::TempDir;

use crate::kit::context;
use crate::sandboxes::Sandbox;

/// The image that `scripts/docker.sh` makes: busybox, and nothing else.
pub(crate) const IMAGE: &str = "clawsmith-test/busybox:latest";

pub(crate) struct DockerKit {
    pub(crate) workspace: TempDir,
    /// A directory beside the workspace, which no container shows.
    pub(crate) outside: TempDir,
    pub(crate) options: ShellOptions,
    pub(crate) docker: DockerOptions,
    pub(crate) context: RunContext,
}

/// Returns the engine's socket; prints a note and returns `None` if there is none.
pub(crate) fn socket() -> Option<PathBuf> {
    match std::env::var("CLAWSMITH_TEST_DOCKER") {
        Ok(promised) if promised == "required" => {
            panic!("an engine was promised and is not there; run `scripts/with-docker.sh cargo test`")
        }
        Ok(socket) => Some(PathBuf::from(socket)),
        Err(_) => {
            eprintln!("skipped: no engine; run `scripts/with-docker.sh cargo test` as root");
            None
        }
    }
}

impl DockerKit {
    /// Creates a kit; `None` if there is no engine.
    pub(crate) fn new() -> Option<Self> {
        let docker = DockerOptions {
            socket: socket()?,
            image: IMAGE.to_owned(),
            memory: 128 << 20,
            processes: 60,
            idle: Duration::from_secs(10),
            installation: format!("tests-{}", std::process::id()),
            ..DockerOptions::default()
        };
        let workspace = tempfile::tempdir().unwrap();
        let mut context = context(workspace.path(), true);
        // Tests run at the same time, and must not share.
        context.sandbox_key = workspace.path().to_str().unwrap().into();
        let options = ShellOptions { grace: Duration::from_millis(300), ..ShellOptions::default() };
        Some(Self { workspace, outside: tempfile::tempdir().unwrap(), options, docker, context })
    }

    pub(crate) fn shell(&self) -> DockerShell {
        let local = LocalShell::new(Arc::new(Launcher::new()), self.options.clone());
        DockerShell::new(local, self.docker.clone())
    }

    pub(crate) async fn try_script(&self, text: &str) -> Result<Finished, DockerError> {
        let command = DockerCommand { argv: vec![text.to_owned()], script: true, ..DockerCommand::default() };
        self.shell().finish(&self.context, command).await
    }

    /// The names of the containers that this kit's key has now.
    pub(crate) async fn containers(&self) -> Vec<String> {
        let listed = self.shell().containers().await.unwrap();
        let ours = listed.into_iter().filter(|one| one.key == self.context.sandbox_key.as_str());
        ours.map(|one| one.id).collect()
    }
}

impl Sandbox for DockerKit {
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
        self.try_script(text).await.unwrap()
    }

    /// This binary is mounted in the container as its keeper.
    async fn attack(&self, name: &str, word: &str) -> Finished {
        let own = "/.clawsmith/lib/ld-*";
        let argv = "--library-path /.clawsmith/lib /.clawsmith/program";
        self.script(&format!("exec $(ls {own}) {argv} attack '{name}' '{word}'")).await
    }
}
