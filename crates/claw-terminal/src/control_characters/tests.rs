use super::{escaped, visible};

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(visible(text), expected);
}

#[test]
fn control_characters_are_shown_and_not_obeyed() {
    check("plain\n\ttext", "plain\n\ttext");
    check("\u{1b}[2Jgone", "␛[2Jgone");
    check("a\rb\u{7f}", "a␍b␡");
    check("\u{9b}31m", "\u{fffd}31m");
    check("yes \u{202e}on", "yes \u{fffd}on");
    check("r\u{200b}m", "r\u{fffd}m");
    check("👩\u{200d}💻", "👩\u{200d}💻");
}

#[test]
fn json_keeps_its_meaning_and_shows_what_a_terminal_would_obey() {
    let value = serde_json::json!({ "a\u{9b}": "\u{1b}[2J \u{202e} \u{e0041} é 👩\u{200d}💻" });
    let text = value.to_string();
    let shown = escaped(&text);
    assert_eq!(shown, r#"{"a\u009b":"\u001b[2J \u202e \udb40\udc41 é 👩‍💻"}"#);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
}
