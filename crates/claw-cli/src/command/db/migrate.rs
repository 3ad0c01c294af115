//! `clawsmith db migrate`: the schema brought up to date beforehand.

use std::process::ExitCode;

use claw_store::StoreLocation;
use serde_json::json;

use crate::cli::Session;
use crate::failure::{Failure, Outcome};

pub(super) fn run(session: &mut Session) -> Outcome {
    let setup = session.load()?;
    let place = setup.place()?;
    if place == StoreLocation::Memory {
        return Err(Failure::usage("a store in memory has nothing to migrate")
            .hint("set `store.url` to `sqlite:PATH` or `postgres://user@host/name`"));
    }
    let migrate = async {
        let data = setup.data_dir()?;
        let options = setup.store_options(&data)?;
        let applied = claw_store::migrate(&place, &options).await;
        let applied = applied.map_err(|error| setup.unopened(error))?;
        // As a start would: the data directory learns whose it is.
        setup.open().await?.close().await;
        Ok::<_, Failure>(applied)
    };
    let applied = super::super::tools::runtime()?.block_on(migrate)?;
    if session.out.json {
        session.out.json(&json!({ "store": place.to_string(), "applied": applied }))?;
        return Ok(ExitCode::SUCCESS);
    }
    session.out.line(format_args!("store: {place}"))?;
    for step in &applied {
        session.out.line(format_args!("applied: {:04} {}", step.version, step.name))?;
    }
    if applied.is_empty() {
        session.out.line("nothing to apply: the schema is up to date")?;
    }
    Ok(ExitCode::SUCCESS)
}
