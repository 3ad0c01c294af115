//! Credentialed programs: programs that run with credentials which no agent sees.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use claw_core::port::{Clock as _, ProgramHost as _, ProgramRun, RunContext};
use claw_core::store::{ProgramCard, ProgramPlace, ProgramSettings};
use claw_core::tool::{Argv, Digest, ToolError};
use claw_core::{AgentId, InvalidId, ProgramName};
use claw_host::SystemClock;
use claw_policy::program::{ArgumentRules, OPEN_VARIABLES, Route, preset};
use claw_policy::sandbox_mode::SandboxMode;
use claw_policy::scrub::Value as SecretValue;
use claw_sandbox::shell::{CredentialedPrograms, check_program, digest_program};
use claw_store::vault::ProgramEnv;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::access::{Permission, Visitor};
use super::{App, Error, Setup};
use crate::config::SHORTEST_SECRET;

/// A program to be registered.
pub struct NewProgram {
    /// The program's tenant, agent and name.
    pub place: ProgramPlace,
    /// The program's file, rules and limits.
    pub settings: ProgramSettings,
    /// The program's variables.
    pub env: ProgramEnv,
}

/// A program as files list it: rows that other systems keep can be loaded as they are.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramRow {
    /// The program's name.
    pub binary_name: String,
    /// The program's file; `None` for the one in `$PATH`.
    #[serde(default)]
    pub binary_path: Option<String>,
    /// The program's variables, in plain text: they are sealed when the program is registered.
    pub encrypted_env: BTreeMap<String, SecretString>,
    /// Patterns of forbidden arguments.
    #[serde(default)]
    pub deny_args: Vec<String>,
    /// Patterns of arguments that would make it tell its credentials.
    #[serde(default)]
    pub deny_verbose: Vec<String>,
    /// Programs that it may run.
    #[serde(default)]
    pub helpers: Vec<String>,
    /// Time limit of one call; `None` for the default.
    #[serde(default)]
    pub timeout_seconds: Option<u32>,
    /// Advice for agents about it.
    #[serde(default)]
    pub tips: String,
    /// The agent that may use it; `None` for all agents.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// False refuses every call.
    #[serde(default = "enabled")]
    pub enabled: bool,
}

const fn enabled() -> bool {
    true
}

/// Reads the programs of a file: one row, or a list of them.
pub fn read_programs(path: &Path) -> Result<Vec<ProgramRow>, Error> {
    let unread = || format!("`{}` cannot be read", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| Error::invalid(unread()).because(error))?;
    let rows = match text.trim_start().starts_with('[') {
        true => serde_json::from_str(&text),
        false => serde_json::from_str(&text).map(|row| vec![row]),
    };
    // The error may quote the text, and the text holds credentials: only its place is told.
    rows.map_err(|error| {
        let at = format!("{}: line {}, column {}", unread(), error.line(), error.column());
        Error::invalid(at).hint(
            "a row has `binary_name`, `encrypted_env`, `deny_args`, `deny_verbose`, `timeout_seconds`, `tips`, and may \
             have `binary_path`, `helpers`, `agent_id`, `enabled`",
        )
    })
}

/// Reads `NAME=VALUE`, a line for each requested name.
pub fn values_of_lines(names: &[String], text: &SecretString) -> Result<Vec<(String, SecretString)>, Error> {
    let value = |name: &String| {
        let mut lines = text.expose_secret().lines();
        let line = lines.find_map(|line| line.strip_prefix(name.as_str())?.strip_prefix('='));
        let missing = || Error::invalid(format!("standard input has no line `{name}=...`"));
        let line = line.ok_or_else(|| missing().hint("give a line NAME=VALUE for each variable"))?;
        Ok((name.clone(), SecretString::from(line)))
    };
    names.iter().map(value).collect()
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

impl NewProgram {
    /// Refuses a program whose file or rules cannot be used; its values do not matter. `workspace` is the directory in which
    /// it must not lie.
    pub fn check(&self, workspace: Option<&Path>) -> Result<(), Error> {
        ArgumentRules::compile(&self.settings.deny_args, &self.settings.deny_verbose)
            .map_err(|error| Error::invalid(error.to_string()))?;
        check_file(&self.settings.binary, workspace)
    }

    /// Warnings of short values: they cannot be told from ordinary text, and so not removed from the program's
    /// output.
    pub fn warnings(&self) -> Vec<String> {
        let short = |(name, value): &(&str, &SecretString)| {
            !OPEN_VARIABLES.contains(name) && value.expose_secret().len() < SHORTEST_SECRET
        };
        let warning = |(name, _)| {
            format!(
                "the value of `{name}` is too short to be recognised, so the output of `{}` is not shown; \
                 use a value of at least {SHORTEST_SECRET} bytes",
                self.place.name
            )
        };
        self.env.iter().filter(short).map(warning).collect()
    }
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
        for program in &mut *programs {
            if let Some(agent) = &program.place.agent {
                self.must_have_agent(agent.as_str()).await?;
            }
            program.check(workspace)?;
            program.settings.digest = Some(held(Path::new(&program.settings.binary))?);
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

    /// Checks that a visitor may register, accept and test programs: the owner of the deployment, since they run on its host.
    pub fn may_define_programs(&self, visitor: &Visitor) -> Result<(), Error> {
        visitor.may(Permission::DefinePrograms)?;
        match visitor.tenant == *self.setup.tenant() {
            true => Ok(()),
            false => {
                Err(Error::invalid("programs of this host are for the owner of the deployment to define")
                    .refusing())
            }
        }
    }

    /// Returns a program, with the names of its variables.
    pub async fn program_card(&self, place: &ProgramPlace) -> Result<ProgramCard, Error> {
        let cards = self.store.programs(&place.tenant).await?;
        cards.into_iter().find(|card| card.place == *place).ok_or_else(|| no_program(place))
    }

    /// Checks a program as a call would, up to running it; with `run`, runs it too, in the current directory.
    pub async fn test_program(
        &self,
        place: &ProgramPlace,
        arguments: &[String],
        run: bool,
    ) -> Result<TestedProgram, Error> {
        self.test_program_in(place, arguments, run, &self.setup.around.directory).await
    }

    /// The same, run in this directory.
    pub async fn test_program_in(
        &self,
        place: &ProgramPlace,
        arguments: &[String],
        run: bool,
        directory: &Path,
    ) -> Result<TestedProgram, Error> {
        let found = self.vault().await?.program(place).await?;
        let card = Arc::new(found.ok_or_else(|| no_program(place))?.0);
        let argv = std::iter::once(place.name.to_string()).chain(arguments.iter().cloned()).collect();
        let argv = Argv { argv, directory: ".".to_owned(), env: Vec::new(), credentials: true };
        let route = match Route::of_argv(&argv, &[Arc::clone(&card)]) {
            Route::Program(route) => route,
            _ if !card.settings.enabled => {
                return Err(Error::failed(format!("{} is disabled", program_name(place)))
                    .hint("enable it by adding it again with `clawsmith credentials add`"));
            }
            Route::Refused { reason, .. } => {
                return Ok(TestedProgram { card, refused: Some(reason), ran: None });
            }
            Route::Shell => return Err(Error::failed("the program would run without its credentials")),
        };
        let (host, mut context) = (self.programs()?, self.setup.program_context(directory)?);
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
            Error::failed(
                "the output cannot be shown, because the program's credentials cannot be scrubbed from it",
            )
            .because(error)
        })?;
        ran.output = scrubber.scrub(&ran.output).into_owned();
        Ok(ran)
    }
}

