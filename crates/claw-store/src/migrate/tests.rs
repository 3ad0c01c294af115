use super::{PAIRS, postgres, sqlite};

#[test]
fn versions_count_from_one_in_both_dialects() {
    let numbers: Vec<_> = PAIRS.iter().map(|pair| pair.version).collect();
    assert_eq!(numbers, (1..=PAIRS.len() as i64).collect::<Vec<_>>());
    for (sqlite, postgres) in sqlite().iter().zip(postgres().iter()) {
        assert_eq!((sqlite.version, &sqlite.description), (postgres.version, &postgres.description));
    }
}
