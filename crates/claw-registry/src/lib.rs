//! claw-registry
