//! claw-host
