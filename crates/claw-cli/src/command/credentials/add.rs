//! `clawsmith credentials add`.

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use claw_core::store::ProgramSettings;
use claw_policy::program::{OPEN_VARIABLES, preset};
use claw_store::vault::ProgramEnv;
use clawsmith::app::Setup;
use clawsmith::app::credentials::{NewProgram, program_name};
use clawsmith::config::SHORTEST_SECRET;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use super::row::{self, Row};
use super::{Whose, failed};
use crate::cli::Session;
use crate::command::prompt;
use crate::command::tools::{self, runtime};
use crate::failure::{Failure, Outcome};
use crate::opened::with_app;
use crate::output::tell;

/// A program and its credentials.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// The program's name, such as `gh`.
    #[arg(required_unless_present = "file")]
    name: Option<String>,
    #[command(flatten)]
    whose: Whose,
    /// The program's file [default: the one in `$PATH`].
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// A variable to set, whose value is asked for; may be repeated [default: the usual ones of a known
    /// program].
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// A variable to set, with the value it has here; may be repeated.
    #[arg(long, value_name = "NAME")]
    from_env: Vec<String>,
    /// A pattern of forbidden arguments; may be repeated.
    #[arg(long, value_name = "PATTERN")]
    deny_args: Vec<String>,
    /// Arguments that would make it tell its credentials; more than once for more.
    #[arg(long, value_name = "PATTERN")]
    deny_verbose: Vec<String>,
    /// A program that it may run, by name or path, or a directory of them; may be repeated.
    #[arg(long, value_name = "PROGRAM")]
    helper: Vec<String>,
    /// The timeout, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    timeout: Option<u32>,
    /// Advice for agents about it.
    #[arg(long, value_name = "TEXT")]
    tips: Option<String>,
    /// Ignore the built-in settings for a program of this name.
    #[arg(long)]
    bare: bool,
    /// Load programs from a JSON file, in which `encrypted_env` is plain and sealed when it is loaded.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "binary", "env", "from_env", "deny_args", "deny_verbose", "helper", "timeout", "tips"])]
    file: Option<PathBuf>,
}

/// The hint if no value was given.
const EMPTY: &str = "give it on standard input, or with `--from-env NAME` from a variable that has it";

