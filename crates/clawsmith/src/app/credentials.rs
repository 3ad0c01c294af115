//! Credentialed programs: programs that run with credentials which no agent sees.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use claw_core::port::{Clock as _, ProgramHost as _, ProgramRun, RunContext, WorkspaceAccess};
use claw_core::store::{ProgramCard, ProgramPlace, ProgramSettings};
use claw_core::tool::{Argv, Digest, Effects, Progress, Secrets, ToolError};
use claw_host::SystemClock;
use claw_policy::program::{ArgumentRules, Route};
use claw_policy::sandbox::SandboxMode;
use claw_policy::scrub::Value as SecretValue;
use claw_sandbox::shell::{CredentialedPrograms, check_program, digest_program};
use claw_store::vault::ProgramEnv;
use tokio_util::sync::CancellationToken;

use super::{App, Error, Setup};

/// A program to be registered.
pub struct NewProgram {
    /// The program's tenant, agent and name.
    pub place: ProgramPlace,
    /// The program's file, rules and limits.
    pub settings: ProgramSettings,
    /// The program's variables.
    pub env: ProgramEnv,
}

/// The result of testing a program.
pub struct TestedProgram {
    /// The program.
    pub card: Arc<ProgramCard>,
    /// Why the arguments are refused; `None` if they are allowed.
    pub refused: Option<String>,
    /// The program's scrubbed output and its end, if it was run.
    pub ran: Option<claw_core::port::Ran>,
}

impl App {
    /// The credentialed programs of this tenant, with the names of their variables.
    pub async fn program_cards(&self) -> Result<Vec<ProgramCard>, Error> {
        Ok(self.store.programs(self.tenant()).await?)
    }

    /// Registers programs, replacing those of the same name. All are checked before the first is written. A
    /// program in the directory `workspace` is refused: agents that work there could change it.
    pub async fn add_programs(
        &self,
        programs: &mut [NewProgram],
        workspace: Option<&Path>,
    ) -> Result<(), Error> {
        for NewProgram { place, settings, .. } in &mut *programs {
            if let Some(agent) = &place.agent {
                self.must_have_agent(agent.as_str()).await?;
            }
            if workspace.is_some_and(|workspace| Path::new(&settings.binary).starts_with(workspace)) {
                return Err(Error::invalid(format!(
                    "`{}` lies in the current directory: where agents work in it, they can change it, and it is not run",
                    settings.binary
                ))
                .hint("put it where only its owner writes, or add it from another directory if none works here"));
            }
            ArgumentRules::compile(&settings.deny_args, &settings.deny_verbose)
                .map_err(|error| Error::invalid(error.to_string()))?;
            settings.digest = Some(held(Path::new(&settings.binary))?);
        }
        let vault = self.vault().await?;
        for NewProgram { place, settings, env } in programs {
            vault.put_program(place, settings.clone(), env, SystemClock.now()).await?;
        }
        Ok(())
    }

    /// Accepts a program's file as it is now, after an update; returns the file.
    pub async fn accept_program(&self, place: &ProgramPlace) -> Result<String, Error> {
        let vault = self.vault().await?;
        let (card, env) = vault.program(place).await?.ok_or_else(|| no_program(place))?;
        let digest = Some(held(Path::new(&card.settings.binary))?);
        let settings = ProgramSettings { digest, ..card.settings };
        let binary = settings.binary.clone();
        vault.put_program(place, settings, &env, SystemClock.now()).await?;
        Ok(binary)
    }

    /// Removes a program and its credentials.
    pub async fn remove_program(&self, place: &ProgramPlace) -> Result<(), Error> {
        match self.store.remove_program(place).await? {
            true => Ok(()),
            false => Err(no_program(place)),
        }
    }

