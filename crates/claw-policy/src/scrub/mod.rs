//! Compiles an immutable scrubber: one pass, streaming.
