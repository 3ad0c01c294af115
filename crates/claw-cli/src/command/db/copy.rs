//! `clawsmith db copy`: a whole installation to another store.

use std::process::ExitCode;

use clap::Args;
use claw_store::copy::{self, Options};
use serde_json::json;

use super::bar::Bar;
use super::{NOT_INCLUDED, finish, meant, named, remind, sound};
use crate::cli::Session;
use crate::failure::Outcome;
use crate::output::tell;

/// The source and the target of a copy.
#[derive(Debug, Args)]
#[command(
    after_help = "The target must be empty. A copy that was cut off goes on when it is repeated; until it is \
                        finished, the target cannot be used. Stop whoever writes to the source first. A password \
                        may come from `PGPASSWORD` or `~/.pgpass`. Exit code 1 also where the ledger was damaged \
                        before.

Examples:
  clawsmith db copy --to postgres://claw@db.example/claw
  clawsmith db copy --from postgres://claw@db.example/claw --to sqlite:clawsmith.db --json"
)]
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
        let mut bar = Bar::new(session);
        let mut show = |progress: claw_store::progress::Progress<'_>| bar.show(progress);
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
