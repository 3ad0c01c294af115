//! `clawsmith credentials`: programs that run with credentials which no agent sees.

mod add;
mod row;
mod test;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use claw_core::store::{ProgramCard, ProgramPlace, StoreError};
use claw_core::{AgentId, InvalidId, ProgramName};
use clawsmith::app::credentials::program_name;
use clawsmith::config::Config;
use serde_json::json;

use super::ledger::time;
use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::opened::{with_app, with_existing_app};
use crate::output::{Cell, Table};

/// The operations on credentialed programs.
#[derive(Debug, Subcommand)]
pub(crate) enum Credentials {
    /// Give a program credentials, replacing those it had.
    #[command(
        after_help = "Values are read from standard input: one value, or a line NAME=VALUE for each; on a \
terminal you are asked for each, and it does not show. They are never arguments: others can read those.
Known programs (aws, gcloud, gh, git, kubectl, terraform) come with what they must not be asked for.

Examples:
  clawsmith credentials add gh
  clawsmith credentials add gh --from-env GH_TOKEN --agent researcher
  pass show deploy | clawsmith credentials add deployer --binary /usr/local/bin/deployer --env DEPLOY_TOKEN
  clawsmith credentials add --file programs.json"
    )]
    Add(add::Add),
    /// List the programs; values are never shown.
    #[command(after_help = "Examples:
  clawsmith credentials list
  clawsmith credentials list --json")]
    List,
    /// Check a program as a call would: its file, its credentials, its sandbox, and whether arguments are refused.
    #[command(
        after_help = "Exit code 1 where it could not be run, 3 where the arguments are refused. With `--run` it is run as an \
agent would run it, with what it prints scrubbed, and the exit code is the program's.

Examples:
  clawsmith credentials test gh
  clawsmith credentials test gh -- auth token
  clawsmith credentials test gh --run -- api user"
    )]
    Test(test::Test),
    /// Take a program's file as it is now, after it was updated. Its credentials stay.
    #[command(after_help = "A file that is not what it was when the program was added is not run.

Examples:
  clawsmith credentials accept gh
  clawsmith credentials accept gh --agent researcher")]
    Accept(Named),
    /// Remove a program and its credentials.
    #[command(after_help = "Examples:
  clawsmith credentials remove gh
  clawsmith credentials remove gh --agent researcher")]
    Remove(Named),
}

/// A program.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// The program's name, such as `gh`.
    name: String,
    #[command(flatten)]
    whose: Whose,
}

/// The owner of a program.
#[derive(Debug, Args)]
pub(crate) struct Whose {
    /// The agent that may use it [default: all agents].
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
}

impl Credentials {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::Add(add) => add.run(session),
            Self::List => list(session),
            Self::Test(test) => test.run(session),
            Self::Accept(named) => named.accept(session),
            Self::Remove(named) => named.remove(session),
        }
    }
}

impl Whose {
    fn place(&self, config: &Config, name: &str) -> Result<ProgramPlace, Failure> {
        let wrong = |error: InvalidId| Failure::usage(error.to_string());
        let name = ProgramName::new(name).map_err(wrong)?;
        let agent = self.agent.as_ref().map(AgentId::new).transpose().map_err(wrong)?;
        Ok(ProgramPlace { tenant: config.tenant.clone(), agent, name })
    }
}

impl Named {
    fn accept(&self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let place = self.whose.place(setup.config(), &self.name)?;
        let binary = with_app(&setup, async |app| Ok(app.accept_program(&place).await?))?;
        if session.out.json {
            session.out.json(&json!({ "accepted": place }))?;
        } else {
            session.out.line(format_args!("{}: `{binary}` is taken as it is now", program_name(&place)))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn remove(&self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let place = self.whose.place(setup.config(), &self.name)?;
        with_app(&setup, async |app| Ok(app.remove_program(&place).await?))?;
        if session.out.json {
            session.out.json(&json!({ "removed": place }))?;
        } else {
            session.out.line(format_args!("{} is removed", program_name(&place)))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn list(session: &mut Session) -> Outcome {
    let setup = session.load()?;
    let cards =
        with_existing_app(&setup, async |app| app.store().programs(app.tenant()).await.map_err(failed))?;
    let cards = cards.unwrap_or_default();
    if session.out.json {
        session.out.json(&cards)?;
        return Ok(ExitCode::SUCCESS);
    }
    if cards.is_empty() {
        session.out.line(format_args!("no program of tenant `{}` has credentials", setup.config().tenant))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["name", "agent", "binary", "variables", "refuses", "written"]);
    for ProgramCard { place, settings, variables, at } in &cards {
        let agent = match &place.agent {
            Some(agent) => Cell::new(agent),
            None => Cell::quiet("all"),
        };
        let patterns = settings.deny_args.len() + settings.deny_verbose.len();
        let refuses = match settings.enabled {
            true => Cell::new(format!("{patterns} patterns")),
            false => Cell::warning("everything: it is disabled"),
        };
        table.row([
            Cell::strong(&place.name),
            agent,
            Cell::new(&settings.binary),
            Cell::new(variables.join(", ")),
            refuses,
            Cell::quiet(time(*at)),
        ]);
    }
    session.out.table(&table)?;
    Ok(ExitCode::SUCCESS)
}

/// Converts a store's error, which says itself what happened and what to try.
fn failed(error: StoreError) -> Failure {
    Failure::failed(error.to_string())
}
