//! Asks the person at the terminal for values, field by field.

use std::io::{self, BufRead, Write};

use serde_json::{Map, Value};

use super::{ATTEMPTS, ApprovalAnswer, PromptInput, ValuesCheck};
use crate::visible;

/// Asks for the values, or for consent where there are none to give. An end of the input is no answer.
pub(super) fn ask(
    wanted: &PromptInput,
    check: &ValuesCheck,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> io::Result<ApprovalAnswer> {
    let fields = match wanted {
        PromptInput::Form(schema) => schema.get("properties").and_then(Value::as_object).cloned(),
        PromptInput::Page => None,
    };
    let fields = fields.unwrap_or_default();
    let choice = match (wanted, fields.is_empty()) {
        (PromptInput::Page, _) => "[y]es, I visit the page / [n]o / [d]ismiss",
        (_, true) => "[y]es / [n]o / [d]ismiss",
        (_, false) => "[g]ive the values / [n]o / [d]ismiss",
    };
    let required = required(wanted);
    for _ in 0..ATTEMPTS {
        write!(output, "{choice}: ")?;
        output.flush()?;
        let Some(line) = read(input)? else { return Ok(ApprovalAnswer::Dismissed) };
        match line.to_lowercase().as_str() {
            "n" | "no" => return Ok(ApprovalAnswer::No(None)),
            "d" | "dismiss" => return Ok(ApprovalAnswer::Dismissed),
            "y" | "yes" if fields.is_empty() => return Ok(ApprovalAnswer::Values(Map::new())),
            "g" | "give" | "y" | "yes" => {
                let mut values = Map::new();
                for (name, field) in &fields {
                    let hint = hint(field, required.contains(name));
                    write!(output, "  {} ({}): ", visible(name), visible(&hint))?;
                    output.flush()?;
                    let Some(typed) = read(input)? else { return Ok(ApprovalAnswer::Dismissed) };
                    if !typed.is_empty() {
                        values.insert(name.clone(), value(field, &typed));
                    }
                }
                match check(&values) {
                    Ok(()) => return Ok(ApprovalAnswer::Values(values)),
                    Err(why) => writeln!(output, "{}", visible(&why))?,
                }
            }
            _ => writeln!(output, "please answer with one of the letters")?,
        }
    }
    writeln!(output, "taken as no answer")?;
    Ok(ApprovalAnswer::Dismissed)
}

fn read(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    Ok((input.read_line(&mut line)? > 0).then(|| line.trim().to_owned()))
}

fn required(wanted: &PromptInput) -> Vec<String> {
    let PromptInput::Form(schema) = wanted else { return Vec::new() };
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The kind of a field, its choices and what happens if nothing is typed.
fn hint(field: &Value, is_required: bool) -> String {
    let kind = field.get("format").or_else(|| field.get("type")).and_then(Value::as_str).unwrap_or("value");
    let mut parts = vec![kind.to_owned()];
    let choices = choices(field);
    if !choices.is_empty() {
        parts.push(format!("one of {}", choices.join(", ")));
    }
    match field.get("default") {
        Some(default) => parts.push(format!("empty for {default}")),
        None if is_required => parts.push("required".to_owned()),
        None => parts.push("may be empty".to_owned()),
    }
    parts.join("; ")
}

fn choices(field: &Value) -> Vec<String> {
    let of = field.get("items").unwrap_or(field);
    let list = |key: &str| of.get(key).and_then(Value::as_array).into_iter().flatten();
    let plain = list("enum").filter_map(Value::as_str).map(str::to_owned);
    let named = list("oneOf").chain(list("anyOf")).filter_map(|choice| {
        let value = choice.get("const").and_then(Value::as_str)?;
        Some(match choice.get("title").and_then(Value::as_str) {
            Some(title) => format!("{value} ({title})"),
            None => value.to_owned(),
        })
    });
    plain.chain(named).collect()
}

/// A typed text as the field wants it; several choices are separated by commas.
fn value(field: &Value, typed: &str) -> Value {
    match field.get("type").and_then(Value::as_str) {
        Some("array") => typed.split(',').map(|part| Value::from(part.trim())).collect(),
        Some("boolean") => match typed.to_lowercase().as_str() {
            "y" | "yes" | "true" => Value::Bool(true),
            "n" | "no" | "false" => Value::Bool(false),
            _ => Value::from(typed),
        },
        _ => Value::from(typed),
    }
}
