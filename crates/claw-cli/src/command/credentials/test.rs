//! `clawsmith credentials test`.

use std::process::ExitCode;

use clap::Args;
use clawsmith::app::credentials::program_name;
use serde_json::json;

use super::Named;
use crate::cli::Session;
use crate::failure::{Failure, Outcome};

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
    pub(super) fn run(&self, session: &mut Session) -> Outcome {
        let place = self.named.place(session)?;
        let tested = session.app(async |app| app.test_program(&place, &self.arguments, self.run).await)?;
        let settings = &tested.card.settings;
        let code = match (&tested.refused, &tested.ran) {
            (Some(_), _) => ExitCode::from(3),
            (None, Some(ran)) => {
                ExitCode::from(ran.exit.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
            }
            (None, None) => ExitCode::SUCCESS,
        };
        if session.out.json {
            let (variables, denied) = (&tested.card.variables, tested.refused.as_ref());
            let output = tested.ran.as_ref().map(|ran| json!({ "exit": ran.exit, "output": ran.output }));
            session.out.json(
                &json!({ "program": place, "binary": settings.binary, "variables": variables, "denied": denied, "ran": output }),
            )?;
            return Ok(code);
        }
        let names = tested.card.variables.join(", ");
        session.out.line(format_args!("{}: `{}`, with {names}", program_name(&place), settings.binary))?;
        if let Some(reason) = tested.refused {
            return Err(Failure::failed(reason).refusing());
        }
        if let Some(ran) = tested.ran {
            session.out.foreign(&ran.output)?;
        }
        Ok(code)
    }
}
