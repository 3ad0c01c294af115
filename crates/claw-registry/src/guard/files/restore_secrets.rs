//! Applies changes of a view to the text behind it, turning placeholders back into secrets.

use std::ops::Range;

use claw_core::port::Splice;
use claw_core::redact::PLACEHOLDER;
use claw_core::text::{Mark, Masked};
use claw_core::tool::ToolError;

use super::match_placeholders::{Last, Side, Site, align};

/// A changed text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Composed {
    pub(super) text: String,
    /// Positions of the old text's secrets in the new one, sorted.
    pub(super) kept: Vec<Range<usize>>,
}

/// Applies changes that are given as positions in the view. Text outside of them stays the same, byte by
/// byte; within them, a secret stays where its placeholder stays.
pub(super) fn compose(
    source: &str,
    masked: &Masked,
    splices: &[Splice],
    last: Last,
) -> Result<Composed, ToolError> {
    check(&masked.text, splices)?;
    let mut out = Composed { text: String::with_capacity(source.len()), kept: Vec::new() };
    let mut way = Way { source, masked, seen: 0, source_at: 0, mark: 0 };
    for splice in splices {
        way.copy_until(splice.range.start, &mut out)?;
        let first = way.mark;
        way.skip_until(splice.range.end)?;
        let covered = &masked.marks[first..way.mark];
        if masked.marks.is_empty() || !splice.text.contains(PLACEHOLDER) {
            out.text.push_str(&splice.text);
        } else {
            let pairs = pair(&masked.text, splice, last)?;
            replace(source, covered, &splice.text, &pairs, &mut out);
        }
    }
    way.copy_until(masked.text.len(), &mut out)?;
    Ok(out)
}

/// The first kept secret that a view of the new text would show.
pub(super) fn first_shown(kept: &[Range<usize>], masked: &Masked) -> Option<Range<usize>> {
    let hidden = |kept: &Range<usize>| {
        let at = masked.marks.partition_point(|mark| mark.source.end < kept.end);
        masked
            .marks
            .get(at)
            .is_some_and(|mark| mark.source.start <= kept.start && kept.end <= mark.source.end)
    };
    kept.iter().find(|kept| !hidden(kept)).cloned()
}

fn check(seen: &str, splices: &[Splice]) -> Result<(), ToolError> {
    let mut done = 0;
    for Splice { range, .. } in splices {
        let whole = seen.get(range.clone()).is_some();
        if !whole || range.start < done {
            let message = format!("the change of {}..{} does not fit the text", range.start, range.end);
            return Err(ToolError::invalid(message)
                .because("splices are sorted, do not overlap and begin and end at characters"));
        }
        done = range.end;
    }
    Ok(())
}

/// Walks through the view and the source together.
struct Way<'a> {
    source: &'a str,
    masked: &'a Masked,
    seen: usize,
    source_at: usize,
    /// The first mark that was not passed yet.
    mark: usize,
}

impl Way<'_> {
    /// Copies the source up to a position of the view.
    fn copy_until(&mut self, seen: usize, out: &mut Composed) -> Result<(), ToolError> {
        let (from, mark) = (self.source_at, self.mark);
        self.skip_until(seen)?;
        let moved = |at: usize| at - from + out.text.len();
        let passed = &self.masked.marks[mark..self.mark];
        out.kept.extend(passed.iter().map(|mark| moved(mark.source.start)..moved(mark.source.end)));
        out.text.push_str(&self.source[from..self.source_at]);
        Ok(())
    }

    fn skip_until(&mut self, seen: usize) -> Result<(), ToolError> {
        while let Some(mark) = self.masked.marks.get(self.mark).filter(|mark| mark.seen.start < seen) {
            if mark.seen.end > seen {
                let message = format!("the change begins or ends inside a `{PLACEHOLDER}`");
                return Err(
                    ToolError::invalid(message).try_instead("replace it whole, or only what is next to it")
                );
            }
            (self.seen, self.source_at) = (mark.seen.end, mark.source.end);
            self.mark += 1;
        }
        self.source_at += seen - self.seen;
        self.seen = seen;
        Ok(())
    }
}

/// For each placeholder in a splice's text, its position and the position in the view of the one that it
/// stands for.
fn pair(seen: &str, splice: &Splice, last: Last) -> Result<Vec<(usize, usize)>, ToolError> {
    let line_start = seen[..splice.range.start].rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = seen[splice.range.end..].find('\n').map_or(seen.len(), |at| splice.range.end + at);
    let head = &seen[line_start..splice.range.start];
    let whole = [head, &splice.text, &seen[splice.range.end..line_end]].concat();
    let old_places = places(seen, &splice.range);
    let new_places = places(&whole, &(head.len()..head.len() + splice.text.len()));
    let old = side(&seen[line_start..line_end], old_places.iter().map(|at| at - line_start));
    let new = side(&whole, new_places.iter().copied());
    let pairs = align(&old, &new, last).map_err(|doubtful| doubt(&new, doubtful, &splice.text, head))?;
    let new_places = new_places.iter().map(|at| at - head.len());
    Ok(new_places.zip(pairs).map(|(new, old)| (new, old_places[old])).collect())
}

/// Inserts the text of a splice, with each kept secret in place of its placeholder.
fn replace(source: &str, covered: &[Mark], text: &str, pairs: &[(usize, usize)], out: &mut Composed) {
    let mut done = 0;
    for (place, old) in pairs {
        out.text.push_str(&text[done..*place]);
        done = place + PLACEHOLDER.len();
        match covered.binary_search_by_key(old, |mark| mark.seen.start) {
            Ok(mark) => {
                let from = out.text.len();
                out.text.push_str(&source[covered[mark].source.clone()]);
                out.kept.push(from..out.text.len());
            }
            // A placeholder that is really in the file stays as it is.
            Err(_) => out.text.push_str(PLACEHOLDER),
        }
    }
    out.text.push_str(&text[done..]);
}

/// Positions of placeholders within a part of a text.
fn places(text: &str, part: &Range<usize>) -> Vec<usize> {
    text[part.clone()].match_indices(PLACEHOLDER).map(|(at, _)| part.start + at).collect()
}

fn side(text: &str, places: impl Iterator<Item = usize>) -> Side<'_> {
    let mut lines = Vec::new();
    let mut starts = Vec::new();
    let mut start = 0;
    for line in text.split('\n') {
        lines.push(line.strip_suffix('\r').unwrap_or(line));
        starts.push(start);
        start += line.len() + 1;
    }
    let site = |place: usize| {
        let line = starts.partition_point(|start| *start <= place) - 1;
        Site { line, column: place - starts[line] }
    };
    let sites = places.map(site).collect();
    Side { lines, sites }
}

fn doubt(new: &Side<'_>, doubtful: usize, text: &str, head: &str) -> ToolError {
    let site = new.sites[doubtful];
    // Lines are counted in the given text, which begins after the head.
    let number = site.line + 1;
    let line = new.lines[site.line];
    let line = if site.line == 0 { line.get(head.len()..).unwrap_or(line) } else { line };
    let shown: String = line.chars().take(120).collect();
    let of = if text.contains('\n') {
        format!("line {number} of the new text")
    } else {
        "the new text".to_owned()
    };
    ToolError::invalid(format!(
        "{of} contains `{PLACEHOLDER}` (`{}`), and it is unclear which hidden value of the file is meant; \
         nothing was written",
        shown.trim()
    ))
    .try_instead(
        "use `edit` on the text next to hidden values and leave their lines as they are, or leave the value out",
    )
}

#[cfg(test)]
mod tests;
