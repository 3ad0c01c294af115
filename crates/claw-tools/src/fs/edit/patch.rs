//! Reads a unified diff: its hunks, and their positions in the file.

use claw_core::tool::ToolError;

use super::line_ends::{Plain, Replacement, to_plain};
use super::similar_text;

/// A hunk of a diff.
struct Hunk<'p> {
    /// The first line, as the hunk's header says, counted from 0.
    at: usize,
    lines: Vec<(Sign, &'p str)>,
    /// The old and the new text end without a line end.
    open: (bool, bool),
    /// The line of the hunk's header in the patch.
    header: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Same,
    Removed,
    Added,
}

/// The replacements that a patch requests.
pub(super) fn apply(path: &str, plain: &Plain<'_>, patch: &str) -> Result<Vec<Replacement>, ToolError> {
    let patch = to_plain(patch);
    let hunks = parse(path, &patch)?;
    let file = File { path, plain, lines: plain.lines() };
    let mut replacements = Vec::new();
    for (number, hunk) in hunks.iter().enumerate() {
        let origin = format!("hunk {}", number + 1);
        let start = file.locate(hunk, &origin)?;
        replacements.extend(file.replacements(hunk, start, &origin));
    }
    Ok(replacements)
}

/// The file to be patched.
struct File<'a> {
    path: &'a str,
    plain: &'a Plain<'a>,
    lines: Vec<&'a str>,
}

fn parse<'p>(path: &str, patch: &'p str) -> Result<Vec<Hunk<'p>>, ToolError> {
    let mut hunks: Vec<Hunk<'_>> = Vec::new();
    // The lines of both sides that the current hunk still expects.
    let (mut old_left, mut new_left) = (0, 0);
    for (at, line) in patch.lines().enumerate() {
        if line.starts_with('\\') {
            if let Some(hunk) = hunks.last_mut()
                && let Some((sign, _)) = hunk.lines.last()
            {
                hunk.open.0 |= *sign != Sign::Added;
                hunk.open.1 |= *sign != Sign::Removed;
            }
            continue;
        }
        if (old_left, new_left) == (0, 0) {
            if line.starts_with("@@") {
                let (start, old, new) = header(line).ok_or_else(|| {
                    ToolError::invalid(format!("line {} of the patch is not a hunk header: `{line}`", at + 1))
                        .try_instead("write it as `@@ -first,count +first,count @@`")
                })?;
                (old_left, new_left) = (old, new);
                hunks.push(Hunk { at: start, lines: Vec::new(), open: (false, false), header: at + 1 });
            } else if let Some(name) = line.strip_prefix("--- ").or_else(|| line.strip_prefix("+++ ")) {
                same_file(path, name)?;
            }
            continue;
        }
        let Some(hunk) = hunks.last_mut() else { continue };
        let (sign, said) = match line.split_at_checked(1) {
            Some((" ", said)) => (Sign::Same, said),
            Some(("-", said)) => (Sign::Removed, said),
            Some(("+", said)) => (Sign::Added, said),
            None => (Sign::Same, ""),
            Some(_) => {
                let message =
                    format!("line {} of the patch begins with none of ` `, `-`, `+`: `{line}`", at + 1);
                return Err(ToolError::invalid(message));
            }
        };
        let (old, new) = (usize::from(sign != Sign::Added), usize::from(sign != Sign::Removed));
        if old > old_left || new > new_left {
            return Err(miscounted(hunk.header));
        }
        (old_left, new_left) = (old_left - old, new_left - new);
        hunk.lines.push((sign, said));
    }
    match hunks.last() {
        None => Err(ToolError::invalid("the patch has no hunk")
            .try_instead("begin each with `@@ -first,count +first,count @@`")),
        Some(last) if (old_left, new_left) != (0, 0) => Err(miscounted(last.header)),
        Some(_) => Ok(hunks),
    }
}

fn miscounted(header: usize) -> ToolError {
    ToolError::invalid(format!(
        "the hunk at line {header} of the patch does not have the numbers of lines that its header says"
    ))
    .try_instead("count its lines again, or use `old_string` and `new_string`")
}

