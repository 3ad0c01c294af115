//! `clawsmith config`: is it sound, what holds, what may it hold?

use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;

use crate::cli::Session;
use crate::compose;
use crate::config::{self, Loaded, Origin};
use crate::failure::Outcome;
use crate::output::{Cell, Table};

/// What to do with the configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Say whether the configuration can be used, and what is probably not meant.
    #[command(after_help = "Exit code 2 where it cannot be used; warnings alone give 0.

Examples:
  clawsmith config check
  clawsmith --config staging.toml config check --json")]
    Check,
    /// Print every key with its value and where it was set.
    #[command(after_help = "Examples:
  clawsmith config show
  CLAWSMITH_TOOLS__PROFILE=coding clawsmith config show | grep profile")]
    Show,
    /// Print the JSON Schema of `clawsmith.toml`.
    #[command(after_help = "Examples:
  clawsmith config schema > clawsmith.schema.json")]
    Schema,
}

impl ConfigCommand {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::Check => check(session),
            Self::Show => show(session),
            Self::Schema => {
                session.out.json(&config::schema())?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

fn check(session: &mut Session) -> Outcome {
    let loaded = match Loaded::load(session.globals.config.as_deref(), &session.around) {
        Ok(loaded) => loaded,
        Err(problems) if session.out.json => {
            session.out.json(&json!({ "ok": false, "problems": problems, "warnings": [] }))?;
            return Ok(ExitCode::from(2));
        }
        Err(problems) => return Err(problems.into()),
    };
    let known = claw_tools::catalogue();
    let known: Vec<&str> = known.iter().map(|meta| meta.name.as_str()).collect();
    let workspace = Some(session.around.directory.as_path());
    let warnings = config::warnings(&loaded, &session.around, workspace, &known);
    if session.out.json {
        let (file, problems) = (&loaded.found, [(); 0]);
        session.out.json(&json!({ "ok": true, "file": file, "problems": problems, "warnings": warnings }))?;
        return Ok(ExitCode::SUCCESS);
    }
    session.out.line(source(&loaded))?;
    for warning in &warnings {
        session.out.foreign(&format!("warning: {warning}"))?;
    }
    session.out.line(if warnings.is_empty() { "ok" } else { "ok, with warnings" })?;
    Ok(ExitCode::SUCCESS)
}

fn source(loaded: &Loaded) -> String {
    match &loaded.found {
        Some(found) => format!("file: {} ({})", found.path.display(), found.by.words()),
        None => "file: none found, so defaults hold".to_owned(),
    }
}

fn show(session: &mut Session) -> Outcome {
    let loaded = session.load()?;
    let data_dir = loaded.data_dir(&session.around);
    let place = loaded.place(&session.around).map(|place| place.to_string());
    let scrubber = compose::scrubbers(&loaded.config, &session.around)?.for_tenant(&loaded.config.tenant);
    let mut settings = loaded.settings()?;
    for setting in &mut settings {
        // With its key: a password is known by what stands before it.
        let key = setting.key.rsplit('.').next().unwrap_or_default();
        let clean = scrubber.json(&json!({ key: setting.value }));
        setting.value = clean.get(key).cloned().unwrap_or(clean);
    }
    if session.out.json {
        session.out.json(&json!({
            "file": loaded.found,
            "data_dir": data_dir,
            "store": place,
            "settings": settings,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    session.out.line(source(&loaded))?;
    match &data_dir {
        Some(directory) => session.out.line(format_args!("data: {}", directory.display()))?,
        None => session.out.line("data: no place is known; set `data_dir`")?,
    }
    if let Some(place) = &place {
        session.out.line(format_args!("store: {place}"))?;
    }
    session.out.line("")?;
    let mut table = Table::new(["key", "value", "set by"]);
    for setting in &settings {
        let origin = match &setting.origin {
            Origin::Default => Cell::quiet("default"),
            Origin::File { line } => Cell::good(format!("file, line {line}")),
            Origin::Env { variable } => Cell::warning(format!("${variable}")),
        };
        table.row([Cell::strong(&setting.key), Cell::new(&setting.value), origin]);
    }
    session.out.table(&table)?;
    Ok(ExitCode::SUCCESS)
}
