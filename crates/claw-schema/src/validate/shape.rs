//! The values that a position in the arguments may have, as far as repairs and messages need it.
//!
//! A shape is wider than its schema, never narrower; the compiled validator checks the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::ops::{BitAnd, BitOr};

use crate::dialect::resolve;
use serde_json::{Map, Value};

/// Subschemas and names looked at for one shape. Beyond that, and for circular references, everything is
/// allowed.
const FUEL: usize = 4096;
/// The same limit for all shapes of one call.
pub(super) const WORK: usize = 2_000_000;
static ANYTHING: [&Value; 1] = [&Value::Bool(true)];

/// A set of JSON types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NONE: Self = Self(0);
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    /// Integers are numbers.
    pub(super) const NUMBER: Self = Self(8 | 4);
    pub(super) const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);
    pub(super) const ALL: Self = Self(127);

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The narrowest type of a value.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) if number.as_f64().is_some_and(|n| n.fract() == 0.0) => Self::INTEGER,
            Value::Number(_) => Self::NUMBER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    fn named(name: &str) -> Self {
        match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => Self::ALL,
        }
    }

    fn declared(schema: &Map<String, Value>) -> Self {
        match (schema.get("type"), schema.get("enum"), schema.get("const")) {
            (Some(Value::String(name)), ..) => Self::named(name),
            (Some(Value::Array(names)), ..) => {
                names.iter().filter_map(Value::as_str).map(Self::named).fold(Self::NONE, BitOr::bitor)
            }
            (_, Some(Value::Array(values)), _) => values.iter().map(Self::of).fold(Self::NONE, BitOr::bitor),
            (.., Some(value)) => Self::of(value),
            _ => Self::ALL,
        }
    }
}

impl BitOr for Types {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Types {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// Alternatives for one position: a value may match any of them.
pub(super) type Alternatives<'a> = Vec<&'a Value>;

/// The values that one position may have.
#[derive(Debug, Clone)]
pub(super) struct Shape<'a> {
    pub(super) types: Types,
    pub(super) properties: BTreeMap<&'a str, Alternatives<'a>>,
    /// Names that every alternative requires.
    pub(super) required: BTreeSet<&'a str>,
    extra: Rest<'a>,
    items: Rest<'a>,
}

/// The values of fields without a property of their own, or of the items of a list.
#[derive(Debug, Clone, Default)]
enum Rest<'a> {
    #[default]
    Anything,
    Follows(Alternatives<'a>),
    Nothing,
}

impl<'a> Rest<'a> {
    fn alternatives(&self) -> &[&'a Value] {
        match self {
            Self::Anything => &ANYTHING,
            Self::Follows(alternatives) => alternatives,
            Self::Nothing => &[],
        }
    }

    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Anything, _) | (_, Self::Anything) => Self::Anything,
            (Self::Nothing, rest) | (rest, Self::Nothing) => rest,
            (Self::Follows(mine), Self::Follows(theirs)) => Self::Follows([mine, theirs].concat()),
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, _) | (_, Self::Nothing) => Self::Nothing,
            (Self::Anything, rest) | (rest, _) => rest,
        }
    }
}

