//! `sessions`: conversations, and agents started from them.

mod session_status;

use crate::Builtin;

pub(crate) const TOOLS: &[Builtin] = &[Builtin::of::<session_status::SessionStatus>()];
