//! Validates arguments before a tool sees them, for built-in, MCP and custom tools alike.
//!
//! - [`parse`] turns a model's text into JSON, or tells where it broke off; [`measure`] applies the same
//!   limits to JSON that was read elsewhere.
//! - A [`Validator`] is compiled once per tool. Arguments that satisfy its schema pass untouched; otherwise
//!   unambiguous slips are [repaired](mod@self#repairs), and what is still wrong is told field by field.
//!
//! The work is bounded for any schema and arguments. Quoted arguments are passed through `redact` before they
//! are shortened.
//!
//! It never invents a value, never drops an unknown field, and never fetches a schema: a reference out of the
//! schema makes the tool unavailable.
//!
//! # Repairs
//!
//! | sent | wanted | becomes |
//! |---|---|---|
//! | `"10"`, `"true"`, `"{\"a\":1}"` | not a string | the JSON in the text |
//! | `10` | a string | `"10"` |
//! | `2.0`, which is not even noted | an integer | `2` |
//! | `"a.txt"` | a list | `["a.txt"]` |
//! | `filePath`, `File-Path` | `file_path`, which is absent | `file_path` |
//! | `null` | an optional field | nothing |
//!
//! ```
//! use claw_schema::validate::Validator;
//! use serde_json::json;
//!
//! let schema = json!({
//!     "type": "object",
//!     "properties": { "file_path": { "type": "string" }, "offset": { "type": "integer" } },
//!     "required": ["file_path"],
//!     "additionalProperties": false,
//! });
//! let validator = Validator::compile(&schema)?;
//!
//! let redact = |args: &serde_json::Value| args.clone(); // Nothing is secret here.
//!
//! let checked = validator.check(json!({ "filePath": "a.txt", "offset": "10" }), &redact)?;
//! assert_eq!(checked.args, json!({ "file_path": "a.txt", "offset": 10 }));
//! assert_eq!(checked.notes.len(), 2);
//!
//! let error = validator.check(json!({ "file_path": "a.txt", "offset": "ten" }), &redact).unwrap_err();
//! assert_eq!(error.to_string(), "`offset`: expected an integer, got the string \"ten\"");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod applied;
mod bounds;
mod cost;
mod error;
mod extent;
mod message;
mod parse;
mod patterns;
mod repair;
mod shape;
mod show;
#[cfg(test)]
mod tests;
mod whole;

use jsonschema::{PatternOptions, error::ValidationErrorKind};
use serde_json::Value;

use cost::Costs;
use extent::{Extent, MAX_DEPTH};
use show::Shown;

pub use error::{ArgsError, Problem};
pub use extent::{dismantle, measure};
pub use parse::parse;

/// Steps that one `pattern` with look-arounds may take on one string.
const MAX_BACKTRACKS: usize = 100_000;
/// Bytes that a complete automaton of one pattern may have. Larger patterns do without one.
const MAX_AUTOMATON: usize = 16 * 1024;

/// The compiled schema of one tool's arguments.
#[derive(Debug)]
pub struct Validator {
    schema: Value,
    costs: Costs,
    compiled: jsonschema::Validator,
}

/// Arguments that satisfy the schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The arguments for the tool.
    pub args: Value,
    /// Repairs, in words for the model. Empty if the arguments are as they were sent.
    pub notes: Vec<String>,
}

/// The reason why a schema cannot be used. Its tool is unavailable for this reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is not a valid JSON Schema.
    #[error("its schema is not valid at `{at}`: {reason}")]
    Invalid {
        /// The position in the schema.
        at: String,
        /// The problem.
        reason: String,
    },
    /// It refers to something outside of itself, or to nothing.
    #[error(
        "its schema refers to `{0}`; only references such as `#/$defs/name` are followed, and nothing is fetched"
    )]
    Reference(String),
    /// It is too deeply nested, too large or too convoluted to be used safely.
    #[error("its schema is too {0} to be used safely")]
    Excessive(&'static str),
    /// Its patterns could take any amount of memory.
    #[error("its schema cannot be used safely: {0}")]
    Patterns(String),
}

/// Refuses a schema that is too large or too deeply nested to be processed at all.
pub fn examine(schema: &Value) -> Result<(), SchemaError> {
    bounds::examine(schema)
}

impl Validator {
    /// Compiles a schema. Nothing is fetched: a reference out of the schema is an error.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        bounds::examine(schema)?;
        let largest = patterns::examine(schema)?;
        let costs = Costs::of(schema)?;
        let limits = PatternOptions::fancy_regex()
            .backtrack_limit(MAX_BACKTRACKS)
            .size_limit(largest)
            .dfa_size_limit(MAX_AUTOMATON);
        let compiled = jsonschema::options()
            .offline()
            .with_pattern_options(limits)
            .build(schema)
            .map_err(|error| refusal(&error, largest))?;
        Ok(Self { schema: schema.clone(), costs, compiled })
    }

    /// Checks arguments and repairs them where that is unambiguous. Quotes in messages are passed through
    /// `redact`, which removes secrets; valid arguments are not quoted.
    pub fn check(&self, mut args: Value, redact: &dyn Fn(&Value) -> Value) -> Result<Checked, ArgsError> {
        let Some(extent) = Extent::of(&args) else {
            dismantle(args);
            return Err(ArgsError::too_deep(MAX_DEPTH));
        };
        if self.accepts(&args, &extent)? {
            return Ok(self.checked(args, &extent, Vec::new()));
        }
        let was_null = args.is_null();
        let notes = repair::repair(&self.schema, &mut args, redact);
        let extent = Extent::of(&args).ok_or_else(|| ArgsError::too_deep(MAX_DEPTH))?;
        let is_repaired = was_null || !notes.is_empty();
        if is_repaired && self.accepts(&args, &extent)? {
            return Ok(self.checked(args, &extent, notes));
        }
        let redacted = redact(&args);
        let shown = Shown::new(&redacted);
        let error = match self.costs.allows_explaining(&self.schema, &args, &extent) {
            true => message::explain(&self.schema, &self.compiled, &args, shown),
            false => message::refuse(&self.schema, &args, shown),
        };
        Err(ArgsError { notes, ..error })
    }

    fn accepts(&self, args: &Value, extent: &Extent) -> Result<bool, ArgsError> {
        if !args.is_object() {
            return Ok(false);
        }
        if !self.costs.allows_check(&self.schema, args, extent) {
            return Err(ArgsError::too_costly());
        }
        Ok(self.compiled.is_valid(args))
    }

    fn checked(&self, mut args: Value, extent: &Extent, notes: Vec<String>) -> Checked {
        if extent.has_whole_float {
            whole::write_integers(&self.schema, &mut args);
        }
        Checked { args, notes }
    }
}

/// `largest` is the most bytes that a pattern may compile to.
fn refusal(error: &jsonschema::ValidationError<'_>, largest: usize) -> SchemaError {
    match error.kind() {
        ValidationErrorKind::Referencing(cause) => SchemaError::Reference(cause.to_string()),
        ValidationErrorKind::Format { format } if format == "regex" => SchemaError::Invalid {
            // The schema is the instance where it is checked itself, before anything is compiled.
            at: match error.instance_path().as_str() {
                "" => error.schema_path().to_string(),
                at => at.to_owned(),
            },
            reason: format!(
                "the pattern {} is not valid, or takes more than {largest} bytes when it is compiled",
                show::shortened(error.instance())
            ),
        },
        _ => SchemaError::Invalid {
            at: error.instance_path().to_string(),
            reason: error.masked_with(show::shortened(error.instance())).to_string(),
        },
    }
}
