//! `sessions`: tools about the caller's sessions.

mod session_status;
mod sessions_history;
mod sessions_list;
mod sessions_send;

use claw_core::SessionKey;
use claw_core::tool::ToolError;

use crate::Builtin;

pub(crate) const TOOLS: &[Builtin] = &[
    Builtin::of::<session_status::SessionStatus>(),
    Builtin::of::<sessions_history::SessionsHistory>(),
    Builtin::of::<sessions_list::SessionsList>(),
    Builtin::of::<sessions_send::SessionsSend>(),
];

/// Parses a session key.
fn session(key: &str) -> Result<SessionKey, ToolError> {
    SessionKey::new(key)
        .map_err(|error| ToolError::invalid(error.to_string()).try_instead("take a key from `sessions_list`"))
}

/// The error for a session that does not exist or is not the caller's: the same words for both, so that it
/// does not tell which.
fn not_there(session: &SessionKey) -> ToolError {
    ToolError::not_found(format!("there is no session `{session}` that you may use"))
        .try_instead("call `sessions_list` for the sessions that you may use")
}
