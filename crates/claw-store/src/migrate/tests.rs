use super::{PAIRS, postgres, sqlite};

#[test]
fn versions_rise_and_are_the_same_in_both_dialects() {
    assert!(PAIRS.is_sorted_by(|one, next| one.version < next.version));
    for (sqlite, postgres) in sqlite().iter().zip(postgres().iter()) {
        assert_eq!((sqlite.version, &sqlite.description), (postgres.version, &postgres.description));
    }
}
