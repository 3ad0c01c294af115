//! `clawsmith credentials add`.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use claw_policy::program::preset;
use claw_terminal::tell;
use clawsmith::app::caller::local_workspace;
use clawsmith::app::credentials::{NewProgram, ProgramRow, program_name, read_programs, values_of_lines};
use secrecy::SecretString;
use serde_json::json;

use super::Whose;
use crate::cli::Session;
use crate::command::prompt;
use crate::exit_code::{Failure, Outcome};
use crate::opened::{runtime, with_app};

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
    /// A pattern of arguments that would reveal the credentials; may be repeated.
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
    /// Load programs from a JSON file. Its `encrypted_env` values are plain text and are encrypted when loaded.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "binary", "env", "from_env", "deny_args", "deny_verbose", "helper", "timeout", "tips"])]
    file: Option<PathBuf>,
}

/// The hint if no value was given.
const EMPTY: &str =
    "give the value on standard input, or name a variable that holds it with `--from-env NAME`";

/// Variables by their names.
type Values = BTreeMap<String, SecretString>;

impl Add {
    pub(super) fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let bare = self.bare;
        // Programs must not lie in the current directory, if that can be a workspace.
        let here = local_workspace(None, &session.around).ok();
        let rows = match (&self.file, &self.name) {
            (Some(file), _) => {
                let mut rows = read_programs(&session.around.directory.join(file))?;
                if let Some(agent) = &self.whose.agent {
                    rows.iter_mut().for_each(|row| row.agent_id = Some(agent.clone()));
                }
                rows
            }
            (None, Some(name)) => {
                // Before anybody types a secret in vain.
                if let Some(agent) = &self.whose.agent {
                    runtime()?.block_on(setup.must_have_agent(agent))?;
                }
                setup.check_binary(name, self.binary.as_deref(), here.as_deref())?;
                let asked = self.asked(name)?;
                let blank = |name: &String| (name.clone(), SecretString::default());
                let unset = asked.iter().chain(&self.from_env).map(blank).collect();
                setup.new_program(self.row(name, unset), bare)?.check(here.as_deref())?;
                match self.values(&asked, session)? {
                    Some(env) => vec![self.row(name, env)],
                    None => return Ok(ExitCode::from(130)),
                }
            }
            (None, None) => return Err(Failure::usage("name a program, or a file with `--file`")),
        };
        let mut programs =
            rows.into_iter().map(|row| setup.new_program(row, bare)).collect::<Result<Vec<_>, _>>()?;
        with_app(&setup, async |app| Ok(app.add_programs(&mut programs, here.as_deref()).await?))?;
        let warnings = programs.iter().flat_map(NewProgram::warnings);
        warnings.for_each(|warning| tell(format_args!("warning: {warning}")));
        let places: Vec<_> = programs.iter().map(|program| &program.place).collect();
        session.shown(&json!({ "added": places }), |out| {
            for NewProgram { place, settings, env } in &programs {
                let (name, binary, names) = (program_name(place), &settings.binary, env.names().join(", "));
                out.line(format_args!("{name}: `{binary}` runs with {names}"))?;
            }
            Ok(())
        })
    }

    /// Returns the names of the variables whose values are asked for.
    fn asked(&self, name: &str) -> Result<Vec<String>, Failure> {
        if !self.env.is_empty() || !self.from_env.is_empty() {
            return Ok(self.env.clone());
        }
        match preset(name).filter(|_| !self.bare) {
            Some(known) => Ok(known.variables.first().map(ToString::to_string).into_iter().collect()),
            None => Err(Failure::usage("no variable is named").hint("name each with `--env NAME`")),
        }
    }

    /// Returns the values from the environment and those that are asked for; `None` if the person gave up.
    fn values(&self, asked: &[String], session: &Session) -> Result<Option<Values>, Failure> {
        let mut env = Values::new();
        for name in &self.from_env {
            let value = session.variable(name);
            let unset = || Failure::usage(format!("`{name}` is not set here, or is not UTF-8"));
            env.insert(name.clone(), SecretString::from(value.ok_or_else(unset)?));
        }
        let Some(told) = told(asked)? else { return Ok(None) };
        env.extend(told);
        Ok(Some(env))
    }

    /// Returns the program that the command line names, with these variables.
    fn row(&self, name: &str, env: Values) -> ProgramRow {
        ProgramRow {
            binary_name: name.to_owned(),
            binary_path: self.binary.as_ref().map(|path| path.to_string_lossy().into_owned()),
            encrypted_env: env,
            deny_args: self.deny_args.clone(),
            deny_verbose: self.deny_verbose.clone(),
            helpers: self.helper.clone(),
            timeout_seconds: self.timeout,
            tips: self.tips.clone().unwrap_or_default(),
            agent_id: self.whose.agent.clone(),
            enabled: true,
        }
    }
}

/// The values that a person types or a pipe brings.
fn told(names: &[String]) -> Result<Option<Vec<(String, SecretString)>>, Failure> {
    let runtime = runtime()?;
    if names.len() > 1 && !io::stdin().is_terminal() {
        let Some(lines) = prompt::value(&runtime, "the values", EMPTY)? else { return Ok(None) };
        return Ok(Some(values_of_lines(names, &lines)?));
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
