//! Schemas as each provider takes them.
