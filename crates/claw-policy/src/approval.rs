//! Whether a planned call may run: allow, ask or deny.
