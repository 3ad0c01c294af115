//! Shows moments as text and data.

use claw_core::tool::{Output, ToolError};
use jiff::fmt::friendly::{Designator, Spacing, SpanPrinter};
use jiff::fmt::{rfc2822, strtime};
use jiff::{Span, Unit, Zoned, ZonedDifference};
use serde_json::json;

use super::moment::Moment;

/// The output format of a moment.
pub(super) enum Format {
    Rfc3339,
    Rfc2822,
    Unix,
    Pattern(String),
}

impl Format {
    pub(super) fn new(text: Option<String>) -> Result<Self, ToolError> {
        match text.as_deref() {
            None | Some("" | "rfc3339") => Ok(Self::Rfc3339),
            Some("rfc2822") => Ok(Self::Rfc2822),
            Some("unix") => Ok(Self::Unix),
            Some(pattern) if pattern.contains('%') => Ok(Self::Pattern(pattern.to_owned())),
            Some(other) => Err(ToolError::invalid(format!("`{other}` is not a format"))
                .try_instead("use `rfc3339`, `rfc2822`, `unix` or strftime such as `%Y-%m-%d %H:%M`")),
        }
    }

    fn write(&self, at: &Zoned) -> Result<String, ToolError> {
        let refused = |error: jiff::Error| {
            ToolError::invalid(format!("the time cannot be written in this format: {error}"))
                .try_instead("use `rfc3339` or strftime such as `%Y-%m-%d %H:%M`")
        };
        match self {
            Self::Rfc3339 => Ok(rfc3339(at)),
            Self::Rfc2822 => rfc2822::to_string(at).map_err(refused),
            Self::Unix => Ok(at.timestamp().as_second().to_string()),
            Self::Pattern(pattern) => strtime::format(pattern, at).map_err(refused),
        }
    }
}

/// The moment in the requested format, followed by further details.
pub(super) fn moment(moment: &Moment, format: &Format) -> Result<Output, ToolError> {
    let at = &moment.at;
    let written = format.write(at)?;
    let here = at.time_zone().to_offset_info(at.timestamp());
    let offset = strtime::format("%:z", at).map_err(ToolError::internal)?;
    let zone = at.time_zone().iana_name().unwrap_or(&offset);
    let weekday = strtime::format("%A", at).map_err(ToolError::internal)?;
    let iso_week = at.date().iso_week_date();
    let iso_week = format!("{}-W{:02}", iso_week.year(), iso_week.week());
    let change = at.time_zone().following(at.timestamp()).find(|change| change.offset() != here.offset());
    let change = change.map(|change| rfc3339(&change.timestamp().to_zoned(at.time_zone().clone())));

    let mut place = vec![zone, here.abbreviation(), &offset];
    place.dedup();
    if here.dst().is_dst() {
        place.push("daylight saving time");
    }
    let mut lines = vec![
        written.clone(),
        format!("{weekday}, week {iso_week}, day {} of {}", at.day_of_year(), at.days_in_year()),
        place.join(", "),
    ];
    lines.extend(change.as_ref().map(|change| format!("the next change of clocks gives {change}")));
    lines.extend(moment.note.as_ref().map(|note| format!("note: {note}")));

    Ok(Output::text(lines.join("\n")).with_details(json!({
        "written": written,
        "time": rfc3339(at),
        "unix": at.timestamp().as_second(),
        "timezone": zone,
        "abbreviation": here.abbreviation(),
        "offset": offset,
        "daylight_saving": here.dst().is_dst(),
        "next_change": change,
        "weekday": weekday,
        "iso_week": iso_week,
        "day_of_year": at.day_of_year(),
        "note": moment.note,
    })))
}

/// Tells the time between two moments, in the zone of the first.
pub(super) fn difference(from: &Moment, until: &Moment) -> Result<Output, ToolError> {
    let (start, end) = (&from.at, &until.at.with_time_zone(from.at.time_zone().clone()));
    let measure = |largest| {
        let difference = start.until(ZonedDifference::new(end).largest(largest));
        difference.map_err(ToolError::internal)
    };
    let (span, by_day) = (measure(Unit::Year)?, measure(Unit::Day)?);
    let seconds = start.duration_until(end).as_secs();

    let way = if span.is_negative() { "before" } else { "after" };
    let mut lines = vec![
        format!("{} is {} {way} {}", rfc3339(end), words(span), rfc3339(start)),
        format!("in days: {}", words(by_day)),
        format!("in seconds: {}", seconds.abs()),
    ];
    lines.extend([from, until].iter().filter_map(|moment| Some(format!("note: {}", moment.note.as_ref()?))));

    Ok(Output::text(lines.join("\n")).with_details(json!({
        "time": rfc3339(start),
        "until": rfc3339(end),
        "span": span.to_string(),
        "seconds": seconds,
    })))
}

/// Spells a span as `1 year, 2 months, 3 days`, without its sign.
fn words(span: Span) -> String {
    SpanPrinter::new()
        .designator(Designator::Verbose)
        .spacing(Spacing::BetweenUnitsAndDesignators)
        .comma_after_designator(true)
        .span_to_string(&span.abs())
}

fn rfc3339(at: &Zoned) -> String {
    at.timestamp().display_with_offset(at.offset()).to_string()
}
