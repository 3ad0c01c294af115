//! What a tool is.
