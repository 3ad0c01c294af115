//! Finds values that somebody can guess. If a command prints a correct guess, it comes back as `[REDACTED]`,
//! so anyone who can run commands can find such a value by trying; only a value with too many possibilities
//! is safe from that.

use std::{collections::BTreeSet, fmt};

use super::known_values::SHORTEST;

/// Fewest characters of a value that does not count as short.
const SHORT: usize = 10;
/// Length from which even a value of letters only has too many possibilities.
const LONG: usize = 20;
/// Fewest different characters.
const DIFFERENT: usize = 5;

/// The reason why a secret value protects less than it should. The value itself is not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Weakness {
    /// It has too few bytes to be distinguished from ordinary text: it is not redacted at all.
    NotRecognised,
    /// It has few characters.
    Short,
    /// It has only this many different characters.
    FewCharacters(usize),
    /// It is a number.
    Number,
    /// It is a word, or one with a few digits or signs at its end.
    Word,
}

impl Weakness {
    /// The weakness of `value`, if it has one.
    pub fn of(value: &str) -> Option<Self> {
        let different = value.chars().collect::<BTreeSet<_>>().len();
        let word = value.trim_end_matches(|c: char| !c.is_alphabetic());
        // `Swordfish2024!`, not `wJalrXUtnFEMI`.
        let is_word = word.chars().all(char::is_alphabetic)
            && (word.chars().skip(1).all(char::is_lowercase) || word.chars().all(char::is_uppercase));
        match value.chars().count() {
            _ if value.len() < SHORTEST => Some(Self::NotRecognised),
            _ if different < DIFFERENT => Some(Self::FewCharacters(different)),
            length if length >= LONG => None,
            _ if value.chars().all(|c| c.is_ascii_digit()) => Some(Self::Number),
            _ if is_word => Some(Self::Word),
            length if length < SHORT => Some(Self::Short),
            _ => None,
        }
    }
}

/// Writes the words that follow "the value of `NAME`".
impl fmt::Display for Weakness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRecognised => {
                return write!(
                    f,
                    "is too short to be recognised, so it is not redacted in the output of tools; use a \
                     value of at least {SHORTEST} bytes"
                );
            }
            Self::Short => write!(f, "is short")?,
            Self::FewCharacters(count) => write!(f, "has only {count} different characters")?,
            Self::Number => write!(f, "is a number")?,
            Self::Word => write!(f, "is written like a word")?,
        }
        write!(
            f,
            " and can be guessed: if a command prints guesses, `[REDACTED]` shows which guess is right; use \
             a random value of at least 16 characters"
        )
    }
}
