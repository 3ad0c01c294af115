//! Interprets the errors of providers.

use std::time::Duration;

use claw_core::port::Fault;
use claw_net::NetError;
use jiff::Timestamp;
use serde_json::Value;

/// A failure, not yet attributed to a provider and model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) fault: Fault,
    pub(crate) message: String,
}

impl Trouble {
    pub(crate) fn new(fault: Fault, message: impl Into<String>) -> Self {
        Self { fault, message: message.into() }
    }

    /// The server violated its protocol.
    pub(crate) fn garbled(message: impl Into<String>) -> Self {
        Self::new(Fault::Garbled, message)
    }
}

impl From<NetError> for Trouble {
    fn from(error: NetError) -> Self {
        let fault = match &error {
            NetError::TimedOut { .. } => Fault::TimedOut,
            NetError::Garbled { .. } | NetError::TooLarge { .. } | NetError::Undecodable { .. } => {
                Fault::Garbled
            }
            NetError::Connection { .. } | NetError::NoAddress { .. } => Fault::Connection,
            NetError::NotPublic { .. }
            | NetError::OwnAddress { .. }
            | NetError::BadUrl { .. }
            | NetError::NoClient { .. } => Fault::NotSetUp,
            NetError::Redirect { .. } | NetError::Gated { .. } => Fault::BadRequest,
        };
        Self::new(fault, error.to_string())
    }
}

/// Interprets a status other than success.
pub(crate) fn of_status(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Trouble {
    let text = String::from_utf8_lossy(body);
    let error = serde_json::from_str::<Value>(&text).ok();
    let said = error.as_ref().and_then(message_of).unwrap_or_else(|| beginning(&text));
    let retry_after = retry_after.or_else(|| error.as_ref().and_then(retry_delay));
    let fault = match status {
        401 | 403 => Fault::Unauthorised,
        404 => Fault::NotSetUp,
        408 => Fault::TimedOut,
        402 | 429 => Fault::RateLimited { retry_after },
        413 => Fault::TooLong,
        500.. => Fault::Unavailable,
        _ => of_words(&said).unwrap_or(Fault::BadRequest),
    };
    // A conversation that is too long is refused with various statuses.
    let fault = match fault {
        Fault::Unavailable if of_words(&said) == Some(Fault::TooLong) => Fault::TooLong,
        fault => fault,
    };
    let advice = match fault {
        Fault::Unauthorised => "; check the key, and whether it may use this model",
        Fault::NotSetUp => "; check the model's name and `base_url`",
        _ if (300..400).contains(&status) => "; check `base_url`: redirects are not followed",
        _ => "",
    };
    let said = if said.is_empty() { "no details".to_owned() } else { said };
    Trouble::new(fault, format!("status {status}: {said}{advice}"))
}

/// Interprets an error in the middle of a stream.
pub(crate) fn of_error(error: &Value) -> Trouble {
    let said = message_of(error).unwrap_or_else(|| beginning(&error.to_string()));
    let inner = error.get("error").unwrap_or(error);
    let words = ["type", "code", "status"].map(|key| inner.get(key));
    let status = words.iter().flatten().find_map(|word| word.as_u64()).and_then(|n| u16::try_from(n).ok());
    if let Some(status @ 400..) = status {
        return of_status(status, None, error.to_string().as_bytes());
    }
    let kind =
        words.iter().flatten().filter_map(|word| word.as_str()).collect::<Vec<_>>().join(" ").to_lowercase();
    let fault = if kind.contains("rate_limit") || kind.contains("quota") || kind.contains("exhausted") {
        Fault::RateLimited { retry_after: None }
    } else if kind.contains("auth") || kind.contains("permission") {
        Fault::Unauthorised
    } else if kind.contains("invalid") || kind.contains("not_found") {
        of_words(&said).unwrap_or(Fault::BadRequest)
    } else {
        of_words(&said).unwrap_or(Fault::Unavailable)
    };
    Trouble::new(fault, format!("in the middle of its answer: {said}"))
}

/// Recognises failures that providers tell only by words.
fn of_words(said: &str) -> Option<Fault> {
    const TOO_LONG: [&str; 9] = [
        "context length",
        "context_length",
        "context window",
        "context size",
        "maximum context",
        "prompt is too long",
        "too many tokens",
        "input token count",
        "exceeds the maximum number of tokens",
    ];
    const WRONG_KEY: [&str; 3] = ["api key not valid", "invalid api key", "incorrect api key"];
    let said = said.to_lowercase();
    if TOO_LONG.iter().any(|words| said.contains(words)) {
        return Some(Fault::TooLong);
    }
    WRONG_KEY.iter().any(|words| said.contains(words)).then_some(Fault::Unauthorised)
}

/// The message in an error's body, from the places where providers put it.
fn message_of(body: &Value) -> Option<String> {
    let body = body.as_array().and_then(|list| list.first()).unwrap_or(body);
    let error = body.get("error").unwrap_or(body);
    let message = error.get("message").or_else(|| body.get("message")).or_else(|| body.get("detail"));
    let message = message.or(Some(error))?.as_str()?;
    Some(beginning(message))
}

/// The retry delay in an error of Google.
fn retry_delay(body: &Value) -> Option<Duration> {
    let body = body.as_array().and_then(|list| list.first()).unwrap_or(body);
    let details = body.get("error")?.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    seconds(delay.strip_suffix('s')?)
}

/// The retry delay in a server's headers: milliseconds, seconds, or a point in time.
pub(crate) fn retry_after(
    header: impl Fn(&'static str) -> Option<String>,
    now: Timestamp,
) -> Option<Duration> {
    if let Some(millis) = header("retry-after-ms").and_then(|value| value.trim().parse::<f64>().ok()) {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let value = header("retry-after")?;
    seconds(value.trim()).or_else(|| {
        let at = jiff::fmt::rfc2822::parse(value.trim()).ok()?.timestamp();
        Some(Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO))
    })
}

fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

/// The beginning of a text: bodies may be whole web pages.
fn beginning(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(400) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests;
