//! Turns a file into a script, or reports the line at fault.

use std::ops::Range;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use claw_core::port::Fault;
use regex::Regex;
use serde::Deserialize as _;
use toml::Spanned;

use super::file::{self, Failure, File};
use super::matching::When;
use super::template::{ArgsTemplate, Template};
use super::{Model, Pace, Script, ScriptError, Turn, Written};

/// An error and its byte range.
type Wrong = (Range<usize>, String);

pub(super) fn script(name: &str, text: &str) -> Result<Script, ScriptError> {
    let refuse = |(span, reason): Wrong| {
        let line = text.get(..span.start).map(|before| before.matches('\n').count() + 1);
        ScriptError { script: name.into(), line, reason }
    };
    let file =
        toml::Deserializer::parse(text).and_then(File::deserialize).map_err(|error| match error.span() {
            Some(span) => refuse((span, error.message().to_owned())),
            None => ScriptError { script: name.into(), line: None, reason: error.message().to_owned() },
        })?;
    if file.turn.is_empty() {
        let reason = "has no `[[turn]]`; a script has at least one".to_owned();
        return Err(ScriptError { script: name.into(), line: None, reason });
    }
    if *file.piece.get_ref() == 0 {
        return Err(refuse((file.piece.span(), "a piece has at least 1 character".into())));
    }
    let pace = Pace { piece: *file.piece.get_ref(), delay: Duration::from_millis(file.delay_ms) };
    let turns = file.turn.into_iter().map(|written| turn(written, pace)).collect::<Result<_, _>>();
    let file::Model { context, output, images, prices } = file.model;
    Ok(Script {
        name: name.into(),
        about: Model { context, output, images, prices },
        turns: turns.map_err(refuse)?,
    })
}

fn turn(written: Spanned<file::Turn>, pace: Pace) -> Result<Turn, Wrong> {
    let span = written.span();
    let file::Turn { when: conditions, steps, stop, tokens } = written.into_inner();
    let when = match conditions {
        Some(conditions) => when(conditions)?,
        None => When::default(),
    };
    if steps.is_empty() {
        return Err((span, "`do` is empty; give at least one step, such as `{ say = \"...\" }`".into()));
    }
    let last = steps.len() - 1;
    let steps = steps.into_iter().enumerate().map(|(at, written)| {
        let span = written.span();
        let (step, ends) =
            step(written.into_inner(), pace, &when).map_err(|reason| (span.clone(), reason))?;
        match ends {
            Some(what) if at != last => Err((span, format!("nothing can follow `{what}`"))),
            _ => Ok(step),
        }
    });
    let steps = steps.collect::<Result<_, _>>()?;
    Ok(Turn { when, steps, stop, tokens: tokens.map(Into::into), fitted: AtomicU32::new(0) })
}

fn when(written: file::When) -> Result<When, Wrong> {
    let regex = |text: Option<Spanned<String>>| {
        let compiled = text.map(|text| {
            Regex::new(text.get_ref())
                .map_err(|error| (text.span(), format!("not a regular expression: {error}")))
        });
        compiled.transpose()
    };
    let counted = |number: Option<Spanned<u32>>, key: &str| match number {
        Some(number) if *number.get_ref() == 0 => Err((number.span(), format!("`{key}` counts from 1"))),
        number => Ok(number.map(Spanned::into_inner)),
    };
    Ok(When {
        said: written.said,
        said_matches: regex(written.said_matches)?,
        system: written.system,
        result: written.result,
        result_matches: regex(written.result_matches)?,
        result_of: written.result_of,
        result_failed: written.result_failed,
        offered: written.offered,
        not_offered: written.not_offered,
        may_call: written.may_call,
        image: written.image,
        round: written.round,
        time: counted(written.time, "time")?,
        first: counted(written.first, "first")?,
    })
}

/// The further keys that each kind of step takes.
const WITH: &[(&str, &[&str])] = &[
    ("say", &["cut", "piece", "delay_ms"]),
    ("think", &["cut", "piece", "delay_ms"]),
    ("call", &["args", "args_text", "id", "cut", "piece", "delay_ms"]),
    ("wait_ms", &[]),
    ("fail", &["retry_after_ms", "message"]),
    ("hang", &[]),
];

