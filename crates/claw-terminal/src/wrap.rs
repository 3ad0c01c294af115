//! Breaks lines between words, as a terminal does not. Piped text is never broken.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr as _;

/// Characters after which a word that is too long may be broken.
const JOINTS: &[char] = &['/', ',', ';', ':', '&', '?', '='];

/// Returns the number of columns of a text; styles take none.
pub fn width(text: &str) -> usize {
    match text.contains('\u{1b}') {
        true => anstream::adapter::strip_str(text).to_string().width(),
        false => text.width(),
    }
}

/// Wraps a text to at most so many columns, as far as its words allow. Continuation lines are indented by the
/// beginning of their line (blanks, the mark of a list).
pub fn prose(text: &str, columns: usize) -> String {
    let mut lines = Vec::new();
    for line in text.split('\n') {
        // Tabs make a table of it, and a command is there to be copied.
        if width(line) <= columns || line.contains('\t') || is_command(line) {
            lines.push(Cow::Borrowed(line));
            continue;
        }
        let indent = indent(line);
        let blanks = " ".repeat(indent);
        let mut rows = wrapped(line.trim_start(), columns, line.len() - line.trim_start().len(), indent);
        for (at, row) in rows.drain(..).enumerate() {
            let before = if at == 0 { &line[..line.len() - line.trim_start().len()] } else { &blanks };
            lines.push(Cow::Owned(format!("{before}{row}")));
        }
    }
    lines.join("\n")
}

/// A text behind a label, its rows below each other.
pub fn beside(label: &str, text: &str, columns: Option<usize>) -> String {
    let start = width(label);
    let rows = match columns {
        Some(columns) => wrapped(text, columns, start, start),
        None => vec![text.to_owned()],
    };
    format!("{label}{}", rows.join(&format!("\n{}", " ".repeat(start))))
}

/// Returns the indentation of the lines that continue this one.
pub fn indent(line: &str) -> usize {
    let text = line.trim_start();
    let blanks = line.len() - text.len();
    let mark = ["• ", "- ", "* ", "> "].iter().any(|mark| text.starts_with(mark));
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    match text[digits..].starts_with(". ") && (1..=3).contains(&digits) {
        true => blanks + digits + 2,
        false => blanks + if mark { 2 } else { 0 },
    }
}

/// Returns whether a line is a command that can be typed as it stands.
fn is_command(line: &str) -> bool {
    let text = line.trim_start();
    let text = text.strip_prefix("try: ").unwrap_or(text);
    text.starts_with("clawsmith ") || text.starts_with("$ ")
}

/// Wraps a line into rows, the first beginning at one column and the others at another. A word too long for a
/// row gets one of its own.
pub(crate) fn wrapped(line: &str, columns: usize, first: usize, others: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let (mut row, mut taken) = (String::new(), first);
    for (blanks, word) in words(line, columns.saturating_sub(others)) {
        let (gap, wide) = (blanks.len(), width(word));
        if !row.is_empty() && taken + gap + wide > columns {
            rows.push(std::mem::take(&mut row));
            taken = others;
        } else {
            row.push_str(blanks);
            taken += gap;
        }
        row.push_str(word);
        taken += wide;
    }
    rows.push(row);
    rows
}

/// Wraps a cell into rows of at most so many columns, breaking words if necessary.
pub(crate) fn cell(text: &str, columns: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for line in text.split('\n').map(|line| line.replace('\t', " ")) {
        for row in wrapped(&line, columns, 0, 0) {
            let mut rest = row.as_str();
            while width(rest) > columns {
                let (here, after) = rest.split_at(joint(rest, columns));
                rows.push(here.to_owned());
                rest = after;
            }
            if !rest.is_empty() || row.is_empty() {
                rows.push(rest.to_owned());
            }
        }
    }
    rows
}

/// Returns where to break a text without blanks, so that the part before fits.
fn joint(text: &str, columns: usize) -> usize {
    let (mut taken, mut end, mut good) = (0, 0, None);
    for (at, c) in text.char_indices() {
        taken += c.to_string().width();
        if taken > columns && end > 0 {
            break;
        }
        end = at + c.len_utf8();
        // One that leaves most of the row empty helps nobody.
        if JOINTS.contains(&c) && taken * 2 > columns {
            good = Some(end);
        }
    }
    good.unwrap_or(end)
}

/// Splits a line into words, each with the blanks before it. Text between backticks is one word if it fits.
fn words(line: &str, room: usize) -> Vec<(&str, &str)> {
    let mut words = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let start = rest.len() - rest.trim_start_matches(' ').len();
        let (blanks, text) = rest.split_at(start);
        let mut end = text.find(' ').unwrap_or(text.len());
        // A backtick that opens here and closes beyond the blank.
        while text[..end].matches('`').count() % 2 == 1 {
            let Some(close) = text[end..].find('`').map(|at| end + at + 1) else { break };
            let close = close + text[close..].find(' ').unwrap_or(text.len() - close);
            if width(&text[..close]) > room {
                break;
            }
            end = close;
        }
        words.push((blanks, &text[..end]));
        rest = &text[end..];
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{cell, prose};

    #[track_caller]
    fn check(text: &str, columns: usize, expected: &str) {
        assert_eq!(prose(text, columns), expected);
    }

    #[test]
    fn lines_break_between_words() {
        check("one two three", 7, "one two\nthree");
        check("  one two three", 9, "  one two\n  three");
        check("- one two three", 9, "- one two\n  three");
        check("12. one two three", 11, "12. one two\n    three");
        check("a `b c d` e", 8, "a\n`b c d`\ne");
        check("a `b c d e", 4, "a `b\nc d\ne");
        check("a wordthatistoolong b", 6, "a\nwordthatistoolong\nb");
        check("日本 語語", 6, "日本\n語語");
        check("  try: clawsmith undo list --wide", 10, "  try: clawsmith undo list --wide");
        check("", 4, "");
        check("one\n\ntwo three", 4, "one\n\ntwo\nthree");
    }

    #[test]
    fn styles_take_no_room() {
        check("\u{1b}[1mone\u{1b}[0m two", 7, "\u{1b}[1mone\u{1b}[0m two");
    }

    #[test]
    fn a_cell_is_never_wider_than_its_column() {
        assert_eq!(cell("src/some/long/path.rs", 12), ["src/some/", "long/path.rs"]);
        assert_eq!(cell("aaaaaaaaaa", 4), ["aaaa", "aaaa", "aa"]);
        assert_eq!(cell("one two\nthree", 20), ["one two", "three"]);
        assert_eq!(cell("日本語", 1), ["日", "本", "語"]);
        assert_eq!(cell("", 3), [""]);
    }
}
