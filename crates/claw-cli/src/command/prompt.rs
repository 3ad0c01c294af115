//! Asking the person at the terminal for a secret.

use claw_store::vault::MOST_SECRET_BYTES;
use claw_terminal::{AskError, ask_hidden, ask_secret};
use secrecy::SecretString;
use tokio::runtime::Runtime;
use zeroize::Zeroizing;

use crate::exit_code::Failure;

/// Reads a secret value; `None` if the person gave up with Ctrl-C. An empty value is an error with `hint`.
pub(super) fn value(runtime: &Runtime, what: &str, hint: &str) -> Result<Option<SecretString>, Failure> {
    ask_secret(runtime, what, MOST_SECRET_BYTES).map_err(|error| match error {
        AskError::Empty => Failure::from(error).hint(hint),
        error => error.into(),
    })
}

/// A line that a person types, which does not show; `None` where they gave up with Ctrl-C.
pub(super) fn hidden(runtime: &Runtime, question: &str) -> Result<Option<Zeroizing<String>>, Failure> {
    Ok(ask_hidden(runtime, question, MOST_SECRET_BYTES)?)
}
