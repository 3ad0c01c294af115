//! `clawsmith onboard`: asks a few questions, tests the key and writes the user's configuration.
//!
//! The key itself is never in the file and never shown: it is sealed in the store, or in an environment
//! variable. Nothing is written before the test was made and the person agreed.

mod questions;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use claw_terminal::{can_ask, complain, tell};
use clawsmith::app::Setup;
use clawsmith::app::onboard::answers::{AnswerCheck, DEMO_PROVIDER};
use clawsmith::app::onboard::{
    ASK_DELETES, FoundToolchains, ModelTest, ModelTestState, NewKey, NewModel, Target, TargetChange,
};
use serde_json::json;
use tokio::runtime::Runtime;

use self::questions::{Questions, Stop};
use crate::cli::Session;
use crate::exit_code::Outcome;
use crate::opened::runtime;

/// The model to set up; missing parts are asked for at a terminal.
#[derive(Debug, Args)]
pub(crate) struct Onboard {
    /// The model's provider: a known one, such as `anthropic`, or a name of your own with `--base-url`.
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// The model [default: the configured one of this provider, or the provider's own].
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The provider's address, if not the default; a provider not known by name must be OpenAI-compatible.
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// The environment variable with the key.
    #[arg(long, value_name = "NAME", conflicts_with = "key_stdin")]
    key_env: Option<String>,
    /// Read the key from standard input, and store it encrypted.
    #[arg(long)]
    key_stdin: bool,
    /// The file to write [default: the user's].
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Let agents' commands read the toolchains in `$PATH` [default: asked at a terminal].
    #[arg(long)]
    toolchains: bool,
    /// Ask before a command deletes whole directories, instead of refusing it [default: asked at a terminal].
    #[arg(long)]
    ask_deletes: bool,
    /// Do not test the key.
    #[arg(long)]
    no_test: bool,
    /// Do not ask for confirmation, use the defaults, and write even if the test fails.
    #[arg(long)]
    yes: bool,
}

