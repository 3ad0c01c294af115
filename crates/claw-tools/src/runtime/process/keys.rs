//! The characters that keys send to a terminal.

use claw_core::tool::ToolError;

const NAMED: &[(&str, &str)] = &[
    ("Enter", "\r"),
    ("Tab", "\t"),
    ("Escape", "\u{1b}"),
    ("Space", " "),
    ("Backspace", "\u{7f}"),
    ("Up", "\u{1b}[A"),
    ("Down", "\u{1b}[B"),
    ("Right", "\u{1b}[C"),
    ("Left", "\u{1b}[D"),
    ("Home", "\u{1b}[H"),
    ("End", "\u{1b}[F"),
    ("Insert", "\u{1b}[2~"),
    ("Delete", "\u{1b}[3~"),
    ("PageUp", "\u{1b}[5~"),
    ("PageDown", "\u{1b}[6~"),
    ("F1", "\u{1b}OP"),
    ("F2", "\u{1b}OQ"),
    ("F3", "\u{1b}OR"),
    ("F4", "\u{1b}OS"),
    ("F5", "\u{1b}[15~"),
    ("F6", "\u{1b}[17~"),
    ("F7", "\u{1b}[18~"),
    ("F8", "\u{1b}[19~"),
    ("F9", "\u{1b}[20~"),
    ("F10", "\u{1b}[21~"),
    ("F11", "\u{1b}[23~"),
    ("F12", "\u{1b}[24~"),
];

/// The characters that a key sends: a named key, `C-` or `M-` before another, or a single character.
pub(super) fn sent(key: &str) -> Result<String, ToolError> {
    let unknown = || {
        let names: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
        ToolError::invalid(format!("there is no key `{key}`"))
            .try_instead(format!("use {}, `C-c` and the like, or a single character", names.join(", ")))
    };
    if let Some((_, text)) = NAMED.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)) {
        return Ok((*text).to_owned());
    }
    let mut characters = key.chars();
    if let (Some(c), None) = (characters.next(), characters.next()) {
        return Ok(c.to_string());
    }
    if let Some(held) = key.strip_prefix("M-").filter(|held| !held.is_empty()) {
        return Ok(format!("\u{1b}{}", sent(held)?));
    }
    let held = key.strip_prefix("C-").ok_or_else(unknown)?;
    match held.to_ascii_uppercase().as_bytes() {
        [byte @ b'A'..=b'_'] => Ok(char::from(byte - 64).to_string()),
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::sent;

    #[test]
    fn keys_send_what_a_terminal_sends() {
        for (key, expected) in [
            ("Enter", "\r"),
            ("enter", "\r"),
            ("C-c", "\u{3}"),
            ("C-C", "\u{3}"),
            ("C-[", "\u{1b}"),
            ("Up", "\u{1b}[A"),
            ("M-b", "\u{1b}b"),
            ("M-C-a", "\u{1b}\u{1}"),
            ("q", "q"),
            ("ä", "ä"),
        ] {
            assert_eq!(sent(key).unwrap(), expected, "{key}");
        }
        for key in ["", "Return!", "C-", "C-ab", "C-1", "M-"] {
            assert!(sent(key).is_err(), "{key}");
        }
    }
}
