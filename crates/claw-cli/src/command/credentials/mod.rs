//! `clawsmith credentials`: programs that run with credentials which no agent sees.

mod add;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use claw_core::counted::counted;
use claw_core::store::{ProgramCard, ProgramPlace};
use claw_terminal::Cell;
use clawsmith::app::credentials::program_name;
use clawsmith::app::words::time;
use serde_json::json;

use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};

/// The operations on credentialed programs.
#[derive(Debug, Subcommand)]
pub(crate) enum Credentials {
    /// Give a program credentials, replacing those it had.
    Add(add::Add),
    /// List the programs; values are never shown.
    List,
    /// Check a program as a call would: its file, its credentials, its sandbox, and whether arguments are refused.
    Test(Test),
    /// Accept a program's file as it is now, after an update. Its credentials stay.
    Accept(Named),
    /// Remove a program and its credentials.
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
            Self::Accept(named) => {
                let place = named.place(session)?;
                let binary = session.app(async |app| app.accept_program(&place).await)?;
                let words = format!("{}: `{binary}` is accepted as it is now", program_name(&place));
                session.told(&json!({ "accepted": place }), words)
            }
            Self::Remove(named) => {
                let place = named.place(session)?;
                session.app(async |app| app.remove_program(&place).await)?;
                session
                    .told(&json!({ "removed": place }), format_args!("{} is removed", program_name(&place)))
            }
        }
    }
}

impl Named {
    /// The program.
    fn place(&self, session: &Session) -> Result<ProgramPlace, Failure> {
        Ok(session.load()?.program_place(&self.name, self.whose.agent.as_deref())?)
    }
}

fn list(session: &mut Session) -> Outcome {
    let cards = session.existing_app(async |app| app.program_cards().await)?.unwrap_or_default();
    let empty = format!("no program of tenant `{}` has credentials", session.load()?.tenant());
    session.list(
        &cards,
        &empty,
        &[
            ("name", &|card| Cell::strong(&card.place.name)),
            ("agent", &|card| card.place.agent.as_ref().map_or_else(|| Cell::quiet("all"), Cell::new)),
            ("binary", &|card| Cell::new(&card.settings.binary)),
            ("variables", &|card| Cell::new(card.variables.join(", "))),
            ("refuses", &|ProgramCard { settings, .. }| match settings.enabled {
                true => Cell::new(counted(settings.deny_args.len() + settings.deny_verbose.len(), "pattern")),
                false => Cell::warning("everything: it is disabled"),
            }),
            ("written", &|card| Cell::quiet(time(card.at))),
        ],
    )
}

/// The program and arguments to check.
#[derive(Debug, Args)]
pub(crate) struct Test {
    #[command(flatten)]
    named: Named,
    /// Run it too, in the current directory.
    #[arg(long)]
    run: bool,
    /// The arguments to check.
    #[arg(last = true, value_name = "ARG")]
    arguments: Vec<String>,
}

impl Test {
    fn run(&self, session: &mut Session) -> Outcome {
        let place = self.named.place(session)?;
        let tested = session.app(async |app| app.test_program(&place, &self.arguments, self.run).await)?;
        let code = match (&tested.refused, &tested.ran) {
            (Some(_), _) => ExitCode::from(3),
            (None, Some(ran)) => {
                ExitCode::from(ran.exit.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
            }
            (None, None) => ExitCode::SUCCESS,
        };
        let (names, binary) = (&tested.card.variables, &tested.card.settings.binary);
        let ran = tested.ran.as_ref().map(|ran| json!({ "exit": ran.exit, "output": ran.output }));
        let value = json!({
            "program": place,
            "binary": binary,
            "variables": names,
            "denied": tested.refused,
            "ran": ran,
        });
        session.shown(&value, |out| {
            out.line(format_args!("{}: `{binary}`, with {}", program_name(&place), names.join(", ")))?;
            if let Some(reason) = &tested.refused {
                return Err(Failure::failed(reason).refusing());
            }
            Ok(tested.ran.iter().try_for_each(|ran| out.foreign(&ran.output))?)
        })?;
        Ok(code)
    }
}
