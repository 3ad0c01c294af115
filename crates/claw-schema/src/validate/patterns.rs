//! Limits of the patterns of a schema, checked before they are compiled: a few bytes can compile to gigabytes.
//!
//! The engine is told how large one pattern may become, so that all patterns of a schema stay within a total.
//! It has no such limit for calls of groups, which are expanded one into the other, and for look-behinds of
//! any length; these are refused, and so is all syntax in which they could hide.

use std::collections::HashSet;

use serde_json::Value;

use super::SchemaError;

/// Most different patterns of a schema, and most bytes of all of them.
const MAX_PATTERNS: usize = 300;
const MAX_BYTES: usize = 16 * 1024;
/// Most bytes of those that look around or refer back: each of their classes is kept by itself.
const MAX_BACKTRACKING_BYTES: usize = 4 * 1024;
/// Most classes such as `\d` in one pattern. Its translation to the engine's syntax reads it once for each.
const MAX_CLASSES: usize = 100;
/// Most bytes of all compiled patterns of a schema together, and of one.
const MAX_COMPILED: usize = 32 * 1024 * 1024;
const MAX_ENGINE: usize = 2 * 1024 * 1024;
/// Engines that a pattern with groups counts for: to find what the groups hold, tables are built beside it.
const GROUPED: usize = 4;

/// Refuses patterns that could take any amount of memory. Returns the most bytes that one may compile to.
pub(super) fn examine(schema: &Value) -> Result<usize, SchemaError> {
    let mut patterns = HashSet::new();
    collect(schema, &mut patterns);
    let (count, bytes) = (patterns.len(), patterns.iter().map(|pattern| pattern.len()).sum::<usize>());
    if count > MAX_PATTERNS || bytes > MAX_BYTES {
        return refused(format!(
            "it has {count} patterns with {bytes} bytes; at most {MAX_PATTERNS} with {MAX_BYTES} bytes are \
             accepted"
        ));
    }
    let (mut engines, mut backtracking) = (0_usize, 0_usize);
    for pattern in patterns {
        let reading = Reading::of(pattern)?;
        engines += reading.engines();
        if reading.backtracks {
            backtracking += pattern.len();
        }
    }
    if backtracking > MAX_BACKTRACKING_BYTES {
        return refused(format!(
            "its patterns with look-arounds or back-references have {backtracking} bytes; at most \
             {MAX_BACKTRACKING_BYTES} are accepted"
        ));
    }
    Ok((MAX_COMPILED / engines.max(1)).min(MAX_ENGINE))
}

fn refused<T>(why: String) -> Result<T, SchemaError> {
    Err(SchemaError::Patterns(why))
}

/// Collects all patterns, those in examples and defaults too: a reference can lead there.
fn collect<'a>(value: &'a Value, patterns: &mut HashSet<&'a str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, patterns)),
        Value::Object(keywords) => {
            for (keyword, inner) in keywords {
                match (keyword.as_str(), inner) {
                    ("pattern", Value::String(pattern)) => {
                        patterns.insert(pattern);
                    }
                    ("patternProperties", Value::Object(named)) => {
                        patterns.extend(named.keys().map(String::as_str));
                    }
                    _ => {}
                }
                collect(inner, patterns);
            }
        }
        _ => {}
    }
}

/// Properties of one pattern that decide how much is compiled for it.
#[derive(Default)]
struct Reading {
    /// It looks around or refers back, so that its parts are compiled one by one.
    backtracks: bool,
    /// It repeats something a number of times, or has a class of Unicode.
    multiplies: bool,
    /// It has groups that keep their text.
    keeps: bool,
    /// Its groups and alternatives.
    branches: usize,
    /// Its classes such as `\d`.
    classes: usize,
}

