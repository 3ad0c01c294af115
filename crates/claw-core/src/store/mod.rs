//! What the system must remember.
