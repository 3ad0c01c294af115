//! Shows control and invisible characters instead of passing them to a terminal: text from elsewhere neither
//! steers the terminal nor reads as another text.

use std::borrow::Cow;

/// Text without control characters other than line breaks and tabs: each shown by its picture.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let picture = |c: char| match c {
        c if !is_hidden(c) => c,
        '\u{7f}' => '\u{2421}',
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
        _ => char::REPLACEMENT_CHARACTER,
    };
    Cow::Owned(text.chars().map(picture).collect())
}

/// Escapes characters that a terminal would not show as they are. In JSON they occur only in strings, where
/// escapes mean the same.
pub(crate) fn escaped(json: &str) -> Cow<'_, str> {
    if !json.contains(is_hidden) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match is_hidden(c) {
            false => text.push(c),
            true => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| text += &format!("\\u{unit:04x}")),
        }
    }
    Cow::Owned(text)
}

/// Characters that a terminal obeys or does not show: by them a text can read as another.
fn is_hidden(c: char) -> bool {
    let obeyed = c.is_control() && c != '\n' && c != '\t';
    obeyed || is_invisible(c)
}

/// Returns whether a character is invisible: it changes the writing direction, or has no width. Joiners stay
/// visible, since emoji and whole scripts need them.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests;
