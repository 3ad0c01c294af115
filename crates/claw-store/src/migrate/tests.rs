use super::{PAIRS, postgres, sqlite};

#[test]
fn versions_count_from_one_in_both_dialects() {
    for (pair, version) in PAIRS.iter().zip(1..) {
        assert_eq!(pair.version, version, "{}", pair.name);
    }
    for (sqlite, postgres) in sqlite().iter().zip(postgres().iter()) {
        assert_eq!((sqlite.version, &sqlite.description), (postgres.version, &postgres.description));
    }
}
