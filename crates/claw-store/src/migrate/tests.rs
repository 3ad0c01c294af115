use super::{PAIRS, postgres, sqlite};

#[test]
fn versions_rise_from_one_in_both_dialects() {
    let numbers: Vec<_> = PAIRS.iter().map(|pair| pair.version).collect();
    assert_eq!(numbers[0], 1);
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
}

#[test]
fn both_dialects_have_the_same_steps() {}

#[test]
fn versions_rise_in_both_dialects() {
    let numbers: Vec<_> = PAIRS.iter().map(|pair| pair.version).collect();
    assert!(numbers[0] == 1 && numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    for (sqlite, postgres) in sqlite().iter().zip(postgres().iter()) {
        assert_eq!((sqlite.version, &sqlite.description), (postgres.version, &postgres.description));
    }
}
