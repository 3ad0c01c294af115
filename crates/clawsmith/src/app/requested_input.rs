//! Values for a server's request for input: defaults filled in, checked against its schema, and looked at for secrets.

use claw_core::port::{InputForm, InputRequest};
use claw_core::store::Approval;
use claw_registry::CallScrubber;
use claw_schema::validate::Validator;
use serde_json::map::Entry;
use serde_json::{Map, Value};

use super::{App, Error};

/// Values that a person gives to a request for input.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InputValues {
    /// The values by the names of their fields. Texts become numbers and the like where the schema wants those.
    pub values: Map<String, Value>,
    /// Values that look like secrets are sent all the same.
    pub allow_secrets: bool,
}

impl InputValues {
    /// Values written as `NAME=VALUE`; a name that is given several times has a list.
    pub fn of_pairs(pairs: &[String]) -> Result<Self, Error> {
        let mut values = Map::new();
        for pair in pairs {
            let Some((name, value)) = pair.split_once('=') else {
                return Err(Error::invalid(format!("`{pair}` names no field")).hint("write NAME=VALUE"));
            };
            let value = Value::from(value);
            match values.entry(name) {
                Entry::Vacant(place) => drop(place.insert(value)),
                Entry::Occupied(mut place) => match place.get_mut() {
                    Value::Array(several) => several.push(value),
                    first => *first = Value::Array(vec![first.take(), value]),
                },
            }
        }
        Ok(Self { values, allow_secrets: false })
    }
}

impl App {
    /// Returns the values as they are sent to the server. Refused are values that do not fit the schema, and values that
    /// look like secrets unless the person insists.
    pub fn input_values(&self, approval: &Approval, given: InputValues) -> Result<Map<String, Value>, Error> {
        let Some(input) = &approval.request.input else {
            return Err(Error::invalid(format!("approval `{}` takes no values", approval.id))
                .hint("approve or deny it"));
        };
        let scrubber = self.setup.scrubbers()?.for_tenant(self.tenant());
        checked(input, given, &scrubber)
    }
}

fn checked(
    input: &InputRequest,
    given: InputValues,
    scrubber: &CallScrubber,
) -> Result<Map<String, Value>, Error> {
    let InputValues { mut values, allow_secrets } = given;
    let InputForm::Form { schema } = &input.form else {
        return match values.is_empty() {
            true => Ok(values),
            false => Err(Error::invalid("this request asks to visit a page; it takes no values")),
        };
    };
    let fields = schema.get("properties").and_then(Value::as_object);
    for (name, field) in fields.into_iter().flatten() {
        if let (false, Some(default)) = (values.contains_key(name), field.get("default")) {
            values.insert(name.clone(), default.clone());
        }
    }
    // A server gets the fields that it asked for, and nothing besides.
    if let Some(name) = values.keys().find(|name| fields.is_none_or(|fields| !fields.contains_key(*name))) {
        let known: Vec<_> = fields.into_iter().flatten().map(|(name, _)| format!("`{name}`")).collect();
        return Err(Error::invalid(format!("there is no field `{name}`"))
            .hint(format!("the fields are {}", known.join(", "))));
    }
    let validator = Validator::compile(schema).map_err(|error| Error::invalid(error.to_string()))?;
    let checked = validator.check(Value::Object(values), &|args| scrubber.json(args));
    let Value::Object(values) = checked.map_err(|error| Error::invalid(error.to_string()))?.args else {
        return Err(Error::invalid("the values must be an object"));
    };
    for (name, value) in &values {
        let (Some(field), Some(text)) = (fields.and_then(|fields| fields.get(name)), value.as_str()) else {
            continue;
        };
        if let Some(format) = field.get("format").and_then(Value::as_str)
            && !fits(format, text)
        {
            return Err(Error::invalid(format!("`{name}` is not a valid {format}")));
        }
        if !allow_secrets && scrubber.text(text) != text {
            return Err(Error::invalid(format!(
                "the value of `{name}` looks like a secret, and was not sent"
            ))
            .hint(format!("give it only if you trust the MCP server `{}` with it", input.server)));
        }
    }
    Ok(values)
}

/// Returns whether a text has one of the formats that requests for input know; other formats take any text.
fn fits(format: &str, text: &str) -> bool {
    let digits =
        |text: &str, count: usize| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_date = |text: &str| {
        let parts: Vec<&str> = text.split('-').collect();
        let [year, month, day] = parts[..] else { return false };
        let within =
            |text: &str, most: u32| text.parse().is_ok_and(|number: u32| (1..=most).contains(&number));
        digits(year, 4) && digits(month, 2) && digits(day, 2) && within(month, 12) && within(day, 31)
    };
    match format {
        "email" => text.split_once('@').is_some_and(|(name, host)| {
            !name.is_empty()
                && host.contains('.')
                && !host.contains('@')
                && !text.contains(char::is_whitespace)
        }),
        "uri" => text.split_once(':').is_some_and(|(scheme, rest)| {
            let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
            is_scheme && !rest.is_empty() && !text.contains(char::is_whitespace)
        }),
        "date" => is_date(text),
        "date-time" => text.split_once(['T', 't', ' ']).is_some_and(|(date, time)| {
            is_date(date) && time.len() >= 8 && time.as_bytes().get(2) == Some(&b':')
        }),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use claw_registry::Scrubbers;
    use serde_json::json;

    use super::*;

    fn give(values: &Value, allow_secrets: bool) -> Result<Value, String> {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "maxLength": 100 },
                "mail": { "type": "string", "format": "email" },
                "when": { "type": "string", "format": "date" },
                "count": { "type": "integer", "minimum": 1, "default": 2 },
                "gift": { "type": "boolean" },
                "size": { "type": "string", "oneOf": [{ "const": "s", "title": "Small" }, { "const": "m", "title": "Medium" }] },
            },
            "required": ["name"],
        });
        let input =
            InputRequest { server: "shop".into(), message: "?".into(), form: InputForm::Form { schema } };
        let given = InputValues { values: values.as_object().cloned().unwrap(), allow_secrets };
        let scrubber = Scrubbers::default().for_tenant(&claw_core::TenantId::main());
        checked(&input, given, &scrubber).map(Value::Object).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn values_are_completed_and_checked() {
        assert_eq!(give(&json!({ "name": "ann" }), false), Ok(json!({ "name": "ann", "count": 2 })));
        let typed = json!({ "name": "7", "count": "3", "gift": "true", "size": "m", "mail": "a@b.example", "when": "2026-02-28" });
        let sent = json!({ "name": "7", "count": 3, "gift": true, "size": "m", "mail": "a@b.example", "when": "2026-02-28" });
        assert_eq!(give(&typed, false), Ok(sent));
        for (wrong, why) in [
            (json!({}), "name"),
            (json!({ "name": "a", "count": 0 }), "count"),
            (json!({ "name": "a", "size": "xl" }), "size"),
            (json!({ "name": "a", "mail": "nobody" }), "`mail` is not a valid email"),
            (json!({ "name": "a", "when": "2026-13-01" }), "`when` is not a valid date"),
            (json!({ "name": "a", "more": 1 }), "there is no field `more`"),
        ] {
            let error = give(&wrong, false).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_value_that_looks_like_a_secret_is_sent_only_if_the_person_insists() {
        let secret = json!({ "name": format!("ghp_{}", "aB3dE5fG7h".repeat(4).split_at(36).0) });
        assert!(give(&secret, false).unwrap_err().contains("looks like a secret"));
        assert!(give(&secret, true).is_ok());
    }
}
