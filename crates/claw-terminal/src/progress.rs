//! Shows progress: a bar on a terminal, lines in a pipe, nothing beside JSON.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressStyle};

use crate::tell;

/// The part of a step that is done, in units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepCount {
    /// The name of the units, such as `rows`.
    pub unit: &'static str,
    /// The units that are done.
    pub done: u64,
    /// The units of the whole step.
    pub of: u64,
}

impl StepCount {
    /// The count of a step that has no units.
    pub const NONE: Self = Self { unit: "", done: 0, of: 0 };
}

/// Shows the steps of a long operation on standard error.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    lines: bool,
    /// The current step.
    at: String,
}

impl Progress {
    /// Shows nothing if `json` goes to programs.
    pub fn new(json: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = (terminal && !json).then(|| ProgressBar::new(0).with_style(style()));
        Self { bar, lines: !terminal && !json, at: String::new() }
    }

    /// Shows how far a step is. Lines are printed only for the beginning and the end of a step, and none for an
    /// empty one.
    pub fn show(&mut self, step: String, StepCount { unit, done, of }: StepCount) {
        if let Some(bar) = &self.bar {
            bar.set_length(of);
            bar.set_position(done);
            bar.set_message(step.clone());
        }
        let is_new = step != self.at;
        if self.lines && unit.is_empty() && is_new {
            tell(&step);
        } else if self.lines && !unit.is_empty() && of > 0 && (is_new || done == of) {
            tell(format_args!("{step}: {done} of {of} {unit}"));
        }
        self.at = step;
    }
}

impl Drop for Progress {
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