/// The step, and the key that ends the answer there, if any.
fn step(written: file::Step, pace: Pace, when: &When) -> Result<(Written, Option<&'static str>), String> {
    check_keys(&written)?;
    if written.piece == Some(0) {
        return Err("a piece has at least 1 character".into());
    }
    let pace = Pace {
        piece: written.piece.unwrap_or(pace.piece),
        delay: written.delay_ms.map_or(pace.delay, Duration::from_millis),
    };
    let cut = written.cut;
    let ends = cut.map(|_| "cut");
    if let Some(text) = &written.say {
        return Ok((Written::Say { text: Template::parse(text, when)?, pace, cut }, ends));
    }
    if let Some(text) = &written.think {
        return Ok((Written::Think { text: Template::parse(text, when)?, pace, cut }, ends));
    }
    if let Some(tool) = &written.call {
        let args = match (written.args, &written.args_text) {
            (Some(_), Some(_)) => return Err("`args` and `args_text` cannot be combined".into()),
            (None, Some(text)) => ArgsTemplate::Text(Template::parse(text, when)?),
            (args, None) => ArgsTemplate::table(args.unwrap_or_default(), when)?,
        };
        let tool = Template::parse(tool, when)?;
        return Ok((Written::Call { tool, args, id: written.id, pace, cut }, ends));
    }
    if let Some(time) = written.wait_ms {
        return Ok((Written::Wait(Duration::from_millis(time)), None));
    }
    if let Some(failure) = written.fail {
        let retry_after = written.retry_after_ms.map(Duration::from_millis);
        let fault = fault(failure, retry_after)?;
        let message = written.message.as_deref().unwrap_or("the script says so");
        return Ok((Written::Fail { fault, message: Template::parse(message, when)? }, Some("fail")));
    }
    Ok((Written::Hang, Some("hang")))
}

/// Refuses a step of no kind or of several, and keys that do not belong to it.
fn check_keys(written: &file::Step) -> Result<(), String> {
    let given = [
        ("say", written.say.is_some()),
        ("think", written.think.is_some()),
        ("call", written.call.is_some()),
        ("wait_ms", written.wait_ms.is_some()),
        ("fail", written.fail.is_some()),
        ("hang", written.hang.is_some()),
        ("args", written.args.is_some()),
        ("args_text", written.args_text.is_some()),
        ("id", written.id.is_some()),
        ("cut", written.cut.is_some()),
        ("piece", written.piece.is_some()),
        ("delay_ms", written.delay_ms.is_some()),
        ("retry_after_ms", written.retry_after_ms.is_some()),
        ("message", written.message.is_some()),
    ];
    let given = || given.iter().filter(|(_, is)| *is).map(|(key, _)| *key);
    let mut kinds = WITH.iter().filter(|(kind, _)| given().any(|key| key == *kind));
    let (Some((kind, with)), None) = (kinds.next(), kinds.next()) else {
        let names = WITH.iter().map(|(kind, _)| format!("`{kind}`")).collect::<Vec<_>>().join(", ");
        return Err(format!("a step has exactly one of {names}"));
    };
    if written.hang == Some(false) {
        return Err("`hang = false` does nothing; leave the step out".into());
    }
    match given().find(|key| key != kind && !with.contains(key)) {
        Some(key) => Err(format!("`{key}` cannot be combined with `{kind}`")),
        None => Ok(()),
    }
}

fn fault(failure: Failure, retry_after: Option<Duration>) -> Result<Fault, String> {
    if retry_after.is_some() && !matches!(failure, Failure::RateLimited) {
        return Err("`retry_after_ms` needs `fail = \"rate_limited\"`".into());
    }
    Ok(match failure {
        Failure::RateLimited => Fault::RateLimited { retry_after },
        Failure::Unavailable => Fault::Unavailable,
        Failure::Unauthorised => Fault::Unauthorised,
        Failure::TooLong => Fault::TooLong,
        Failure::BadRequest => Fault::BadRequest,
        Failure::Connection => Fault::Connection,
        Failure::TimedOut => Fault::TimedOut,
        Failure::Garbled => Fault::Garbled,
    })
}
