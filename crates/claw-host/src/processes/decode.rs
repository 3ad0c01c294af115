//! Decodes text from bytes that come in pieces, without control sequences of terminals.
//!
//! Control sequences are removed before secrets are searched: a colour in the middle of a secret would hide
//! it from the search, but not from the reader.

/// The state of the decoder.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After a carriage return: a line break may follow.
    Return,
    /// After an escape character.
    Escape,
    /// In a sequence that ends with a letter.
    Control,
    /// In one that ends with a bell or with an escape and a backslash.
    Command,
    /// In such a sequence, after an escape character.
    CommandEscape,
}

/// Decodes the output of a command.
#[derive(Debug, Default)]
pub(super) struct Plain {
    state: State,
    /// The first bytes of an incomplete character.
    cut: Vec<u8>,
}

impl Plain {
    pub(super) fn add(&mut self, bytes: &[u8]) -> String {
        self.cut.extend(bytes);
        let whole = match self.cut.utf8_chunks().last() {
            Some(chunk) if is_begun(chunk.invalid()) => self.cut.len() - chunk.invalid().len(),
            _ => self.cut.len(),
        };
        let text = String::from_utf8_lossy(&self.cut[..whole]).into_owned();
        self.cut.drain(..whole);
        text.chars().filter_map(|c| self.next(c)).collect()
    }

    /// Returns the rest at the end.
    pub(super) fn end(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.cut)).into_owned()
    }

    fn next(&mut self, c: char) -> Option<char> {
        let (state, shown) = match (self.state, c) {
            (State::Text | State::Return, '\u{1b}') => (State::Escape, None),
            (State::Return, '\n') => (State::Text, None),
            (State::Text | State::Return, '\r') => (State::Return, Some('\n')),
            (State::Text | State::Return, c) => {
                let shown = !c.is_control() || matches!(c, '\n' | '\t');
                (State::Text, shown.then_some(c))
            }
            (State::Escape, '[') => (State::Control, None),
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => (State::Command, None),
            // These take one more character; showing it does little harm.
            (State::Escape, _) => (State::Text, None),
            (State::Control, '\u{40}'..='\u{7e}') => (State::Text, None),
            (State::Control, '\u{1b}') => (State::Escape, None),
            (State::Control, '\n' | '\r') => (State::Text, Some('\n')),
            (State::Control, _) => (State::Control, None),
            (State::Command, '\u{7}') | (State::CommandEscape, '\\') => (State::Text, None),
            (State::Command, '\u{1b}') => (State::CommandEscape, None),
            // A line break ends an unterminated sequence, so that no text is swallowed for good.
            (State::Command | State::CommandEscape, '\n') => (State::Text, Some('\n')),
            (State::Command | State::CommandEscape, _) => (State::Command, None),
        };
        self.state = state;
        shown
    }
}

/// Returns whether these bytes are the beginning of a character.
fn is_begun(bytes: &[u8]) -> bool {
    !bytes.is_empty() && std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        for size in 1..=text.len().max(1) {
            let mut plain = Plain::default();
            let mut shown: String = text.as_bytes().chunks(size).map(|piece| plain.add(piece)).collect();
            shown.push_str(&plain.end());
            assert_eq!(shown, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn what_steers_a_terminal_is_taken_out() {
        check("a\u{1b}[1;31mred\u{1b}[0m\r\nb\r50%\rc\n", "ared\nb\n50%\nc\n");
        check("\u{1b}]0;title\u{7}x\u{1b}]8;;link\u{1b}\\y\u{7}\u{8}z\u{1b}Mw", "xyzw");
        check("\u{1b}]never ended\nstill here\n", "\nstill here\n");
        check("a\u{1b}[1mb\r\nä\n", "ab\nä\n");
    }

    #[test]
    fn bytes_that_are_no_text_stay_visible() {
        let mut plain = Plain::default();
        assert_eq!(plain.add(b"a\xffb"), "a\u{fffd}b");
        assert_eq!(plain.add(b"\xc3"), "");
        assert_eq!(plain.end(), "\u{fffd}");
    }
}
