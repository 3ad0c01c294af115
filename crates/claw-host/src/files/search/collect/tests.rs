use claw_core::port::SearchLine;
use proptest::prelude::*;

use super::*;

fn hits(path: usize, count: usize, wanted: usize) -> Hits {
    let line =
        |number: usize| SearchLine { number: number as u64, text: String::new(), hit: number % 2 == 1 };
    let lines = (0..2 * count.min(wanted)).map(line).collect();
    Hits { path: format!("{path:04}"), count: count as u64, lines }
}

proptest! {
    /// The first hits by path are returned, in whatever order the files arrive.
    #[test]
    fn gives_the_first_hits_by_path(
        counts in proptest::collection::vec(1..6usize, 1..40),
        order in proptest::collection::vec(any::<proptest::sample::Index>(), 40),
        limit in 0..30usize,
    ) {
        let mut left: Vec<_> = (0..counts.len()).collect();
        let mut collected = Collected::new(limit);
        for index in order.iter().take(counts.len()) {
            let path = left.remove(index.index(left.len()));
            let wanted = collected.wanted(&format!("{path:04}"));
            collected.add(hits(path, counts[path], wanted));
        }
        let mut given = Searched::default();
        collected.give(&mut given);
        prop_assert_eq!(given.with_hits, counts.len() as u64);
        prop_assert_eq!(given.hits, counts.iter().sum::<usize>() as u64);
        let mut rest = limit;
        for (path, (file, count)) in given.files.iter().zip(&counts).enumerate() {
            prop_assert_eq!(&file.path, &format!("{path:04}"));
            prop_assert_eq!(file.count, *count as u64);
            prop_assert_eq!(shown(file), rest.min(*count));
            rest -= rest.min(*count);
        }
    }
}
