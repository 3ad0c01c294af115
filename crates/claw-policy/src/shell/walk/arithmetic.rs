//! Arithmetic runs programs: if a variable holds `a[$(...)]`, an expression that names it runs the command in
//! it. The values that an expression meets are not followed. A script with both an expression and a text of
//! that form is held back, and so is one in which such a text may be joined of several.

use super::environment::Environment;
use super::{Input, Walker, programs};
use crate::shell::rules;
use crate::shell::syntax::Part;
use crate::shell::verdict::{Argument, UNKNOWN};

/// The expressions of a script and the texts that they may meet.
#[derive(Default)]
pub(super) struct Arithmetic {
    /// There is an expression.
    pub(super) used: bool,
    /// A single text would be run.
    whole: bool,
    /// Marks in texts that become values, and in expressions.
    kept: Marks,
    /// Marks in texts that are printed.
    printed: Marks,
    /// A value is read, or made of an unknown part: printed text may come back through it.
    reads: bool,
}

impl Arithmetic {
    /// Notes a text that becomes a value, or a part of one.
    pub(super) fn keeps(&mut self, text: &str) {
        self.sees(text);
        self.kept.add(text);
        self.reads |= text.contains(UNKNOWN);
    }

    /// Notes a text that is printed, or read as input.
    pub(super) fn prints(&mut self, text: &str) {
        self.sees(text);
        self.printed.add(text);
    }

    /// Notes a text for a program, which may do anything with it.
    fn sees(&mut self, text: &str) {
        self.whole |= text.contains('[') && (text.contains("$(") || text.contains('`'));
    }

    /// Notes that a value is read.
    pub(super) fn reads(&mut self) {
        self.reads = true;
    }
}

/// The characters of `a[$(...)]` that were seen.
#[derive(Clone, Copy, Default)]
struct Marks {
    bracket: bool,
    dollar: bool,
    parenthesis: bool,
    tick: bool,
}

impl Marks {
    fn add(&mut self, text: &str) {
        self.bracket |= text.contains('[');
        self.dollar |= text.contains('$');
        self.parenthesis |= text.contains('(');
        self.tick |= text.contains('`');
    }

    fn with(self, other: Self) -> Self {
        Self {
            bracket: self.bracket | other.bracket,
            dollar: self.dollar | other.dollar,
            parenthesis: self.parenthesis | other.parenthesis,
            tick: self.tick | other.tick,
        }
    }

    fn suffice(self) -> bool {
        self.bracket && (self.tick || self.dollar && self.parenthesis)
    }
}

impl Walker<'_> {
    /// Judges expressions, after the whole script was seen.
    pub(super) fn judge_arithmetic(&mut self) {
        let Arithmetic { used, whole, kept, printed, reads } = self.arithmetic;
        let all = if reads { kept.with(printed) } else { kept };
        if used && whole {
            self.hit("eval.dynamic", None);
            self.hit("unknown.script", None);
        } else if used && all.suffice() {
            self.hit(
                "unknown.script",
                Some("arithmetic runs the command in `a[$(...)]`, and a value here may contain such text"),
            );
        }
    }

    /// Notes an expression.
    pub(in crate::shell) fn uses_arithmetic(&mut self) {
        self.arithmetic.used = true;
    }

    /// Notes the texts that a program or builtin is given, as far as they matter to arithmetic.
    pub(super) fn note_texts(&mut self, name: &str, is_builtin: bool, arguments: &[Argument], input: &Input) {
        let texts = arguments.iter().map(Argument::text);
        if programs::is_shell(name) {
            // They are followed as scripts.
            return;
        }
        if let Input::Text(text) = input {
            self.arithmetic.prints(text);
            self.keep_text(text);
        }
        let all: Vec<&str> = arguments.iter().map(Argument::text).collect();
        self.keep_text(&all.join(" "));
        all.iter().for_each(|text| self.keep_text(text));
        match name {
            "eval" | "trap" | "alias" | "." | "source" => {}
            "echo" => texts.for_each(|text| self.arithmetic.prints(text)),
            "printf" if !arguments.first().is_some_and(|first| first.text().starts_with("-v")) => {
                texts.for_each(|text| self.arithmetic.prints(text));
            }
            _ if is_builtin => texts.for_each(|text| self.arithmetic.keeps(text)),
            _ => texts.for_each(|text| self.arithmetic.sees(text)),
        }
    }

    /// Follows an arithmetic expression: its value is a number, but it may set variables and run commands in
    /// their values.
    pub(super) fn expression(&mut self, parts: &[Part], environment: &mut Environment) {
        self.arithmetic.used = true;
        self.inner(parts, environment);
        for part in parts {
            let Part::Plain(text) = part else { continue };
            if !(text.contains('=') || text.contains("++") || text.contains("--")) {
                continue;
            }
            for name in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
                if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                    rules::judge_filled(self, name);
                    environment.forget(name);
                }
            }
        }
    }
}
