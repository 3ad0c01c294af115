//! Adding and removing values of a deployment and of its tenants.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use claw_policy::scrub::Value;
use proptest::prelude::*;

use super::*;

/// Some are parts of others, some overlap.
const VALUES: [&str; 10] = [
    "abcdefgh",
    "efghijkl",
    "abcdef",
    "ijklmnop",
    "other-value",
    "value-4711",
    "open-sesame",
    "sesame-4711",
    "gh-open-se",
    "lmnop-x",
];
const TEXT: &str = "abcdefghijklmnop-x other-value-4711 gh-open-sesame-4711 abcdef open-sesame efghijkl.";

fn tenant(at: usize) -> TenantId {
    TenantId::new(format!("tenant-{at}")).unwrap()
}

fn value(at: usize) -> String {
    format!("value-{at:04}-of-many")
}

#[derive(Debug, Clone)]
enum Change {
    Add(Option<usize>, usize),
    AddAll(usize, Vec<usize>),
    Set(usize, Vec<usize>),
    Remove(Option<usize>, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let who = || prop::option::of(0..2_usize);
    let which = || 0..VALUES.len();
    let several = || prop::collection::vec(0..VALUES.len(), 0..9);
    prop_oneof![
        4 => (who(), which()).prop_map(|(who, which)| Change::Add(who, which)),
        1 => (0..2_usize, several()).prop_map(|(who, which)| Change::AddAll(who, which)),
        1 => (0..2_usize, several()).prop_map(|(who, which)| Change::Set(who, which)),
        2 => (who(), which()).prop_map(|(who, which)| Change::Remove(who, which)),
    ]
}

/// Applies a change to the scrubbers and to a model of plain sets.
fn make(scrubbers: &Scrubbers, model: &mut BTreeMap<Option<usize>, BTreeSet<&str>>, change: &Change) {
    let named = |which: &[usize]| which.iter().map(|at| VALUES[*at]).collect::<BTreeSet<_>>();
    let owned = |which: &[usize]| which.iter().map(|at| VALUES[*at].to_owned()).collect::<Vec<_>>();
    match change {
        Change::Add(who, at) => {
            match who {
                Some(who) => scrubbers.add_for(&tenant(*who), VALUES[*at]).unwrap(),
                None => scrubbers.add(VALUES[*at]).unwrap(),
            }
            model.entry(*who).or_default().insert(VALUES[*at]);
        }
        Change::AddAll(who, which) => {
            assert_eq!(scrubbers.add_all_for(&tenant(*who), owned(which)).unwrap(), 0);
            model.entry(Some(*who)).or_default().extend(named(which));
        }
        Change::Set(who, which) => {
            assert_eq!(scrubbers.set_for(&tenant(*who), owned(which)).unwrap(), 0);
            model.insert(Some(*who), named(which));
        }
        Change::Remove(who, at) => {
            match who {
                Some(who) => scrubbers.remove_for(&tenant(*who), VALUES[*at]).unwrap(),
                None => scrubbers.remove(VALUES[*at]).unwrap(),
            }
            model.entry(*who).or_default().remove(VALUES[*at]);
        }
    }
}

proptest! {
    #[test]
    fn whatever_changes_each_tenant_is_scrubbed_of_its_values_and_the_deployments(
        changes in prop::collection::vec(change(), 1..25),
        cut in 0..TEXT.len(),
    ) {
        let (scrubbers, mut model) = (Scrubbers::default(), BTreeMap::new());
        for change in &changes {
            make(&scrubbers, &mut model, change);
            for who in 0..3 {
                let lists = [None, Some(who)].map(|who| model.get(&who).cloned().unwrap_or_default());
                let values = lists.iter().flatten().map(|value| Value::new(*value, "value"));
                let expected = Scrubber::compile(values).unwrap().scrub(TEXT).into_owned();
                let scrubber = scrubbers.for_tenant(&tenant(who));
                prop_assert_eq!(scrubber.text(TEXT), expected.clone(), "whole, {:?}", changes);
                let mut saying = scrubber.saying();
                let said = saying.push(&TEXT[..cut]) + &saying.push(&TEXT[cut..]) + &saying.end();
                prop_assert_eq!(said, expected, "cut at {}, {:?}", cut, changes);
            }
            let with_values: Vec<_> =
                (0..2).filter(|who| model.get(&Some(*who)).is_some_and(|values| !values.is_empty())).collect();
            prop_assert_eq!(scrubbers.tenants(), with_values.into_iter().map(tenant).collect::<Vec<_>>());
        }
    }
}

#[test]
fn values_too_short_to_tell_from_text_are_refused_and_counted() {
    let scrubbers = Scrubbers::default();
    assert!(matches!(scrubbers.add_for(&tenant(0), "short"), Err(SecretError::TooShort { .. })));
    let values = || ["short", "------", "long-enough"].map(str::to_owned);
    assert_eq!(scrubbers.add_all_for(&tenant(0), values()).unwrap(), 2);
    assert_eq!(scrubbers.set_for(&tenant(1), values()).unwrap(), 2);
    for who in 0..2 {
        let scrubber = scrubbers.for_tenant(&tenant(who));
        assert_eq!(scrubber.text("short ------ long-enough"), "short ------ [REDACTED]");
    }
    assert_eq!(scrubbers.tenants(), [tenant(0), tenant(1)]);
}

#[test]
fn another_tenant_and_its_scrubber_are_left_alone() {
    let scrubbers = Scrubbers::default();
    scrubbers.add_for(&tenant(0), "abcdefgh").unwrap();
    let compiled = |who: usize| Arc::clone(&scrubbers.known(&tenant(who)).unwrap().values.scrubber());
    let before = compiled(0);
    scrubbers.add_for(&tenant(1), "efghijkl").unwrap();
    scrubbers.add("open-sesame").unwrap();
    assert!(Arc::ptr_eq(&before, &compiled(0)), "compiled again for what others added");
    let given = scrubbers.for_tenant(&tenant(0));
    scrubbers.remove_for(&tenant(0), "abcdefgh").unwrap();
    assert_eq!(given.text("abcdefgh open-sesame"), "[REDACTED] [REDACTED]", "given out before");
    assert_eq!(scrubbers.for_tenant(&tenant(0)).text("abcdefgh open-sesame"), "abcdefgh [REDACTED]");
}

/// Adds values from several threads at once; each is searched as soon as its adding has returned, while lists
/// are joined in the background.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn refuses_to_show_a_value_while_the_lists_are_joined() {
    const EACH: usize = 60;
    let scrubbers = Arc::new(Scrubbers::default());
    let adding = (0..4).map(|part| {
        let scrubbers = Arc::clone(&scrubbers);
        tokio::spawn(async move {
            for at in part * EACH..(part + 1) * EACH {
                scrubbers.add_for(&tenant(0), &value(at)).unwrap();
                for known in part * EACH..=at {
                    let text = scrubbers.for_tenant(&tenant(0)).text(&value(known));
                    assert_eq!(text, "[REDACTED]", "value {known} after value {at}");
                }
                tokio::task::yield_now().await;
            }
        })
    });
    for task in adding.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

#[test]
fn refuses_to_show_a_value_that_is_in_both_sets() {
    let (scrubbers, over) = (Scrubbers::default(), AtomicBool::new(false));
    let set = |others: std::ops::Range<usize>| {
        let values = others.chain([9999]).map(value);
        scrubbers.set_for(&tenant(0), values).unwrap();
    };
    set(0..3);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for at in 0..300 {
                set(at..at + 1 + at % 8);
            }
            over.store(true, Ordering::Release);
        });
        while !over.load(Ordering::Acquire) {
            assert_eq!(scrubbers.for_tenant(&tenant(0)).text(&value(9999)), "[REDACTED]");
        }
    });
    assert_eq!(scrubbers.for_tenant(&tenant(0)).text(&value(0)), value(0), "set anew without it");
}
