//! Cost of a new secret, with one tenant and with a thousand, compared with compiling all of them.
//!
//! Prints `name<TAB>value<TAB>unit` lines; times are the best of several rounds.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

use std::hint::black_box;
use std::time::Instant;

use claw_core::TenantId;
use claw_policy::scrub::{Scrubber, Value};
use claw_registry::Scrubbers;

const TENANTS: usize = 1000;
/// Values of each tenant, and of the deployment.
const VALUES: usize = 20;
const ROUNDS: usize = 200;

fn tenant(at: usize) -> TenantId {
    TenantId::new(format!("tenant-{at}")).unwrap()
}

fn value(of: usize, at: usize) -> String {
    format!("secret-{of:05}-{at:05}-{:016x}", (of * 7919 + at) * 2_654_435_761)
}

fn scrubbers(tenants: usize) -> Scrubbers {
    let scrubbers = Scrubbers::default();
    (0..VALUES).for_each(|at| scrubbers.add(&value(TENANTS, at)).unwrap());
    for of in 0..tenants {
        scrubbers.set_for(&tenant(of), (0..VALUES).map(|at| value(of, at))).unwrap();
    }
    scrubbers
}

/// Microseconds of the fastest round; `undo` is not measured.
fn best(mut work: impl FnMut(usize), mut undo: impl FnMut(usize)) -> f64 {
    let round = |at| {
        let begun = Instant::now();
        work(at);
        let took = begun.elapsed().as_secs_f64() * 1e6;
        undo(at);
        took
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

/// Cost of each operation, in microseconds.
fn measure(scrubbers: &Scrubbers) -> [(&'static str, f64); 4] {
    let new = |at: usize| value(TENANTS + 1, at);
    let known = best(
        |at| scrubbers.add_for(&tenant(0), &new(at)).unwrap(),
        |at| scrubbers.remove_for(&tenant(0), &new(at)).unwrap(),
    );
    let first = best(|at| scrubbers.add_for(&tenant(2 * TENANTS + at), &new(at)).unwrap(), |_| {});
    let common = best(|at| scrubbers.add(&new(at)).unwrap(), |at| scrubbers.remove(&new(at)).unwrap());
    let thousand =
        best(|_| (0..1000).for_each(|_| drop(black_box(scrubbers.for_tenant(&tenant(0))))), |_| {});
    [
        ("a new secret of a tenant that has 20", known),
        ("the first secret of a new tenant", first),
        ("a new secret of the deployment, which has 20", common),
        ("a tenant's scrubber, 1000 times", thousand),
    ]
}

fn main() {
    let of_one = measure(&scrubbers(1));
    let of_many = measure(&scrubbers(TENANTS));
    let begun = Instant::now();
    for of in 0..TENANTS {
        let values = (0..VALUES).flat_map(|at| [value(TENANTS, at), value(of, at)]);
        black_box(Scrubber::compile(values.map(|value| Value::new(value, "value"))).unwrap());
    }
    println!("baseline: compiling {TENANTS} tenants\t{:.0}\tus", begun.elapsed().as_secs_f64() * 1e6);
    for ((name, one), (_, many)) in of_one.iter().zip(&of_many) {
        println!("{name}, 1 tenant\t{one:.2}\tus");
        println!("{name}, {TENANTS} tenants\t{many:.2}\tus");
        println!("{name}, {TENANTS} tenants / 1\t{:.2}\tx", many / one);
    }
}
