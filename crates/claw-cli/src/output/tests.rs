use super::{Cell, Table, visible};

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
}

#[test]
fn a_plain_table_is_aligned_and_each_row_is_one_line() {
    let mut table = Table::new(["name", "about"]);
    table.row([Cell::new("a"), Cell::new("first\nsecond")]);
    table.row([Cell::good("longer"), Cell::new("")]);
    assert_eq!(table.plain(), "NAME    ABOUT\na       first second\nlonger\n");
}
