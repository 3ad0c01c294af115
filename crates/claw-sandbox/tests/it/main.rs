//! Commands on the real kernel and a real engine, and the attacks on their sandboxes.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up fails loudly")]

mod attacker;
mod children;
mod covered;
mod docker;
mod escape;
mod kit;
mod left_behind;
mod meanwhile;
mod programs;
mod reading;
mod repository;
mod sandboxes;
mod shell;
mod transactions;

/// Runs before the test harness does: this binary is also its own sandbox helper, which must have one thread, and
/// the program that attacks from inside.
#[expect(unsafe_code, reason = "the only way to run before the harness's `main`; it takes nothing")]
#[used]
#[unsafe(link_section = ".init_array")]
static FIRST: extern "C" fn() = {
    extern "C" fn first() {
        claw_sandbox::enter_if_asked();
        attacker::attack_if_asked();
        left_behind::own_if_asked();
        transactions::apply_if_asked();
        docker::own_if_asked();
    }
    first
};
