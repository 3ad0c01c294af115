//! Tests of `pipeline`.
