//! Locates the texts to be replaced.

use claw_core::tool::ToolError;

use super::line_ends::{Plain, Replacement, to_plain};
use super::{Edit, similar_text};

/// Number of lines named if a text occurs too often.
const NAMED: usize = 20;

/// Locates all edits; fails if one is not found.
pub(super) fn all(path: &str, plain: &Plain<'_>, edits: &[Edit]) -> Result<Vec<Replacement>, ToolError> {
    let mut replacements = Vec::new();
    for (at, edit) in edits.iter().enumerate() {
        let origin = if edits.len() == 1 { "the edit".to_owned() } else { format!("edit {}", at + 1) };
        let old = to_plain(&edit.old);
        if old.is_empty() {
            return Err(ToolError::invalid(format!("{origin}: the text to replace is empty"))
                .try_instead("give text that is in the file, or use `write_file` for a new one"));
        }
        if old == to_plain(&edit.new) {
            return Err(ToolError::invalid(format!("{origin}: the new text is the same as the old")));
        }
        let Some(first) = plain.text.find(&*old) else {
            return Err(similar_text::not_found(path, plain, &old, &origin));
        };
        let step = plain.text[first..].chars().next().map_or(1, char::len_utf8);
        let again = plain.text[first + step..].contains(&*old);
        if again && !edit.replace_all {
            return Err(too_often(path, plain, &old, &origin));
        }
        let places = plain.text[first..].match_indices(&*old).map(|(at, _)| first + at);
        replacements.extend(places.map(|at| Replacement {
            range: at..at + old.len(),
            text: edit.new.clone(),
            origin: origin.clone(),
        }));
    }
    Ok(replacements)
}

fn too_often(path: &str, plain: &Plain<'_>, old: &str, origin: &str) -> ToolError {
    let mut lines = Vec::new();
    let (mut from, mut count) = (0, 0_usize);
    // Occurrences may overlap: each counts.
    while let Some(at) = plain.text[from..].find(old).map(|at| from + at) {
        count += 1;
        if lines.len() < NAMED {
            lines.push(plain.line_of(at).to_string());
        }
        from = at + plain.text[at..].chars().next().map_or(1, char::len_utf8);
    }
    let more = if count > lines.len() { ", ..." } else { "" };
    ToolError::invalid(format!(
        "{origin}: the text to replace occurs {count} times in `{path}`, at lines {}{more}",
        lines.join(", ")
    ))
    .try_instead("add lines around it until it is the only one, or set `replace_all`")
}
