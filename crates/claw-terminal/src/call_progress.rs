//! Shows the progress of a call as it comes, on a terminal only.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};

use crate::visible;

/// The destination of progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    /// The destination of the result too, which then need not be printed again.
    Stdout,
    /// Standard error, beside a result that goes elsewhere.
    Stderr,
    Nobody,
}

/// Shows pieces of text as they come.
#[derive(Debug)]
pub struct Live {
    to: To,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    shown: bool,
    /// True if a line has begun and not ended.
    open: bool,
}

impl Live {
    /// Shows them on a terminal only; on standard error where the result is JSON.
    pub fn new(json: bool) -> Self {
        let to = match (json, io::stdout().is_terminal(), io::stderr().is_terminal()) {
            (false, true, _) => To::Stdout,
            (_, _, true) => To::Stderr,
            _ => To::Nobody,
        };
        Self { to, state: Mutex::default() }
    }

    /// Shows a piece.
    pub fn show(&self, text: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.to == To::Nobody || text.is_empty() {
            return;
        }
        state.shown = true;
        state.open = !text.ends_with('\n');
        self.write(&visible(text));
    }

    /// Ends a line that has begun.
    pub fn end(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut state.open) {
            self.write("\n");
        }
    }

    /// Returns whether the result was already shown on standard output.
    pub fn has_shown(&self) -> bool {
        self.to == To::Stdout && self.state.lock().unwrap_or_else(PoisonError::into_inner).shown
    }

    fn write(&self, text: &str) {
        // Nothing is left to be done about a terminal that cannot be written to.
        let _ = match self.to {
            To::Stdout => io::stdout().lock().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()),
            To::Stderr => io::stderr().lock().write_all(text.as_bytes()),
            To::Nobody => Ok(()),
        };
    }
}
