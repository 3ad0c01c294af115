//! `datetime`: the current time, and calculations with times.
//!
//! It uses the call's clock and the time zone data that comes with the program: the machine's clock, zone and
//! files do not affect the result.

mod moment;
mod show;
mod zone;

use claw_core::tool::{Call, Cost, Group, Meta, Output, Tool, ToolError};
use jiff::{Span, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;

use moment::Reading;
use show::Format;

#[derive(Default)]
pub(crate) struct DateTime;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// `convert` shows `time` in `to_timezone`; `add` adds `span` to `time`; `difference` goes from `time` to
    /// `until`.
    #[serde(default)]
    action: Action,
    /// RFC 3339, RFC 2822, `2026-03-29 14:30`, `2026-03-29`, `14:30` or Unix seconds; in `timezone` if it has
    /// no offset. Default: now.
    time: Option<String>,
    /// As `time`; for `difference`.
    until: Option<String>,
    /// Such as `1 month 2 days`, `-90 minutes` or `P1Y`; for `add`.
    span: Option<String>,
    /// IANA name such as `Europe/Paris`, or offset such as `+05:30`.
    timezone: Option<String>,
    /// For `convert`.
    to_timezone: Option<String>,
    /// `rfc3339`, `rfc2822`, `unix` or strftime such as `%A %d %B %Y`.
    format: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    #[default]
    Now,
    Convert,
    Add,
    Difference,
}

impl Tool for DateTime {
    type Args = Args;
    const META: Meta = Meta::new("datetime", Group::Automation)
        .effects(&[])
        .cost(Cost::Light)
        .about("Get the date and time, convert time zones, add a span, or measure between two times.");

    async fn run(&self, call: &Call, mut args: Args) -> Result<Output, ToolError> {
        let now =
            Timestamp::from_second(call.clock().now().0.div_euclid(1000)).map_err(ToolError::internal)?;
        let reading = Reading::new(now, args.timezone.take(), &call.facts().settings)?;
        match Command::try_from(args)? {
            Command::Now { format } => show::moment(&reading.now(), &format),
            Command::Convert { time, to_zone, format } => {
                let mut moment = reading.read(&time)?;
                if let Some(name) = to_zone {
                    moment = moment.in_zone(zone::find(&name)?);
                }
                show::moment(&moment, &format)
            }
            Command::Add { time, span, format } => {
                show::moment(&reading.read_or_now(time)?.plus(span)?, &format)
            }
            Command::Difference { time, until } => {
                show::difference(&reading.read_or_now(time)?, &reading.read(&until)?)
            }
        }
    }
}

/// The action with its arguments.
enum Command {
    Now { format: Format },
    Convert { time: String, to_zone: Option<String>, format: Format },
    Add { time: Option<String>, span: Span, format: Format },
    Difference { time: Option<String>, until: String },
}

impl TryFrom<Args> for Command {
    type Error = ToolError;

    fn try_from(args: Args) -> Result<Self, ToolError> {
        args.refuse_strays()?;
        let format = Format::new(args.format)?;
        Ok(match args.action {
            Action::Now => Self::Now { format },
            Action::Convert => Self::Convert {
                time: required(args.time, "convert", "time")?,
                to_zone: args.to_timezone,
                format,
            },
            Action::Add => {
                Self::Add { time: args.time, span: span(&required(args.span, "add", "span")?)?, format }
            }
            Action::Difference => {
                Self::Difference { time: args.time, until: required(args.until, "difference", "until")? }
            }
        })
    }
}

impl Args {
    /// Refuses arguments that the action would ignore: they show a misunderstanding.
    fn refuse_strays(&self) -> Result<(), ToolError> {
        let (action, takes): (_, &[_]) = match self.action {
            Action::Now => ("now", &["format"]),
            Action::Convert => ("convert", &["time", "to_timezone", "format"]),
            Action::Add => ("add", &["time", "span", "format"]),
            Action::Difference => ("difference", &["time", "until"]),
        };
        let given = [
            ("time", &self.time),
            ("until", &self.until),
            ("span", &self.span),
            ("to_timezone", &self.to_timezone),
            ("format", &self.format),
        ];
        match given.iter().find(|(name, value)| value.is_some() && !takes.contains(name)) {
            None => Ok(()),
            Some((name, _)) => Err(ToolError::invalid(format!("action `{action}` takes no `{name}`"))
                .try_instead("leave it out or choose another action")),
        }
    }
}

fn required(value: Option<String>, action: &str, name: &str) -> Result<String, ToolError> {
    value.ok_or_else(|| ToolError::invalid(format!("action `{action}` needs `{name}`")))
}

fn span(text: &str) -> Result<Span, ToolError> {
    text.trim().parse().map_err(|error| {
        ToolError::invalid(format!("`{text}` is not a time span"))
            .try_instead("write it like `1 month 2 days`, `-90 minutes` or `P1DT12H`")
            .because(error)
    })
}

#[cfg(test)]
mod tests;