impl Setup {
    /// The program of a row. Settings that are known for its name apply too, unless it is `bare`: rows may add to
    /// them, and are seldom complete.
    pub fn new_program(&self, row: ProgramRow, bare: bool) -> Result<NewProgram, Error> {
        let place = self.program_place(&row.binary_name, row.agent_id.as_deref())?;
        let binary = self.binary_of(&row.binary_name, row.binary_path.as_deref().map(Path::new))?;
        let known = preset(&row.binary_name).filter(|_| !bare);
        let mut settings = known.map_or(ProgramSettings::new(&binary), |known| known.settings(binary));
        settings.helpers.extend(row.helpers);
        let lists =
            [(&mut settings.deny_args, row.deny_args), (&mut settings.deny_verbose, row.deny_verbose)];
        for (list, own) in lists {
            list.retain(|pattern| !own.contains(pattern));
            list.splice(0..0, own);
        }
        settings.timeout_secs = row.timeout_seconds.unwrap_or(settings.timeout_secs);
        if !row.tips.is_empty() {
            settings.tips = row.tips;
        }
        settings.enabled = row.enabled;
        let env = ProgramEnv::new(row.encrypted_env)?;
        Ok(NewProgram { place, settings, env })
    }

    /// A program of an agent, or of all agents.
    pub fn program_place(&self, name: &str, agent: Option<&str>) -> Result<ProgramPlace, Error> {
        let wrong = |error: InvalidId| Error::invalid(error.to_string());
        let name = ProgramName::new(name).map_err(wrong)?;
        let agent = agent.map(AgentId::new).transpose().map_err(wrong)?;
        Ok(ProgramPlace { tenant: self.tenant().clone(), agent, name })
    }

    /// Refuses a program that cannot be given credentials, before they are asked for: one that is not there, that others
    /// could replace, or that lies in the directory `workspace`.
    pub fn check_binary(
        &self,
        name: &str,
        given: Option<&Path>,
        workspace: Option<&Path>,
    ) -> Result<(), Error> {
        check_file(&self.binary_of(name, given)?, workspace)
    }

    fn binary_of(&self, name: &str, given: Option<&Path>) -> Result<String, Error> {
        let binary = match given {
            Some(path) => self.around.directory.join(path),
            None => self.program_in_path(name).ok_or_else(|| {
                Error::invalid(format!("no program `{name}` is in `$PATH`"))
                    .hint("give its path with `--binary`")
            })?,
        };
        // As it really is: a link could lead elsewhere by the time it runs.
        let binary = binary.canonicalize().unwrap_or(binary);
        let text = binary.to_str().map(ToOwned::to_owned);
        text.ok_or_else(|| Error::invalid(format!("`{}` is not UTF-8", binary.display())))
    }

    fn program_context(&self, directory: &Path) -> Result<RunContext, Error> {
        let workspace = directory.canonicalize().map_err(|error| {
            Error::invalid(format!("`{}` cannot be used", directory.display())).because(error)
        })?;
        Ok(RunContext {
            sandboxed: self.config().sandbox.mode != SandboxMode::Off,
            network: true,
            ..RunContext::new(workspace, "cli")
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

/// Refuses a binary that is not there, that others could replace, or that is in the directory `workspace`.
fn check_file(binary: &str, workspace: Option<&Path>) -> Result<(), Error> {
    // First whether it is there: only then the path is its real one.
    usable(Path::new(binary))?;
    match workspace.is_some_and(|workspace| Path::new(binary).starts_with(workspace)) {
        true => Err(Error::invalid(format!(
            "`{binary}` is in the current directory, and agents may be able to change files there"
        ))
        .hint(
            "move the program to a directory where only the directory's owner can write; or, if no agent works in the \
             current directory, leave it where it is and run this command from a different directory",
        )),
        false => Ok(()),
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
