//! `clawsmith secrets`: sealed values. None is ever printed, and none is taken from the command line, where
//! every user of the machine could read it.

use std::cell::RefCell;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use claw_core::store::{KeyUse, SecretPlace};
use claw_core::{AgentId, SecretName};
use claw_policy::scrub::Weakness;
use claw_store::vault::{Progress, Retired, Rotated};
use claw_terminal::{Cell, Progress as Bar, StepCount, complain, tell};
use clawsmith::app::words::time;
use clawsmith::app::{Kind, Setup};
use secrecy::ExposeSecret as _;
use serde_json::json;

use super::prompt;
use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};
use crate::opened::{runtime, with_app};

/// The operations on secrets.
#[derive(Debug, Subcommand)]
pub(crate) enum Secrets {
    /// Store a value encrypted under a name, replacing the one stored there.
    Set(Named),
    /// List the names; values are never shown.
    List,
    /// Remove a secret.
    Remove(Named),
    /// Create a new key and encrypt everything again with it, while programs keep working.
    Rotate(Rotate),
}

/// A secret.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// The secret's name, such as `GITHUB_TOKEN`.
    name: SecretName,
    /// The agent that owns it [default: all agents].
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,
}

/// The options of rotating keys.
#[derive(Debug, Args)]
pub(crate) struct Rotate {
    /// Create no new key; remove the keys with which no value is encrypted any more.
    #[arg(long)]
    retire: bool,
}

/// The hint for an empty value.
const EMPTY: &str = "to have no value, run `clawsmith secrets remove NAME`";

impl Secrets {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::Set(named) => named.set(session),
            Self::List => list(session),
            Self::Remove(named) => named.remove(session),
            Self::Rotate(rotate) => rotate.run(session),
        }
    }
}

impl Named {
    fn place(&self, setup: &Setup) -> SecretPlace {
        SecretPlace { tenant: setup.tenant().clone(), agent: self.agent.clone(), name: self.name.clone() }
    }

    fn set(&self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let place = self.place(&setup);
        if let Some(agent) = &place.agent {
            runtime()?.block_on(setup.must_have_agent(agent.as_str()))?;
        }
        let Some(value) = prompt::value(&runtime()?, &shown(&place), EMPTY)? else {
            return Ok(ExitCode::from(130));
        };
        with_app(&setup, async |app| {
            Ok(app.put_secret(self.name.clone(), self.agent.clone(), &value).await?)
        })?;
        // Blanks at its ends are no part of what is looked for.
        if let Some(weakness) = Weakness::of(value.expose_secret().trim()) {
            tell(format_args!("warning: the value of `{}` {weakness}", place.name));
        }
        session.told(&json!({ "set": place }), format_args!("{} is stored encrypted", shown(&place)))
    }

    fn remove(&self, session: &mut Session) -> Outcome {
        let place = self.place(&session.load()?);
        let (name, agent) = (self.name.clone(), self.agent.clone());
        session.app(async |app| match app.remove_secret(name, agent).await {
            Err(error) if error.kind() == Kind::NotFound => {
                let failure = Failure::failed(format!("there is no {}", shown(&place)));
                Err(failure.hint("clawsmith secrets list"))
            }
            removed => removed.map_err(Failure::from),
        })?;
        session.told(&json!({ "removed": place }), format_args!("{} is removed", shown(&place)))
    }
}

fn list(session: &mut Session) -> Outcome {
    let cards = session.app(async |app| app.store().secrets(app.tenant()).await)?;
    let empty = format!("no secrets of tenant `{}`", session.load()?.tenant());
    session.list(
        &cards,
        &empty,
        &[
            ("name", &|card| Cell::strong(&card.place.name)),
            ("agent", &|card| card.place.agent.as_ref().map_or_else(|| Cell::quiet("all"), Cell::new)),
            ("written", &|card| Cell::quiet(time(card.at))),
        ],
    )
}

impl Rotate {
    fn run(&self, session: &mut Session) -> Outcome {
        let bar = RefCell::new(Bar::new(session.out.json || !io::stderr().is_terminal()));
        let show = |Progress { done, all }| {
            bar.borrow_mut().show("encrypting again".to_owned(), StepCount { unit: "values", done, of: all });
        };
        let (retired, rotated) = session.app(async |app| {
            let vault = app.vault().await?;
            let is_ours = vault.keys().is_ours_to_change();
            Ok::<_, Failure>(match self.retire {
                true => (Some(vault.retire(show).await?), None),
                false => (None, Some((vault.rotate(show).await?, is_ours))),
            })
        })?;
        drop(bar);
        match (retired, rotated) {
            (Some(retired), _) => report_retired(session, &retired),
            (_, Some((rotated, is_ours))) => report_rotated(session, &rotated, is_ours),
            (None, None) => Ok(ExitCode::SUCCESS),
        }
    }
}

fn report_rotated(session: &mut Session, rotated: &Rotated, is_ours: bool) -> Outcome {
    let Rotated { key, resealed, failed, .. } = rotated;
    session.shown(rotated, |out| {
        let what = match (rotated.is_new, is_ours) {
            (true, _) => format!("new key `{key}`"),
            (false, true) => format!("finished an interrupted rotation to key `{key}`"),
            (false, false) => format!("key `{key}`, the first of `CLAWSMITH_KEYS`"),
        };
        out.line(format_args!("{what}; values encrypted with it: {resealed}"))?;
        complain_of(rotated);
        Ok(())
    })?;
    Ok(ExitCode::from(u8::from(!failed.is_empty())))
}

fn report_retired(session: &mut Session, retired: &Retired) -> Outcome {
    session.shown(retired, |out| {
        for id in &retired.unused {
            out.line(match retired.taken {
                true => format!("key `{id}` is retired: nothing is encrypted with it"),
                false => format!("nothing is encrypted with key `{id}`; take it out of `CLAWSMITH_KEYS`"),
            })?;
        }
        if retired.unused.is_empty() && retired.kept.is_empty() {
            out.line(format_args!("key `{}` is the only one", retired.rotated.key))?;
        }
        for KeyUse { key, values } in &retired.kept {
            let what = match key {
                Some(id) => format!("key `{id}`; values encrypted with it: {values}"),
                None => format!("all keys; values whose key is unknown: {values}"),
            };
            complain("kept", what);
        }
        complain_of(&retired.rotated);
        Ok(())
    })?;
    Ok(ExitCode::from(u8::from(!retired.kept.is_empty())))
}

fn complain_of(rotated: &Rotated) {
    for failed in &rotated.failed {
        complain("not encrypted again", format_args!("{}: {}", failed.place, failed.why));
    }
}

fn shown(place: &SecretPlace) -> String {
    match &place.agent {
        Some(agent) => format!("secret `{}` of agent `{agent}`", place.name),
        None => format!("secret `{}`", place.name),
    }
}
