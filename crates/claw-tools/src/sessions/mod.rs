//! `sessions`: conversations, and agents started from them.

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

/// The session that is meant.
fn session(key: &str) -> Result<SessionKey, ToolError> {
    SessionKey::new(key)
        .map_err(|error| ToolError::invalid(error.to_string()).try_instead("take a key from `sessions_list`"))
}

/// What is somebody else's and what is not at all are told in the same words.
fn not_there(session: &SessionKey) -> ToolError {
    ToolError::not_found(format!("there is no session `{session}` that you may use"))
        .try_instead("call `sessions_list` for those you may")
}
