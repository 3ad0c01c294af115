//! Slips that can mean only one thing, put right and noted.
//!
//! A value is touched only where its type cannot be right, a name only where nothing else has it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::bounds::MAX_DEPTH;
use super::shape::{Shape, Types};
use super::show::{Place, shortened};

/// Repairs that are told one by one; a list of a thousand texts for numbers is told once.
const MAX_NOTES: usize = 12;

/// Repairs what it can and says what it did, in words for the model.
pub(super) fn repair(schema: &Value, args: &mut Value) -> Vec<String> {
    let mut repair = Repair { root: schema, place: Place::default(), depth: 0, notes: Vec::new(), untold: 0 };
    let mut shape = Shape::of(schema, &[schema]);
    shape.types = Types::OBJECT;
    if args.is_null() {
        *args = Value::Object(Map::new());
    }
    repair.value(&shape, args);
    if repair.untold > 0 {
        repair.notes.push(format!("and {} more like these", repair.untold));
    }
    repair.notes
}

struct Repair<'a> {
    root: &'a Value,
    place: Place,
    depth: usize,
    notes: Vec<String>,
    untold: usize,
}

impl<'a> Repair<'a> {
    fn value(&mut self, shape: &Shape<'a>, value: &mut Value) {
        if self.depth > MAX_DEPTH {
            return;
        }
        if let Some(better) = self.reread(shape, value) {
            self.note(format!("{} was taken as {}", shortened(value), shortened(&better)));
            *value = better;
        }
        self.depth += 1;
        match value {
            Value::Object(fields) if shape.types.has(Types::OBJECT) => self.fields(shape, fields),
            Value::Array(items) if shape.types.has(Types::ARRAY) => self.items(shape, items),
            _ => {}
        }
        self.depth -= 1;
    }

    fn items(&mut self, shape: &Shape<'a>, items: &mut [Value]) {
        let shape = Shape::of(self.root, shape.items());
        for (index, item) in items.iter_mut().enumerate() {
            let back = self.place.enter_item(index);
            self.value(&shape, item);
            self.place.leave(back);
        }
    }

    fn fields(&mut self, shape: &Shape<'a>, fields: &mut Map<String, Value>) {
        for (wrong, right) in misnamed(shape, fields) {
            if let Some(value) = fields.remove(&wrong) {
                self.note(format!("the field `{wrong}` was taken as `{right}`"));
                fields.insert(right, value);
            }
        }
        fields.retain(|name, value| {
            let field = Shape::of(self.root, shape.property(name));
            let is_optional =
                shape.properties.contains_key(name.as_str()) && !shape.required.contains(name.as_str());
            let keep = !(value.is_null() && is_optional && !field.types.has(Types::NULL));
            let back = self.place.enter_field(name);
            if keep {
                self.value(&field, value);
            } else {
                self.note("null was taken as leaving it out".into());
            }
            self.place.leave(back);
            keep
        });
    }

    /// The value as the one allowed type it can be read as.
    fn reread(&self, shape: &Shape<'a>, value: &Value) -> Option<Value> {
        if shape.types.has(Types::of(value)) {
            return None;
        }
        match (coerced(shape.types, value), self.listed(shape, value)) {
            (Some(one), None) | (None, Some(one)) => Some(one),
            _ => None,
        }
    }

    /// One value where a list of such values is wanted.
    fn listed(&self, shape: &Shape<'a>, value: &Value) -> Option<Value> {
        let is_list_text = value.as_str().is_some_and(|text| text.trim_start().starts_with('['));
        if value.is_null() || is_list_text || !shape.types.has(Types::ARRAY) {
            return None;
        }
        let item = Shape::of(self.root, shape.items()).types;
        let fits = item.has(Types::of(value)) || coerced(item, value).is_some();
        fits.then(|| Value::Array(vec![value.clone()]))
    }

    fn note(&mut self, what: String) {
        if self.notes.len() == MAX_NOTES {
            self.untold += 1;
        } else {
            self.notes.push(self.place.say(&what));
        }
    }
}

/// Text as the JSON in it, a number as text: where only that can be meant.
fn coerced(types: Types, value: &Value) -> Option<Value> {
    match value {
        Value::String(text) => json_in(text).filter(|json| types.has(Types::of(json))),
        Value::Number(number) if types.without(Types::NULL) == Types::STRING => {
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

/// Fields under another spelling of a name that is absent: `(sent, meant)`.
///
/// Where further fields are allowed, only a required name is taken to be meant.
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

/// A name without what differs between spellings: `filePath`, `file-path` and `File_Path` are one.
fn folded(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
