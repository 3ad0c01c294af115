//! Expands words to arguments: static parts are computed, the rest is marked as unknown.

use super::Walker;
use super::braces;
use super::environment::{Environment, Variable};
use crate::shell::rules;
use crate::shell::syntax::{Parameter, Part, Word};
use crate::shell::verdict::{Argument, UNKNOWN};

/// The longest value that is followed.
const LONGEST: usize = 64 * 1024;

/// Arguments under construction.
#[derive(Default)]
struct Fields {
    done: Vec<Argument>,
    text: String,
    many: bool,
    /// There is an argument even if its text is empty.
    there: bool,
}

impl Fields {
    fn text(&mut self, text: &str) {
        if self.text.len() + text.len() > LONGEST {
            self.unknown();
            return;
        }
        self.text.push_str(text);
        self.there |= !text.is_empty();
    }

    fn unknown(&mut self) {
        if !self.text.ends_with(UNKNOWN) {
            self.text.push(UNKNOWN);
        }
        self.there = true;
    }

    fn cut(&mut self) {
        if self.there {
            let text = std::mem::take(&mut self.text);
            self.done.push(Argument::new(text).with_many(self.many));
        }
        (self.many, self.there) = (false, false);
    }

    /// Adds a value that is split at spaces and whose patterns count.
    fn split(&mut self, value: &str) {
        for (i, piece) in value.split([' ', '\t', '\n']).enumerate() {
            if i > 0 {
                self.cut();
            }
            self.text(piece);
            self.many |= piece.contains(['*', '?', '[', UNKNOWN]);
        }
    }
}

