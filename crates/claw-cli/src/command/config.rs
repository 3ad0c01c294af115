//! `clawsmith config`: checks, shows and accepts the configuration.

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use claw_llm::EnvKeys;
use claw_policy::lint::Severity;
use claw_registry::CallScrubber;
use claw_terminal::{Cell, Table};
use clawsmith::app::Setup;
use clawsmith::config::{self, Loaded, Origin, Setting};
use serde_json::{Value, json};

use super::prompt;
use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::opened::runtime;

/// The operations on the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check the configuration, and warn of settings that are probably not meant.
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
    /// Forget an accepted file that is gone, so that the next one found applies.
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
    let known = claw_tools::catalogue();
    let known: Vec<&str> = known.iter().map(|meta| meta.name.as_str()).collect();
    let mut warnings = config::warnings(&setup.loaded, &session.around, &known);
    let (mut errors, doubts) = of_policy(&setup);
    warnings.extend(doubts);
    let keys = || Arc::new(EnvKeys);
    let built = [setup.models(keys(), None).err(), setup.endpoints(keys()).err(), setup.web(keys()).err()];
    errors.extend(built.into_iter().flatten().map(|error| error.to_string()));
    if setup.loaded.trust(&session.around)? != config::Trust::Holds {
        warnings.push(
            "nobody has accepted it as it is, so it is not in force; `clawsmith config trust`".to_owned(),
        );
    }
    let code = ExitCode::from(if errors.is_empty() { 0 } else { 2 });
    if session.out.json {
        let file = &setup.loaded.found;
        let problems: Vec<Value> = errors.iter().map(|error| json!({ "message": error })).collect();
        let ok = problems.is_empty();
        session.out.json(&json!({ "ok": ok, "file": file, "problems": problems, "warnings": warnings }))?;
        return Ok(code);
    }
    session.out.prose(source(&setup))?;
    for error in &errors {
        session.out.prose(format_args!("error: {error}"))?;
    }
    for warning in &warnings {
        session.out.prose(format_args!("warning: {warning}"))?;
    }
    session.out.line(match (errors.len(), warnings.is_empty()) {
        (0, true) => "ok",
        (0, false) => "ok, with warnings",
        _ => "not ok",
    })?;
    Ok(code)
}

fn source(setup: &Setup) -> String {
    match &setup.loaded.found {
        Some(found) => format!("file: {} ({})", found.path.display(), found.by.words()),
        None => "file: none; using defaults".to_owned(),
    }
}

