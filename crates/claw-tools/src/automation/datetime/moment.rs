//! Parses text into a moment in a zone.

use claw_core::tool::{ErrorKind, ToolError};
use jiff::civil;
use jiff::fmt::temporal::{DateTimeParser, Pieces, TimeZoneAnnotationKind};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{Span, Timestamp, Zoned};
use serde_json::Value;

use super::zone;

/// An instant, the zone to show it in, and a note about how it was read.
pub(super) struct Moment {
    pub(super) at: Zoned,
    pub(super) note: Option<String>,
}

impl Moment {
    pub(super) fn in_zone(self, zone: TimeZone) -> Self {
        Self { at: self.at.with_time_zone(zone), note: self.note }
    }

    pub(super) fn plus(self, span: Span) -> Result<Self, ToolError> {
        let at = self.at.checked_add(span).map_err(|error| {
            ToolError::invalid("the result is out of range")
                .try_instead("stay within the years -9999 to 9999")
                .because(error)
        })?;
        Ok(Self { at, note: self.note })
    }
}

/// The context in which text is parsed.
pub(super) struct Reading {
    now: Timestamp,
    /// The zone of times that name none.
    zone: TimeZone,
    /// The call named that zone; then times that name another zone are shown in it too.
    asked: bool,
}

impl Reading {
    /// Uses the zone that the call names, else that of the settings, else UTC.
    pub(super) fn new(now: Timestamp, asked: Option<String>, settings: &Value) -> Result<Self, ToolError> {
        let zone = match (&asked, settings.get("timezone").and_then(Value::as_str)) {
            (Some(name), _) => zone::find(name)?,
            (None, Some(name)) => zone::find(name).map_err(|error| ToolError {
                kind: ErrorKind::Unavailable,
                ..error.because("it is `timezone` in the settings of `datetime`")
            })?,
            (None, None) => TimeZone::UTC,
        };
        Ok(Self { now, zone, asked: asked.is_some() })
    }

    pub(super) fn now(&self) -> Moment {
        self.instant(self.now)
    }

    pub(super) fn read_or_now(&self, text: Option<String>) -> Result<Moment, ToolError> {
        text.map_or_else(|| Ok(self.now()), |text| self.read(&text))
    }

    pub(super) fn read(&self, text: &str) -> Result<Moment, ToolError> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("now") {
            return Ok(self.now());
        }
        if let Some(instant) = unix(text) {
            return Ok(self.instant(instant));
        }
        let parser = DateTimeParser::new();
        let error = match parser.parse_pieces(text) {
            Ok(pieces) => return self.pieces(text, &pieces),
            Err(error) => error,
        };
        if let Ok(at) = jiff::fmt::rfc2822::parse(text) {
            return Ok(self.own(at));
        }
        if let Ok(time) = parser.parse_time(text) {
            return local(self.now().at.date().to_datetime(time), self.zone.clone());
        }
        Err(unreadable(text, error))
    }

    fn pieces(&self, text: &str, pieces: &Pieces<'_>) -> Result<Moment, ToolError> {
        // Looked up here first, for the suggestions if it is unknown.
        if let Some(TimeZoneAnnotationKind::Named(name)) = pieces.time_zone_annotation().map(|it| it.kind()) {
            zone::find(name.as_str())?;
        }
        let zones = TimeZoneDatabase::bundled();
        let named = pieces.to_time_zone_with(&zones).map_err(|error| unreadable(text, error))?;
        let written = pieces.date().to_datetime(pieces.time().unwrap_or_else(civil::Time::midnight));
        match (pieces.to_numeric_offset(), named) {
            (None, None) => local(written, self.zone.clone()),
            (None, Some(zone)) => Ok(self.shown(local(written, zone)?)),
            (Some(offset), None) => {
                let at =
                    TimeZone::fixed(offset).to_zoned(written).map_err(|error| unreadable(text, error))?;
                Ok(self.own(at))
            }
            // Offset and name may contradict each other; the parser refuses that.
            (Some(_), Some(_)) => {
                let at = DateTimeParser::new().parse_zoned_with(&zones, text);
                Ok(self.own(at.map_err(|error| unreadable(text, error))?))
            }
        }
    }

    fn instant(&self, instant: Timestamp) -> Moment {
        Moment { at: instant.to_zoned(self.zone.clone()), note: None }
    }

    fn own(&self, at: Zoned) -> Moment {
        self.shown(Moment { at, note: None })
    }

    fn shown(&self, moment: Moment) -> Moment {
        if self.asked { moment.in_zone(self.zone.clone()) } else { moment }
    }
}

/// A time of day in a zone, in which it may occur twice or never.
fn local(written: civil::DateTime, zone: TimeZone) -> Result<Moment, ToolError> {
    let ambiguous = zone.to_ambiguous_zoned(written);
    let what = match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { .. } => None,
        AmbiguousOffset::Gap { .. } => Some("does not exist, as clocks go forward; a later one was taken"),
        AmbiguousOffset::Fold { .. } => Some("occurs twice, as clocks go back; the first was taken"),
    };
    let at = ambiguous.compatible().map_err(|error| unreadable(&written.to_string(), error))?;
    Ok(Moment { at, note: what.map(|what| format!("{written} {what}")) })
}

/// Parses `@` and seconds, or a number too long to be a date: seconds up to 11 digits, then milliseconds.
fn unix(text: &str) -> Option<Timestamp> {
    if let Some(seconds) = text.strip_prefix('@') {
        return Timestamp::from_second(seconds.parse().ok()?).ok();
    }
    let number: i64 = text.parse().ok()?;
    match text.trim_start_matches(['-', '+']).len() {
        9..=11 => Timestamp::from_second(number).ok(),
        12..=14 => Timestamp::from_millisecond(number).ok(),
        _ => None,
    }
}

fn unreadable(text: &str, error: jiff::Error) -> ToolError {
    ToolError::invalid(format!("`{text}` cannot be read as a time: {error}"))
        .try_instead("write it like `2026-03-29T14:30:00+02:00` or `2026-03-29 14:30`, or use action `add`")
}