impl<'a> Shape<'a> {
    /// The shape of a position that may match any of these schemas, which are parts of `root`. The cost is
    /// deducted from `work`; when that is used up, everything is allowed.
    pub(super) fn of(root: &'a Value, alternatives: &[&'a Value], work: &mut usize) -> Self {
        if *work == 0 {
            return Self::anything();
        }
        let mut reader = Reader { root, fuel: FUEL };
        let shape = reader.any_of(alternatives.iter().copied());
        *work = work.saturating_sub(1 + FUEL - reader.fuel);
        shape
    }

    /// The alternatives for a field.
    pub(super) fn property(&self, name: &str) -> &[&'a Value] {
        self.properties.get(name).map_or(self.extra.alternatives(), Vec::as_slice)
    }

    /// The alternatives for the items of a list.
    pub(super) fn items(&self) -> &[&'a Value] {
        self.items.alternatives()
    }

    /// Returns whether a field that is not a property is refused.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.extra, Rest::Nothing)
    }

    fn new(types: Types, rest: Rest<'a>) -> Self {
        let (properties, required) = Default::default();
        Self { types, properties, required, extra: rest.clone(), items: rest }
    }

    fn anything() -> Self {
        Self::new(Types::ALL, Rest::Anything)
    }

    fn nothing() -> Self {
        Self::new(Types::NONE, Rest::Nothing)
    }

    /// The union. A side that takes no lists does not affect the items; the same holds for objects.
    fn or(mut self, mut other: Self) -> Self {
        let types = self.types | other.types;
        let items = match (self.types.has(Types::ARRAY), other.types.has(Types::ARRAY)) {
            (true, true) => take(&mut self.items).or(take(&mut other.items)),
            (true, false) => take(&mut self.items),
            _ => take(&mut other.items),
        };
        match (self.types.has(Types::OBJECT), other.types.has(Types::OBJECT)) {
            (true, true) => {
                for (name, alternatives) in &mut self.properties {
                    if !other.properties.contains_key(name) {
                        alternatives.extend(other.extra.alternatives());
                    }
                }
                for (name, alternatives) in other.properties {
                    let extra = self.extra.alternatives();
                    self.properties.entry(name).or_insert_with(|| extra.to_vec()).extend(alternatives);
                }
                self.required.retain(|name| other.required.contains(name));
                self.extra = self.extra.or(other.extra);
                Self { types, items, ..self }
            }
            (true, false) => Self { types, items, ..self },
            _ => Self { types, items, ..other },
        }
    }

    /// The intersection. If both define a field, the first one wins: wider than exact, but simple.
    fn and(mut self, other: Self) -> Self {
        self.types = self.types & other.types;
        for (name, alternatives) in other.properties {
            self.properties.entry(name).or_insert(alternatives);
        }
        self.required.extend(other.required);
        self.extra = self.extra.and(other.extra);
        self.items = self.items.and(other.items);
        self
    }
}

struct Reader<'a> {
    root: &'a Value,
    fuel: usize,
}

impl<'a> Reader<'a> {
    fn any_of(&mut self, mut alternatives: impl Iterator<Item = &'a Value>) -> Shape<'a> {
        let Some(first) = alternatives.next() else { return Shape::nothing() };
        let mut shape = self.read(first);
        for schema in alternatives {
            let other = self.read(schema);
            let Some(fuel) = self.fuel.checked_sub(shape.properties.len() + other.properties.len()) else {
                self.fuel = 0;
                return Shape::anything();
            };
            self.fuel = fuel;
            shape = shape.or(other);
        }
        shape
    }

    fn read(&mut self, schema: &'a Value) -> Shape<'a> {
        let Value::Object(keywords) = schema else {
            return if schema == &Value::Bool(false) { Shape::nothing() } else { Shape::anything() };
        };
        let mut shape = own(keywords);
        let Some(fuel) = self.fuel.checked_sub(1 + shape.properties.len() + shape.required.len()) else {
            self.fuel = 0;
            return Shape::anything();
        };
        self.fuel = fuel;
        if let Some(target) = keywords.get("$ref").and_then(Value::as_str).and_then(|r| resolve(self.root, r))
        {
            shape = shape.and(self.read(target));
        }
        for part in list(keywords, "allOf") {
            shape = shape.and(self.read(part));
        }
        for keyword in ["anyOf", "oneOf"] {
            if keywords.contains_key(keyword) {
                shape = shape.and(self.any_of(list(keywords, keyword)));
            }
        }
        shape
    }
}

/// The shape from the keywords of one schema, without the schemas it is combined with.
fn own(keywords: &Map<String, Value>) -> Shape<'_> {
    let mut shape = Shape::anything();
    shape.types = Types::declared(keywords);
    if let Some(Value::Object(properties)) = keywords.get("properties") {
        shape.properties = properties.iter().map(|(name, schema)| (name.as_str(), vec![schema])).collect();
    }
    shape.required = list(keywords, "required").filter_map(Value::as_str).collect();
    if !keywords.contains_key("patternProperties") {
        let rest = keywords.get("additionalProperties").or(keywords.get("unevaluatedProperties"));
        shape.extra = match rest {
            None => Rest::Anything,
            Some(Value::Bool(false)) => Rest::Nothing,
            Some(schema) => Rest::Follows(vec![schema]),
        };
    }
    if let Some(items @ Value::Object(_)) = keywords.get("items")
        && !keywords.contains_key("prefixItems")
    {
        shape.items = Rest::Follows(vec![items]);
    }
    shape
}

fn list<'a>(keywords: &'a Map<String, Value>, keyword: &str) -> impl Iterator<Item = &'a Value> {
    keywords.get(keyword).and_then(Value::as_array).into_iter().flatten()
}
