//! Selects the words of a query that are searched for, the same ones for both databases, so that both find
//! the same.
//!
//! Both databases score every passage that matches, so a word that is everywhere makes a search slow and no
//! better. Words are counted only in the searched passages: the content of other owners must not show.

/// A word in this many passages or fewer is never too common.
const FEW: u64 = 1_000;
/// A word in more than one of this many passages is too common, if rarer words are searched too.
const SHARE: u64 = 20;

/// Returns the number of passages from which a word is too common.
pub(crate) fn common(passages: u64) -> u64 {
    FEW.max(passages / SHARE)
}

/// Returns the words to search for, with their numbers of passages; counting ends after `common`. Empty if
/// every word that occurs is too common: then only the [`rarest`] is searched.
pub(crate) fn telling(counted: &[(String, u64)], common: u64) -> Vec<(String, u64)> {
    counted.iter().filter(|(_, count)| (1..=common).contains(count)).cloned().collect()
}

/// Returns the word that is in the fewest passages, among equals the first; empty if none occurs.
pub(crate) fn rarest(counted: Vec<(String, u64)>) -> Vec<(String, u64)> {
    let there = counted.into_iter().filter(|(_, count)| *count > 0);
    there.min_by_key(|(_, count)| *count).into_iter().collect()
}

/// Returns the weight of a word that is in `count` of `passages`: the rarer, the higher.
pub(crate) fn weight(count: u64, passages: u64) -> f64 {
    let (count, passages) = (count as f64, passages as f64);
    (1.0 + (passages - count + 0.5).max(0.0) / (count + 0.5)).ln()
}

#[cfg(test)]
mod tests {
    use super::{common, rarest, telling};

    fn counted(words: &[(&str, u64)]) -> Vec<(String, u64)> {
        words.iter().map(|(word, count)| ((*word).to_owned(), *count)).collect()
    }

    #[test]
    fn few_passages_have_no_common_words() {
        assert_eq!([common(0), common(1_000), common(20_000), common(100_000)], [1_000, 1_000, 1_000, 5_000]);
    }

    #[test]
    fn a_common_word_is_asked_where_no_rarer_one_is_there() {
        let words = counted(&[("all", 6), ("none", 0), ("some", 5), ("rare", 1)]);
        assert_eq!(telling(&words, 5), counted(&[("some", 5), ("rare", 1)]));
        let words = counted(&[("all", 9), ("none", 0), ("many", 6), ("more", 6)]);
        assert_eq!(telling(&words, 5), []);
        assert_eq!(rarest(words), counted(&[("many", 6)]));
        assert_eq!(rarest(counted(&[("none", 0)])), []);
    }
}
