//! The HTTP form of a custom tool: a URL and a body with placeholders.

use claw_core::store::CustomToolHttp;
use claw_core::tool::Origin;
use serde_json::{Map, Value};

use super::fill::{self, FillError};
use super::lexer::{self, Piece};
use super::parameters::Parameters;
use super::template::TemplateError;

/// Methods that a request may have.
const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE"];

/// A request with placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HttpTemplate {
    pub(super) method: String,
    pub(super) origin: Origin,
    url: Vec<Piece>,
    body: Option<Value>,
    parameters: Parameters,
}

/// A filled request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Filled {
    pub(super) url: String,
    pub(super) body: Option<Value>,
}

impl HttpTemplate {
    /// Reads a request whose placeholders are among the parameters of this schema.
    pub(super) fn read(http: &CustomToolHttp, schema: &Value) -> Result<Self, TemplateError> {
        let unreadable = |why: String| TemplateError::Unreadable(why);
        let method = http.method.to_ascii_uppercase();
        if !METHODS.contains(&method.as_str()) {
            let why = format!("`{}` is not among the methods {}", http.method, METHODS.join(", "));
            return Err(unreadable(why));
        }
        if method == "GET" && http.body.is_some() {
            return Err(unreadable("a GET request has no body".to_owned()));
        }
        let parameters = Parameters::read(schema);
        let url = lexer::split_plain(&http.url)?;
        always_there(&url, &parameters)?;
        let Some(Piece::Text(start)) = url.first() else {
            return Err(unreadable("the address must begin with `https://` and a host".to_owned()));
        };
        let more = url.len() > 1;
        let origin = origin(start, more).map_err(unreadable)?;
        if let Some(body) = &http.body {
            check_body(body, &parameters)?;
        }
        Ok(Self { method, origin, url, body: http.body.clone(), parameters })
    }

    /// Returns whether the request may change something at the server.
    pub(super) fn changes(&self) -> bool {
        self.method != "GET"
    }

    /// Fills address and body in one pass.
    pub(super) fn fill(&self, args: &Value) -> Result<Filled, FillError> {
        let mut url = String::new();
        for piece in &self.url {
            match piece {
                Piece::Text(text) => url.push_str(text),
                Piece::Slot(slot) => {
                    let missing = || FillError::Missing { key: slot.key.clone() };
                    let value = self.parameters.value(args, &slot.key).ok_or_else(missing)?;
                    url.push_str(&percent_encoded(&fill::text(value)));
                }
            }
        }
        let path = url.split(['?', '#']).next().unwrap_or_default();
        if path.split('/').any(is_dots) {
            return Err(FillError::Path);
        }
        let body = match &self.body {
            None => None,
            Some(body) => filled(body, &self.parameters, args)?,
        };
        Ok(Filled { url, body })
    }
}

/// The origin of a URL that begins with this text.
fn origin(start: &str, more: bool) -> Result<Origin, String> {
    let wrong = |why: &str| format!("the address {why}; write `https://host/path`");
    let (scheme, rest) = start.split_once("://").ok_or_else(|| wrong("has no scheme"))?;
    let standard = match scheme {
        "https" => 443,
        "http" => 80,
        _ => return Err(wrong("is neither `https` nor `http`")),
    };
    let end = rest.find(['/', '?', '#']);
    if end.is_none() && more {
        return Err(wrong("has a placeholder before its path"));
    }
    let authority = &rest[..end.unwrap_or(rest.len())];
    if authority.contains(['@', '\\']) || authority.contains(char::is_whitespace) {
        return Err(wrong("has a user name or spaces in its host"));
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !authority.ends_with(']') => {
            (host, port.parse().map_err(|_| wrong("has a port that is not a number"))?)
        }
        _ => (authority, standard),
    };
    match host.is_empty() {
        true => Err(wrong("has no host")),
        false => Ok(Origin { scheme: scheme.into(), host: host.to_ascii_lowercase().into(), port }),
    }
}

/// Checks that every placeholder of a URL always has a value.
fn always_there(pieces: &[Piece], parameters: &Parameters) -> Result<(), TemplateError> {
    for piece in pieces {
        let Piece::Slot(slot) = piece else { continue };
        let (key, at) = (slot.key.clone(), slot.at);
        let Some(parameter) = parameters.get(&key) else {
            let known = parameters.names().map(str::to_owned).collect();
            return Err(TemplateError::Unknown { at, key, known });
        };
        if parameter.list {
            return Err(TemplateError::List { at, key });
        }
        if !parameter.required && parameter.default.is_none() {
            return Err(TemplateError::Optional { at, key });
        }
    }
    Ok(())
}

fn check_body(body: &Value, parameters: &Parameters) -> Result<(), TemplateError> {
    match body {
        Value::String(text) => {
            let pieces = lexer::split_plain(text)?;
            match &pieces[..] {
                [Piece::Slot(slot)] => match parameters.get(&slot.key) {
                    Some(_) => Ok(()),
                    None => always_there(&pieces, parameters),
                },
                pieces => always_there(pieces, parameters),
            }
        }
        Value::Array(items) => items.iter().try_for_each(|item| check_body(item, parameters)),
        Value::Object(members) => members.values().try_for_each(|member| check_body(member, parameters)),
        _ => Ok(()),
    }
}

/// A body with its values; `None` if it is only a parameter without a value.
fn filled(body: &Value, parameters: &Parameters, args: &Value) -> Result<Option<Value>, FillError> {
    Ok(match body {
        Value::String(text) => {
            let pieces = lexer::split_plain(text).unwrap_or_else(|_| vec![Piece::Text(text.clone())]);
            if let [Piece::Slot(slot)] = &pieces[..] {
                return Ok(parameters.value(args, &slot.key).cloned());
            }
            let mut text = String::new();
            for piece in &pieces {
                match piece {
                    Piece::Text(plain) => text.push_str(plain),
                    Piece::Slot(slot) => {
                        let missing = || FillError::Missing { key: slot.key.clone() };
                        let value = parameters.value(args, &slot.key).ok_or_else(missing)?;
                        text.push_str(&fill::text(value));
                    }
                }
            }
            Some(Value::String(text))
        }
        Value::Array(items) => {
            let mut kept = Vec::with_capacity(items.len());
            for item in items {
                kept.extend(filled(item, parameters, args)?);
            }
            Some(Value::Array(kept))
        }
        Value::Object(members) => {
            let mut kept = Map::new();
            for (name, member) in members {
                if let Some(member) = filled(member, parameters, args)? {
                    kept.insert(name.clone(), member);
                }
            }
            Some(Value::Object(kept))
        }
        other => Some(other.clone()),
    })
}

/// Returns whether a path segment means `.` or `..`, in any encoding.
fn is_dots(segment: &str) -> bool {
    matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..")
}

fn percent_encoded(value: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte.into()),
            // Writing to a string cannot fail.
            _ => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    encoded
}