fn show(session: &mut Session, all: bool) -> Outcome {
    let setup = session.read()?;
    let data_dir = setup.data_dir().ok();
    let place = setup.place().ok().map(|place| place.to_string());
    let scrubber = setup.scrubbers()?.for_tenant(&setup.config().tenant);
    let mut settings = settings(&setup, &scrubber)?;
    if session.out.json {
        session.out.json(&json!({
            "file": setup.loaded.found,
            "accepted": setup.loaded.trust(&session.around)? == config::Trust::Holds,
            "data_dir": data_dir,
            "store": place,
            "settings": settings,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    session.out.prose(source(&setup))?;
    match &data_dir {
        Some(directory) => session.out.line(format_args!("data: {}", directory.display()))?,
        None => session.out.line("data: no place is known; set `data_dir`")?,
    }
    if let Some(place) = &place {
        session.out.line(format_args!("store: {place}"))?;
    }
    if setup.loaded.trust(&session.around)? != config::Trust::Holds {
        session.out.prose("not in force: nobody has accepted it as it is; `clawsmith config trust`")?;
    }
    session.out.line("")?;
    let keys = settings.len();
    settings.retain(|setting| all || setting.origin != Origin::Default);
    match settings.is_empty() {
        true => session.out.line("Nothing is set.")?,
        false => table(session, &settings)?,
    }
    if settings.len() < keys {
        session.out.prose(format_args!(
            "\n{} keys have their defaults; `clawsmith config show --all` shows them",
            keys - settings.len()
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the errors and warnings of its policy: a misspelt `deny` leaves open what it was written to close.
fn of_policy(setup: &Setup) -> (Vec<String>, Vec<String>) {
    let found = setup.policy_findings();
    let of = |severity| {
        let found = found.iter().filter(move |finding| finding.severity == severity);
        found.map(|finding| finding.without_severity().to_string()).collect()
    };
    (of(Severity::Error), of(Severity::Warning))
}

fn forget(session: &mut Session) -> Outcome {
    let count = session
        .read()?
        .loaded
        .forget(&session.around)
        .map_err(|error| Failure::failed("what was accepted cannot be forgotten").because(error))?;
    match session.out.json {
        true => session.out.json(&json!({ "forgotten": count }))?,
        false => session.out.line(format_args!("forgotten: {count}"))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn trust(session: &mut Session) -> Outcome {
    // As the file has it: what a variable sets here is not what holds in the next shell.
    let mut around = session.around.clone();
    around.variables.retain(|(name, _)| {
        name == "CLAWSMITH_CONFIG" || !name.as_encoded_bytes().starts_with(b"CLAWSMITH_")
    });
    let setup = Setup::read(session.globals.config.as_deref(), &around)?;
    let Some(found) = &setup.loaded.found else {
        return Err(Failure::usage(
            "there is no `clawsmith.toml` here or above, so there is nothing to accept",
        ));
    };
    // Nothing is scrubbed: what is accepted must be seen.
    let mut settings = setup.loaded.settings()?;
    settings.retain(|setting| matches!(setting.origin, Origin::File { .. } | Origin::Both { .. }));
    let beside = session.around.clone();
    let accept = || {
        setup.loaded.accept(&beside).map_err(|error| {
            Failure::failed(format!("`{}` cannot be accepted", found.path.display())).because(error)
        })
    };
    let (errors, warnings) = of_policy(&setup);
    if session.out.json {
        if let Some(error) = errors.first() {
            return Err(Failure::usage(error.clone()).hint("correct it first; nothing was accepted"));
        }
        let accepted = accept()?;
        session.out.json(&json!({ "file": found, "accepted": accepted, "settings": settings }))?;
        return Ok(ExitCode::SUCCESS);
    }
    session.out.prose(source(&setup))?;
    session.out.line("")?;
    match settings.is_empty() {
        true => session.out.line("It sets nothing.")?,
        false => table(session, &settings)?,
    }
    for error in &errors {
        session.out.prose(format_args!("error: {error}"))?;
    }
    for warning in &warnings {
        session.out.prose(format_args!("warning: {warning}"))?;
    }
    if let Some(changes) = setup.loaded.changed_since_accepted(&session.around) {
        session.out.line("\nSince it was accepted:")?;
        for line in changes.lines() {
            session.out.diff_line(line)?;
        }
    }
    session.out.line("")?;
    session.out.flush()?;
    if !errors.is_empty() {
        return Err(Failure::usage("it has an error, so it was not accepted").hint("correct it first"));
    }
    // A person at a terminal has not seen the file before this command.
    let is_new = setup.loaded.trust(&session.around)? != config::Trust::Holds;
    if is_new && io::stdin().is_terminal() && io::stdout().is_terminal() {
        let answer = prompt::line(&runtime()?, "accept it as it is? [y]es / [n]o: ")?;
        if !answer.is_some_and(|answer| ["y", "yes"].contains(&answer.to_lowercase().as_str())) {
            return Err(Failure::usage("it was not accepted, so nothing is done under its rules")
                .hint("remove it if it is not yours, or change it and accept it then"));
        }
    }
    session.out.line(match accept()? {
        true => "Accepted: it holds until it is changed.",
        false => "It needs no accepting: a person named it, or it is the user's own.",
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Every key with its value, scrubbed.
fn settings(setup: &Setup, scrubber: &CallScrubber) -> Result<Vec<Setting>, Failure> {
    let mut settings = setup.loaded.settings()?;
    for setting in &mut settings {
        // With its key: a password is known by what stands before it.
        let key = setting.key.rsplit('.').next().unwrap_or_default();
        let clean = scrubber.json(&json!({ key: setting.value }));
        setting.value = clean.get(key).cloned().unwrap_or(clean);
    }
    Ok(settings)
}

fn table(session: &mut Session, settings: &[Setting]) -> Result<(), Failure> {
    let mut table = Table::new(["key", "value", "set by"]);
    for setting in settings {
        let origin = match &setting.origin {
            Origin::Default => Cell::quiet("default"),
            Origin::File { line } => Cell::good(format!("file, line {line}")),
            Origin::Both { line, user_line } => {
                Cell::good(format!("file, line {line}, and your file, line {user_line}"))
            }
            Origin::User { line } => Cell::good(format!("your file, line {line}")),
            Origin::Env { variable } => Cell::warning(format!("${variable}")),
        };
        table.row([Cell::strong(&setting.key), Cell::new(&setting.value), origin]);
    }
    session.out.table(&table)?;
    Ok(())
}
