//! `clawsmith onboard`: asks a few questions, tests the key and writes the user's configuration.
//!
//! The key itself is never in the file and never shown: it is sealed in the store, or in an environment
//! variable. Nothing is written before the test was made and the person agreed.

mod questions;

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use claw_policy::shell::ShellConfig;
use claw_terminal::{complain, tell};
use clawsmith::app::Setup;
use clawsmith::app::grants::{Toolchain, read_setting};
use clawsmith::app::onboard::{self, ModelTest, ModelTestState, NewKey, NewModel, Target, TargetChange};
use clawsmith::config::{FoundBy, NAME, Surroundings, find};
use serde_json::json;
use tokio::runtime::Runtime;

use self::questions::{Questions, Stop};
use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::opened::runtime;

/// The model to set up; missing parts are asked for at a terminal.
#[derive(Debug, Args)]
pub(crate) struct Onboard {
    /// The model's provider: a known one, such as `anthropic`, or a name of your own with `--base-url`.
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// The model [default: the provider's].
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The provider's address, if not the default; a provider not known by name must be OpenAI-compatible.
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// The environment variable with the key.
    #[arg(long, value_name = "NAME", conflicts_with = "key_stdin")]
    key_env: Option<String>,
    /// Read the key from standard input, and keep it sealed.
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
            Err(Stop::Demo) => {
                if session.out.json {
                    session.out.json(&json!({ "written": false, "provider": "demo" }))?;
                } else {
                    session.out.prose("nothing is written: without a key a demo answers, offline")?;
                    session.out.line("next: clawsmith chat; and clawsmith onboard once there is a key")?;
                }
                Ok(ExitCode::SUCCESS)
            }
        }
    }

    fn set_up(&self, session: &mut Session) -> Result<ExitCode, Stop> {
        let around = session.around.clone();
        let target = Target::find(self.file.as_deref(), &around)?;
        if is_of_project(session, &target) {
            // Its rules say where the key is kept: one that came with a clone must be accepted first.
            session.load()?;
        }
        // A file that cannot be used is told before anything is asked.
        let before = target.setup(&around)?;
        let scrubber = before.scrubber()?;
        let runtime = runtime()?;
        let terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        let questions =
            Questions { flags: self, around: &around, runtime: &runtime, terminal, scrubber: &scrubber };
        tell_of_others(session, &target);
        let answers = questions.ask()?;

        let text = onboard::text(&answers);
        let change = target.change(&text);
        let setup = match change {
            TargetChange::Add | TargetChange::Replace => target.with(&text, &around)?,
            TargetChange::Same => before,
            TargetChange::Clash => {
                let mut setup = before;
                setup.loaded.config.models = alone(&text, &around)?.loaded.config.models;
                setup
            }
        };
        // An invalid model is not written, tested or not.
        setup.check_model(&answers)?;
        let shown = target.path.display().to_string();
        show(&answers, &text, &shown, change);
        tell(format_args!(
            "Commands of agents run in a sandbox: `{}` (`sandbox.mode`)",
            setup.config().sandbox.mode.name()
        ));
        let verdict = match self.no_test {
            true => None,
            false => Some(test(&runtime, &setup, &answers)?),
        };
        let works = verdict.as_ref().is_none_or(|verdict| verdict.state == ModelTestState::Works);
        match &verdict {
            None => tell("The key is not tested"),
            Some(verdict) if works => tell(format_args!("Tested: {}", verdict.what)),
            Some(verdict) => complain("the test failed", &verdict.what),
        }
        let toolchains = self.toolchains(&questions, &setup, &target)?;
        let deletes = self.deletes(&questions, &setup, &target)?;
        let agreed = match change {
            TargetChange::Clash => false,
            _ if self.yes => true,
            _ if !terminal => works,
            _ if works => questions.confirm("Write it?", true)?,
            _ => questions.confirm("Write it all the same?", false)?,
        };
        let is_new = matches!(change, TargetChange::Add | TargetChange::Replace);
        if agreed {
            if let NewKey::Given(key) = &answers.key {
                runtime.block_on(setup.seal_key(&answers.provider, key))?;
            }
            let added: Vec<String> = toolchains.iter().chain(&deletes).cloned().collect();
            if is_new || !added.is_empty() {
                target.write(&text, &added)?;
            }
        }
        if session.out.json {
            session.out.json(&json!({
                "file": shown,
                "written": agreed && is_new,
                "provider": answers.provider,
                "model": answers.model,
                "text": text,
                "toolchains": toolchains.filter(|_| agreed),
                "deletes": deletes.filter(|_| agreed),
                "test": verdict,
            }))?;
            return Ok(ExitCode::from(u8::from(!agreed)));
        }
        if !agreed {
            if change == TargetChange::Clash {
                session
                    .out
                    .line(format_args!("`{shown}` already configures other models; left unchanged"))?;
                session.out.prose("to have what was answered, write there instead:\n")?;
                session.out.foreign(&text)?;
                if matches!(answers.key, NewKey::Given(_)) {
                    session.out.line(format_args!("\nand: clawsmith secrets set {}", answers.provider))?;
                }
            } else if works {
                session.out.line("nothing was written")?;
            } else {
                session.out.line("nothing was written; to write it untested: --no-test")?;
            }
            return Ok(ExitCode::from(1));
        }
        match change {
            TargetChange::Add => session.out.line(format_args!("wrote `{shown}`"))?,
            TargetChange::Replace => {
                session.out.line(format_args!("changed provider, model and key in `{shown}`"))?;
            }
            _ => session.out.line(format_args!("`{shown}` says so already"))?,
        }
        if matches!(answers.key, NewKey::Given(_)) {
            session
                .out
                .prose(format_args!("the key is stored encrypted as secret `{}`", answers.provider))?;
        }
        if is_of_project(session, &target) {
            session.out.line("next: clawsmith config trust, and clawsmith chat")?;
        } else {
            session.out.line("next: clawsmith chat")?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Onboard {
    /// Returns the configuration that lets agents' commands read the toolchains of this machine, if wanted.
    fn toolchains(
        &self,
        ask: &Questions<'_>,
        setup: &Setup,
        target: &Target,
    ) -> Result<Option<String>, Stop> {
        let found: Vec<Toolchain> = setup.toolchains().into_iter().filter(|found| !found.granted).collect();
        if found.is_empty() {
            return Ok(None);
        }
        let names: Vec<&str> = found.iter().map(|found| found.name).collect();
        let read = read_setting(found.iter().flat_map(|found| &found.directories), &setup.around);
        let names = names.join(", ");
        if target.has("files") {
            tell(format_args!("Commands do not find {names}; to let them, below `[files]`: {read}"));
            return Ok(None);
        }
        tell(format_args!("Found for agents' commands, to be read and not changed: {names}\n\n    {read}\n"));
        let is_wanted = match () {
            () if self.toolchains || self.yes => true,
            () if ask.terminal => ask.confirm("Let agents use them?", true)?,
            () => false,
        };
        Ok(is_wanted.then(|| format!("[files]\n{read}\n")))
    }

    /// The text by which a person is asked before a command deletes whole directories, where somebody wants that.
    fn deletes(&self, ask: &Questions<'_>, setup: &Setup, target: &Target) -> Result<Option<String>, Stop> {
        let is_set = target.has("shell") || setup.config().shell != ShellConfig::default();
        if is_set || !(self.ask_deletes || ask.terminal && !self.yes) {
            return Ok(None);
        }
        if !self.ask_deletes {
            tell(
                "Commands such as `rm -rf build` are refused; on a machine of your own you can be asked instead.",
            );
        }
        let is_wanted =
            self.ask_deletes || ask.confirm("Ask before whole directories are deleted?", false)?;
        Ok(is_wanted.then(|| format!("[shell.ask]\n\"{DELETES}\" = \"a machine of my own\"\n")))
    }
}

/// The rule against commands that delete whole directories.
const DELETES: &str = "destructive.rm-recursive";

/// Returns whether the file is a project's, used only as it was accepted.
fn is_of_project(session: &Session, target: &Target) -> bool {
    let found = find(session.globals.config.as_deref(), &session.around);
    found.is_some_and(|found| found.by == FoundBy::Project && is_same(&found.path, target, &session.around))
}

/// Prints which file takes precedence over the written one.
fn tell_of_others(session: &Session, target: &Target) {
    if let Some(found) = find(session.globals.config.as_deref(), &session.around)
        && found.by != FoundBy::User
        && !is_same(&found.path, target, &session.around)
    {
        let (path, why) = (found.path.display(), found.by.words());
        tell(format_args!(
            "note: `{path}` ({why}) {}; to write that one: --file {path}",
            match found.by {
                FoundBy::Project => "is laid over it here, and its keys win".to_owned(),
                _ => format!("goes before `{}`, which does not hold here", target.path.display()),
            }
        ));
    }
}

fn is_same(path: &Path, target: &Target, around: &Surroundings) -> bool {
    let path = around.directory.join(path);
    path == target.path || path.canonicalize().is_ok_and(|real| real == target.path)
}

/// The text by itself, as a configuration.
fn alone(text: &str, around: &Surroundings) -> Result<Setup, Failure> {
    Ok(onboard::proposed(Path::new(NAME), text.to_owned(), around)?)
}

fn show(answers: &NewModel, text: &str, shown: &str, change: TargetChange) {
    match change {
        TargetChange::Add => tell(format_args!("\nTo be added to `{shown}`:\n")),
        TargetChange::Same => tell(format_args!("\n`{shown}` says so already:\n")),
        TargetChange::Replace => {
            tell(format_args!("\nTo replace provider, model and key in `{shown}`:\n"));
        }
        TargetChange::Clash => {
            tell(format_args!("\n`{shown}` already configures other models; this would be:\n"));
        }
    }
    for line in text.lines() {
        tell(format!("    {line}").trim_end());
    }
    tell("");
    if matches!(answers.key, NewKey::Given(_)) && change != TargetChange::Clash {
        tell(format_args!(
            "The key is stored encrypted as secret `{}`, in place of any that is there",
            answers.provider
        ));
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
