//! Splits texts into tokens of a WordPiece vocabulary, as `tokenizer.json` of BERT-like models describes it.

use std::collections::HashMap;

use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// The longest word that is looked up.
const LONGEST_WORD: usize = 100;

/// A vocabulary of words and their parts.
#[derive(Debug)]
pub(super) struct Tokenizer {
    vocabulary: HashMap<String, usize>,
    /// The prefix of a piece that continues a word.
    prefix: String,
    lower: bool,
    /// Accents are removed.
    plain: bool,
    most: usize,
}

impl Tokenizer {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let whole: Value =
            serde_json::from_slice(bytes).map_err(|error| format!("it is not JSON: {error}"))?;
        let model = whole.get("model").ok_or("it has no `model`")?;
        let kind = model.get("type").and_then(Value::as_str).unwrap_or("WordPiece");
        if kind != "WordPiece" {
            return Err(format!("the vocabulary type `{kind}` is not supported; use `WordPiece`"));
        }
        let vocabulary = model.get("vocab").and_then(Value::as_object).ok_or("it has no `model.vocab`")?;
        let entry = |(token, number): (&String, &Value)| {
            let number = number.as_u64().and_then(|number| usize::try_from(number).ok());
            number.map(|number| (token.clone(), number)).ok_or_else(|| format!("`{token}` has no number"))
        };
        let unknown = model.get("unk_token").and_then(Value::as_str).unwrap_or("[UNK]");
        let mut vocabulary = vocabulary.iter().map(entry).collect::<Result<HashMap<_, _>, _>>()?;
        vocabulary.remove(unknown);
        let most = vocabulary.values().copied().max().ok_or("its vocabulary is empty")?;
        let normalizer = whole.get("normalizer").unwrap_or(&Value::Null);
        let lower = normalizer.get("lowercase").and_then(Value::as_bool).unwrap_or(true);
        let plain = normalizer.get("strip_accents").and_then(Value::as_bool).unwrap_or(lower);
        let prefix = model.get("continuing_subword_prefix").and_then(Value::as_str).unwrap_or("##");
        Ok(Self { vocabulary, prefix: prefix.to_owned(), lower, plain, most })
    }

    /// The largest token number.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// The tokens of a text. Words that the vocabulary cannot spell are left out.
    pub(super) fn tokens(&self, text: &str) -> Vec<usize> {
        let mut tokens = Vec::new();
        let mut word = String::new();
        let lowered = if self.lower { text.to_lowercase() } else { text.to_owned() };
        let characters: Box<dyn Iterator<Item = char>> = match self.plain {
            true => Box::new(lowered.nfd().filter(|c| !is_combining_mark(*c))),
            false => Box::new(lowered.chars()),
        };
        for c in characters {
            if c.is_whitespace() || c.is_control() || c == '\u{fffd}' {
                self.spell(&mut word, &mut tokens);
            } else if is_alone(c) {
                self.spell(&mut word, &mut tokens);
                word.push(c);
                self.spell(&mut word, &mut tokens);
            } else {
                word.push(c);
            }
        }
        self.spell(&mut word, &mut tokens);
        tokens
    }

    /// Spells a word with the longest known parts, from its beginning on; adds nothing if it cannot be
    /// spelled.
    fn spell(&self, word: &mut String, tokens: &mut Vec<usize>) {
        let (before, mut rest) = (tokens.len(), word.as_str());
        if word.chars().count() > LONGEST_WORD {
            rest = "";
        }
        let mut is_first = true;
        while !rest.is_empty() {
            let mut end = rest.len();
            let found = loop {
                let part = &rest[..end];
                let known = match is_first {
                    true => self.vocabulary.get(part),
                    false => self.vocabulary.get(&format!("{}{part}", self.prefix)),
                };
                if known.is_some() {
                    break known;
                }
                match part.char_indices().next_back() {
                    Some((at, _)) if at > 0 => end = at,
                    _ => break None,
                }
            };
            let Some(token) = found else {
                tokens.truncate(before);
                break;
            };
            tokens.push(*token);
            rest = &rest[end..];
            is_first = false;
        }
        word.clear();
    }
}

/// Returns whether a character is a word by itself: punctuation and Chinese characters are.
fn is_alone(c: char) -> bool {
    c.is_ascii_punctuation()
        || matches!(c,
            '\u{a1}'..='\u{bf}' | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{3001}'..='\u{3003}'
            | '\u{3008}'..='\u{3011}' | '\u{ff01}'..='\u{ff0f}' | '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}'
            | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2fa1f}')
}
