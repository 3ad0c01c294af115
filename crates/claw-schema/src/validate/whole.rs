//! Turns `2.0` into an integer where one is expected: JSON Schema accepts it as one, but the types of tools
//! do not.

use serde_json::Value;

use super::extent::whole;
use super::shape::{Shape, Types, WORK};

/// Writes whole numbers as integers if only an integer is allowed.
pub(super) fn write_integers(schema: &Value, args: &mut Value) {
    value(schema, &[schema], args, &mut { WORK });
}

fn value<'a>(root: &'a Value, alternatives: &[&'a Value], value: &mut Value, work: &mut usize) {
    let shape = Shape::of(root, alternatives, work);
    match value {
        Value::Number(number) if number.is_f64() && wants_integer(shape.types) => {
            if let Some(integer) = whole(number) {
                *number = integer.into();
            }
        }
        Value::Array(items) => {
            items.iter_mut().for_each(|item| self::value(root, shape.items(), item, work));
        }
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(name, field)| self::value(root, shape.property(name), field, work));
        }
        _ => {}
    }
}

/// Returns whether a number has to be an integer.
pub(super) fn wants_integer(types: Types) -> bool {
    types.has(Types::INTEGER) && !types.has(Types::NUMBER)
}
