//! Suggests the word that a misspelt one was probably meant to be.

/// Least similarity of two words for one to be suggested for the other.
const CLOSE: f64 = 0.6;
/// The same for words shorter than [`LONG`]: two slips in five letters make another word.
const CLOSE_SHORT: f64 = 0.65;
const LONG: usize = 8;
/// Shortest word that counts as a part of another; it must also make up a third of that.
const SHORTEST_PART: usize = 3;
/// Longest word that can be a misspelt name.
const LONGEST: usize = 128;

/// Returns the candidate that the word is a slip of: the same word but for a few letters. Unlike [`nearest`], a word that
/// only contains a candidate is another word.
pub fn misspelt<S: AsRef<str>>(word: &str, candidates: impl IntoIterator<Item = S>) -> Option<S> {
    let wanted = folded(word);
    let near = nearest(word, candidates)?;
    is_close(&wanted, &folded(near.as_ref())).then_some(near)
}

/// The probable intention: another spelling, a close one, or the only candidate that contains the word or is
/// a part of it.
pub fn nearest<S: AsRef<str>>(word: &str, candidates: impl IntoIterator<Item = S>) -> Option<S> {
    let wanted = folded(word);
    if wanted.is_empty() || word.len() > LONGEST {
        return None;
    }
    let mut candidates: Vec<(String, S)> = candidates.into_iter().map(|c| (folded(c.as_ref()), c)).collect();
    let likenesses: Vec<f64> = candidates.iter().map(|(other, _)| likeness(&wanted, other)).collect();
    // Of equally similar candidates, the first by name: the same slip always gets the same answer.
    let best = (0..candidates.len()).max_by(|a, b| {
        let by_name = || candidates[*b].1.as_ref().cmp(candidates[*a].1.as_ref());
        likenesses[*a].total_cmp(&likenesses[*b]).then_with(by_name)
    })?;
    if is_close(&wanted, &candidates[best].0) {
        return Some(candidates.swap_remove(best).1);
    }
    let is_part = |other: &str| {
        let (a, b) = (wanted.chars().count(), other.chars().count());
        let (part, whole) = (a.min(b), a.max(b));
        let says_something = part >= SHORTEST_PART && part * 3 >= whole;
        says_something && (other.contains(&wanted) || wanted.contains(other))
    };
    let mut parts = (0..candidates.len()).filter(|at| is_part(&candidates[*at].0));
    match (parts.next(), parts.next()) {
        (Some(only), None) => Some(candidates.swap_remove(only).1),
        _ => None,
    }
}

/// Returns whether two folded words differ by a few letters.
fn is_close(a: &str, b: &str) -> bool {
    let longer = a.chars().count().max(b.chars().count());
    let close = if longer < LONG { CLOSE_SHORT } else { CLOSE };
    likeness(a, b) >= close
}

/// Returns the likeness of two folded words, from 0 to 1. It is 0 if their lengths differ too much for them to be close: each
/// letter more is a change more, and comparing long words takes long.
fn likeness(a: &str, b: &str) -> f64 {
    let (a_length, b_length) = (a.chars().count(), b.chars().count());
    let (shorter, longer) = (a_length.min(b_length) as f64, a_length.max(b_length) as f64);
    if shorter < CLOSE * longer { 0.0 } else { strsim::normalized_damerau_levenshtein(a, b) }
}

/// Only letters and digits, in lower case.
fn folded(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::{CLOSE, likeness, misspelt, nearest};

    #[track_caller]
    fn check(word: &str, expected: Option<&str>) {
        assert_eq!(nearest(word, ["read_file", "write_file", "exec", "group:fs"]), expected);
    }

    #[test]
    fn suggests_what_is_like_enough() {
        check("readfile", Some("read_file"));
        check("ReadFile", Some("read_file"));
        check("exce", Some("exec"));
        check("wrte_file", Some("write_file"));
        check("read", Some("read_file"));
        check("file", None);
        check("browser", None);
        check("", None);
        check("🦀", None);
    }

    #[test]
    fn a_longer_name_is_no_slip() {
        let slip = |word| misspelt(word, ["web_fetch", "exec", "read_file"]);
        assert_eq!(slip("exce"), Some("exec"));
        assert_eq!(slip("WebFetch"), Some("web_fetch"));
        assert_eq!(slip("web_fetch_intranet"), None);
        assert_eq!(nearest("web_fetch_intranet", ["web_fetch", "exec"]), Some("web_fetch"));
        assert_eq!(slip("weather"), None);
    }

    #[test]
    fn lengths_rule_out_only_words_that_are_not_close() {
        let letters = "abcdefghijklmnopqrstuvwxyz".repeat(2);
        for long in 1..=40 {
            for short in 1..=long {
                let (a, b) = (&letters[..long], &letters[..short]);
                let compared = strsim::normalized_damerau_levenshtein(a, b);
                let expected = if compared >= CLOSE { compared } else { 0.0 };
                let found = if likeness(a, b) >= CLOSE { likeness(a, b) } else { 0.0 };
                assert_eq!(found, expected, "{long} {short}");
            }
        }
    }

    #[test]
    fn short_names_must_be_nearly_the_same() {
        let near = |word, names: &[&'static str]| nearest(word, names.iter().copied());
        assert_eq!(near("adda", &["ada"]), Some("ada"));
        assert_eq!(near("dav", &["dev", "ops"]), Some("dev"));
        assert_eq!(near("researcher", &["ada", "r", "ea"]), None, "a letter is a part of too much");
        assert_eq!(near("planetarium", &["net"]), None, "and so is a small part of a long word");
        assert_eq!(near("alice", &["abide"]), None, "two of five letters differ");
        assert_eq!(near("bo", &["by", "do"]), None);
        assert_eq!(near("eve", &["ada"]), None);
        assert_eq!(near("claude", &["claud", "gemini"]), Some("claud"));
        assert_eq!(near("antropic", &["anthropic", "openai"]), Some("anthropic"));
    }
}
