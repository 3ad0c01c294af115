//! `clawsmith config`: checks, shows and accepts the configuration.

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use claw_core::counted::counted;
use claw_terminal::{Cell, Out, Table, ask_line};
use clawsmith::app::{ConfigReport, Setup};
use clawsmith::config::{self, Loaded, Origin, Setting};
use serde_json::{Value, json};

use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};
use crate::opened::runtime;

/// The operations on the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check the configuration, and warn of settings that are probably mistakes.
    Check,
    /// Print the settings and their sources; with `--all` or `--json` every key.
    Show(ShowArgs),
    /// Show the configuration file found here, and accept it as it is.
    Trust(TrustArgs),
    /// Print the JSON Schema of `clawsmith.toml`.
    Schema,
}

/// The options of printing the configuration.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Include keys that are not set, with their defaults.
    #[arg(long)]
    all: bool,
}

/// The options of accepting a file.
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// Forget accepted files that no longer exist. Any other project file must still be accepted before it applies.
    #[arg(long)]
    forget: bool,
}

impl ConfigCommand {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::Check => check(session),
            Self::Show(args) => show(session, args.all),
            Self::Trust(TrustArgs { forget: true }) => forget(session),
            Self::Trust(_) => trust(session),
            Self::Schema => {
                session.out.json(&config::schema())?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

fn check(session: &mut Session) -> Outcome {
    let setup = match Loaded::load(session.globals.config.as_deref(), &session.around) {
        Ok(loaded) => Setup { loaded, around: session.around.clone(), local_user: true },
        Err(problems) if session.out.json => {
            session.out.json(&json!({ "ok": false, "problems": problems, "warnings": [] }))?;
            return Ok(ExitCode::from(2));
        }
        Err(problems) => return Err(problems.into()),
    };
    let report = setup.check()?;
    let ok = report.errors.is_empty();
    let problems: Vec<Value> = report.errors.iter().map(|error| json!({ "message": error })).collect();
    let (file, warnings) = (&setup.loaded.found, &report.warnings);
    let value = json!({ "ok": ok, "file": file, "problems": problems, "warnings": warnings });
    session.shown(&value, |out| {
        out.prose(source(&setup))?;
        print(out, &report)?;
        Ok(out.line(match (ok, warnings.is_empty()) {
            (true, true) => "ok",
            (true, false) => "ok, with warnings",
            (false, _) => "not ok",
        })?)
    })?;
    Ok(ExitCode::from(if ok { 0 } else { 2 }))
}

fn source(setup: &Setup) -> String {
    match &setup.loaded.found {
        Some(found) => format!("file: {} ({})", found.path.display(), found.by.words()),
        None => "file: none; using defaults".to_owned(),
    }
}

fn print(out: &mut Out, report: &ConfigReport) -> io::Result<()> {
    let errors = report.errors.iter().map(|error| format!("error: {error}"));
    let warnings = report.warnings.iter().map(|warning| format!("warning: {warning}"));
    errors.chain(warnings).try_for_each(|line| out.prose(line))
}

fn show(session: &mut Session, all: bool) -> Outcome {
    let setup = session.read()?;
    let (data_dir, is_accepted) = (setup.data_dir().ok(), setup.is_accepted()?);
    let place = setup.place().ok().map(|place| place.to_string());
    let mut settings = setup.scrubbed_settings()?;
    let value = json!({
        "file": setup.loaded.found,
        "accepted": is_accepted,
        "data_dir": data_dir,
        "store": place,
        "settings": settings,
    });
    session.shown(&value, |out| {
        out.prose(source(&setup))?;
        match &data_dir {
            Some(directory) => out.line(format_args!("data: {}", directory.display()))?,
            None => out.line("data: no directory is known; set `data_dir`")?,
        }
        if let Some(place) = &place {
            out.line(format_args!("store: {place}"))?;
        }
        if let Err(error) = setup.must_be_trusted() {
            out.prose(format_args!("not in force: {error}"))?;
        }
        out.line("")?;
        let keys = settings.len();
        settings.retain(|setting| all || setting.origin != Origin::Default);
        match settings.is_empty() {
            true => out.line("Nothing is set.")?,
            false => table(out, &settings)?,
        }
        match keys - settings.len() {
            0 => Ok(()),
            more => Ok(out.prose(format_args!(
                "\n{} with default values; `clawsmith config show --all` shows them",
                counted(more, "key")
            ))?),
        }
    })
}

fn forget(session: &mut Session) -> Outcome {
    let count =
        session.read()?.loaded.forget(&session.around).map_err(|error| {
            Failure::failed("the records of accepted files cannot be removed").because(error)
        })?;
    session.told(&json!({ "forgotten": count }), format_args!("forgotten: {count}"))
}

fn trust(session: &mut Session) -> Outcome {
    let setup = Setup::without_variables(session.globals.config.as_deref(), &session.around)?;
    let Some(found) = &setup.loaded.found else {
        return Err(Failure::usage(
            "there is no `clawsmith.toml` here or above, so there is nothing to accept",
        ));
    };
    // Nothing is scrubbed: what is accepted must be seen.
    let mut settings = setup.loaded.settings()?;
    settings.retain(|setting| matches!(setting.origin, Origin::File { .. } | Origin::Both { .. }));
    let around = session.around.clone();
    let accept = || {
        setup.loaded.accept(&around).map_err(|error| {
            Failure::failed(format!("`{}` cannot be accepted", found.path.display())).because(error)
        })
    };
    let report = setup.policy_report();
    if session.out.json {
        if let Some(error) = report.errors.first() {
            return Err(Failure::usage(error.clone()).hint("correct it first; nothing was accepted"));
        }
        let accepted = accept()?;
        session.out.json(&json!({ "file": found, "accepted": accepted, "settings": settings }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let out = &mut session.out;
    out.prose(source(&setup))?;
    out.line("")?;
    match settings.is_empty() {
        true => out.line("The file sets no key.")?,
        false => table(out, &settings)?,
    }
    print(out, &report)?;
    if let Some(changes) = setup.loaded.changed_since_accepted(&around) {
        out.line("\nChanges since the file was accepted:")?;
        out.diff(&changes)?;
    }
    out.line("")?;
    out.flush()?;
    if !report.errors.is_empty() {
        return Err(Failure::usage("the file has an error, so it was not accepted").hint("correct it first"));
    }
    // A person at a terminal has not seen the file before this command.
    let is_new = setup.loaded.trust(&around)? != config::Trust::Holds;
    if is_new && io::stdin().is_terminal() && io::stdout().is_terminal() {
        let answer = ask_line(&runtime()?, "Accept the file as it is? [y]es / [n]o: ")?;
        if !answer.is_some_and(|answer| ["y", "yes"].contains(&answer.to_lowercase().as_str())) {
            return Err(Failure::usage("the file was not accepted, so nothing runs here")
                .hint("if the file is not yours, remove it; otherwise correct it, and accept it then"));
        }
    }
    session.out.line(match accept()? {
        true => "Accepted: the file applies until it changes.",
        false => "Nothing to accept: you named the file, or it is your own; such files always apply.",
    })?;
    Ok(ExitCode::SUCCESS)
}

fn table(out: &mut Out, settings: &[Setting]) -> io::Result<()> {
    let mut table = Table::new(["key", "value", "set by"]);
    for setting in settings {
        let origin = match &setting.origin {
            origin @ Origin::Default => Cell::quiet(origin),
            origin @ Origin::Env { .. } => Cell::warning(origin),
            origin => Cell::good(origin),
        };
        table.row([Cell::strong(&setting.key), Cell::new(&setting.value), origin]);
    }
    out.table(&table)
}