/// Parses `@@ -first,count +first,count @@`: the old side's first line, counted from 0, and both counts.
fn header(line: &str) -> Option<(usize, usize, usize)> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |text: &str| -> Option<(usize, usize)> {
        let (first, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((first.parse().ok()?, count.parse().ok()?))
    };
    let ((first, old), (_, new)) = (range(old)?, range(new)?);
    // A hunk without old lines names the line that it comes after.
    Some((if old == 0 { first } else { first.checked_sub(1)? }, old, new))
}

/// Refuses a patch of another file.
fn same_file(path: &str, name: &str) -> Result<(), ToolError> {
    let name = name.split('\t').next().unwrap_or(name).trim();
    let bare = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(name);
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    if name == "/dev/null" || last(bare) == last(path) {
        return Ok(());
    }
    Err(ToolError::invalid(format!("the patch is of `{bare}`, not of `{path}`"))
        .try_instead("give one file and its patch in each call"))
}

impl File<'_> {
    /// Returns the line of a hunk: the one its header says, or the only one where its lines occur.
    fn locate(&self, hunk: &Hunk<'_>, origin: &str) -> Result<usize, ToolError> {
        let old: Vec<&str> = hunk.old_lines().collect();
        let fits = |at: usize| self.lines.get(at..at + old.len()).is_some_and(|part| part == old);
        if fits(hunk.at) {
            return Ok(hunk.at);
        }
        if old.is_empty() {
            let (path, has) = (self.path, self.lines.len());
            let message = format!("{origin} should come after line {}, but `{path}` has {has}", hunk.at);
            return Err(ToolError::invalid(message));
        }
        let mut places = (0..self.lines.len()).filter(|at| fits(*at));
        match (places.next(), places.next()) {
            (Some(only), None) => Ok(only),
            (Some(first), Some(second)) => {
                let message = format!(
                    "{origin} does not fit at line {}, and fits at several others, such as {} and {}",
                    hunk.at + 1,
                    first + 1,
                    second + 1
                );
                Err(ToolError::invalid(message).try_instead("name the right line, or add lines around it"))
            }
            (None, _) => Err(similar_text::not_found(self.path, self.plain, &old.join("\n"), origin)),
        }
    }

    /// The lines that a hunk removes and adds, without those that stay.
    fn replacements(&self, hunk: &Hunk<'_>, start: usize, origin: &str) -> Vec<Replacement> {
        let (mut replacements, mut line) = (Vec::new(), start);
        let mut runs = hunk.lines.chunk_by(|a, b| (a.0 == Sign::Same) == (b.0 == Sign::Same)).peekable();
        while let Some(run) = runs.next() {
            if run.first().is_some_and(|(sign, _)| *sign == Sign::Same) {
                line += run.len();
                continue;
            }
            let removed = run.iter().filter(|(sign, _)| *sign == Sign::Removed).count();
            let added = run.iter().filter(|(sign, _)| *sign == Sign::Added);
            let mut text: String = added.flat_map(|(_, said)| [*said, "\n"]).collect();
            let range = self.plain.start_of(line)..self.plain.start_of(line + removed);
            line += removed;
            // At the end of the file the last line may have no end, before or after.
            if line >= self.lines.len() && runs.peek().is_none() && !self.plain.text.is_empty() {
                let was_open = !self.plain.text.ends_with('\n');
                let stays_open = if hunk.open == (false, false) { was_open } else { hunk.open.1 };
                if removed == 0 && was_open && !text.is_empty() {
                    text.insert(0, '\n');
                }
                if stays_open && text.ends_with('\n') {
                    text.pop();
                }
            }
            replacements.push(Replacement { range, text, origin: origin.to_owned() });
        }
        replacements
    }
}

impl<'p> Hunk<'p> {
    /// The lines that the hunk expects to find.
    fn old_lines(&self) -> impl Iterator<Item = &'p str> {
        self.lines.iter().filter(|(sign, _)| *sign != Sign::Added).map(|(_, said)| *said)
    }
}
