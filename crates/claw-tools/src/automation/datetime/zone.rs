//! Time zones by name or offset, from the data that comes with the program.

use claw_core::tool::ToolError;
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// Number of names suggested for an unknown one.
const SUGGESTIONS: usize = 3;
/// Least similarity of a suggested name (1 is equal).
const ALIKE: f64 = 0.8;

/// The zone of an IANA name such as `Europe/Paris`, or of an offset such as `+05:30` or `UTC+2`.
pub(super) fn find(name: &str) -> Result<TimeZone, ToolError> {
    let name = name.trim();
    offset(name).or_else(|| TimeZoneDatabase::bundled().get(name).ok()).ok_or_else(|| unknown(name))
}

/// Parses `+2`, `+02`, `+02:00` and the same after `UTC` or `GMT`: east is plus.
///
/// A POSIX zone would read `UTC+2` the other way round, which is never meant.
fn offset(name: &str) -> Option<TimeZone> {
    let digits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let prefix = &name[..name.len() - digits.len()];
    if !(prefix.is_empty() || prefix.eq_ignore_ascii_case("utc") || prefix.eq_ignore_ascii_case("gmt")) {
        return None;
    }
    let (sign, hours) = digits.split_at_checked(1).filter(|(sign, _)| ["+", "-"].contains(sign))?;
    let single = hours.split(':').next().is_some_and(|hour| hour.len() == 1);
    let zero = if single { "0" } else { "" };
    let text = format!("{sign}{zero}{hours}");
    DateTimeParser::new().parse_time_zone_with(&TimeZoneDatabase::none(), text).ok()
}

fn unknown(name: &str) -> ToolError {
    let advice = match suggest(name).as_slice() {
        [] => "use an IANA name such as `Europe/Paris` or an offset such as `+02:00`".to_owned(),
        names => format!("did you mean `{}`?", names.join("`, `")),
    };
    ToolError::invalid(format!("`{name}` is not a time zone")).try_instead(advice)
}

/// Suggests names that contain the given one, else the most similar ones.
fn suggest(name: &str) -> Vec<String> {
    let wanted = name.to_lowercase().replace(' ', "_");
    let zones = TimeZoneDatabase::bundled();
    let names: Vec<String> = zones.available().map(|name| name.to_string()).collect();
    let containing = names.iter().filter(|name| !wanted.is_empty() && name.to_lowercase().contains(&wanted));
    let containing: Vec<String> = containing.take(SUGGESTIONS).cloned().collect();
    if !containing.is_empty() {
        return containing;
    }
    let likeness = |name: &str| {
        let name = name.to_lowercase();
        let place = name.rsplit('/').next().unwrap_or_default();
        strsim::normalized_damerau_levenshtein(&name, &wanted)
            .max(strsim::normalized_damerau_levenshtein(place, &wanted))
    };
    let mut alike: Vec<(f64, String)> = names.into_iter().map(|name| (likeness(&name), name)).collect();
    alike.retain(|(likeness, _)| *likeness >= ALIKE);
    alike.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    alike.into_iter().take(SUGGESTIONS).map(|(_, name)| name).collect()
}