impl Add {
    pub(super) fn run(&self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let mut programs = match (&self.file, &self.name) {
            (Some(file), _) => {
                let rows = row::read(&session.around.directory.join(file))?.into_iter();
                rows.map(|row| self.of_row(row, &setup)).collect::<Result<Vec<_>, _>>()?
            }
            (None, Some(name)) => match self.given(name, session, &setup)? {
                Some(program) => vec![program],
                None => return Ok(ExitCode::from(130)),
            },
            (None, None) => return Err(Failure::usage("neither a program nor a file is named")),
        };
        let here = self.workspace_here(session);
        with_app(&setup, async |app| Ok(app.add_programs(&mut programs, here.as_deref()).await?))?;
        programs.iter().for_each(warn_of_short);
        if session.out.json {
            let places: Vec<_> = programs.iter().map(|program| &program.place).collect();
            session.out.json(&json!({ "added": places }))?;
            return Ok(ExitCode::SUCCESS);
        }
        for NewProgram { place, settings, env } in &programs {
            let names = env.names().join(", ");
            session.out.line(format_args!(
                "{}: `{}` is given {names}",
                program_name(place),
                settings.binary
            ))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the current directory, if it can be a workspace.
    fn workspace_here(&self, session: &Session) -> Option<PathBuf> {
        tools::workspace(None, &session.around).ok()
    }

    /// Returns the program that the command line names; `None` if the person gave up.
    fn given(&self, name: &str, session: &Session, setup: &Setup) -> Result<Option<NewProgram>, Failure> {
        let place = self.whose.place(setup.config(), name)?;
        let known = preset(name).filter(|_| !self.bare);
        let binary = self.binary_of(name, self.binary.as_deref(), setup)?;
        let mut settings = known.map_or(ProgramSettings::new(&binary), |known| known.settings(binary));
        settings.helpers.extend(self.helper.iter().cloned());
        add_patterns(&mut settings, &self.deny_args, &self.deny_verbose);
        if let Some(timeout) = self.timeout {
            settings.timeout_secs = timeout;
        }
        if let Some(tips) = &self.tips {
            settings.tips.clone_from(tips);
        }
        let mut asked = self.env.clone();
        if asked.is_empty() && self.from_env.is_empty() {
            match known {
                Some(known) => asked.extend(known.variables.first().map(ToString::to_string)),
                None => {
                    return Err(Failure::usage("no variable is named").hint("`--env NAME`, once for each"));
                }
            }
        }
        let mut values = Vec::new();
        for name in &self.from_env {
            let value = session.around.variable(name).and_then(|value| value.to_str());
            let unset = || Failure::usage(format!("`{name}` is not set here, or is not UTF-8"));
            values.push((name.clone(), SecretString::from(value.ok_or_else(unset)?)));
        }
        let Some(told) = self.told(&asked)? else { return Ok(None) };
        values.extend(told);
        let env = ProgramEnv::new(values).map_err(failed)?;
        Ok(Some(NewProgram { place, settings, env }))
    }

    /// The values that a person types or a pipe brings.
    fn told(&self, names: &[String]) -> Result<Option<Vec<(String, SecretString)>>, Failure> {
        let runtime = runtime()?;
        if names.len() > 1 && !io::stdin().is_terminal() {
            let Some(lines) = prompt::value(&runtime, "the values", EMPTY)? else { return Ok(None) };
            return of_lines(names, &lines).map(Some);
        }
        let mut values = Vec::new();
        for name in names {
            let Some(value) = prompt::value(&runtime, &format!("the value of `{name}`"), EMPTY)? else {
                return Ok(None);
            };
            values.push((name.clone(), value));
        }
        Ok(Some(values))
    }

    fn of_row(&self, row: Row, setup: &Setup) -> Result<NewProgram, Failure> {
        let whose = Whose { agent: self.whose.agent.clone().or(row.agent_id) };
        let place = whose.place(setup.config(), &row.binary_name)?;
        let binary = self.binary_of(&row.binary_name, row.binary_path.as_deref().map(Path::new), setup)?;
        // Presets apply to rows too: rows may add to them, and are seldom complete.
        let known = preset(&row.binary_name).filter(|_| !self.bare);
        let mut settings = known.map_or(ProgramSettings::new(&binary), |known| known.settings(binary));
        settings.helpers.extend(row.helpers);
        add_patterns(&mut settings, &row.deny_args, &row.deny_verbose);
        if !row.tips.is_empty() {
            settings.tips = row.tips;
        }
        settings.enabled = row.enabled;
        if let Some(timeout) = row.timeout_seconds {
            settings.timeout_secs = timeout;
        }
        let env = ProgramEnv::new(row.encrypted_env).map_err(failed)?;
        Ok(NewProgram { place, settings, env })
    }

    fn binary_of(&self, name: &str, given: Option<&Path>, setup: &Setup) -> Result<String, Failure> {
        let binary = match given {
            Some(path) => setup.around.directory.join(path),
            None => setup.program_in_path(name).ok_or_else(|| {
                Failure::usage(format!("no program `{name}` is in `$PATH`"))
                    .hint("give its place with `--binary`")
            })?,
        };
        // As it really is: a link could lead elsewhere by the time it runs.
        let binary = binary.canonicalize().unwrap_or(binary);
        let text = binary.to_str().map(ToOwned::to_owned);
        text.ok_or_else(|| Failure::usage(format!("`{}` is not UTF-8", binary.display())))
    }
}

/// Warns of short values: they cannot be told from ordinary text, and so not removed from the program's
/// output.
fn warn_of_short(NewProgram { place, env, .. }: &NewProgram) {
    let short = |(name, value): &(&str, &SecretString)| {
        !OPEN_VARIABLES.contains(name) && value.expose_secret().len() < SHORTEST_SECRET
    };
    for (name, _) in env.iter().filter(short) {
        tell(format_args!(
            "warning: the value of `{name}` is too short to be recognised, so nothing that `{}` prints is shown; use one \
             of at least {SHORTEST_SECRET} bytes",
            place.name
        ));
    }
}

/// Puts patterns before the known ones.
fn add_patterns(settings: &mut ProgramSettings, deny_args: &[String], deny_verbose: &[String]) {
    let lists = [(&mut settings.deny_args, deny_args), (&mut settings.deny_verbose, deny_verbose)];
    for (list, own) in lists {
        list.retain(|pattern| !own.contains(pattern));
        list.splice(0..0, own.iter().cloned());
    }
}

/// Reads `NAME=VALUE`, a line for each requested name.
fn of_lines(names: &[String], text: &SecretString) -> Result<Vec<(String, SecretString)>, Failure> {
    let mut values = Vec::new();
    for name in names {
        let line =
            text.expose_secret().lines().find_map(|line| line.strip_prefix(name.as_str())?.strip_prefix('='));
        let value = line.ok_or_else(|| {
            Failure::usage(format!("standard input has no line `{name}=...`"))
                .hint("give a line NAME=VALUE for each variable")
        })?;
        values.push((name.clone(), SecretString::from(value)));
    }
    Ok(values)
}
