//! Unified diffs of bounded length.

use similar::TextDiff;

/// Changed lines up to which a diff is computed; beyond, only the numbers are told.
const COMPARED: usize = 4_000;
/// Bytes of a line that are shown.
const LINE: usize = 500;

/// A unified diff of a file's text, of at most `most` lines.
pub fn unified_diff(path: &str, old: &str, new: &str, most: usize) -> String {
    if old == new {
        return String::new();
    }
    let (removed, added) = changed_lines(old, new);
    if removed + added > COMPARED {
        return format!("--- a/{path}\n+++ b/{path}\n({removed} lines were replaced by {added})\n");
    }
    let whole = TextDiff::from_lines(old, new)
        .unified_diff()
        .context_radius(3)
        .header(&format!("a/{path}"), &format!("b/{path}"))
        .to_string();
    let mut shown = String::with_capacity(whole.len());
    let mut lines = whole.split_inclusive('\n');
    for line in lines.by_ref().take(most) {
        match line.char_indices().nth(LINE) {
            Some((cut, _)) => {
                shown.push_str(&line[..cut]);
                shown.push_str("...\n");
            }
            None => shown.push_str(line),
        }
    }
    match lines.count() {
        0 => {}
        more => shown.push_str(&format!("({more} more lines of the diff are left out)\n")),
    }
    shown
}

/// Counts the old and new lines between the equal beginning and the equal end.
fn changed_lines(old: &str, new: &str) -> (usize, usize) {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[same..], &new[same..]);
    let same = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    (old.len() - same, new.len() - same)
}
