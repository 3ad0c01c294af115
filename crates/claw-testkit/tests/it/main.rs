//! Tests that need more of the machine than a crate's own tests should.

mod oracle;
