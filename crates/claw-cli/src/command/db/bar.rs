//! Shows progress: a bar on a terminal, lines in a pipe, nothing beside JSON.

use std::io::IsTerminal as _;

use claw_store::progress::Progress;
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::Session;
use crate::output::tell;

/// Shows progress on standard error.
pub(super) struct Bar {
    bar: Option<ProgressBar>,
    lines: bool,
    /// The current step.
    at: String,
}

impl Bar {
    pub(super) fn new(session: &Session) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = (terminal && !session.out.json).then(|| ProgressBar::new(0).with_style(style()));
        Self { bar, lines: !terminal && !session.out.json, at: String::new() }
    }

    /// Shows a step. Lines are printed only for the beginning and the end of a part, and none for an empty
    /// part.
    pub(super) fn show(&mut self, progress: Progress<'_>) {
        let (what, unit, done, of) = match progress {
            Progress::Copied { table, rows, of } => (format!("copying {table}"), "rows", rows, of),
            Progress::Compared { table, rows, of } => (format!("comparing {table}"), "rows", rows, of),
            Progress::Written { bytes, of } => ("writing".to_owned(), "bytes", bytes, of),
            Progress::Checking => ("checking the file".to_owned(), "", 0, 0),
            Progress::Chains => ("verifying the ledger".to_owned(), "", 0, 0),
        };
        if let Some(bar) = &self.bar {
            bar.set_length(of);
            bar.set_position(done);
            bar.set_message(what.clone());
        }
        let is_new = what != self.at;
        if self.lines && unit.is_empty() && is_new {
            tell(&what);
        } else if self.lines && !unit.is_empty() && of > 0 && (is_new || done == of) {
            tell(format_args!("{what}: {done} of {of} {unit}"));
        }
        self.at = what;
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn style() -> ProgressStyle {
    let template = "{msg:28} {bar:32} {human_pos}/{human_len} {eta}";
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
