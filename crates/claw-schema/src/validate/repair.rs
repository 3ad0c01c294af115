//! Repairs slips that can mean only one thing, and notes that.
//!
//! A value is changed only if its type cannot be right, a name only if no other field has it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::extent::{MAX_DEPTH, whole};
use super::shape::{Shape, Types, WORK};
use super::show::{ArgumentPath, Shown};
use super::whole::wants_integer;

/// Repairs that are listed one by one; the rest are summarised.
const MAX_NOTES: usize = 12;

/// Removes secrets from text that is quoted.
pub(super) type Redact<'a> = &'a dyn Fn(&Value) -> Value;

/// Repairs arguments and returns the repairs, in words for the model.
pub(super) fn repair(schema: &Value, args: &mut Value, redact: Redact<'_>) -> Vec<String> {
    let mut repair = Repair {
        root: schema,
        redact,
        place: ArgumentPath::default(),
        depth: 0,
        work: WORK,
        notes: Vec::new(),
        untold: 0,
    };
    let mut shape = Shape::of(schema, &[schema], &mut repair.work);
    shape.types = Types::OBJECT;
    if args.is_null() {
        *args = Value::Object(Map::new());
    }
    let shown = redact(args);
    repair.value(&shape, args, Shown::new(&shown));
    if repair.untold > 0 {
        repair.notes.push(format!("and {} more like these", repair.untold));
    }
    repair.notes
}

struct Repair<'a> {
    root: &'a Value,
    redact: Redact<'a>,
    place: ArgumentPath,
    depth: usize,
    /// Work that may still be spent. After that, nothing is repaired.
    work: usize,
    notes: Vec<String>,
    untold: usize,
}

impl<'a> Repair<'a> {
    fn value(&mut self, shape: &Shape<'a>, value: &mut Value, shown: Shown<'_>) {
        if self.depth > MAX_DEPTH {
            return;
        }
        let Some(better) = self.reread(shape, value) else { return self.inside(shape, value, shown) };
        if self.notes.len() == MAX_NOTES {
            self.untold += 1;
            *value = better;
            return self.inside(shape, value, Shown::NOTHING);
        }
        // A value that is secret in one form is not shown in the other: escapes in a text may have hidden it.
        let redacted = (self.redact)(&better);
        let (was, became) = match (shown.is(value), redacted == better) {
            (true, true) => (shown, Shown::new(&redacted)),
            (true, false) => (Shown::NOTHING, Shown::new(&redacted)),
            (false, _) => (shown, Shown::NOTHING),
        };
        self.note(&format!("{} was taken as {}", was.text(), became.text()));
        *value = better;
        self.inside(shape, value, became);
    }

    fn inside(&mut self, shape: &Shape<'a>, value: &mut Value, shown: Shown<'_>) {
        self.depth += 1;
        match value {
            Value::Object(fields) if shape.types.has(Types::OBJECT) => self.fields(shape, fields, shown),
            Value::Array(items) if shape.types.has(Types::ARRAY) => self.items(shape, items, shown),
            _ => {}
        }
        self.depth -= 1;
    }

    fn items(&mut self, shape: &Shape<'a>, items: &mut [Value], shown: Shown<'_>) {
        let shape = Shape::of(self.root, shape.items(), &mut self.work);
        for (index, item) in items.iter_mut().enumerate() {
            let back = self.place.enter_item(index);
            self.value(&shape, item, shown.item(index));
            self.place.leave(back);
        }
    }

