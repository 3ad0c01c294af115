//! claw-tools
