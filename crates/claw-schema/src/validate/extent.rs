//! Measures the size and depth of a value, with bounded work.

use serde_json::Value;

use super::ArgsError;

/// Deepest nesting of arguments and schemas. `serde_json` refuses deeper text as well.
pub(super) const MAX_DEPTH: usize = 128;
/// Characters of text that count as another value.
const TEXT_PER_VALUE: usize = 64;

/// Applies the limits of [`parse`](super::parse) to arguments that were read elsewhere: text that passes
/// there gives a value that passes here. It stops once the limit is exceeded. A refused value should be
/// dropped with [`dismantle`].
pub fn measure(args: &Value, max_bytes: usize) -> Result<(), ArgsError> {
    if is_deeper_than(args, MAX_DEPTH) {
        return Err(ArgsError::too_deep(MAX_DEPTH));
    }
    take(args, max_bytes).map(drop).ok_or_else(|| ArgsError::too_large(max_bytes))
}

/// Drops a value level by level. The ordinary drop overflows the stack at ten thousand levels.
pub fn dismantle(value: Value) {
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        match value {
            Value::Array(items) => rest.extend(items),
            Value::Object(fields) => rest.extend(fields.into_iter().map(|(_, field)| field)),
            _ => {}
        }
    }
}

/// Stops at the limit, so that the value's depth cannot overflow the stack.
pub(super) fn is_deeper_than(value: &Value, limit: usize) -> bool {
    match value {
        Value::Array(items) => limit == 0 || items.iter().any(|item| is_deeper_than(item, limit - 1)),
        Value::Object(fields) => limit == 0 || fields.values().any(|field| is_deeper_than(field, limit - 1)),
        _ => false,
    }
}

/// Subtracts the shortest JSON of a value from `left`, ignoring escapes and digits; `None` if it does not
/// fit.
fn take(value: &Value, left: usize) -> Option<usize> {
    match value {
        Value::Null | Value::Bool(true) => left.checked_sub(4),
        Value::Bool(false) => left.checked_sub(5),
        Value::Number(_) => left.checked_sub(1),
        Value::String(text) => left.checked_sub(text.len().checked_add(2)?),
        Value::Array(items) => {
            let left = left.checked_sub(2 + items.len().saturating_sub(1))?;
            items.iter().try_fold(left, |left, item| take(item, left))
        }
        Value::Object(fields) => {
            let left = left.checked_sub(2 + fields.len().saturating_sub(1))?;
            fields.iter().try_fold(left, |left, (name, field)| take(field, left.checked_sub(name.len() + 3)?))
        }
    }
}

/// Measures of arguments, taken before they are checked.
#[derive(Debug, Default)]
pub(super) struct Extent {
    /// Number of values and names; long texts count as several.
    pub(super) weight: u64,
    /// There is a number such as `2.0`.
    pub(super) has_whole_float: bool,
}

impl Extent {
    /// `None` if the value is nested too deeply.
    pub(super) fn of(value: &Value) -> Option<Self> {
        let mut extent = Self::default();
        extent.add(value, MAX_DEPTH).then_some(extent)
    }

    pub(super) fn weight_of(value: &Value) -> u64 {
        match value {
            Value::String(text) => weight_of_text(text),
            _ => 1,
        }
    }

    fn add(&mut self, value: &Value, limit: usize) -> bool {
        self.weight += Self::weight_of(value);
        match value {
            Value::Number(number) => {
                self.has_whole_float |= number.is_f64() && whole(number).is_some();
                true
            }
            Value::Array(items) => limit > 0 && items.iter().all(|item| self.add(item, limit - 1)),
            Value::Object(fields) => {
                limit > 0
                    && fields.iter().all(|(name, field)| {
                        self.weight += weight_of_text(name);
                        self.add(field, limit - 1)
                    })
            }
            _ => true,
        }
    }
}

fn weight_of_text(text: &str) -> u64 {
    u64::try_from(1 + text.len() / TEXT_PER_VALUE).unwrap_or(u64::MAX)
}

/// Converts a number such as `2.0` to an integer. Above 2^53 adjacent integers are the same float, so another
/// one may have been meant; then `None`.
pub(super) fn whole(number: &serde_json::Number) -> Option<i64> {
    const MAX: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < MAX)?;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and below 2^53")]
    let integer = float as i64;
    Some(integer)
}
