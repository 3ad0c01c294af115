//! Values in words, the same for every front end: times, sizes and costs.

use std::time::Duration;

use claw_core::port::UnixMillis;

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
        _ => format!("{} days ago", seconds / 86_400),
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
        return format!("{count} bytes");
    }
    let (mut size, mut unit) = (count as f64 / 1024.0, 0);
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

/// A text on one line of a table; the whole is elsewhere.
pub fn in_short(text: &str) -> String {
    super::session_list::shortened(text, 160)
}
