//! Simple commands up to their arguments: assignments, redirections, and the files written on the way.

use claw_core::tool::{Effect, Effects};

use super::environment::{Environment, Variable};
use super::{Input, Output, Place, Walker, Written, programs};
use crate::shell::rules;
use crate::shell::syntax::{AssignedValue, Assignment, Command, Operator, Part, Redirect, Word};
use crate::shell::verdict::{Argument, Simple, UNKNOWN};

/// Builtins that see the variables set before them.
const SEEING: &[&str] = &[
    "eval", "source", ".", "command", "builtin", "exec", ":", "set", "shift", "trap", "unset", "times",
    "break", "continue", "return", "exit",
];

/// The words of a simple command as they are written.
#[derive(Clone, Copy)]
pub(super) struct SimpleWords<'a> {
    pub(super) assignments: &'a [Assignment],
    pub(super) words: &'a [Word],
}

/// A simple command with its words expanded, and the input that it would inherit.
struct Expanded<'a> {
    simple: SimpleWords<'a>,
    argv: &'a [Argument],
    input: &'a Input,
}

impl Walker<'_> {
    pub(super) fn simple(
        &mut self,
        command: &Command,
        simple: SimpleWords<'_>,
        environment: &mut Environment,
        input: &Input,
    ) -> Output {
        let words = simple.words;
        let here = self.here;
        let first = self.commands.len();
        let argv = self.words(words, environment);
        if let Some(Part::Parameter(_) | Part::Double(_)) = words.first().and_then(|word| word.parts.first())
        {
            let itself = words.first().is_some_and(|word| names_itself(&word.parts));
            if itself && self.parallel > 0 {
                self.hit("fork-bomb.function", None);
            }
        }
        let mut place = self.redirects(&command.redirects, environment, input);
        place.span = here;
        // `sh <(curl ...)`: text that a substitution in the words fetches is run.
        if let Input::Unknown { fetched: true, decoded } = self.unknown_input(first)
            && place.input == Input::Inherited
            && words.iter().any(has_process)
        {
            place.input = Input::Unknown { fetched: true, decoded };
        }
        self.here = here;
        let before = place.may_fail().then(|| environment.clone());
        let output = self.placed(Expanded { simple, argv: &argv, input }, place, environment);
        if let Some(before) = before {
            environment.merge(&before);
        }
        output
    }

    /// The same, once its words are expanded and its redirections known.
    fn placed(
        &mut self,
        Expanded { simple: SimpleWords { assignments, words }, argv, input }: Expanded<'_>,
        mut place: Place,
        environment: &mut Environment,
    ) -> Output {
        let here = self.here;
        let script = words.iter().skip(1).find(|word| word.plain().is_none_or(|text| !text.starts_with('-')));
        let program = argv.first().and_then(Argument::known).map(programs::name);
        let runs = |name: &str| matches!(name, "sed" | "gsed" | "awk" | "gawk" | "mawk" | "make" | "gmake");
        if program.as_deref().is_some_and(programs::is_interpreter) && script.is_some_and(has_process)
            || program.as_deref().is_some_and(runs)
                && words.windows(2).any(|two| two[0].plain() == Some("-f") && has_process(&two[1]))
        {
            self.hit("unknown.script", None);
        }
        for assignment in assignments {
            let value = self.assign(assignment, environment, argv.is_empty());
            place.assigned.push((assignment.name.clone(), value));
        }
        self.here = here;
        let table = |text: &str| text.starts_with("BASH_CMDS") || text.starts_with("BASH_ALIASES");
        let mut names =
            place.assigned.iter().map(|(name, _)| name.as_str()).chain(argv.iter().map(Argument::text));
        if names.any(table) {
            self.hit("unknown.shell-state", None);
        }
        if !place.assigned.is_empty() {
            rules::judge_assignments(self, &place);
        }
        if argv.is_empty() {
            self.redirected(&place);
            self.note_written(&place, &Some(String::new()));
            // If all words vanish, the last substitution was the command. And `$(< f)` is the content of `f`.
            let nothing = words.is_empty() && place.input == *input && place.reads.is_empty();
            return nothing.then(String::new);
        }
        let declares =
            matches!(argv[0].known(), Some("declare" | "typeset" | "local" | "export" | "readonly"));
        if declares {
            for assignment in assignments {
                environment.forget(&assignment.name);
            }
        }
        // Such a builtin sees a variable set only for it, and in a shell called `sh` the variable stays.
        let sees = argv[0].known().is_some_and(|name| SEEING.contains(&name));
        for (name, value) in place.assigned.iter().filter(|_| sees && !declares) {
            environment.set(name, Variable::Text(value.text().to_owned()));
        }
        let output = self.run(argv, &place, environment);
        for (name, _) in place.assigned.iter().filter(|_| sees && !declares) {
            environment.forget(name);
        }
        self.here = here;
        self.note_written(&place, &output);
        // If a file cannot be read, the command does not run and prints nothing.
        let reads = matches!(place.input, Input::File(_));
        if place.writes.is_empty() && !reads && !place.mixes { output } else { None }
    }

    fn assign(&mut self, assignment: &Assignment, environment: &mut Environment, lasting: bool) -> Argument {
        let (value, variable) = match &assignment.value {
            AssignedValue::Word(word) => {
                let value = self.single(word, environment);
                self.arithmetic.keeps(value.text());
                let variable = match (assignment.indexed, assignment.append) {
                    (true, _) => Variable::Unknown,
                    (false, false) => Variable::Text(value.text().to_owned()),
                    (false, true) => match environment.text(&assignment.name) {
                        Some(before) => Variable::Text(format!("{before}{}", value.text())),
                        None => Variable::Unknown,
                    },
                };
                self.arithmetic.used |= assignment.indexed;
                (value, variable)
            }
            AssignedValue::Array(words) => {
                let keyed = |word: &Word| matches!(word.parts.first(), Some(Part::Plain(text)) if text.starts_with('['));
                let values = self.words(words, environment);
                values.iter().for_each(|value| self.arithmetic.keeps(value.text()));
                let keyed = words.iter().any(keyed);
                self.arithmetic.used |= keyed;
                self.arrays.insert(assignment.name.clone());
                let known = !assignment.append && !keyed;
                (Argument::unknown(), if known { Variable::Array(values) } else { Variable::Unknown })
            }
        };
        if let Variable::Text(text) = &variable {
            self.arithmetic.keeps(text);
        }
        if lasting {
            environment.set(&assignment.name, variable);
        }
        value
    }

    pub(super) fn redirects(
        &mut self,
        redirects: &[Redirect],
        environment: &mut Environment,
        input: &Input,
    ) -> Place {
        let mut place = Place { span: self.here, input: input.clone(), ..Place::nowhere() };
        for redirect in redirects {
            let here = self.here;
            if let Some(variable) =
                redirect.descriptor.strip_prefix('{').and_then(|name| name.strip_suffix('}'))
            {
                // It becomes a number.
                rules::judge_filled(self, variable);
                environment.make_odd(variable);
                environment.forget(variable);
            }
            place.uncertain |= redirect.descriptor.len() > 1;
            let first = self.commands.len();
            let target = self.redirect_target(redirect, environment);
            self.here = here;
            let is_here = matches!(redirect.operator, Operator::HereDocument | Operator::HereString);
            if is_here && target.text().contains(UNKNOWN) {
                // The reader does not get it as a text.
                self.arithmetic.prints(target.text());
            }
            match redirect.operator {
                Operator::HereDocument if redirect.default_descriptor => {
                    place.input = input_of(target.text());
                }
                Operator::HereString if redirect.default_descriptor => {
                    place.input = match input_of(&format!("{}\n", target.text())) {
                        Input::Unknown { .. } => self.unknown_input(first),
                        known => known,
                    };
                }
                Operator::HereDocument | Operator::HereString => {}
                Operator::Read => {
                    if redirect.default_descriptor {
                        place.input = match has_process(&redirect.target) {
                            true => self.unknown_input(first),
                            false => Input::File(target.clone()),
                        };
                    }
                    self.reads.push(target.clone());
                    place.reads.push(target);
                }
                Operator::ReadWrite => {
                    if redirect.default_descriptor {
                        place.input = Input::Unknown { fetched: false, decoded: false };
                    }
                    self.reads.push(target.clone());
                    place.writes.push(target);
                }
                Operator::Duplicate => {
                    place.mixes = true;
                    let open = matches!(target.text(), "0" | "1" | "2" | "-") && !self.moved;
                    place.uncertain |= !open;
                    let number =
                        target.text().trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit());
                    if !number {
                        place.writes.push(target);
                    } else if redirect.default_descriptor {
                        place.input = Input::Unknown { fetched: false, decoded: false };
                    }
                }
                Operator::Write | Operator::Append | Operator::Both => {
                    place.mixes |= redirect.operator == Operator::Both;
                    if !redirect.default_descriptor {
                        // The writer of that descriptor is unknown.
                        self.wrote(&target, Written::Unknown);
                    }
                    if redirect.operator == Operator::Append {
                        place.appends = true;
                    }
                    place.writes.push(target);
                }
            }
        }
        place
    }

    /// Expands the target of a redirection: a file, a descriptor, or the text of a here-document.
    fn redirect_target(&mut self, redirect: &Redirect, environment: &mut Environment) -> Argument {
        match redirect.operator {
            Operator::HereDocument => {
                let body = redirect.body.get().cloned().unwrap_or_default();
                self.single(&body, environment)
            }
            Operator::HereString => self.single(&redirect.target, environment),
            _ => {
                let target = self.single(&redirect.target, environment);
                let bare =
                    |part: &Part| matches!(part, Part::Plain(_) | Part::Parameter(_) | Part::Command(_));
                // Patterns count here too.
                let many = target.text().contains(['*', '?', '[']) && redirect.target.parts.iter().any(bare);
                target.with_many(many)
            }
        }
    }

    /// Judges the redirections of a command that is not simple.
    pub(super) fn redirected(&mut self, place: &Place) {
        rules::judge_redirects(self, place);
        if !place.writes.is_empty() {
            self.record(&[], Effects::of(&[Effect::Write]));
        }
    }

    /// Records a simple command.
    pub(super) fn record(&mut self, argv: &[Argument], effects: Effects) {
        self.commands.push(Simple { argv: argv.to_vec(), effects, span: self.here });
    }
}

fn names_itself(parts: &[Part]) -> bool {
    match parts {
        [Part::Parameter(parameter)] => parameter.name == "0" || parameter.name == "BASH_SOURCE",
        [Part::Double(parts)] => names_itself(parts),
        _ => false,
    }
}

fn has_process(word: &Word) -> bool {
    word.parts.iter().any(|part| matches!(part, Part::Process { .. }))
}

/// The input that a text is; unknown if a part of the text is.
fn input_of(text: &str) -> Input {
    match text.contains(UNKNOWN) {
        true => Input::Unknown { fetched: false, decoded: false },
        false => Input::Text(text.to_owned()),
    }
}
