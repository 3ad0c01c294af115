//! `clawsmith ledger`: refused, intended and completed calls, and whether the record was changed.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use claw_core::counted::counted;
use claw_core::store::{Entry, EntryEvent, Outcome as CallOutcome, StoreError};
use claw_store::StoreLocation;
use claw_terminal::{Cell, tell};
use clawsmith::app::words::{self, in_short, time};
use serde_json::json;

use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};
use crate::opened::with_existing_app;

/// The operations on the ledger.
#[derive(Debug, Subcommand)]
pub(crate) enum Ledger {
    /// Print the last entries, oldest first.
    Show(Show),
    /// Check that no entry was changed, removed or cut off.
    Verify,
}

/// The entries to print.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The number of entries to print, counted from the newest; with `--session`, from the newest of that session.
    #[arg(long, value_name = "N", default_value_t = 20)]
    last: usize,
    /// Only entries of this session.
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
}

impl Ledger {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::Show(show) => show.run(session),
            Self::Verify => verify(session),
        }
    }
}

impl Show {
    fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let wanted = self.wanted();
        let read = with_existing_app(&setup, async |app| {
            app.store().recent(app.tenant(), wanted).await.map_err(unreadable)
        })?;
        let none = none(read.is_some(), &setup.place()?);
        let mut entries = read.unwrap_or_default();
        if let Some(key) = &self.session {
            entries.retain(|entry| entry.record.session.as_str() == key);
            entries.drain(..entries.len().saturating_sub(self.last));
        }
        session.list(
            &entries,
            &none,
            &[
                ("seq", &|entry| Cell::quiet(entry.seq)),
                ("time", &|entry| Cell::quiet(time(entry.record.at))),
                ("session", &|entry| Cell::new(&entry.record.session)),
                ("agent", &|entry| Cell::new(&entry.record.agent)),
                ("tool", &|entry| Cell::strong(&entry.record.tool)),
                ("event", &event),
                ("what", &|entry| Cell::new(in_short(&words::entry(entry)))),
            ],
        )?;
        if entries.len() == self.last && !session.out.json && !entries.is_empty() {
            session.out.flush()?;
            tell(format_args!("note: these are the last {}; `--last N` looks further back", self.last));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the number of entries to read: all for one session, since its entries are among others.
    fn wanted(&self) -> usize {
        if self.session.is_some() { usize::MAX } else { self.last }
    }
}

/// The kind of an entry.
fn event(entry: &Entry) -> Cell {
    match &entry.record.event {
        EntryEvent::Refused { .. } => Cell::bad("refused"),
        EntryEvent::Intent { .. } => Cell::new("intent"),
        EntryEvent::Outcome { outcome: CallOutcome::Done, .. } => Cell::good("done"),
        EntryEvent::Outcome { outcome: CallOutcome::Failed, .. } => Cell::bad("failed"),
        EntryEvent::Outcome { outcome: CallOutcome::Unknown, .. } => Cell::warning("unknown"),
    }
}

/// Says that there are no entries.
fn none(is_there: bool, place: &StoreLocation) -> String {
    match is_there {
        true => format!("no entries in {place}"),
        false => format!("no store at {place} yet; the first call creates it"),
    }
}

fn verify(session: &mut Session) -> Outcome {
    let setup = session.load()?;
    let place = setup.place()?;
    let checked = with_existing_app(&setup, async |app| app.store().verify().await.map_err(unreadable))?;
    let none = none(checked.is_some(), &place);
    let chains = checked.unwrap_or_default();
    let sound = chains.iter().all(|chain| chain.fault.is_none());
    session.shown(&json!({ "ok": sound, "store": place.to_string(), "chains": chains }), |out| {
        if chains.is_empty() {
            out.line(none)?;
        }
        for chain in &chains {
            let (name, entries) = (&chain.chain, chain.entries);
            match &chain.fault {
                None => {
                    let entries = counted(entries, "entry");
                    out.line(format_args!("ok: {name}: {entries}, none changed or missing"))?;
                }
                Some(fault) => {
                    out.line(format_args!("damaged: {name}: {fault}"))?;
                    out.line(format_args!("  intact entries before the damage: {entries}"))?;
                }
            }
        }
        Ok(())
    })?;
    Ok(ExitCode::from(u8::from(!sound)))
}

fn unreadable(error: StoreError) -> Failure {
    Failure::failed("the ledger cannot be read").because(error).hint("clawsmith ledger verify")
}
