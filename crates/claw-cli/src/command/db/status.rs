//! `clawsmith db status`: the store's location and status.

use std::io;

use claw_store::{Schema, Status, StoreLocation};
use claw_terminal::{Cell, Out, Table};
use clawsmith::app::words::bytes as size;
use serde_json::json;

use crate::cli::Session;
use crate::exit_code::Outcome;
use crate::opened::runtime;

pub(super) fn run(session: &mut Session) -> Outcome {
    let setup = session.load()?;
    let place = setup.place()?;
    let status = runtime()?.block_on(claw_store::status(&place));
    let status = status.map_err(|error| setup.unopened(error))?;
    let mut value = json!({ "store": place.to_string(), "exists": status.is_some() });
    if let Some(status) = &status {
        value["status"] = json!(status);
    }
    session.shown(&value, |out| {
        match &status {
            Some(status) => print(out, &place, status)?,
            None if place == StoreLocation::Memory => {
                out.line("the store is in memory; it is lost when the program ends")?;
            }
            None => out.line(format_args!("no store at {place} yet; the first call creates it"))?,
        }
        Ok(())
    })
}

fn print(out: &mut Out, place: &StoreLocation, status: &Status) -> io::Result<()> {
    let journal = match &status.journal {
        Some(journal) if journal.bytes > 0 => {
            format!(", journal: {} ({} beside the file)", journal.mode, size(journal.bytes))
        }
        Some(journal) => format!(", journal: {}", journal.mode),
        None => String::new(),
    };
    let name = if status.backend == "sqlite" { "SQLite" } else { "PostgreSQL" };
    let installation = status.installation.map_or_else(|| "unknown".to_owned(), |id| id.to_string());
    let lines = [
        ("store", place.to_string()),
        ("backend", format!("{name} {}{journal}", status.version)),
        ("schema", schema(&status.schema)),
        ("installation", installation),
        ("size", size(status.bytes)),
    ];
    for (name, value) in lines {
        out.line(format_args!("{name:<14}{value}"))?;
    }
    if let Some(from) = &status.copying_from {
        let advice = "the store cannot be opened yet; repeat the `clawsmith db copy` command to resume";
        out.line(format_args!("{:<14}from {from}, not finished: {advice}", "copy"))?;
    }
    out.line("")?;
    out.table(&Table::of(
        &status.tables,
        &[("table", &|row| Cell::strong(&row.name)), ("rows", &|row| Cell::new(row.rows))],
    ))
}

fn schema(schema: &Schema) -> String {
    let applied = schema.applied.map_or_else(|| "none".to_owned(), |version| version.to_string());
    if !schema.newer.is_empty() {
        return format!(
            "{applied}, created by a newer Clawsmith: this version knows only up to {}, and cannot open the store",
            schema.known
        );
    }
    if schema.pending.is_empty() {
        return format!("{applied}, up to date");
    }
    let pending: Vec<_> =
        schema.pending.iter().map(|step| format!("{:04} {}", step.version, step.name)).collect();
    format!("{applied}; the next start applies {}", pending.join(", "))
}
