//! `clawsmith db copy`: a whole installation to another store.

use std::process::ExitCode;

use clap::Args;
use claw_store::copy::{self, Options};
use claw_store::progress::Progress;
use claw_terminal::{Progress as Bar, tell};
use serde_json::json;

use super::{NOT_INCLUDED, finish, meant, named, remind, sound};
use crate::cli::Session;
use crate::failure::Outcome;

/// The source and the target of a copy.
#[derive(Debug, Args)]
pub(crate) struct Copy {
    /// The source: `sqlite:PATH` or `postgres://user@host/name`. Left out: the configured store.
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// The target, in the same form; it is created if possible.
    #[arg(long, value_name = "URL")]
    to: String,
    /// Begin an unfinished copy again, instead of going on with it.
    #[arg(long)]
    restart: bool,
}

impl Copy {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let (from, to) = (meant(session, self.from.as_deref())?, named(&self.to)?);
        let options = Options { restart: self.restart, online: false };
        let mut bar = Bar::new(session.out.json);
        let mut show = |progress: Progress<'_>| super::show(&mut bar, progress);
        let work = copy::copy(&from, &to, options, &mut show);
        let report = finish(work, "repeat the command and it goes on")?;
        drop(bar);
        let whole = sound(session, &report.chains)?;
        if session.out.json {
            let mut object = serde_json::to_value(&report)?;
            object["not_included"] = json!(NOT_INCLUDED);
            session.out.json(&object)?;
        } else {
            let (rows, tables, to) = (report.rows, report.tables.len(), &report.to);
            session.out.line(format_args!(
                "copied {rows} rows in {tables} tables to `{to}`; compared {}, all equal; chains of the ledger: {}",
                report.verified,
                report.chains.len()
            ))?;
            if report.replaced > 0 {
                tell(format_args!(
                    "note: PostgreSQL keeps no NUL: {} texts have U+FFFD in its place",
                    report.replaced
                ));
            }
        }
        remind(session);
        Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }
}
