//! A spinner while nothing else is shown: what the run waits for, and for how long.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use crate::{style, told_columns, visible, width};

/// The interval between its frames.
pub const TICK: Duration = Duration::from_millis(120);
/// Silence shorter than this needs no sign.
const SILENCE: Duration = Duration::from_millis(500);
const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The line that moves, below everything that was shown.
#[derive(Debug)]
pub struct Spinner {
    works: bool,
    /// The column of the open line above, if the spinner is shown; 0 if it has the cursor's own line.
    shown_below: Option<usize>,
    frame: usize,
    quiet_since: Instant,
}

impl Spinner {
    /// Moves on a terminal only, and not beside JSON.
    pub fn new(json: bool) -> Self {
        let terminal = io::stdout().is_terminal() && io::stderr().is_terminal();
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self {
            works: terminal && !is_dumb && !json,
            shown_below: None,
            frame: 0,
            quiet_since: Instant::now(),
        }
    }

    /// Returns whether the silence has lasted long enough for a sign.
    pub fn is_due(&self) -> bool {
        self.works && self.quiet_since.elapsed() >= SILENCE
    }

    /// Draws the next frame, with what the run waits for: below the line that is open up to this column.
    pub fn tick(&mut self, what: &str, column: usize) {
        if !self.is_due() {
            return;
        }
        self.frame = (self.frame + 1) % FRAMES.len();
        let line = format!("{} {}", FRAMES[self.frame], visible(what).replace(['\n', '\t'], " "));
        let columns = told_columns().unwrap_or(80).saturating_sub(1);
        let mut cut = String::new();
        for c in line.chars() {
            if width(&cut) + 2 > columns {
                break;
            }
            cut.push(c);
        }
        let quiet = style::QUIET;
        let below = if self.shown_below.is_none() && column > 0 { "\n" } else { "" };
        let _ = write!(anstream::stderr().lock(), "{below}\r\x1b[K{quiet}{cut}{quiet:#}");
        self.shown_below.get_or_insert(column);
    }

    /// Clears the line for other output; the cursor returns to the end of an open line.
    pub fn clear(&mut self) {
        self.quiet_since = Instant::now();
        let _ = match self.shown_below.take() {
            None => Ok(()),
            Some(0) => write!(io::stderr().lock(), "\r\x1b[K"),
            Some(column) => write!(io::stderr().lock(), "\r\x1b[K\x1b[A\x1b[{column}C"),
        };
    }
}
