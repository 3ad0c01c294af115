//! The forms in which a literal value occurs: as it is, in base64, percent-encoded, in hex, escaped for JSON, in
//! UTF-16, and with other line breaks.

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const LOWER: &[u8; 16] = b"0123456789abcdef";
const UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// Characters that a JSON writer escapes without need: none, those special in HTML, those beyond ASCII, both.
const ESCAPED: [fn(char) -> bool; 4] =
    [|_| false, in_html, |c| !c.is_ascii(), |c| !c.is_ascii() || in_html(c)];

/// All forms of `secret`, each once.
pub(super) fn forms(secret: &str) -> Vec<Vec<u8>> {
    let mut forms = forms_of(secret);
    // Editors, terminals and other systems write line breaks anew.
    if secret.contains(['\r', '\n']) {
        let lines = secret.replace("\r\n", "\n").replace('\r', "\n");
        let trimmed = lines.trim_end_matches('\n').to_owned();
        for other in [trimmed.replace('\n', "\r\n"), trimmed, lines.replace('\n', "\r\n"), lines] {
            if other.len() >= super::known_values::SHORTEST {
                forms.extend(forms_of(&other));
            }
        }
    }
    forms.sort_unstable();
    forms.dedup();
    forms
}

fn forms_of(secret: &str) -> Vec<Vec<u8>> {
    let value = secret.as_bytes();
    let mut forms = vec![value.to_vec(), utf16(secret, u16::to_le_bytes), utf16(secret, u16::to_be_bytes)];
    for digits in [LOWER, UPPER] {
        for escaped in ESCAPED {
            forms.extend(["/", "\\/"].map(|slash| json(secret, digits, escaped, slash).into_bytes()));
        }
        forms.push(value.iter().flat_map(|&byte| hex(byte, digits)).collect());
        forms.push(percent(value, digits, b"-._~"));
        // Characters that scripts and forms leave unescaped.
        forms.push(percent(value, digits, b"-._~!'()*"));
        let form = percent(value, digits, b"-._* ");
        forms.push(form.into_iter().map(|byte| if byte == b' ' { b'+' } else { byte }).collect());
    }
    for alphabet in [STANDARD, URL_SAFE] {
        forms.extend((0..3).map(|offset| base64(value, offset, alphabet)));
    }
    forms
}

/// The value in UTF-16, without a zero byte at either end: text around it decides on those.
fn utf16(secret: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let form: Vec<u8> = secret.encode_utf16().flat_map(bytes).collect();
    let form = form.strip_prefix(&[0]).unwrap_or(&form);
    form.strip_suffix(&[0]).unwrap_or(form).to_vec()
}

/// The base64 characters that `value` alone determines when `offset` bytes precede it in its group of three.
fn base64(value: &[u8], offset: usize, alphabet: &[u8; 64]) -> Vec<u8> {
    let bit = |at: usize| value.get(at / 8).map_or(0, |byte| usize::from(byte >> (7 - at % 8)) & 1);
    // The first whole character starts after the bits of the preceding bytes.
    let first = (6 - offset * 8 % 6) % 6;
    (first..)
        .step_by(6)
        .take_while(|at| at + 6 <= value.len() * 8)
        .map(|at| alphabet[(at..at + 6).fold(0, |index, at| index << 1 | bit(at))])
        .collect()
}

fn percent(value: &[u8], digits: &[u8; 16], kept: &[u8]) -> Vec<u8> {
    let mut form = Vec::with_capacity(value.len() * 2);
    for &byte in value {
        if byte.is_ascii_alphanumeric() || kept.contains(&byte) {
            form.push(byte);
        } else {
            form.push(b'%');
            form.extend(hex(byte, digits));
        }
    }
    form
}

fn hex(byte: u8, digits: &[u8; 16]) -> [u8; 2] {
    [digits[usize::from(byte >> 4)], digits[usize::from(byte & 15)]]
}

fn in_html(c: char) -> bool {
    matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}')
}

/// Writes the value as in a JSON string; a slash may be escaped too.
fn json(secret: &str, digits: &[u8; 16], escaped: fn(char) -> bool, slash: &str) -> String {
    let mut form = String::with_capacity(secret.len());
    for c in secret.chars() {
        match c {
            '"' => form.push_str("\\\""),
            '\\' => form.push_str("\\\\"),
            '/' => form.push_str(slash),
            '\n' => form.push_str("\\n"),
            '\r' => form.push_str("\\r"),
            '\t' => form.push_str("\\t"),
            '\u{8}' => form.push_str("\\b"),
            '\u{c}' => form.push_str("\\f"),
            c if c < ' ' || escaped(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    form.push_str("\\u");
                    form.extend(
                        unit.to_be_bytes().into_iter().flat_map(|byte| hex(byte, digits)).map(char::from),
                    );
                }
            }
            c => form.push(c),
        }
    }
    form
}
