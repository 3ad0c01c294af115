//! Tests of `profile`.
