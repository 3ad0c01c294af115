//! Cuts texts between characters and marks what is missing.

const ELLIPSIS: &str = "…";

/// Head and tail of a text, with a line between them that tells what is missing.
pub(crate) fn cut(text: &str, limit: usize, kept: &str) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let head_end = line_end(text, text.floor_char_boundary(limit / 3 * 2));
    let tail_start = text.ceil_char_boundary(text.len() - limit / 3);
    let missing = tail_start - head_end;
    format!("{}\n[... {missing} bytes left out; {kept} ...]\n{}", &text[..head_end], &text[tail_start..])
}

/// Ends the head after a whole line, if one ends in its last quarter.
fn line_end(text: &str, end: usize) -> usize {
    match text[..end].rfind('\n') {
        Some(at) if at >= end / 4 * 3 => at,
        _ => end,
    }
}

/// At most `limit` bytes of a text, with an ellipsis if it is cut.
pub(super) fn shorten(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(limit.saturating_sub(ELLIPSIS.len()));
    format!("{}{ELLIPSIS}", &text[..head])
}
