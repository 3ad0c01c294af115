use super::{PAIRS, postgres, sqlite};

#[test]
fn versions_rise_from_one_in_both_dialects() {
    assert_eq!(PAIRS[0].version, 1);
    // A number may be left out: it is kept for a step that has not landed yet.
    assert!(PAIRS.is_sorted_by(|one, next| one.version < next.version));
    for (sqlite, postgres) in sqlite().iter().zip(postgres().iter()) {
        assert_eq!((sqlite.version, &sqlite.description), (postgres.version, &postgres.description));
    }
}
