//! Finds the part of a file that is nearest to a text that is not in it, and tells how it differs.
//!
//! The work is bounded: every line of a long file is compared roughly, and only a few closely.

use claw_core::tool::ToolError;

use super::line_ends::Plain;

/// Lines that are compared closely.
const CLOSELY: usize = 24;
/// Bytes of a line that are compared.
const COMPARED: usize = 300;
/// Lines of the file that are shown.
const SHOWN: usize = 12;
/// Least similarity of a line that is shown.
const ALIKE: f64 = 0.5;

/// Normalises a text, so that texts that differ in only one way become equal.
type Coarse = fn(&str) -> String;

/// The ways in which texts differ, the finest first.
const WAYS: [(&str, Coarse); 5] = [
    ("white space at line ends", |line| line.trim_end().to_owned()),
    ("indentation", |line| line.trim().to_owned()),
    ("white space", |line| line.split_whitespace().collect()),
    ("quotes, dashes or spaces of another kind", |line| ascii(line).split_whitespace().collect()),
    ("upper and lower case", |line| ascii(line).split_whitespace().collect::<String>().to_lowercase()),
];

/// The error for a text that is not in the file; shows the nearest text.
pub(super) fn not_found(path: &str, plain: &Plain<'_>, old: &str, origin: &str) -> ToolError {
    let message = format!("{origin}: the text to replace is not in `{path}`");
    let file = plain.lines();
    let wanted: Vec<&str> = old.lines().collect();
    if let Some((at, way)) = differing_in(&file, &wanted) {
        let message =
            format!("{message}; at line {} it differs in {way}:\n{}", at + 1, shown(&file, at, wanted.len()));
        return ToolError::invalid(message).try_instead("copy it exactly as it is there");
    }
    match alike(&file, &wanted) {
        Some(near) => {
            let message = format!(
                "{message}; nearest is line {}:\n{}\nwhere line {} says `{}`, the text to replace says `{}`",
                near.start + 1,
                shown(&file, near.start, wanted.len()),
                near.differs + 1,
                cut(file.get(near.differs).copied().unwrap_or_default()),
                cut(near.wanted),
            );
            ToolError::invalid(message).try_instead("copy it exactly as it is there")
        }
        None => ToolError::invalid(format!("{message}, nor is anything similar"))
            .try_instead("read the file again"),
    }
}

/// Finds the same lines if they differ in only one way, such as indentation; returns the first line and the
/// way.
fn differing_in(file: &[&str], wanted: &[&str]) -> Option<(usize, &'static str)> {
    WAYS.into_iter().find_map(|(way, coarse)| {
        let wanted: Vec<String> = wanted.iter().map(|line| coarse(line)).collect();
        if wanted.iter().all(String::is_empty) {
            return None;
        }
        let (first, last) = (wanted.first()?, wanted.last()?);
        let whole = |at: &usize| {
            let part = &file[*at..*at + wanted.len()];
            // The text may begin within a line and end within one.
            match part {
                [only] => coarse(only).contains(first.as_str()),
                [begin, middle @ .., end] => {
                    coarse(begin).ends_with(first.as_str())
                        && coarse(end).starts_with(last.as_str())
                        && middle.iter().zip(&wanted[1..]).all(|(line, wanted)| coarse(line) == *wanted)
                }
                [] => false,
            }
        };
        let places = (file.len() + 1).checked_sub(wanted.len())?;
        (0..places).find(whole).map(|at| (at, way))
    })
}

struct Near<'a> {
    start: usize,
    /// The first line that differs, and what was wanted there.
    differs: usize,
    wanted: &'a str,
}

/// Finds the line most similar to the longest of the wanted lines.
fn alike<'a>(file: &[&str], wanted: &[&'a str]) -> Option<Near<'a>> {
    let (within, key) = wanted.iter().enumerate().max_by_key(|(_, line)| line.trim().len())?;
    let key = head(key.trim());
    if key.is_empty() {
        return None;
    }
    let counts = letters(key);
    let mut candidates: Vec<(u32, usize)> = file
        .iter()
        .enumerate()
        .map(|(at, line)| (distance(&counts, &letters(head(line.trim()))), at))
        .collect();
    let few = CLOSELY.min(candidates.len());
    if few < candidates.len() {
        candidates.select_nth_unstable(few);
    }
    candidates.truncate(few);
    let likeness = |at: usize| strsim::normalized_levenshtein(key, head(file[at].trim()));
    let best = candidates.into_iter().map(|(_, at)| (likeness(at), at));
    let (likeness, at) = best.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
    if likeness < ALIKE {
        return None;
    }
    let start = at.saturating_sub(within);
    let differs = wanted.iter().enumerate().find(|(line, said)| file.get(start + line) != Some(said));
    let (line, wanted) = differs.map_or((within, wanted[within]), |(line, said)| (line, *said));
    Some(Near { start, differs: start + line, wanted })
}

/// Counts the letters of a line.
fn letters(line: &str) -> [u16; 64] {
    let mut counts = [0; 64];
    for byte in line.bytes() {
        counts[usize::from(byte % 64)] += 1;
    }
    counts
}

fn distance(a: &[u16; 64], b: &[u16; 64]) -> u32 {
    a.iter().zip(b).map(|(a, b)| u32::from(a.abs_diff(*b))).sum()
}

fn head(line: &str) -> &str {
    let mut end = line.len().min(COMPARED);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    &line[..end]
}

fn cut(line: &str) -> String {
    let head = head(line);
    if head.len() < line.len() { format!("{head}...") } else { head.to_owned() }
}

fn shown(file: &[&str], start: usize, count: usize) -> String {
    let numbered = file.iter().enumerate().skip(start).take(count.min(SHOWN));
    let lines: Vec<String> = numbered.map(|(at, line)| format!("{:>6}\t{}", at + 1, cut(line))).collect();
    lines.join("\n")
}

/// Quotes, dashes and spaces as ASCII has them.
fn ascii(line: &str) -> String {
    let plain = |c: char| match c {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{2032}' | '\u{b4}' | '`' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{2033}' | '\u{ab}' | '\u{bb}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{3000}' => ' ',
        c => c,
    };
    line.chars().filter(|c| !matches!(c, '\u{200b}' | '\u{feff}')).map(plain).collect()
}
