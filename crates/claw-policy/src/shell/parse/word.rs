//! Words: quoting in all its forms.

use super::{Parsed, Parser};
use crate::shell::syntax::{Part, Word};

/// The end of a double-quoted text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Quote,
    /// The end of a here-document's body, in which quotes are ordinary characters.
    End,
}

pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

pub(super) fn starts_compound(word: &str) -> bool {
    matches!(word, "{" | "if" | "while" | "until" | "for" | "select" | "case" | "[[" | "function")
}

/// Plain text in progress, and the parts before it.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) done: Vec<Part>,
    plain: String,
}

impl Parts {
    pub(super) fn plain(&mut self, c: char) {
        self.plain.push(c);
    }

    pub(super) fn push(&mut self, part: Part) {
        if !self.plain.is_empty() {
            self.done.push(Part::Plain(std::mem::take(&mut self.plain)));
        }
        self.done.push(part);
    }

    pub(super) fn finish(mut self) -> Vec<Part> {
        if !self.plain.is_empty() {
            self.done.push(Part::Plain(self.plain));
        }
        self.done
    }
}

impl Parser<'_> {
    /// Parses the word at this position, if there is one.
    pub(super) fn word(&mut self) -> Parsed<Option<Word>> {
        let start = self.at;
        let parts = self.deeper(Self::word_parts)?;
        Ok((!parts.is_empty()).then(|| Word { parts, span: self.span(start) }))
    }

    fn word_parts(&mut self) -> Parsed<Vec<Part>> {
        let mut parts = Parts::default();
        while let Some(c) = self.peek() {
            match c {
                '<' | '>' if self.looking_at("<(") || self.looking_at(">(") => {
                    self.at += 2;
                    let list = self.enclosed_list()?;
                    parts.push(Part::Process { list, writes: c == '>' });
                }
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                _ => self.unquoted(c, &mut parts)?,
            }
        }
        Ok(parts.finish())
    }

    /// Parses a character, quotation or expansion outside of double quotes.
    pub(super) fn unquoted(&mut self, c: char, parts: &mut Parts) -> Parsed<()> {
        match c {
            '\\' => {
                self.at += 1;
                match self.next() {
                    Some('\n') => {}
                    Some(c) => parts.push(Part::Quoted(c.to_string())),
                    None => return self.error("it ends in a backslash"),
                }
            }
            '\'' => {
                self.at += 1;
                let Some(end) = self.rest().find('\'') else { return self.error("a `'` is not closed") };
                parts.push(Part::Quoted(self.rest()[..end].to_owned()));
                self.at += end + 1;
            }
            '"' => {
                self.at += 1;
                let inner = self.deeper(|parser| parser.double_quoted(Ending::Quote))?;
                parts.push(Part::Double(inner));
            }
            '$' if self.looking_at("$'") => {
                self.at += 2;
                let part = self.ansi()?;
                parts.push(part);
            }
            '$' if self.looking_at("$\"") => {
                self.at += 2;
                let inner = self.deeper(|parser| parser.double_quoted(Ending::Quote))?;
                parts.push(Part::Double(inner));
            }
            '$' => match self.dollar(false)? {
                Some(part) => parts.push(part),
                None => parts.plain('$'),
            },
            '`' => {
                let part = self.backquoted(false)?;
                parts.push(part);
            }
            c => {
                self.at += c.len_utf8();
                parts.plain(c);
            }
        }
        Ok(())
    }

    /// Parses the text between double quotes, after the opening one.
    pub(super) fn double_quoted(&mut self, ending: Ending) -> Parsed<Vec<Part>> {
        let (mut parts, mut text) = (Vec::new(), String::new());
        loop {
            let Some(c) = self.peek() else {
                if ending == Ending::Quote {
                    return self.error("a `\"` is not closed");
                }
                break;
            };
            match c {
                '"' if ending == Ending::Quote => {
                    self.at += 1;
                    break;
                }
                '\\' => {
                    self.at += 1;
                    match self.peek() {
                        Some('\n') => self.at += 1,
                        Some(c @ ('$' | '`' | '\\')) => {
                            self.at += 1;
                            text.push(c);
                        }
                        Some('"') if ending == Ending::Quote => {
                            self.at += 1;
                            text.push('"');
                        }
                        _ => text.push('\\'),
                    }
                }
                '$' => match self.dollar(true)? {
                    Some(part) => {
                        flush(&mut text, &mut parts);
                        parts.push(part);
                    }
                    None => text.push('$'),
                },
                '`' => {
                    let part = self.backquoted(ending == Ending::Quote)?;
                    flush(&mut text, &mut parts);
                    parts.push(part);
                }
                c => {
                    self.at += c.len_utf8();
                    text.push(c);
                }
            }
        }
        flush(&mut text, &mut parts);
        Ok(parts)
    }

    /// Parses `$'...'`, after its start.
    fn ansi(&mut self) -> Parsed<Part> {
        let (mut bytes, mut ended) = (Vec::new(), false);
        loop {
            let Some(c) = self.next() else { return self.error("a `$'` is not closed") };
            match c {
                '\'' => break,
                '\\' => {
                    // A NUL ends the text, but not the quotation.
                    match self.escape()? {
                        Escape::Bytes(found) if !ended => bytes.extend(found),
                        Escape::Bytes(_) => {}
                        Escape::Nul => ended = true,
                    }
                }
                c if !ended => bytes.extend(c.to_string().into_bytes()),
                _ => {}
            }
        }
        Ok(String::from_utf8(bytes).map_or(Part::Bytes, Part::Quoted))
    }

    fn escape(&mut self) -> Parsed<Escape> {
        let Some(c) = self.next() else { return self.error("a `$'` is not closed") };
        let byte = match c {
            'a' => 7,
            'b' => 8,
            'e' | 'E' => 27,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            '\\' | '\'' | '"' | '?' => c as u8,
            '0'..='7' => {
                self.at -= 1;
                self.number(8, 3).map_or(0, |n| (n & 0xff) as u8)
            }
            'x' if self.looking_at("{") => return self.error("`\\x{` is not understood"),
            'x' => match self.number(16, 2) {
                Some(n) => (n & 0xff) as u8,
                None => return Ok(Escape::Bytes(b"\\x".to_vec())),
            },
            'u' | 'U' => {
                return Ok(match self.number(16, if c == 'u' { 4 } else { 8 }) {
                    Some(0) => Escape::Nul,
                    Some(n) => match char::from_u32(n) {
                        Some(c) => Escape::Bytes(c.to_string().into_bytes()),
                        // Not valid text; the caller checks that.
                        None => Escape::Bytes(vec![0xff]),
                    },
                    None => Escape::Bytes(format!("\\{c}").into_bytes()),
                });
            }
            'c' => match self.next() {
                Some('\\') => return self.error("`\\c\\` is not understood"),
                Some(c) if c.is_ascii() => {
                    (c.to_ascii_uppercase() as u8 & 0x1f).max(u8::from(c == '?') * 127)
                }
                _ => return self.error("`\\c` is not understood"),
            },
            c => return Ok(Escape::Bytes(format!("\\{c}").into_bytes())),
        };
        Ok(if byte == 0 { Escape::Nul } else { Escape::Bytes(vec![byte]) })
    }

    fn number(&mut self, radix: u32, most: usize) -> Option<u32> {
        let digits: String = self.rest().chars().take(most).take_while(|c| c.is_digit(radix)).collect();
        self.at += digits.len();
        u32::from_str_radix(&digits, radix).ok()
    }
}

enum Escape {
    Bytes(Vec<u8>),
    Nul,
}

pub(super) fn flush(text: &mut String, parts: &mut Vec<Part>) {
    if !text.is_empty() {
        parts.push(Part::Quoted(std::mem::take(text)));
    }
}
