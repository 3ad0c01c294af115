//! Tests of `lint`.
