//! Values and results in words, the same for every front end: times, sizes, costs, found passages, kept facts.

use std::time::Duration;

use claw_core::counted::counted;
use claw_core::port::{MemoryHit, UnixMillis};
use claw_core::provenance::Provenance;
use claw_core::store::{Entry, EntryEvent, KeptFacts};
use claw_host::recall::{Extracted, Indexed};

use super::memory::ImportedFile;

/// A moment as RFC 3339 in UTC, to the second.
pub fn time(at: UnixMillis) -> String {
    match jiff::Timestamp::from_second(at.0.div_euclid(1000)) {
        Ok(time) => time.to_string(),
        Err(_) => at.0.to_string(),
    }
}

/// Says how long before `now` a moment is.
pub fn ago(at: UnixMillis, now: UnixMillis) -> String {
    let seconds = now.0.saturating_sub(at.0) / 1000;
    match seconds {
        ..60 => "just now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} ago", counted(seconds / 86_400, "day")),
    }
}

/// Parses a lifetime such as `30m`, `12h` or `7d`.
pub fn lifetime(text: &str) -> Result<Duration, String> {
    let wrong = || "write a number and `m`, `h` or `d`, such as `12h`".to_owned();
    let unit = match text.chars().last() {
        Some('m') => 60,
        Some('h') => 60 * 60,
        Some('d') => 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    let count: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    match count.checked_mul(unit) {
        Some(seconds @ 1..=315_360_000) => Ok(Duration::from_secs(seconds)),
        _ => Err("use more than 0 and at most 3650d".to_owned()),
    }
}

/// A cost in dollars, from millionths of one.
pub fn cost(micros: i64) -> String {
    format!("${}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// A number of bytes.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return counted(count, "byte");
    }
    let (mut size, mut unit) = (count as f64 / 1024.0, 0);
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

/// The origin of a memory document.
pub fn origin(provenance: &Provenance) -> String {
    let writer = provenance.run.map_or_else(|| "a person".to_owned(), |run| format!("run {run}"));
    if provenance.untrusted { format!("{writer}, untrusted") } else { writer }
}

/// The place of a found passage, and why it was found.
pub fn found_at(hit: &MemoryHit) -> String {
    let MemoryHit { path, start_line, end_line, score, heading, why, provenance, .. } = hit;
    let under = if heading.is_empty() { String::new() } else { format!(" · {heading}") };
    let mut reasons = vec![why.owner.name().to_owned()];
    reasons.extend((!why.words.is_empty()).then(|| why.words.join(", ")));
    reasons.extend(why.beside.then(|| "beside a hit".to_owned()));
    reasons.extend(why.similarity.map(|similarity| format!("similarity {similarity:.2}")));
    reasons.extend(provenance.untrusted.then(|| "untrusted".to_owned()));
    format!("{path}:{start_line}-{end_line}{under} · {score:.2} · {}", reasons.join(" · "))
}

/// The outcomes of imported files: the skipped ones, and how many of the others changed something.
pub fn imported(files: &[ImportedFile]) -> Vec<String> {
    let skipped = files.iter().filter(|file| file.state == "skipped");
    let mut lines: Vec<String> = skipped
        .map(|file| format!("skipped {}: {}", file.path, file.why.as_deref().unwrap_or_default()))
        .collect();
    let count = |state: &str| files.iter().filter(|file| file.state == state).count();
    let (added, changed, unchanged) = (count("added"), count("changed"), count("unchanged"));
    lines.push(format!("{added} added, {changed} changed, {unchanged} unchanged"));
    lines
}

/// The result of computing vectors; nothing if there was nothing to do.
pub fn indexed(Indexed { documents, embedded, cached, failed, .. }: &Indexed) -> Vec<String> {
    let mut lines = Vec::new();
    if documents + failed > 0 {
        let of = counted(*documents, "document");
        lines.push(format!("vectors of {of}: {embedded} computed, {cached} from the cache"));
    }
    if *failed > 0 {
        let failed = counted(*failed, "document");
        lines.push(format!("{failed} still without vectors; `clawsmith memory status` says why"));
    }
    lines
}

/// A document that an indexer failed on, how often, and when it is tried again.
pub fn failed(path: &str, tries: u64, next: UnixMillis, error: &str) -> String {
    format!("{path} failed {}, next try {}: {error}", counted(tries, "time"), time(next))
}

/// The result of extracting facts.
pub fn extracted(
    Extracted { documents, entities, relations, doubtful: pairs, failed }: &Extracted,
) -> Vec<String> {
    let of = counted(*documents, "document");
    let mut lines =
        vec![format!("{of}: {}, {}", counted(*entities, "entity"), counted(*relations, "relation"))];
    lines.extend(doubtful(*pairs));
    if *failed > 0 {
        let failed = counted(*failed, "document");
        lines.push(format!("{failed} failed; `clawsmith graph status` says why"));
    }
    lines
}

/// The result of storing facts.
pub fn kept(KeptFacts { added, merged, relations, doubtful: pairs, .. }: &KeptFacts) -> Vec<String> {
    let relations = counted(*relations, "relation");
    let mut lines = vec![format!("{added} added, {merged} merged into known entities, {relations}")];
    lines.extend(doubtful(*pairs));
    lines
}

fn doubtful(pairs: u64) -> Option<String> {
    (pairs > 0).then(|| format!("possible duplicates: {pairs}; see `clawsmith graph merge`"))
}

/// The content of a ledger entry.
pub fn entry(entry: &Entry) -> String {
    match &entry.record.event {
        EntryEvent::Refused { step, reason, .. } => format!("{step}: {reason}"),
        EntryEvent::Intent { effects, args, approval, .. } => {
            let approved = if approval.is_some() { " (approved)" } else { "" };
            format!("effects: {effects}{approved}; {args}")
        }
        EntryEvent::Outcome { micros, bytes, error, changes, .. } => {
            let changed = changes.as_ref().filter(|it| it.count > 0);
            let changed = changed.map(|it| format!(", {}", counted(it.count, "change"))).unwrap_or_default();
            let bytes = counted(*bytes, "byte");
            let took = format!("{:.1} ms, {bytes}{changed}", *micros as f64 / 1000.0);
            error.as_ref().map_or_else(|| took.clone(), |error| format!("{took}; {error}"))
        }
    }
}

/// A text on one line of a table; the whole is elsewhere.
pub fn in_short(text: &str) -> String {
    super::session_list::shortened(text, 160)
}
