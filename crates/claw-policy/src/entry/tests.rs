//! Tests of `entry`.