    /// Checks a program as a call would, up to running it; with `run`, runs it too.
    pub async fn test_program(
        &self,
        place: &ProgramPlace,
        arguments: &[String],
        run: bool,
    ) -> Result<TestedProgram, Error> {
        let found = self.vault().await?.program(place).await?;
        let card = Arc::new(found.ok_or_else(|| no_program(place))?.0);
        let argv = std::iter::once(place.name.to_string()).chain(arguments.iter().cloned()).collect();
        let argv = Argv { argv, directory: ".".to_owned(), env: Vec::new(), credentials: true };
        let route = match Route::of_argv(&argv, &[Arc::clone(&card)]) {
            Route::Program(route) => route,
            _ if !card.settings.enabled => {
                return Err(
                    Error::failed(format!("{} is disabled", program_name(place))).hint("add it again")
                );
            }
            Route::Refused { reason, .. } => {
                return Ok(TestedProgram { card, refused: Some(reason), ran: None });
            }
            Route::Shell => return Err(Error::failed("it would run without its credentials")),
        };
        let (host, mut context) = (self.programs()?, self.setup.program_context()?);
        context.sights = host.look(&context, &route).await.map_err(not_run)?;
        let ran = match run {
            true => Some(self.run_scrubbed(&host, &context, &route).await?),
            false => None,
        };
        Ok(TestedProgram { card, refused: None, ran })
    }

    async fn run_scrubbed(
        &self,
        host: &CredentialedPrograms,
        context: &RunContext,
        run: &ProgramRun,
    ) -> Result<claw_core::port::Ran, Error> {
        // Changes on a layer are discarded: this is a test.
        let mut ran = host.run(context, run).await.map_err(not_run)?.ran;
        let values = context.secrets.reveal().into_iter().map(|text| SecretValue::new(text, "value"));
        let scrubber = self.setup.scrubber()?.with_values(values).map_err(|error| {
            Error::failed("what it printed cannot be shown, since its credentials cannot be scrubbed")
                .because(error)
        })?;
        ran.output = scrubber.scrub(&ran.output).into_owned();
        Ok(ran)
    }
}

impl Setup {
    fn program_context(&self) -> Result<RunContext, Error> {
        let workspace = self.around.directory.canonicalize();
        let workspace = workspace
            .map_err(|error| Error::invalid("the current directory cannot be used").because(error))?;
        Ok(RunContext {
            workspace,
            sandbox_key: "cli".into(),
            sandboxed: self.config().sandbox.mode != SandboxMode::Off,
            effects: Effects::ALL,
            access: WorkspaceAccess::Direct,
            network: true,
            readable: Vec::new(),
            granted: Vec::new(),
            home: None,
            hidden: Vec::new(),
            paths: Vec::new(),
            sights: Vec::new(),
            cancel: CancellationToken::new(),
            progress: Progress::silent(),
            secrets: Secrets::default(),
        })
    }

    /// Finds a usable program of this name in `$PATH`, by its absolute path.
    pub fn program_in_path(&self, name: &str) -> Option<PathBuf> {
        let path = self.around.variable("PATH")?;
        std::env::split_paths(path)
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join(name))
            .find(|file| usable(file).is_ok())
    }
}

/// Refuses a binary that cannot be run, or that others could replace.
pub fn usable(binary: &Path) -> Result<(), Error> {
    check_program(binary).map_err(|why| Error::failed(why).hint("give another file with `--binary`"))
}

/// The digest of a usable binary.
fn held(binary: &Path) -> Result<Digest, Error> {
    usable(binary)?;
    let unread = || format!("`{}` cannot be read", binary.display());
    digest_program(binary).map_err(|error| Error::failed(unread()).because(error))
}

/// A program's name, with its agent's.
pub fn program_name(place: &ProgramPlace) -> String {
    match &place.agent {
        Some(agent) => format!("program `{}` of agent `{agent}`", place.name),
        None => format!("program `{}`", place.name),
    }
}

fn no_program(place: &ProgramPlace) -> Error {
    Error::not_found(format!("there is no {}", program_name(place))).hint("clawsmith credentials list")
}

fn not_run(error: ToolError) -> Error {
    let failed = Error::failed(error.message);
    match error.advice {
        Some(advice) => failed.hint(advice),
        None => failed,
    }
}