impl Reading {
    /// Reads a pattern without regard to character classes, where a parenthesis is text: whatever the engine
    /// takes for a group is seen here as one.
    fn of(pattern: &str) -> Result<Self, SchemaError> {
        let mut reading = Self::default();
        let mut rest = pattern.as_bytes();
        loop {
            rest = match rest {
                [] => break,
                [b'\\', escaped, after @ ..] => {
                    match escaped {
                        b'g' => return refused("one of its patterns calls a group with `\\g`".to_owned()),
                        b'0'..=b'9' | b'k' => reading.backtracks = true,
                        b'p' | b'P' => reading.multiplies = true,
                        b'd' | b'D' | b's' | b'S' | b'w' | b'W' => reading.classes += 1,
                        _ => {}
                    }
                    after
                }
                [b'(', after @ ..] => {
                    reading.branches += 1;
                    reading.group(after)?
                }
                [b'|', after @ ..] => {
                    reading.branches += 1;
                    after
                }
                [b'{', after @ ..] => {
                    reading.multiplies = true;
                    after
                }
                [_, after @ ..] => after,
            };
        }
        if reading.classes > MAX_CLASSES {
            let classes = reading.classes;
            return refused(format!(
                "one of its patterns has {classes} classes such as `\\d`; at most {MAX_CLASSES} are accepted"
            ));
        }
        Ok(reading)
    }

    /// Reads the start of a group, and returns the rest.
    fn group<'a>(&mut self, after: &'a [u8]) -> Result<&'a [u8], SchemaError> {
        match after {
            [b'?', b':', rest @ ..] => Ok(rest),
            [b'?', b'=' | b'!', rest @ ..] => {
                self.backtracks = true;
                Ok(rest)
            }
            [b'?', b'<', b'=' | b'!', rest @ ..] => {
                self.backtracks = true;
                if !is_fixed(rest) {
                    return refused(
                        "one of its patterns has a look-behind with a group or a repetition in it".to_owned(),
                    );
                }
                Ok(rest)
            }
            [b'?', b'P', b'=', name @ ..] => {
                self.backtracks = true;
                after_name(name, b')')
            }
            [b'?', b'P', b'<', name @ ..] | [b'?', b'<', name @ ..] => {
                self.keeps = true;
                after_name(name, b'>')
            }
            [b'?', flags @ ..] => after_flags(flags),
            plain => {
                self.keeps = true;
                Ok(plain)
            }
        }
    }

    /// Most engines that are built for it and can become large. Any other pattern grows with its length only.
    fn engines(&self) -> usize {
        match (self.backtracks, self.multiplies, self.keeps) {
            (true, _, _) => 2 * (1 + self.branches),
            (false, true, true) => GROUPED,
            (false, true, false) => 1,
            (false, false, _) => 0,
        }
    }
}

/// Returns whether the look-behind that begins here holds text and simple classes alone. Its length is known
/// then, and it is compiled within the limits.
fn is_fixed(mut rest: &[u8]) -> bool {
    let mut in_class = false;
    loop {
        rest = match (rest, in_class) {
            ([b'\\', b'p' | b'P' | b'u' | b'x', b'{', after @ ..], _) => after,
            ([b'\\', _, after @ ..], _) => after,
            // Engines differ on where these end.
            ([b'[', b']', ..] | [b'[', b'^', b']', ..], false) | ([b'[', ..], true) => return false,
            ([b'[', after @ ..], false) => {
                in_class = true;
                after
            }
            ([b']', after @ ..], true) => {
                in_class = false;
                after
            }
            ([b')', ..], false) => return true,
            ([b'(' | b'*' | b'+' | b'?' | b'{', ..], false) => return false,
            ([_, after @ ..], _) => after,
            ([], _) => return false,
        };
    }
}

/// Returns the rest after a name and the byte that ends it.
fn after_name(name: &[u8], end: u8) -> Result<&[u8], SchemaError> {
    let is_plain = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let length = name.iter().take_while(is_plain).count();
    match name.split_at(length) {
        ([_, ..], [found, rest @ ..]) if *found == end => Ok(rest),
        _ => unknown_group(),
    }
}

/// Returns the rest after flags. The flag `x` is refused: with it, white space can stand within other syntax.
fn after_flags(flags: &[u8]) -> Result<&[u8], SchemaError> {
    let length = flags.iter().take_while(|byte| b"imsuUR-".contains(byte)).count();
    match flags.split_at(length) {
        ([_, ..], [b':' | b')', rest @ ..]) => Ok(rest),
        _ => unknown_group(),
    }
}

fn unknown_group<T>() -> Result<T, SchemaError> {
    refused(
        "one of its patterns has a group that begins with `(?` and that ECMA 262 does not define, such as `(?x)`, \
         `(?#` or `(?(`"
            .to_owned(),
    )
}
