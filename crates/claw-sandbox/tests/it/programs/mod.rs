//! Programs with credentials in workspaces that an agent has prepared.

mod git;
mod planted;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::{HostRan, ProgramHost as _, ProgramRun, UnixMillis};
use claw_core::store::{Credentials, OpenProgram, ProgramCard, ProgramPlace, ProgramSettings, StoreError};
use claw_core::tool::ToolError;
use claw_core::{ProgramName, TenantId};
use claw_policy::git_config::harmless_settings;
use claw_policy::program::OPEN_VARIABLES;
use claw_sandbox::shell::{CredentialedPrograms, ProgramRules, digest_program};
use tokio::sync::watch;

use crate::kit::Kit;

const TOKEN: &str = "hunter2-and-more-than-that";

/// A source of one program with its variables.
struct One(ProgramCard, Vec<(String, String)>);

#[async_trait]
impl Credentials for One {
    fn changes(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }

    async fn programs(&self, _: &TenantId) -> Result<Vec<ProgramCard>, StoreError> {
        Ok(vec![self.0.clone()])
    }

    async fn open(&self, _: &ProgramPlace) -> Result<Option<OpenProgram>, StoreError> {
        Ok(Some(OpenProgram { card: self.0.clone(), variables: self.1.clone() }))
    }
}

/// A registered program in the workspace of a kit.
struct Registered {
    kit: Kit,
    card: ProgramCard,
    variables: Vec<(String, String)>,
    /// Directories that other agents can change.
    changeable: Vec<PathBuf>,
    /// The registered time limit.
    seconds: u32,
}

impl Registered {
    /// Registers a file with the settings of a preset, without its rules about arguments: those belong to the
    /// policy, and the sandbox must hold without them.
    fn new(name: &str, binary: &Path, helpers: &[&str], variables: &[(&str, &str)]) -> Self {
        let binary = binary.canonicalize().unwrap();
        let settings = ProgramSettings {
            digest: Some(digest_program(&binary).unwrap()),
            helpers: helpers.iter().map(ToString::to_string).collect(),
            ..ProgramSettings::new(binary.to_str().unwrap())
        };
        let (tenant, name) = (TenantId::new("main").unwrap(), ProgramName::new(name).unwrap());
        let place = ProgramPlace { tenant, agent: None, name };
        let variables: Vec<_> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let names = variables.iter().map(|(name, _)| name.clone()).collect();
        let card = ProgramCard { place, settings, variables: names, at: UnixMillis(1) };
        Self { kit: Kit::new(), card, variables, changeable: Vec::new(), seconds: 20 }
    }

    fn workspace(&self) -> &Path {
        self.kit.workspace.path()
    }

    /// Writes a file of the workspace that can be executed.
    fn plant(&self, path: &str, text: &str) -> PathBuf {
        let path = self.workspace().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    async fn try_run(&self, directory: &str, arguments: &[&str]) -> Result<HostRan, ToolError> {
        let rules = ProgramRules { open: OPEN_VARIABLES, harmless: harmless_settings };
        let source = Arc::new(One(self.card.clone(), self.variables.clone()));
        let programs = CredentialedPrograms::new(self.kit.shell(), source, rules);
        let programs = programs.refusing(self.changeable.clone());
        let run = ProgramRun {
            program: Arc::new(self.card.clone()),
            word: self.card.place.name.to_string(),
            arguments: arguments.iter().map(ToString::to_string).collect(),
            directory: directory.to_owned(),
            apart: false,
            timeout_secs: self.seconds,
        };
        let mut context = self.kit.context.clone();
        context.sights = programs.look(&context, &run).await?;
        programs.run(&context, &run).await
    }

    async fn run(&self, directory: &str, arguments: &[&str]) -> HostRan {
        self.try_run(directory, arguments).await.unwrap()
    }
}
