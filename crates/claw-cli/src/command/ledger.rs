//! `clawsmith ledger`: refused, intended and completed calls, and whether the record was changed.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use claw_core::store::{Entry, EntryEvent, Outcome as CallOutcome, StoreError};
use claw_store::StoreLocation;
use claw_terminal::{Cell, Table, tell};
use clawsmith::app::words::{in_short, time};
use serde_json::json;

use crate::cli::Session;
use crate::failure::{Failure, Outcome};

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
    /// The number of last entries searched.
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
        let place = setup.place()?;
        let read = async {
            let Some(app) = setup.open_existing().await? else {
                return Ok(None);
            };
            let entries =
                app.store().recent(&setup.config().tenant, self.wanted()).await.map_err(unreadable)?;
            app.close().await;
            Ok::<_, Failure>(Some(entries))
        };
        let read = super::tools::runtime()?.block_on(read)?;
        let is_there = read.is_some();
        let mut entries = read.unwrap_or_default();
        if let Some(key) = &self.session {
            entries.retain(|entry| entry.record.session.as_str() == key);
            entries.drain(..entries.len().saturating_sub(self.last));
        }
        if session.out.json {
            session.out.json(&entries)?;
            return Ok(ExitCode::SUCCESS);
        }
        if entries.is_empty() {
            none(session, is_there, &place)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut table = Table::new(["seq", "time", "session", "agent", "tool", "event", "what"]);
        entries.iter().for_each(|entry| row(&mut table, entry));
        session.out.table(&table)?;
        if entries.len() == self.last {
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

fn row(table: &mut Table, entry: &Entry) {
    let record = &entry.record;
    let (event, what) = match &record.event {
        EntryEvent::Refused { step, reason } => (Cell::bad("refused"), format!("{step}: {reason}")),
        EntryEvent::Intent { effects, args, approval, .. } => {
            let approved = if approval.is_some() { " (approved)" } else { "" };
            (Cell::new("intent"), format!("effects: {effects}{approved}; {args}"))
        }
        EntryEvent::Outcome { outcome, micros, bytes, error, changes } => {
            let changed = changes.as_ref().filter(|it| it.count > 0);
            let changed = changed.map_or_else(String::new, |it| format!(", {} changes", it.count));
            let took = format!("{:.1} ms, {bytes} bytes{changed}", *micros as f64 / 1000.0);
            let what = error.as_ref().map_or_else(|| took.clone(), |error| format!("{took}; {error}"));
            match outcome {
                CallOutcome::Done => (Cell::good("done"), what),
                CallOutcome::Failed => (Cell::bad("failed"), what),
                CallOutcome::Unknown => (Cell::warning("unknown"), what),
            }
        }
    };
    table.row([
        Cell::quiet(entry.seq),
        Cell::quiet(time(record.at)),
        Cell::new(&record.session),
        Cell::new(&record.agent),
        Cell::strong(&record.tool),
        event,
        Cell::new(in_short(&what)),
    ]);
}

fn none(session: &mut Session, is_there: bool, place: &StoreLocation) -> Result<(), Failure> {
    match is_there {
        true => Ok(session.out.line(format_args!("no entries in {place}"))?),
        false => Ok(session.out.line(format_args!("no store at {place} yet; the first call makes it"))?),
    }
}

fn verify(session: &mut Session) -> Outcome {
    let setup = session.load()?;
    let place = setup.place()?;
    let check = async {
        let Some(app) = setup.open_existing().await? else { return Ok(None) };
        let chains = app.store().verify().await.map_err(unreadable)?;
        app.close().await;
        Ok::<_, Failure>(Some(chains))
    };
    let checked = super::tools::runtime()?.block_on(check)?;
    let is_there = checked.is_some();
    let chains = checked.unwrap_or_default();
    let sound = chains.iter().all(|chain| chain.fault.is_none());
    let code = if sound { ExitCode::SUCCESS } else { ExitCode::from(1) };
    if session.out.json {
        session.out.json(&json!({ "ok": sound, "store": place.to_string(), "chains": chains }))?;
        return Ok(code);
    }
    if chains.is_empty() {
        none(session, is_there, &place)?;
    }
    for chain in &chains {
        let (name, entries) = (&chain.chain, chain.entries);
        match &chain.fault {
            None => {
                session.out.line(format_args!("ok: {name}: {entries} entries, none changed or missing"))?;
            }
            Some(fault) => {
                session.out.line(format_args!("damaged: {name}: {fault}"))?;
                session.out.line(format_args!("  entries before it that are sound: {entries}"))?;
            }
        }
    }
    Ok(code)
}

fn unreadable(error: StoreError) -> Failure {
    Failure::failed("the ledger cannot be read").because(error).hint("clawsmith ledger verify")
}
