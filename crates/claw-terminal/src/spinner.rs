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
    is_shown: bool,
    frame: usize,
    quiet_since: Instant,
}

impl Spinner {
    /// Moves on a terminal only, and not beside JSON.
    pub fn new(json: bool) -> Self {
        let terminal = io::stdout().is_terminal() && io::stderr().is_terminal();
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self { works: terminal && !is_dumb && !json, is_shown: false, frame: 0, quiet_since: Instant::now() }
    }

    /// Draws the next frame, with what the run waits for.
    pub fn tick(&mut self, what: &str) {
        if !self.works || self.quiet_since.elapsed() < SILENCE {
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
        let _ = write!(anstream::stderr().lock(), "\r\x1b[K{quiet}{cut}{quiet:#}");
        self.is_shown = true;
    }

    /// Clears the line for other output.
    pub fn clear(&mut self) {
        self.quiet_since = Instant::now();
        if std::mem::take(&mut self.is_shown) {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}
