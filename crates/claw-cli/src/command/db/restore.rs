//! `clawsmith db restore`: a backup in the place of the store.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use claw_store::backup;
use claw_store::progress::Progress;
use claw_terminal::{Progress as Bar, tell};
use serde_json::json;

use super::{NOT_INCLUDED, finish, meant, remind};
use crate::cli::Session;
use crate::failure::Outcome;

/// The source of a restoration.
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The file that `clawsmith db backup` wrote.
    file: PathBuf,
    /// The store to put it in, which must be empty [default: the configured one].
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// Move a SQLite file that is not empty aside first.
    #[arg(long)]
    force: bool,
}

impl Restore {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let place = meant(session, self.to.as_deref())?;
        let mut bar = Bar::new(session.out.json);
        let mut show = |progress: Progress<'_>| super::show(&mut bar, progress);
        let work = backup::restore(&self.file, &place, self.force, &mut show);
        let report = finish(work, "repeat the command")?;
        drop(bar);
        if session.out.json {
            let mut object = serde_json::to_value(&report)?;
            object["not_included"] = json!(NOT_INCLUDED);
            session.out.json(&object)?;
        } else {
            let (file, to, chains) = (report.file.display(), &report.to, report.chains.len());
            session.out.line(format_args!(
                "restored `{file}` to `{to}`; chains of the ledger: {chains}, all sound"
            ))?;
            if let Some(aside) = &report.aside {
                tell(format_args!("note: what was there is now `{}`", aside.display()));
            }
        }
        remind(session);
        Ok(ExitCode::SUCCESS)
    }
}
