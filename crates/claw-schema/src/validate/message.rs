//! Explains invalid arguments field by field: expected, got, the nearest name.

use std::cell::Cell;
use std::fmt::Write as _;

use claw_core::did_you_mean::nearest;
use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use super::error::{ArgsError, CUT_OFF, Problem};
use super::shape::{Shape, Types, WORK};
use super::show::{Shown, clipped, listed, shortened};

/// Most problems reported at once.
const MAX_PROBLEMS: usize = 8;

/// Explains what is wrong with arguments that the compiled schema refuses.
pub(super) fn explain(schema: &Value, compiled: &Validator, args: &Value, shown: Shown<'_>) -> ArgsError {
    let mut explainer = Explainer::new(schema, shown);
    if args.is_object() {
        for error in compiled.iter_errors(args).take(MAX_PROBLEMS) {
            explainer.error(&error);
        }
    } else {
        explainer.misfit(&Location::new(), "an object".into(), args);
        explainer.list_fields(&Location::new());
    }
    explainer.finish(args)
}

/// The same if a full explanation would take too long.
pub(super) fn refuse(schema: &Value, args: &Value, shown: Shown<'_>) -> ArgsError {
    let mut explainer = Explainer::new(schema, shown);
    let message = "the arguments do not match the schema; finding out where would take too long".into();
    explainer.problems.push(Problem { message, ..Problem::default() });
    explainer.list_fields(&Location::new());
    explainer.finish(args)
}

struct Explainer<'a> {
    schema: &'a Value,
    shown: Shown<'a>,
    /// Work that may still be spent on shapes.
    work: Cell<usize>,
    problems: Vec<Problem>,
    /// The fields of the first object that lacks a field or has one too many.
    advice: Option<String>,
}

impl<'a> Explainer<'a> {
    fn new(schema: &'a Value, shown: Shown<'a>) -> Self {
        Self { schema, shown, work: Cell::new(WORK), problems: Vec::new(), advice: None }
    }

    fn finish(self, args: &Value) -> ArgsError {
        let is_empty = args.as_object().is_some_and(serde_json::Map::is_empty);
        let advice = match self.advice {
            Some(fields) if is_empty => Some(format!("no arguments arrived, {CUT_OFF}; {fields}")),
            advice => advice,
        };
        ArgsError { problems: self.problems, advice, notes: Vec::new() }
    }

    fn error(&mut self, error: &ValidationError<'_>) {
        if self.problems.len() >= MAX_PROBLEMS {
            return;
        }
        let at = error.instance_path();
        match error.kind() {
            Kind::Required { property } => self.missing(at, property.as_str().unwrap_or_default()),
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                let room = MAX_PROBLEMS - self.problems.len();
                unexpected.iter().take(room).for_each(|name| self.unknown(at, name));
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => match closest(context, at) {
                Some(branch) => branch.iter().for_each(|error| self.error(error)),
                None => match options(context) {
                    options if options.is_empty() => {
                        self.misfit(at, self.shape(at).described(), error.instance());
                    }
                    options => self.not_among(at, &options, error.instance()),
                },
            },
            Kind::Type { .. } => self.misfit(at, self.shape(at).described(), error.instance()),
            Kind::Enum { options } => {
                let options: Vec<_> = options.as_array().into_iter().flatten().collect();
                self.not_among(at, &options, error.instance());
            }
            Kind::Constant { expected_value } => self.not_among(at, &[expected_value], error.instance()),
            kind => self.misfit(at, limit(kind).unwrap_or_else(|| rule(error)), error.instance()),
        }
    }

    fn missing(&mut self, at: &Location, name: &str) {
        let (mut place, _) = self.shown.at(at);
        place.enter_field(name);
        let path = place.into_text();
        let expected = self.shape_of(self.shape(at).property(name)).described();
        self.problems.push(Problem {
            message: format!("`{path}` is missing, expected {expected}"),
            path,
            expected,
            got: "nothing".into(),
            nearest: None,
        });
        self.list_fields(at);
    }

    fn unknown(&mut self, at: &Location, name: &str) {
        let shape = self.shape(at);
        let nearest = nearest(name, shape.properties.keys().copied()).map(str::to_owned);
        let (mut place, object) = self.shown.at(at);
        let (_, shown) = object.field(name);
        place.enter_field(shown);
        let path = place.into_text();
        let hint = nearest.as_ref().map(|name| format!(", did you mean `{name}`?")).unwrap_or_default();
        self.problems.push(Problem {
            message: format!("`{path}` is not a field{hint}"),
            path,
            expected: "one of the fields".into(),
            got: format!("the field `{}`", clipped(shown)),
            nearest,
        });
        self.list_fields(at);
    }

    fn not_among(&mut self, at: &Location, options: &[&Value], value: &Value) {
        let texts = options.iter().filter_map(|option| option.as_str());
        let nearest = value.as_str().and_then(|value| nearest(value, texts)).map(str::to_owned);
        let expected = match options {
            [one] => shortened(one),
            many => format!("one of {}", listed(many.iter().map(|option| shortened(option)))),
        };
        self.misfit(at, expected, value);
        if let (Some(problem), Some(nearest)) = (self.problems.last_mut(), nearest) {
            let _ = write!(problem.message, ", did you mean \"{nearest}\"?");
            problem.nearest = Some(nearest);
        }
    }

