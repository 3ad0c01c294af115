use std::sync::atomic::AtomicUsize;

use claw_core::port::Fault;

use super::KeyRotation;
use crate::provider_error::Trouble;

const LIMITED: Fault = Fault::RateLimited { retry_after: None };

fn trouble(fault: Fault) -> Trouble {
    Trouble::new(fault, "no")
}

#[test]
fn every_key_is_tried_once_before_a_wait() {
    let last_worked = AtomicUsize::new(1);
    let mut keys = KeyRotation::new(3, &last_worked);
    assert_eq!(keys.current(), 1);
    assert!(keys.switch_after(&trouble(Fault::Unauthorised)));
    assert_eq!(keys.current(), 2);
    assert!(keys.switch_after(&trouble(LIMITED)));
    assert_eq!(keys.current(), 0);
    assert!(!keys.switch_after(&trouble(Fault::Unauthorised)));
    // One of the keys is only limited, so waiting may help.
    assert_eq!(keys.decisive(trouble(Fault::Unauthorised)).fault, LIMITED);
    keys.restart();
    assert_eq!(keys.current(), 1);
    assert!(keys.switch_after(&trouble(LIMITED)));
}

#[test]
fn other_troubles_keep_the_key() {
    let last_worked = AtomicUsize::new(0);
    let mut keys = KeyRotation::new(2, &last_worked);
    assert!(!keys.switch_after(&trouble(Fault::Unavailable)));
    assert_eq!(keys.current(), 0);
    assert_eq!(keys.decisive(trouble(Fault::Unavailable)).fault, Fault::Unavailable);
}

#[test]
fn the_next_question_begins_with_the_key_that_worked() {
    let last_worked = AtomicUsize::new(0);
    let mut keys = KeyRotation::new(2, &last_worked);
    assert!(keys.switch_after(&trouble(LIMITED)));
    keys.worked();
    assert_eq!(KeyRotation::new(2, &last_worked).current(), 1);
    assert_eq!(KeyRotation::new(0, &last_worked).current(), 0, "no key is needed");
}