impl Walker<'_> {
    /// Expands words to arguments.
    pub(super) fn words(&mut self, words: &[Word], environment: &mut Environment) -> Vec<Argument> {
        let mut arguments = Vec::new();
        for word in words {
            for parts in braces::expand(&word.parts) {
                let mut fields = Fields::default();
                self.parts(&parts, environment, &mut fields);
                fields.cut();
                arguments.append(&mut fields.done);
                if !self.spend() {
                    return arguments;
                }
            }
        }
        arguments
    }

    /// Expands a word to one argument, without splitting and matching: after `=`, `<<<`, in `case`.
    pub(super) fn single(&mut self, word: &Word, environment: &mut Environment) -> Argument {
        let mut fields = Fields::default();
        self.quoted(&word.parts, environment, &mut fields, false);
        Argument::new(fields.text)
    }

    fn parts(&mut self, parts: &[Part], environment: &mut Environment, fields: &mut Fields) {
        for (i, part) in parts.iter().enumerate() {
            match part {
                Part::Plain(text) => {
                    let text = self.tilde(text, i == 0, fields);
                    // The program `[` is not a pattern.
                    fields.many |= text.contains(['*', '?', '[']) && !(text == "[" && parts.len() == 1);
                    fields.text(text);
                }
                Part::Parameter(parameter) => self.unquoted_parameter(parameter, environment, fields),
                Part::Command(list) => match self.substitution(list, environment) {
                    Some(output) if !environment.other_splitting => fields.split(&output),
                    _ => {
                        fields.unknown();
                        fields.many = true;
                    }
                },
                other => self.quoted(std::slice::from_ref(other), environment, fields, true),
            }
        }
    }

    /// Expands `~`: the home directory is known only at run time.
    fn tilde<'t>(&self, text: &'t str, first: bool, fields: &mut Fields) -> &'t str {
        // `of=~/x` is expanded like an assignment, also in its parts between colons.
        let assigned = first
            .then(|| text.split_once('=').filter(|(name, _)| is_name(name)))
            .flatten()
            .is_some_and(|(_, value)| value.starts_with('~') || value.contains(":~"));
        if assigned || text.contains(":~") {
            let at = text.find("=~").into_iter().chain(text.find(":~")).min().unwrap_or(0);
            fields.text(&text[..=at]);
            fields.unknown();
            return "";
        }
        if !first || !text.starts_with('~') {
            return text;
        }
        fields.unknown();
        &text[text.find('/').unwrap_or(text.len())..]
    }

    fn unquoted_parameter(
        &mut self,
        parameter: &Parameter,
        environment: &mut Environment,
        fields: &mut Fields,
    ) {
        match self.values(parameter, environment) {
            Some(values) if !environment.other_splitting => {
                for (i, value) in values.iter().enumerate() {
                    if i > 0 {
                        fields.cut();
                    }
                    fields.split(value.text());
                    fields.many |= value.is_many();
                }
            }
            _ => {
                fields.unknown();
                fields.many = true;
            }
        }
    }

    /// Expands parts that stay one argument. `lists` says whether `"$@"` may still become several.
    fn quoted(&mut self, parts: &[Part], environment: &mut Environment, fields: &mut Fields, lists: bool) {
        for (i, part) in parts.iter().enumerate() {
            match part {
                Part::Plain(text) => {
                    let text = self.tilde(text, i == 0 && !lists, fields);
                    fields.text(text);
                }
                Part::Quoted(text) => {
                    fields.text(text);
                    fields.there = true;
                }
                Part::Double(parts) => {
                    // An empty `"$@"` is no argument; anything else in quotes is one.
                    let list = |part: &Part| matches!(part, Part::Parameter(p) if is_list(p));
                    fields.there |= !(parts.len() == 1 && parts.iter().all(list));
                    self.quoted(parts, environment, fields, lists);
                }
                Part::Parameter(parameter) => match self.values(parameter, environment) {
                    Some(values) if is_list(parameter) && lists => {
                        for (i, value) in values.iter().enumerate() {
                            if i > 0 {
                                fields.cut();
                            }
                            fields.text(value.text());
                            fields.there = true;
                            fields.many |= value.is_many();
                        }
                    }
                    Some(values) => {
                        let many = values.iter().any(Argument::is_many);
                        let texts: Vec<&str> = values.iter().map(Argument::text).collect();
                        match (texts.len() > 1 && environment.other_splitting) || many {
                            true => fields.unknown(),
                            false => fields.text(&texts.join(" ")),
                        }
                    }
                    None => {
                        fields.unknown();
                        fields.many |= is_list(parameter) && lists;
                    }
                },
                Part::Command(list) => match self.substitution(list, environment) {
                    Some(output) => fields.text(&output),
                    None => fields.unknown(),
                },
                Part::Process { list, writes } => {
                    self.process(list, *writes, environment);
                    fields.unknown();
                }
                Part::Arithmetic(parts) => {
                    self.expression(parts, environment);
                    fields.unknown();
                }
                Part::Bytes => fields.unknown(),
            }
        }
    }

    /// The values of a parameter, if they are known; several for lists.
    fn values(&mut self, parameter: &Parameter, environment: &mut Environment) -> Option<Vec<Argument>> {
        if let Some(index) = &parameter.index {
            self.inner(index, environment);
            self.arithmetic.used |=
                !matches!(index.as_slice(), [Part::Plain(text)] if text == "@" || text == "*");
        }
        self.inner(&parameter.word, environment);
        let operator = parameter.operator.as_str();
        // `${x:n}`: an expression.
        self.arithmetic.used |= operator.starts_with("indirect") || operator == ":";
        if operator.ends_with('=') {
            rules::judge_filled(self, &parameter.name);
            environment.forget(&parameter.name);
        }
        if operator == "@" && matches!(parameter.word.as_slice(), [Part::Plain(text)] if text == "P") {
            self.hit("eval.dynamic", None);
            self.hit("unknown.script", None);
        }
        let known = self.plain_values(parameter, environment)?;
        match operator {
            "" => Some(known),
            // The word is left out if there is a value.
            ":-" | "-" if known.len() == 1 && known[0].known().is_some_and(|text| !text.is_empty()) => {
                Some(known)
            }
            _ => None,
        }
    }

    fn plain_values(&self, parameter: &Parameter, environment: &Environment) -> Option<Vec<Argument>> {
        let positional = environment.positional.as_ref();
        match (parameter.name.as_str(), &parameter.index) {
            ("@" | "*", None) => positional.cloned(),
            ("0", None) => environment.text("0").map(|text| vec![Argument::new(text)]),
            (name, None) if name.bytes().all(|byte| byte.is_ascii_digit()) => {
                let place = name.parse::<usize>().ok()?.checked_sub(1)?;
                let values = positional?;
                // A value that may become several makes the positions after it unknown.
                let certain = values.iter().take(place + 1).all(|value| !value.is_many());
                certain.then(|| values.get(place).cloned().into_iter().collect())
            }
            (name, None) => environment.text(name).map(|text| vec![Argument::new(text)]),
            (name, Some(index)) => match (environment.variables.get(name)?, index.as_slice()) {
                (Variable::Array(values), [Part::Plain(all)]) if all == "@" || all == "*" => {
                    Some(values.clone())
                }
                (Variable::Array(values), [Part::Plain(place)]) if values.iter().all(|v| !v.is_many()) => {
                    Some(values.get(place.parse::<usize>().ok()?).cloned().into_iter().collect())
                }
                _ => None,
            },
        }
    }

    /// Follows the commands in a part whose value matters only to arithmetic.
    pub(super) fn inner(&mut self, parts: &[Part], environment: &mut Environment) {
        let mut ignored = Fields::default();
        self.quoted(parts, environment, &mut ignored, false);
        self.arithmetic.keeps(&ignored.text);
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn is_list(parameter: &Parameter) -> bool {
    let all = |index: &Vec<Part>| matches!(index.as_slice(), [Part::Plain(text)] if text == "@");
    parameter.name == "@" || parameter.index.as_ref().is_some_and(all)
}
