//! Tests that need more of the machine than a crate's own tests should.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests, and what helps them")]

mod oracle;
