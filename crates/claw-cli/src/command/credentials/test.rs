//! `clawsmith credentials test`.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use claw_core::port::{ProgramHost as _, ProgramRun, Ran, RunContext};
use claw_core::store::{ProgramCard, ProgramPlace};
use claw_core::tool::{Argv, Effects, Progress, Secrets, ToolError};
use claw_policy::program::Route;
use claw_policy::sandbox::SandboxMode;
use claw_policy::scrub::Value as SecretValue;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Named, failed, missing, shown};
use crate::cli::Session;
use crate::command::tools::runtime;
use crate::compose;
use crate::config::Loaded;
use crate::failure::{Failure, Outcome};

/// What to check.
#[derive(Debug, Args)]
pub(crate) struct Test {
    #[command(flatten)]
    named: Named,
    /// Run it too, in the current directory.
    #[arg(long)]
    run: bool,
    /// Arguments that it would be given.
    #[arg(last = true, value_name = "ARG")]
    arguments: Vec<String>,
}

/// What came of it.
struct Tested {
    card: Arc<ProgramCard>,
    /// Why the arguments are refused.
    refused: Option<(String, String)>,
    /// What it printed, scrubbed, and its end.
    ran: Option<Ran>,
}

impl Test {
    pub(super) fn run(&self, session: &mut Session) -> Outcome {
        let loaded = session.load()?;
        let place = self.named.whose.place(&loaded.config, &self.named.name)?;
        let tested = runtime()?.block_on(self.tested(&place, session, &loaded))?;
        let settings = &tested.card.settings;
        let code = match (&tested.refused, &tested.ran) {
            (Some(_), _) => ExitCode::from(3),
            (None, Some(ran)) => {
                ExitCode::from(ran.exit.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
            }
            (None, None) => ExitCode::SUCCESS,
        };
        if session.out.json {
            let (variables, denied) = (&tested.card.variables, tested.refused.as_ref().map(|(why, _)| why));
            let output = tested.ran.as_ref().map(|ran| json!({ "exit": ran.exit, "output": ran.output }));
            session.out.json(
                &json!({ "program": place, "binary": settings.binary, "variables": variables, "denied": denied, "ran": output }),
            )?;
            return Ok(code);
        }
        let names = tested.card.variables.join(", ");
        session.out.line(format_args!("{}: `{}`, with {names}", shown(&place), settings.binary))?;
        if let Some((reason, _)) = tested.refused {
            return Err(Failure::failed(reason).refusing());
        }
        if let Some(ran) = tested.ran {
            session.out.foreign(&ran.output)?;
        }
        Ok(code)
    }

    /// Takes the way that a call takes, up to running it or with that.
    async fn tested(
        &self,
        place: &ProgramPlace,
        session: &Session,
        loaded: &Loaded,
    ) -> Result<Tested, Failure> {
        let vault = compose::vault(loaded, &session.around).await?;
        let (card, _) = vault.program(place).await.map_err(failed)?.ok_or_else(|| missing(place))?;
        let card = Arc::new(card);
        let argv = std::iter::once(place.name.to_string()).chain(self.arguments.iter().cloned()).collect();
        let argv = Argv { argv, directory: ".".to_owned(), env: Vec::new(), credentials: true };
        let run = match Route::of_argv(&argv, &[Arc::clone(&card)]) {
            Route::Program(run) => run,
            _ if !card.settings.enabled => {
                return Err(Failure::failed(format!("{} is disabled", shown(place))).hint("add it again"));
            }
            Route::Refused { reason, advice } => {
                return Ok(Tested { card, refused: Some((reason, advice)), ran: None });
            }
            Route::Shell => return Err(Failure::failed("it would run without its credentials")),
        };
        let store = compose::store(loaded, &session.around).await?;
        let host = compose::programs(loaded, &session.around, &store)?;
        let mut context = context(session, loaded)?;
        context.sights = host.look(&context, &run).await.map_err(not_run)?;
        let ran = match self.run {
            true => Some(scrubbed(&host, &context, &run, (session, loaded)).await?),
            false => None,
        };
        store.disconnect().await;
        Ok(Tested { card, refused: None, ran })
    }
}

async fn scrubbed(
    host: &claw_host::shell::CredentialedPrograms,
    context: &RunContext,
    run: &ProgramRun,
    (session, loaded): (&Session, &Loaded),
) -> Result<Ran, Failure> {
    let mut ran = host.run(context, run).await.map_err(not_run)?;
    let values = context.secrets.reveal().into_iter().map(|text| SecretValue::new(text, "value"));
    let scrubber =
        compose::scrubber(&loaded.config, &session.around)?.with_values(values).map_err(|error| {
            Failure::failed("what it printed cannot be shown, since its credentials cannot be scrubbed")
                .because(error)
        })?;
    ran.output = scrubber.scrub(&ran.output).into_owned();
    Ok(ran)
}

fn context(session: &Session, loaded: &Loaded) -> Result<RunContext, Failure> {
    let workspace = session.around.directory.canonicalize();
    let workspace =
        workspace.map_err(|error| Failure::usage("the current directory cannot be used").because(error))?;
    Ok(RunContext {
        workspace,
        sandbox_key: "cli".into(),
        sandboxed: loaded.config.sandbox.mode != SandboxMode::Off,
        effects: Effects::ALL,
        network: true,
        hidden: Vec::new(),
        sights: Vec::new(),
        cancel: CancellationToken::new(),
        progress: Progress::silent(),
        secrets: Secrets::default(),
    })
}

fn not_run(error: ToolError) -> Failure {
    let failure = Failure::failed(error.message);
    match error.advice {
        Some(advice) => failure.hint(advice),
        None => failure,
    }
}
