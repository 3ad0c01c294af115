//! Formats paths, sizes, times and counts.

use claw_core::port::UnixMillis;
use jiff::Timestamp;

/// Bytes of a list in one answer, below the limit up to which results are sent whole.
pub(crate) const BYTES: usize = 24_000;

/// Joins a directory and a path found in it, as other tools take it.
pub(crate) fn path(directory: &str, found: &str) -> String {
    let directory = directory.trim_end_matches('/');
    let directory = directory.strip_prefix("./").unwrap_or(directory);
    match (directory, found) {
        ("" | ".", found) => name(found),
        (directory, "") => name(directory),
        (directory, found) => name(&format!("{directory}/{found}")),
    }
}

/// A name on a single line: a line break in it would make it look like two names.
pub(crate) fn name(name: &str) -> String {
    if !name.contains(char::is_control) {
        return name.to_owned();
    }
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    name.chars().map(shown).collect()
}

/// A size in at most six characters.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["K", "M", "G", "T", "P"];
    if bytes < 1024 {
        return bytes.to_string();
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(value < 9.95);
    format!("{value:.digits$}{}", UNITS[unit])
}

/// A time to the minute, in UTC, or `-` if it is not known.
pub(crate) fn time(at: UnixMillis) -> String {
    // Such a time means that it is not known.
    if at.0 <= 0 {
        return format!("{:16}", "-");
    }
    Timestamp::from_millisecond(at.0)
        .map_or_else(|_| "unknown".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M").to_string())
}

/// A count and its noun.
pub(crate) fn count(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_time_that_is_not_known_is_no_date_of_1970() {
        let time = |at: i64| super::time(claw_core::port::UnixMillis(at));
        assert_eq!([time(0), time(-1)].map(|time| time.trim_end().to_owned()), ["-", "-"]);
        assert_eq!(time(1_767_225_600_000), "2026-01-01 00:00");
        assert_eq!(time(0).len(), time(1_767_225_600_000).len(), "columns stay aligned");
    }

    use super::*;

    #[test]
    fn paths_are_as_other_tools_take_them() {
        for (directory, found, expected) in [
            (".", "a/b", "a/b"),
            ("./", "a", "a"),
            ("src", "a", "src/a"),
            ("./src/", "a", "src/a"),
            ("/w/src", "a", "/w/src/a"),
            ("src/a.rs", "", "src/a.rs"),
        ] {
            assert_eq!(path(directory, found), expected);
        }
    }

    #[test]
    fn sizes_are_short() {
        for (bytes, expected) in [
            (0, "0"),
            (1023, "1023"),
            (1024, "1.0K"),
            (10 * 1024, "10K"),
            (1024 * 1024 - 1, "1.0M"),
            (5 << 30, "5.0G"),
            (u64::MAX, "16384P"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }
}
