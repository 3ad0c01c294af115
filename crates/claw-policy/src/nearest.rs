//! What a misspelt word was probably meant to be.

/// The candidate most like `word`, if one is like enough to be suggested.
pub fn nearest<S: AsRef<str>>(word: &str, candidates: impl IntoIterator<Item = S>) -> Option<S> {
    let plain = |text: &str| -> String {
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let wanted = plain(word);
    if wanted.is_empty() || word.len() > 128 {
        return None;
    }
    let likeness =
        |candidate: &S| strsim::normalized_damerau_levenshtein(&wanted, &plain(candidate.as_ref()));
    let scored = candidates.into_iter().map(|candidate| (likeness(&candidate), candidate));
    let (score, best) = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (score >= 0.6).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::nearest;

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
        check("browser", None);
        check("", None);
        check("🦀", None);
    }
}
