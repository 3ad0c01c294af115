//! Text as a person would see it: without invisible characters and long runs of blank lines.

/// A text without invisible characters and with at most one blank line in a row.
pub(super) fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut blank = 0;
    for line in text.lines() {
        let start = out.len();
        if line.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
            out.push_str(line);
        } else {
            out.extend(line.chars().filter(|c| !is_invisible(*c)));
        }
        let kept = out.trim_end_matches([' ', '\t', '\r']).len().max(start);
        // Two spaces at the end of a line are a line break in Markdown.
        let breaks = out.len() - kept == 2 && out.ends_with("  ") && kept > start;
        out.truncate(if breaks { kept + 2 } else { kept });
        if out.len() == start {
            blank += 1;
            if blank > 1 || start == 0 {
                continue;
            }
        } else {
            blank = 0;
        }
        out.push('\n');
    }
    let kept = out.trim_end().len();
    out.truncate(kept);
    out
}

/// Joins the text into one line of at most `most` characters; `None` if nothing is left.
pub(crate) fn label(text: &str, most: usize) -> Option<String> {
    let words =
        text.split_whitespace().map(|word| word.chars().filter(|c| !is_invisible(*c)).collect::<String>());
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let cut: String = line.chars().take(most).collect();
    (!cut.is_empty()).then_some(cut)
}

/// Returns whether a character is invisible and can carry text past a reader: controls, direction marks,
/// zero-width joiners, tags, unusual variation selectors.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_characters_that_show_nothing() {
        let tagged: String = "ignore".chars().map(|c| char::from_u32(0xe0000 + c as u32).unwrap()).collect();
        assert_eq!(tidy(&format!("pl{tagged}ain\u{200b}\u{202e} text\u{0}")), "plain text");
        assert_eq!(label(&format!("  A\n{tagged} \u{2066}title "), 5).unwrap(), "A tit");
        assert_eq!(label("\u{200b} \n", 5), None);
    }

    #[test]
    fn leaves_at_most_one_blank_line() {
        assert_eq!(tidy("\n\n\na  \n\n\n\nb   \n\n"), "a  \n\nb");
    }
}
