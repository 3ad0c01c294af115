//! Simple commands up to their arguments: assignments, redirections, and the files that are written on the way.

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

impl Walker<'_> {
    pub(super) fn simple(
        &mut self,
        command: &Command,
        (assignments, words): (&[Assignment], &[Word]),
        environment: &mut Environment,
        input: &Input,
    ) -> Output {
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
        // `sh <(curl ...)`: what a substitution in the words fetches is run.
        if let Input::Unknown { fetched: true, decoded } = self.unknown_input(first)
            && place.input == Input::Inherited
            && words.iter().any(has_process)
        {
            place.input = Input::Unknown { fetched: true, decoded };
        }
        self.here = here;
        let before = place.may_fail().then(|| environment.clone());
        let output = self.placed((assignments, words), (&argv, place), environment, input);
        if let Some(before) = before {
            environment.merge(&before);
        }
        output
    }

    /// The same, once its words are arguments and its redirections known.
    fn placed(
        &mut self,
        (assignments, words): (&[Assignment], &[Word]),
        (argv, mut place): (&[Argument], Place),
        environment: &mut Environment,
        input: &Input,
    ) -> Output {
        let here = self.here;
        let script = words.iter().skip(1).find(|word| word.plain().is_none_or(|text| !text.starts_with('-')));
        if script.is_some_and(has_process)
            && argv
                .first()
                .and_then(Argument::known)
                .is_some_and(|name| programs::is_interpreter(&programs::name(name)))
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
            // Words that all vanished: the last substitution was the command. And `$(< f)` is what `f` holds.
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
        // Such a builtin sees what is set for it alone, and in a shell called `sh` it stays.
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
        // Where a file cannot be read, the command is not run at all and prints nothing.
        let reads = matches!(place.input, Input::File(_));
        if place.writes.is_empty() && !reads { output } else { None }
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
            let first = self.commands.len();
            let target = match redirect.operator {
                Operator::HereDocument => {
                    let body = redirect.body.get().cloned().unwrap_or_default();
                    self.single(&body, environment)
                }
                _ => self.single(&redirect.target, environment),
            };
            self.here = here;
            let text = |text: &str| match text.contains(UNKNOWN) {
                true => Input::Unknown { fetched: false, decoded: false },
                false => Input::Text(text.to_owned()),
            };
            match redirect.operator {
                Operator::HereDocument if redirect.default_descriptor => place.input = text(target.text()),
                Operator::HereString if redirect.default_descriptor => {
                    place.input = match text(&format!("{}\n", target.text())) {
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
                    place.reads.push(target);
                }
                Operator::ReadWrite => {
                    if redirect.default_descriptor {
                        place.input = Input::Unknown { fetched: false, decoded: false };
                    }
                    place.writes.push(target);
                }
                Operator::Duplicate => {
                    let number =
                        target.text().trim_end_matches('-').bytes().all(|byte| byte.is_ascii_digit());
                    if !number {
                        place.writes.push(target);
                    } else if redirect.default_descriptor {
                        place.input = Input::Unknown { fetched: false, decoded: false };
                    }
                }
                Operator::Write | Operator::Append | Operator::Both => {
                    if redirect.operator == Operator::Append || !redirect.default_descriptor {
                        // What was there before, or who writes to that descriptor, is unknown.
                        self.wrote(&target, Written::Unknown);
                    }
                    place.writes.push(target);
                }
            }
        }
        place
    }

    /// Remembers what redirections of a command wrote.
    pub(super) fn note_written(&mut self, place: &Place, output: &Output) {
        for path in &place.writes {
            let fetched = self.commands.last().is_some_and(programs::fetches);
            let written = match output {
                Some(text) => Written::Text(text.clone()),
                None if fetched => Written::Fetched,
                None => Written::Unknown,
            };
            self.wrote(path, written);
        }
    }

    /// Remembers a file. What is in one that was written before, or through another path, is unknown.
    pub(in crate::shell) fn wrote(&mut self, path: &Argument, written: Written) {
        let Some(path) = path.known() else {
            self.writes_unknown = true;
            if self.defers && !self.ran.is_empty() {
                self.hit("unknown.script", Some("it may be written before it runs"));
                if let Written::Text(script) = &written {
                    self.attempt_script(&script.clone());
                }
            }
            return;
        };
        if path.starts_with("/dev/") {
            return;
        }
        let name = file_name(path).to_owned();
        if self.ran.contains(&name) {
            // By a trap or a command in the background it may run after all of this.
            self.hit("unknown.script", Some("it is run before it is written"));
            if let Written::Text(script) = &written {
                self.attempt_script(&script.clone());
            }
        }
        let written = match self.files.get(&name) {
            None => written,
            Some(before) if *before == written => written,
            Some(Written::Fetched) => Written::Fetched,
            Some(_) => Written::Unknown,
        };
        self.files.insert(name, written);
    }

    /// What is in a file, if this command may have written it.
    pub(super) fn written(&self, path: &str) -> Option<Written> {
        let found = self.files.get(file_name(path)).cloned();
        found.or(self.writes_unknown.then_some(Written::Unknown))
    }

    /// What is in a file that is run.
    pub(super) fn run_file(&mut self, path: &str) -> Option<Written> {
        self.ran.insert(file_name(path).to_owned());
        self.written(path)
    }

    /// Redirections of no simple command.
    pub(super) fn redirected(&mut self, place: &Place) {
        rules::judge_redirects(self, place);
        if !place.writes.is_empty() {
            self.record(&[], Effects::of(&[Effect::Write]));
        }
    }

    /// Notes a simple command.
    pub(super) fn record(&mut self, argv: &[Argument], effects: Effects) {
        self.commands.push(Simple { argv: argv.to_vec(), effects, span: self.here });
    }
}

/// A path's last component, by which files are told apart: where a relative path starts is not followed.
fn file_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
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
