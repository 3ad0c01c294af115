use claw_core::tool::ErrorKind;
use serde_json::{Value, json};

use super::*;
use crate::fixture::{Fixture, failure, schema, text};

async fn run(args: Value) -> Result<Output, ToolError> {
    Fixture::new().run::<DateTime>(args).await
}

/// The first line, which is the answer itself.
async fn answer(args: Value) -> String {
    text(run(args).await).lines().next().unwrap().to_owned()
}

async fn check(args: Value, expected: &str) {
    assert_eq!(answer(args.clone()).await, expected, "{args}");
}

#[tokio::test]
async fn tells_the_time_of_the_calls_clock() {
    insta::assert_snapshot!(text(run(json!({ "action": "now" })).await), @"
    2026-11-15T08:30:00+00:00
    Sunday, week 2026-W46, day 319 of 365
    UTC, +00:00
    ");
    let output = run(json!({ "action": "now", "timezone": "America/New_York" })).await.unwrap();
    insta::assert_snapshot!(output.model_text(), @"
    2026-11-15T03:30:00-05:00
    Sunday, week 2026-W46, day 319 of 365
    America/New_York, EST, -05:00
    the next change of clocks gives 2027-03-14T03:00:00-04:00
    ");
    insta::assert_json_snapshot!(output.details, @r#"
    {
      "abbreviation": "EST",
      "day_of_year": 319,
      "daylight_saving": false,
      "iso_week": "2026-W46",
      "next_change": "2027-03-14T03:00:00-04:00",
      "note": null,
      "offset": "-05:00",
      "time": "2026-11-15T03:30:00-05:00",
      "timezone": "America/New_York",
      "unix": 1794731400,
      "weekday": "Sunday",
      "written": "2026-11-15T03:30:00-05:00"
    }
    "#);
}

#[tokio::test]
async fn without_an_action_it_is_the_time_of_now() {
    let now = text(run(json!({ "action": "now" })).await);
    assert_eq!(text(run(json!({})).await), now);
    insta::assert_snapshot!(text(run(json!({ "timezone": "Europe/Berlin" })).await), @"
    2026-11-15T09:30:00+01:00
    Sunday, week 2026-W46, day 319 of 365
    Europe/Berlin, CET, +01:00
    the next change of clocks gives 2027-03-28T03:00:00+02:00
    ");
}

#[tokio::test]
async fn the_settings_may_name_a_zone() {
    let in_zone = |zone: &str| {
        let mut fixture = Fixture::new();
        fixture.caller.config = std::sync::Arc::new(json!({ "datetime": { "timezone": zone } }));
        fixture
    };
    let now = in_zone("Asia/Tokyo").run::<DateTime>(json!({ "action": "now" })).await;
    assert!(text(now).starts_with("2026-11-15T17:30:00+09:00"));
    let asked = json!({ "action": "now", "timezone": "UTC" });
    assert!(text(in_zone("Asia/Tokyo").run::<DateTime>(asked.clone()).await).starts_with("2026-11-15T08:30"));
    assert!(text(in_zone("Asia/Tokio").run::<DateTime>(asked).await).starts_with("2026-11-15T08:30"));
    let wrong = in_zone("Asia/Tokio").run::<DateTime>(json!({ "action": "now" })).await;
    insta::assert_snapshot!(failure(wrong, ErrorKind::Unavailable), @"`Asia/Tokio` is not a time zone; did you mean `Asia/Tokyo`?");
}

#[tokio::test]
async fn reads_times_in_many_forms() {
    for (time, expected) in [
        ("now", "2026-11-15T08:30:00+00:00"),
        ("2026-03-29T14:30:00Z", "2026-03-29T14:30:00+00:00"),
        ("2026-03-29T14:30:00+02:00", "2026-03-29T14:30:00+02:00"),
        ("2026-03-29T14:30[Asia/Tokyo]", "2026-03-29T14:30:00+09:00"),
        ("2026-03-29T14:30+09:00[Asia/Tokyo]", "2026-03-29T14:30:00+09:00"),
        ("2026-03-29 14:30", "2026-03-29T14:30:00+00:00"),
        ("2026-03-29", "2026-03-29T00:00:00+00:00"),
        ("20260329", "2026-03-29T00:00:00+00:00"),
        ("14:30", "2026-11-15T14:30:00+00:00"),
        ("Sun, 29 Mar 2026 14:30:00 +0200", "2026-03-29T14:30:00+02:00"),
        ("@0", "1970-01-01T00:00:00+00:00"),
        ("1774787400", "2026-03-29T12:30:00+00:00"),
        ("1774787400000", "2026-03-29T12:30:00+00:00"),
    ] {
        check(json!({ "action": "convert", "time": time }), expected).await;
    }
}

#[tokio::test]
async fn converts_between_zones() {
    fn convert(time: &str, zone: &str, to_zone: &str) -> Value {
        json!({ "action": "convert", "time": time, "timezone": zone, "to_timezone": to_zone })
    }
    check(convert("2026-07-01 12:00", "Europe/Paris", "Asia/Tokyo"), "2026-07-01T19:00:00+09:00").await;
    check(convert("2026-07-01T12:00Z", "Europe/Paris", "+05:30"), "2026-07-01T17:30:00+05:30").await;
    let shown = json!({ "action": "convert", "time": "2026-07-01T12:00Z", "timezone": "europe/paris" });
    check(shown, "2026-07-01T14:00:00+02:00").await;
}

#[tokio::test]
async fn east_of_utc_is_plus() {
    for zone in ["+2", "+02", "+02:00", "UTC+2", "gmt+02:00"] {
        check(json!({ "action": "now", "timezone": zone }), "2026-11-15T10:30:00+02:00").await;
    }
    check(json!({ "action": "now", "timezone": "UTC-3:30" }), "2026-11-15T05:00:00-03:30").await;
}

#[tokio::test]
async fn adds_by_the_calendar() {
    fn add(time: &str, span: &str) -> Value {
        json!({ "action": "add", "time": time, "span": span, "timezone": "Europe/Paris" })
    }
    for (time, span, expected) in [
        ("2026-01-31", "1 month", "2026-02-28T00:00:00+01:00"),
        ("2024-02-29", "P1Y", "2025-02-28T00:00:00+01:00"),
        ("2026-03-31", "-1 month", "2026-02-28T00:00:00+01:00"),
        ("2026-03-31", "2 days ago", "2026-03-29T00:00:00+01:00"),
        // Over the change of clocks, a day keeps the time of day and 24 hours do not.
        ("2026-03-28 12:00", "1 day", "2026-03-29T12:00:00+02:00"),
        ("2026-03-28 12:00", "24 hours", "2026-03-29T13:00:00+02:00"),
        ("2026-03-28 12:00", "1 month 2 days 3h", "2026-04-30T15:00:00+02:00"),
    ] {
        check(add(time, span), expected).await;
    }
    check(json!({ "action": "add", "span": "1 week" }), "2026-11-22T08:30:00+00:00").await;
}

#[tokio::test]
async fn measures_both_ways() {
    let between = |time: &str, until: &str| json!({ "action": "difference", "time": time, "until": until });
    let output = run(between("2025-01-31", "2026-03-29 06:00")).await.unwrap();
    insta::assert_snapshot!(output.model_text(), @"
    2026-03-29T06:00:00+00:00 is 1 year, 1 month, 29 days, 6 hours after 2025-01-31T00:00:00+00:00
    in days: 422 days, 6 hours
    in seconds: 36482400
    ");
    insta::assert_json_snapshot!(output.details, @r#"
    {
      "seconds": 36482400,
      "span": "P1Y1M29DT6H",
      "time": "2025-01-31T00:00:00+00:00",
      "until": "2026-03-29T06:00:00+00:00"
    }
    "#);
    insta::assert_snapshot!(text(run(between("2026-01-02", "2026-01-01T23:00:00+05:00")).await), @"
    2026-01-01T18:00:00+00:00 is 6 hours before 2026-01-02T00:00:00+00:00
    in days: 6 hours
    in seconds: 21600
    ");
    insta::assert_snapshot!(text(run(between("now", "now")).await), @"
    2026-11-15T08:30:00+00:00 is 0 seconds after 2026-11-15T08:30:00+00:00
    in days: 0 seconds
    in seconds: 0
    ");
}

#[tokio::test]
async fn says_when_a_time_of_day_occurs_twice_or_never() {
    let paris = |time: &str| json!({ "action": "convert", "time": time, "timezone": "Europe/Paris" });
    insta::assert_snapshot!(text(run(paris("2026-03-29 02:30")).await), @"
    2026-03-29T03:30:00+02:00
    Sunday, week 2026-W13, day 88 of 365
    Europe/Paris, CEST, +02:00, daylight saving time
    the next change of clocks gives 2026-10-25T02:00:00+01:00
    note: 2026-03-29T02:30:00 does not exist, as clocks go forward; a later one was taken
    ");
    insta::assert_snapshot!(text(run(paris("2026-10-25 02:30")).await), @"
    2026-10-25T02:30:00+02:00
    Sunday, week 2026-W43, day 298 of 365
    Europe/Paris, CEST, +02:00, daylight saving time
    the next change of clocks gives 2026-10-25T02:00:00+01:00
    note: 2026-10-25T02:30:00 occurs twice, as clocks go back; the first was taken
    ");
}

#[tokio::test]
async fn writes_as_asked() {
    for (format, expected) in [
        ("rfc3339", "2026-11-15T08:30:00+00:00"),
        ("rfc2822", "Sun, 15 Nov 2026 08:30:00 +0000"),
        ("unix", "1794731400"),
        ("%A %d %B %Y, %H:%M %Z", "Sunday 15 November 2026, 08:30 UTC"),
    ] {
        check(json!({ "action": "now", "format": format }), expected).await;
    }
}

#[tokio::test]
async fn a_zone_without_changes_tells_of_none() {
    let details = run(json!({ "action": "now", "timezone": "Asia/Tokyo" })).await.unwrap().details.unwrap();
    assert_eq!(details["next_change"], Value::Null);
    assert_eq!(details["daylight_saving"], false);
}

#[tokio::test]
async fn errors_say_what_to_try() {
    let mut told = String::new();
    for args in [
        json!({ "action": "now", "timezone": "Europe/Pariss" }),
        json!({ "action": "now", "timezone": "New York" }),
        json!({ "action": "now", "timezone": "Tokio" }),
        json!({ "action": "now", "timezone": "the moon" }),
        json!({ "action": "now", "timezone": "" }),
        json!({ "action": "now", "timezone": "EST5EDT,M3.2.0,M11.1.0" }),
        json!({ "action": "now", "span": "1 day" }),
        json!({ "action": "now", "format": "iso" }),
        json!({ "action": "now", "format": "%Y %!" }),
        json!({ "action": "now", "format": "%999999Y" }),
        json!({ "action": "convert" }),
        json!({ "action": "convert", "time": "next friday" }),
        json!({ "action": "convert", "time": "2026-02-30" }),
        json!({ "action": "convert", "time": "2026-03-29T14:30[Asia/Tokio]" }),
        json!({ "action": "convert", "time": "2026-03-29T14:30+01:00[Asia/Tokyo]" }),
        json!({ "action": "convert", "time": "99999999999999999999" }),
        json!({ "action": "add" }),
        json!({ "action": "add", "span": "a while" }),
        json!({ "action": "add", "span": "19000 years" }),
        json!({ "action": "difference" }),
    ] {
        told.push_str(&failure(run(args).await, ErrorKind::Invalid));
        told.push('\n');
    }
    insta::assert_snapshot!(told, @"
    `Europe/Pariss` is not a time zone; did you mean `Europe/Paris`?
    `New York` is not a time zone; did you mean `America/New_York`?
    `Tokio` is not a time zone; did you mean `Asia/Tokyo`?
    `the moon` is not a time zone; use an IANA name such as `Europe/Paris` or an offset such as `+02:00`
    `` is not a time zone; use an IANA name such as `Europe/Paris` or an offset such as `+02:00`
    `EST5EDT,M3.2.0,M11.1.0` is not a time zone; use an IANA name such as `Europe/Paris` or an offset such as `+02:00`
    action `now` takes no `span`; leave it out or choose another action
    `iso` is not a format; use `rfc3339`, `rfc2822`, `unix` or strftime such as `%Y-%m-%d %H:%M`
    the time cannot be written in this format: strftime formatting failed: found unrecognized specifier directive `!`; use `rfc3339` or strftime such as `%Y-%m-%d %H:%M`
    the time cannot be written in this format: strftime formatting failed: parsed width is too big, max is 255; use `rfc3339` or strftime such as `%Y-%m-%d %H:%M`
    action `convert` needs `time`
    `next friday` cannot be read as a time: failed to parse four digit integer as year: invalid digit, expected 0-9 but got n; write it like `2026-03-29T14:30:00+02:00` or `2026-03-29 14:30`, or use action `add`
    `2026-02-30` cannot be read as a time: parsed date is not valid: parameter 'day' for `2026-02` is invalid, must be in range `1..=28`; write it like `2026-03-29T14:30:00+02:00` or `2026-03-29 14:30`, or use action `add`
    `Asia/Tokio` is not a time zone; did you mean `Asia/Tokyo`?
    `2026-03-29T14:30+01:00[Asia/Tokyo]` cannot be read as a time: datetime could not resolve to a timestamp since `reject` conflict resolution was chosen, and because datetime has offset `+01`, but the time zone `Asia/Tokyo` for the given datetime unambiguously has offset `+09`; write it like `2026-03-29T14:30:00+02:00` or `2026-03-29 14:30`, or use action `add`
    `99999999999999999999` cannot be read as a time: failed to parse two digit integer as month: parameter 'month' is not in the required range of 1..=12; write it like `2026-03-29T14:30:00+02:00` or `2026-03-29 14:30`, or use action `add`
    action `add` needs `span`
    `a while` is not a time span; write it like `1 month 2 days`, `-90 minutes` or `P1DT12H`
    the result is out of range; stay within the years -9999 to 9999
    action `difference` needs `until`
    ");
}

#[tokio::test]
async fn holds_at_the_ends_of_the_calendar() {
    let (first, last) = ("-009999-01-02T01:59:59Z", "9999-12-30T22:00:00Z");
    for zone in ["UTC", "Pacific/Kiritimati", "Pacific/Niue", "+25", "-25", "Europe/Paris"] {
        for time in [first, last] {
            run(json!({ "action": "convert", "time": time, "timezone": zone })).await.unwrap();
        }
        run(json!({ "action": "difference", "time": first, "until": last, "timezone": zone })).await.unwrap();
    }
}

#[test]
fn spec() {
    insta::assert_snapshot!(schema::<DateTime>(), @r#"
    {
      "additionalProperties": false,
      "properties": {
        "action": {
          "description": "`convert` shows `time` in `to_timezone`; `add` adds `span` to `time`; `difference` goes from `time` to\n`until`.",
          "enum": [
            "now",
            "convert",
            "add",
            "difference"
          ],
          "type": "string"
        },
        "format": {
          "description": "`rfc3339`, `rfc2822`, `unix` or strftime such as `%A %d %B %Y`.",
          "type": [
            "string",
            "null"
          ]
        },
        "span": {
          "description": "Such as `1 month 2 days`, `-90 minutes` or `P1Y`; for `add`.",
          "type": [
            "string",
            "null"
          ]
        },
        "time": {
          "description": "RFC 3339, RFC 2822, `2026-03-29 14:30`, `2026-03-29`, `14:30` or Unix seconds; in `timezone` if it has\nno offset. Default: now.",
          "type": [
            "string",
            "null"
          ]
        },
        "timezone": {
          "description": "IANA name such as `Europe/Paris`, or offset such as `+05:30`.",
          "type": [
            "string",
            "null"
          ]
        },
        "to_timezone": {
          "description": "For `convert`.",
          "type": [
            "string",
            "null"
          ]
        },
        "until": {
          "description": "As `time`; for `difference`.",
          "type": [
            "string",
            "null"
          ]
        }
      },
      "type": "object"
    }
    "#);
}