    fn misfit(&mut self, at: &Location, expected: String, value: &Value) {
        let (place, shown) = self.shown.at(at);
        let got = shown.described(value);
        self.problems.push(Problem {
            message: place.say(&format!("expected {expected}, got {got}")),
            path: place.into_text(),
            expected,
            got,
            nearest: None,
        });
    }

    fn list_fields(&mut self, at: &Location) {
        if self.advice.is_some() {
            return;
        }
        let shape = self.shape(at);
        let field = |(name, alternatives): (&&str, &Vec<&'a Value>)| {
            let need = if shape.required.contains(name) { ", required" } else { "" };
            format!("`{name}` ({}{need})", self.shape_of(alternatives).described())
        };
        let place = self.shown.at(at).0.into_text();
        let of = if place.is_empty() { String::new() } else { format!(" of `{place}`") };
        self.advice = Some(match shape.properties.is_empty() {
            true => format!("no fields{of} are known"),
            false => format!("the fields{of} are {}", listed(shape.properties.iter().map(field))),
        });
    }

    /// The shape at a position in the arguments.
    fn shape(&self, at: &Location) -> Shape<'a> {
        at.segments().fold(self.shape_of(&[self.schema]), |shape, segment| match segment {
            LocationSegment::Property(name) => self.shape_of(shape.property(&name)),
            LocationSegment::Index(_) => self.shape_of(shape.items()),
        })
    }

    fn shape_of(&self, alternatives: &[&'a Value]) -> Shape<'a> {
        let mut work = self.work.get();
        let shape = Shape::of(self.schema, alternatives, &mut work);
        self.work.set(work);
        shape
    }
}

/// The alternative that the value was probably meant for: one of its type, with the fewest errors.
fn closest<'e>(
    context: &'e [Vec<ValidationError<'static>>],
    at: &Location,
) -> Option<&'e [ValidationError<'static>]> {
    let is_other = |error: &ValidationError<'_>| {
        error.instance_path() == at
            && matches!(error.kind(), Kind::Type { .. } | Kind::Constant { .. } | Kind::Enum { .. })
    };
    let is_tag = |error: &&ValidationError<'_>| matches!(error.kind(), Kind::Constant { .. });
    let distance = |branch: &&Vec<ValidationError<'_>>| (branch.iter().filter(is_tag).count(), branch.len());
    let near = context.iter().filter(|branch| !branch.is_empty() && !branch.iter().any(is_other));
    near.min_by_key(distance).map(Vec::as_slice)
}

/// The allowed values, if all alternatives are constants.
fn options<'e>(context: &'e [Vec<ValidationError<'static>>]) -> Vec<&'e Value> {
    let of_branch = |branch: &'_ Vec<ValidationError<'static>>| {
        branch.iter().any(|error| matches!(error.kind(), Kind::Constant { .. } | Kind::Enum { .. }))
    };
    if !context.iter().all(of_branch) {
        return Vec::new();
    }
    context
        .iter()
        .flatten()
        .flat_map(|error| match error.kind() {
            Kind::Constant { expected_value } => vec![&**expected_value],
            Kind::Enum { options } => options.as_array().into_iter().flatten().collect(),
            _ => Vec::new(),
        })
        .collect()
}

fn limit(kind: &Kind) -> Option<String> {
    Some(match kind {
        Kind::Minimum { limit } => format!("at least {limit}"),
        Kind::Maximum { limit } => format!("at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("at least {limit} characters"),
        Kind::MaxLength { limit } => format!("at most {limit} characters"),
        Kind::MinItems { limit } => format!("at least {limit} items"),
        Kind::MaxItems { limit } => format!("at most {limit} items"),
        Kind::AdditionalItems { limit } => format!("at most {limit} items"),
        Kind::MinProperties { limit } => format!("at least {limit} fields"),
        Kind::MaxProperties { limit } => format!("at most {limit} fields"),
        Kind::UniqueItems => "items that all differ".into(),
        Kind::Pattern { pattern } => format!("text that matches `{}`", clipped(pattern)),
        Kind::Format { format } => format!("text of the format `{format}`"),
        Kind::FalseSchema => "nothing here".into(),
        Kind::OneOfMultipleValid { .. } => "a value that matches only one of the alternatives".into(),
        _ => return None,
    })
}

/// The violated rule, in the words of the validator.
fn rule(error: &ValidationError<'_>) -> String {
    format!("a value that satisfies `{}`", error.kind().keyword())
}

impl Shape<'_> {
    /// Describes the values that fit, such as "a string or null".
    pub(super) fn described(&self) -> String {
        const NAMES: [(Types, &str); 7] = [
            (Types::STRING, "a string"),
            (Types::NUMBER, "a number"),
            (Types::INTEGER, "an integer"),
            (Types::BOOLEAN, "true or false"),
            (Types::ARRAY, "a list"),
            (Types::OBJECT, "an object"),
            (Types::NULL, "null"),
        ];
        if self.types == Types::ALL {
            return "any value".into();
        }
        let mut rest = self.types;
        let mut names = Vec::new();
        for (types, name) in NAMES {
            if rest.has(types) {
                rest = rest.without(types);
                names.push(name);
            }
        }
        if names.is_empty() { "nothing".into() } else { names.join(" or ") }
    }
}
