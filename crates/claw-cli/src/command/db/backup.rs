//! `clawsmith db backup`: everything in one file, while the store is in use.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use claw_store::backup;
use claw_store::progress::Progress;
use claw_terminal::Progress as Bar;
use serde_json::json;

use super::{NOT_INCLUDED, finish, meant, remind, sound};
use crate::cli::Session;
use crate::failure::Outcome;

/// The target of a backup.
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The file to write, which only its owner may read.
    file: PathBuf,
    /// The store to back up [default: the configured one].
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// Replace a file of that name.
    #[arg(long)]
    force: bool,
}

impl Backup {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let place = meant(session, self.from.as_deref())?;
        let mut bar = Bar::new(session.out.json);
        let mut show = |progress: Progress<'_>| super::show(&mut bar, progress);
        let work = backup::backup(&place, &self.file, self.force, &mut show);
        let report = finish(work, "nothing was written")?;
        drop(bar);
        let whole = sound(session, &report.chains)?;
        if session.out.json {
            let mut object = serde_json::to_value(&report)?;
            object["not_included"] = json!(NOT_INCLUDED);
            session.out.json(&object)?;
        } else {
            let (from, file, bytes) = (&report.from, report.file.display(), report.bytes);
            session.out.line(format_args!("backed up `{from}` to `{file}`: {bytes} bytes, checked"))?;
        }
        remind(session);
        Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(1) })
    }
}