impl Onboard {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self.set_up(session) {
            Ok(code) => Ok(code),
            Err(Stop::Failed(failure)) => Err(failure),
            Err(Stop::GaveUp) => {
                tell("nothing was written");
                Ok(ExitCode::from(130))
            }
            Err(Stop::Demo) => Ok(ExitCode::SUCCESS),
        }
    }

    fn set_up(&self, session: &mut Session) -> Result<ExitCode, Stop> {
        let (flag, around) = (session.globals.config.as_deref(), session.around.clone());
        let target = Target::find(self.file.as_deref(), &around)?;
        let is_of_project = target.is_of_project(flag, &around);
        if is_of_project {
            // Its rules say where the key is kept: one that came with a clone must be accepted first.
            session.load()?;
        }
        // A file that cannot be used is told before anything is asked.
        let before = target.setup(&around)?;
        let (runtime, check) = (runtime()?, AnswerCheck::new(&before)?);
        let ask = Questions { flags: self, runtime: &runtime, terminal: can_ask(), check: &check };
        if let Some(note) = target.overridden(flag, &around) {
            tell(format_args!("note: {note}"));
        }
        let answers = match ask.ask() {
            Err(Stop::Demo) => return self.demo(session, &ask, &target, &before),
            answers => answers?,
        };
        let plan = target.plan(&answers, before)?;
        let shown = target.path.display().to_string();
        tell(plan.announced(&answers, &shown));
        let mode = plan.setup.config().sandbox.mode.name();
        tell(format_args!("Commands of agents run in a sandbox: `{mode}` (`sandbox.mode`)"));
        let verdict = match self.no_test {
            true => None,
            false => Some(test(&runtime, &plan.setup, &answers)?),
        };
        let works = verdict.as_ref().is_none_or(|verdict| verdict.state == ModelTestState::Works);
        match &verdict {
            None => tell("The key is not tested"),
            Some(verdict) if works => tell(format_args!("Tested: {}", verdict.what)),
            Some(verdict) => complain("the test failed", &verdict.what),
        }
        let toolchains = self.toolchains(&ask, target.toolchains(&plan.setup))?;
        let deletes = self.deletes(&ask, target.can_ask_deletes(&plan.setup))?;
        let agreed = match plan.change {
            TargetChange::Clash => false,
            _ if self.yes => true,
            _ if !ask.terminal => works,
            _ if works => ask.confirm("Write it?", true)?,
            _ => ask.confirm("Write it anyway?", false)?,
        };
        let is_new = matches!(plan.change, TargetChange::Add | TargetChange::Replace);
        if agreed {
            if let NewKey::Given(key) = &answers.key {
                runtime.block_on(plan.setup.seal_key(&answers.provider, key))?;
            }
            let added: Vec<String> = toolchains.iter().chain(&deletes).cloned().collect();
            if is_new || !added.is_empty() {
                target.write(&plan.text, &added)?;
            }
        }
        let value = json!({
            "file": shown,
            "written": agreed && is_new,
            "provider": answers.provider,
            "model": answers.model,
            "text": plan.text,
            "toolchains": toolchains.filter(|_| agreed),
            "deletes": deletes.filter(|_| agreed),
            "test": verdict,
        });
        session.shown(&value, |out| match agreed {
            true => {
                let lines = plan.written(&answers, &shown, is_of_project);
                Ok(lines.iter().try_for_each(|line| out.prose(line))?)
            }
            false => Ok(out.foreign(&plan.unwritten(&answers, &shown, works))?),
        })?;
        Ok(ExitCode::from(u8::from(!agreed)))
    }

    /// Writes no model, since there is no key; toolchains are of use to the demo too.
    fn demo(
        &self,
        session: &mut Session,
        ask: &Questions<'_>,
        target: &Target,
        before: &Setup,
    ) -> Result<ExitCode, Stop> {
        let toolchains = self.toolchains(ask, target.toolchains(before))?;
        if let Some(table) = &toolchains {
            target.write("", std::slice::from_ref(table))?;
        }
        let value = json!({ "written": false, "provider": DEMO_PROVIDER, "toolchains": toolchains });
        session.shown(&value, |out| {
            out.prose("no model was configured; without a key, an offline demo answers")?;
            Ok(out.line("next: clawsmith chat; run clawsmith onboard again once you have a key")?)
        })?;
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the configuration that lets agents' commands read the toolchains of this machine, if wanted.
    fn toolchains(
        &self,
        ask: &Questions<'_>,
        found: Option<FoundToolchains>,
    ) -> Result<Option<String>, Stop> {
        let Some(FoundToolchains { words, table }) = found else { return Ok(None) };
        tell(words);
        let is_wanted = match ask.terminal {
            _ if self.toolchains || self.yes => true,
            true if table.is_some() => ask.confirm("Let agents use them?", true)?,
            _ => false,
        };
        Ok(table.filter(|_| is_wanted))
    }

    /// Returns the configuration by which a person is asked before whole directories are deleted, if wanted.
    fn deletes(&self, ask: &Questions<'_>, is_possible: bool) -> Result<Option<String>, Stop> {
        if !is_possible || !(self.ask_deletes || ask.terminal && !self.yes) {
            return Ok(None);
        }
        if !self.ask_deletes {
            tell(
                "Commands such as `rm -rf build` are refused; on a machine of your own you can be asked instead.",
            );
        }
        let is_wanted =
            self.ask_deletes || ask.confirm("Ask before whole directories are deleted?", false)?;
        Ok(is_wanted.then(|| ASK_DELETES.to_owned()))
    }
}

/// Asks the model, once.
fn test(runtime: &Runtime, setup: &Setup, answers: &NewModel) -> Result<ModelTest, Stop> {
    runtime.block_on(async {
        tokio::select! {
            tested = setup.test_model(answers) => Ok(tested?),
            _ = tokio::signal::ctrl_c() => Err(Stop::GaveUp),
        }
    })
}
