//! A unified diff as input: its hunks, and where in the file they belong.

use claw_core::tool::ToolError;

use super::nearest;
use super::plain::{Plain, Replacement, to_plain};

/// What a diff changes in one place.
struct Hunk<'p> {
    /// The line that it says it begins at, counted from 0.
    at: usize,
    lines: Vec<(Sign, &'p str)>,
    /// Whether the text before and after ends without a line end.
    open: (bool, bool),
    /// Its own line in the patch.
    header: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Same,
    Removed,
    Added,
}

/// The replacements that a patch asks for.
pub(super) fn apply(path: &str, plain: &Plain<'_>, patch: &str) -> Result<Vec<Replacement>, ToolError> {
    let patch = to_plain(patch);
    let hunks = parse(path, &patch)?;
    let file = plain.lines();
    let mut replacements = Vec::new();
    for (number, hunk) in hunks.iter().enumerate() {
        let origin = format!("hunk {}", number + 1);
        let old: Vec<&str> = hunk.side(Sign::Removed).collect();
        let start = locate(path, plain, &file, hunk, &old, &origin)?;
        hunk.replacements(plain, file.len(), start, &origin, &mut replacements);
    }
    Ok(replacements)
}

fn parse<'p>(path: &str, patch: &'p str) -> Result<Vec<Hunk<'p>>, ToolError> {
    let mut hunks: Vec<Hunk<'_>> = Vec::new();
    // How many lines of both sides the hunk at hand still has.
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
                    ToolError::invalid(format!("line {} of the patch is no hunk header: `{line}`", at + 1))
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
        "the hunk at line {header} of the patch has other numbers of lines than it says"
    ))
    .try_instead("count its lines again, or use `old_string` and `new_string`")
}

/// `@@ -first,count +first,count @@`: where the old side begins, counted from 0, and both counts.
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

/// A patch of another file is not for this one.
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

/// Where a hunk belongs: at the line it says, or the only place that has its lines.
fn locate(
    path: &str,
    plain: &Plain<'_>,
    file: &[&str],
    hunk: &Hunk<'_>,
    old: &[&str],
    origin: &str,
) -> Result<usize, ToolError> {
    let fits = |at: usize| file.get(at..at + old.len()).is_some_and(|part| part == old);
    if fits(hunk.at) {
        return Ok(hunk.at);
    }
    if old.is_empty() {
        let message = format!("{origin} is to come after line {}, and `{path}` has {}", hunk.at, file.len());
        return Err(ToolError::invalid(message));
    }
    let mut places = (0..file.len()).filter(|at| fits(*at));
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
        (None, _) => Err(nearest::not_found(path, plain, &old.join("\n"), origin)),
    }
}

impl<'p> Hunk<'p> {
    /// The lines of one side.
    fn side(&self, sign: Sign) -> impl Iterator<Item = &'p str> {
        self.lines.iter().filter(move |(of, _)| *of == Sign::Same || *of == sign).map(|(_, said)| *said)
    }

    /// What is removed and added, without the lines that stay.
    fn replacements(
        &self,
        plain: &Plain<'_>,
        file: usize,
        start: usize,
        origin: &str,
        replacements: &mut Vec<Replacement>,
    ) {
        let mut line = start;
        let mut runs = self.lines.chunk_by(|a, b| (a.0 == Sign::Same) == (b.0 == Sign::Same)).peekable();
        while let Some(run) = runs.next() {
            if run.first().is_some_and(|(sign, _)| *sign == Sign::Same) {
                line += run.len();
                continue;
            }
            let removed = run.iter().filter(|(sign, _)| *sign == Sign::Removed).count();
            let mut text: String = run
                .iter()
                .filter(|(sign, _)| *sign == Sign::Added)
                .flat_map(|(_, said)| [*said, "\n"])
                .collect();
            let (from, to) = (plain.start_of(line), plain.start_of(line + removed));
            line += removed;
            // At the end of the file the last line may have no end, before or after.
            if line >= file && runs.peek().is_none() && !plain.text.is_empty() {
                let was_open = !plain.text.ends_with('\n');
                let stays_open = if self.open == (false, false) { was_open } else { self.open.1 };
                if removed == 0 && was_open && !text.is_empty() {
                    text.insert(0, '\n');
                }
                if stays_open && text.ends_with('\n') {
                    text.pop();
                }
            }
            replacements.push(Replacement { range: from..to, text, origin: origin.to_owned() });
        }
    }
}