    fn fields(&mut self, shape: &Shape<'a>, fields: &mut Map<String, Value>, shown: Shown<'_>) {
        self.work = self.work.saturating_sub(shape.properties.len());
        let renamed = if self.work > 0 { misnamed(shape, fields) } else { Vec::new() };
        for (wrong, right) in &renamed {
            if let Some(value) = fields.remove(wrong) {
                self.note(&format!("the field `{wrong}` was taken as `{right}`"));
                fields.insert(right.clone(), value);
            }
        }
        fields.retain(|name, value| {
            let field = Shape::of(self.root, shape.property(name), &mut self.work);
            let is_optional =
                shape.properties.contains_key(name.as_str()) && !shape.required.contains(name.as_str());
            let keep = !(value.is_null() && is_optional && !field.types.has(Types::NULL));
            let sent = renamed.iter().find(|(_, right)| right == name).map_or(name, |(wrong, _)| wrong);
            let (shown, seen) = shown.field(sent);
            let back = self.place.enter_field(if seen == sent { name } else { seen });
            if keep {
                self.value(&field, value, shown);
            } else {
                self.note("null was taken as leaving it out");
            }
            self.place.leave(back);
            keep
        });
    }

    /// The value as the only allowed type that it can be read as.
    fn reread(&mut self, shape: &Shape<'a>, value: &Value) -> Option<Value> {
        if shape.types.has(Types::of(value)) {
            return None;
        }
        match (coerced(shape.types, value), self.listed(shape, value)) {
            (Some(one), None) | (None, Some(one)) => Some(one),
            _ => None,
        }
    }

    /// Wraps a single value if a list of such values is expected.
    fn listed(&mut self, shape: &Shape<'a>, value: &Value) -> Option<Value> {
        let is_list_text = value.as_str().is_some_and(|text| text.trim_start().starts_with('['));
        if value.is_null() || is_list_text || !shape.types.has(Types::ARRAY) {
            return None;
        }
        let item = Shape::of(self.root, shape.items(), &mut self.work).types;
        let fits = item.has(Types::of(value)) || coerced(item, value).is_some();
        fits.then(|| Value::Array(vec![value.clone()]))
    }

    fn note(&mut self, what: &str) {
        if self.notes.len() == MAX_NOTES {
            self.untold += 1;
        } else {
            self.notes.push(self.place.say(what));
        }
    }
}

/// Text as the JSON in it, or a number as text, if nothing else can be meant.
fn coerced(types: Types, value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => {
            json_in(text).filter(|json| types.has(Types::of(json))).map(|json| match &json {
                Value::Number(number) if number.is_f64() && wants_integer(types) => {
                    whole(number).map_or(json, Value::from)
                }
                _ => json,
            })
        }
        // Only an integer is sure to be spelled as it was sent.
        Value::Number(number) if !number.is_f64() && types.without(Types::NULL) == Types::STRING => {
            Some(Value::String(number.to_string()))
        }
        _ => None,
    }
}

fn json_in(text: &str) -> Option<Value> {
    match text.trim() {
        "True" | "TRUE" => Some(Value::Bool(true)),
        "False" | "FALSE" => Some(Value::Bool(false)),
        text => serde_json::from_str(text).ok(),
    }
}

/// Fields under another spelling of an absent name: `(sent, meant)`.
///
/// If other fields are allowed, only a required name counts as meant.
fn misnamed(shape: &Shape<'_>, fields: &Map<String, Value>) -> Vec<(String, String)> {
    let mut absent: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in shape.properties.keys().filter(|name| !fields.contains_key(**name)) {
        absent.entry(folded(name)).or_default().push(name);
    }
    let mut claims: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for sent in fields.keys().filter(|name| !shape.properties.contains_key(name.as_str())) {
        if let Some([meant]) = absent.get(&folded(sent)).map(Vec::as_slice)
            && (shape.is_closed() || shape.required.contains(meant))
        {
            claims.entry(meant).or_default().push(sent);
        }
    }
    let single = |(meant, sent): (&str, Vec<&str>)| match sent[..] {
        [one] => Some((one.to_owned(), meant.to_owned())),
        _ => None,
    };
    claims.into_iter().filter_map(single).collect()
}

/// Folds the spellings of a name: `filePath`, `file-path` and `File_Path` are one.
fn folded(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
