//! Decisions of this crate against the programs of a real machine.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "tests, and what helps them")]

mod oracle;

/// Runs before the test harness does: this binary is also the stub that stands for every program in the oracle's root.
#[expect(unsafe_code, reason = "the only way to run before the harness's `main`; it takes nothing")]
#[used]
#[unsafe(link_section = ".init_array")]
static FIRST: extern "C" fn() = {
    extern "C" fn first() {
        oracle::stub::record_if_inside();
    }
    first
};
