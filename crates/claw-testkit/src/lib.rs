//! claw-testkit
