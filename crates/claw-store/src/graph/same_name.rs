//! Compares names: which are the same, which are only similar.

use unicode_normalization::char::is_combining_mark;

use crate::words;

/// Characters of a key that candidates must share.
const SHARED: usize = 3;
/// The similarity from which two names may mean one thing.
const ALIKE: f64 = 0.92;

/// Returns a name without case, accents, blanks and punctuation. Signs that distinguish names (`C`, `C++`,
/// `C#`) stay, and so do points between digits.
pub(crate) fn key(name: &str) -> String {
    let plain: Vec<char> = words::plain(name).flat_map(char::to_lowercase).collect();
    let is_digit = |at: Option<usize>| at.and_then(|at| plain.get(at)).is_some_and(char::is_ascii_digit);
    let is_kept = |at: usize, c: char| match c {
        '.' | ',' | ':' => is_digit(at.checked_sub(1)) && is_digit(at.checked_add(1)),
        '+' | '#' | '&' | '@' | '%' | '$' | '*' | '=' | '<' | '>' | '~' | '^' | '|' => true,
        c => {
            c.is_alphanumeric() || is_combining_mark(c) || !(c.is_ascii() || c.is_whitespace() || is_dash(c))
        }
    };
    let key: String = plain.iter().enumerate().filter(|(at, c)| is_kept(*at, **c)).map(|(_, c)| *c).collect();
    // A name of punctuation alone is itself.
    if key.is_empty() { plain.into_iter().collect() } else { key }
}

fn is_dash(c: char) -> bool {
    matches!(c, '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{ab}' | '\u{bb}')
}

/// Returns the range of the keys of similar names: from the first up to the second.
pub(crate) fn range(key: &str) -> (String, String) {
    let start: String = key.chars().take(SHARED).collect();
    let end = format!("{start}\u{10ffff}");
    (start, end)
}

/// Returns the similarity of two different keys; `None` if they cannot be of one thing.
pub(crate) fn likeness(one: &str, other: &str) -> Option<f64> {
    let digits = |key: &str| key.chars().filter(char::is_ascii_digit).collect::<String>();
    let shorter = one.chars().count().min(other.chars().count());
    if digits(one) != digits(other) || shorter < SHARED {
        return None;
    }
    let likeness = strsim::jaro_winkler(one, other);
    // A first name, and the same with a surname.
    let begins = one.starts_with(other) || other.starts_with(one);
    (likeness >= ALIKE || begins && shorter > SHARED).then_some(likeness)
}

#[cfg(test)]
mod tests {
    use super::{key, likeness};

    #[test]
    fn names_are_the_same_but_for_dress() {
        for (one, other) in [
            ("OpenAI", "Open AI"),
            ("Anna Müller", "anna muller"),
            ("O'Brien & Sons", "OBrien & sons"),
            ("e-mail", "E\u{2011}Mail"),
            ("St. John", "St John"),
        ] {
            assert_eq!(key(one), key(other), "{one}");
        }
        for (one, other) in
            [("C", "C++"), ("C#", "C"), ("Release 1.2", "Release 12"), ("日本", "日"), ("!!", "!")]
        {
            assert_ne!(key(one), key(other), "{one}");
        }
    }

    #[test]
    fn alike_names_are_a_question_and_others_none() {
        for (one, other) in [
            ("Jonathan Smith", "Jonathon Smith"),
            ("Maria Gonzalez", "Mario Gonzalez"),
            ("Anna", "Anna Müller"),
        ] {
            assert!(likeness(&key(one), &key(other)).is_some(), "{one}");
        }
        for (one, other) in
            [("Release 1.2", "Release 1.3"), ("Anna", "Annegret Holm"), ("Al", "Ali"), ("Berlin", "Bergen")]
        {
            assert_eq!(likeness(&key(one), &key(other)), None, "{one}");
        }
    }
}
