//! Follows a script as a shell would, without running it, and notes every simple command it may run.
//!
//! Where the way divides, both ways are followed and what they leave differently is unknown. Subshells see a
//! copy of the state. Loops are followed until another round would bring nothing new.

mod braces;
mod builtin;
mod call;
mod environment;
mod expand;
mod peel;
mod programs;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use claw_core::tool::{Effect, Effects};

use self::environment::{Environment, Variable};
use super::parse::{self, parse};
use super::rules::{self, Rules};
use super::syntax::{
    After, AssignedValue, Assignment, Command, Item, Kind, List, Operator, Part, Redirect, Word,
};
use super::verdict::{Argument, Decision, Finding, Simple, Span, UNKNOWN};

/// How many steps a script may take to follow.
const FUEL: usize = 20_000;
/// How often a loop is followed before its variables are given up.
const ROUNDS: usize = 3;

/// What a command reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    /// Whatever the script itself reads.
    Inherited,
    /// This text.
    Text(String),
    /// A file.
    File(Argument),
    /// Something that only run time knows.
    Unknown { fetched: bool, decoded: bool },
}

/// What a file holds that the script wrote itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Written {
    Text(String),
    Unknown,
    Fetched,
}

/// What a command writes to its standard output, where that is known.
pub(super) type Output = Option<String>;

/// Where a simple command stands, and in what surroundings.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) span: Span,
    pub(super) input: Input,
    /// Files that redirections write.
    pub(super) writes: Vec<Argument>,
    /// Files that redirections read.
    pub(super) reads: Vec<Argument>,
    /// Variables set for this command alone.
    pub(super) assigned: Vec<(String, Argument)>,
}

pub(super) struct Walker<'r> {
    pub(super) rules: &'r Rules,
    text: &'r str,
    pub(super) findings: Vec<Finding>,
    pub(super) commands: Vec<Simple>,
    fuel: usize,
    depth: usize,
    /// Where everything stands that a nested text holds.
    nested: Option<Span>,
    /// Where the walk is.
    here: Span,
    /// Functions that are being followed.
    calls: Vec<String>,
    called: BTreeSet<String>,
    /// How many things around run side by side.
    parallel: usize,
    /// How many decisions around may fall otherwise.
    perhaps: usize,
    /// What this command wrote itself, by the files' names without their directories.
    pub(super) files: BTreeMap<String, Written>,
    /// Whether it wrote a file of which the name is unknown.
    writes_unknown: bool,
    arithmetic_used: bool,
    /// Whether a variable holds text that arithmetic would run.
    tricky: bool,
}

impl<'r> Walker<'r> {
    pub(super) fn new(rules: &'r Rules, text: &'r str) -> Self {
        Self {
            rules,
            text,
            findings: Vec::new(),
            commands: Vec::new(),
            fuel: FUEL,
            depth: 0,
            nested: None,
            here: Span::default(),
            calls: Vec::new(),
            called: BTreeSet::new(),
            parallel: 0,
            perhaps: 0,
            files: BTreeMap::new(),
            writes_unknown: false,
            arithmetic_used: false,
            tricky: false,
        }
    }

    /// Follows the whole script.
    pub(super) fn script(&mut self) {
        let mut environment = Environment::default();
        match parse(self.text, 0) {
            Ok(list) => {
                self.list(&list, &mut environment, &Input::Inherited);
                self.never_called(&environment);
            }
            Err(error) => self.unreadable(&error),
        }
        if self.arithmetic_used && self.tricky {
            self.hit("eval.dynamic", None);
            self.hit("unknown.script", None);
        }
    }

    /// A text that is run as a script in this state.
    fn nested_script(&mut self, text: &str, environment: &mut Environment, input: &Input) -> Output {
        if text.contains(UNKNOWN) {
            self.hit("unknown.script", None);
            return None;
        }
        match parse(text, self.depth + 1) {
            Ok(list) => {
                let outer = self.nested.replace(self.here);
                self.depth += 1;
                let output = self.list(&list, environment, input);
                self.depth -= 1;
                self.nested = outer;
                output
            }
            Err(error) => {
                self.unreadable(&parse::ParseError { at: self.here.start, ..error });
                None
            }
        }
    }

    fn unreadable(&mut self, error: &parse::ParseError) {
        let span = Span { start: error.at.min(self.text.len()), end: self.text.len() };
        let what = error.what;
        self.hit_at("unknown.syntax", Some(what), self.nested.unwrap_or(span));
    }

    /// Functions that nothing here calls may be called by what is not seen.
    fn never_called(&mut self, environment: &Environment) {
        for (name, function) in &environment.functions {
            if self.called.contains(name) {
                continue;
            }
            for body in &function.bodies {
                let mut outside =
                    Environment { functions: environment.functions.clone(), ..Environment::default() };
                self.calls.push(name.clone());
                self.command(body, &mut outside, &Input::Unknown { fetched: false, decoded: false });
                self.calls.pop();
            }
        }
    }

    /// Takes one step; false once there have been too many.
    fn spend(&mut self) -> bool {
        match self.fuel.checked_sub(1) {
            Some(fuel) => {
                self.fuel = fuel;
                true
            }
            None => {
                if !self.findings.iter().any(|finding| finding.rule == "unknown.size") {
                    self.hit("unknown.size", None);
                }
                false
            }
        }
    }

    /// A rule has something against what stands here.
    pub(super) fn hit(&mut self, rule: &'static str, detail: Option<&str>) {
        self.hit_at(rule, detail, self.here);
    }

    fn hit_at(&mut self, rule: &'static str, detail: Option<&str>, span: Span) {
        let Some(rule) = rules::find(rule) else { return };
        if self.rules.is_off(rule) {
            return;
        }
        let finding = Finding {
            rule: rule.id.into(),
            verdict: rule.decision,
            span,
            part: self.part(span),
            reason: match detail {
                Some(detail) => format!("{}: {detail}", rule.person),
                None => rule.person.to_owned(),
            },
            advice: rule.model.to_owned(),
        };
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    pub(super) fn custom_hit(&mut self, rule: &str, decision: Decision, reason: &str) {
        let span = self.here;
        let finding = Finding {
            rule: rule.into(),
            verdict: decision,
            span,
            part: self.part(span),
            reason: reason.to_owned(),
            advice: reason.to_owned(),
        };
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    fn part(&self, span: Span) -> String {
        self.text.get(span.start..span.end).unwrap_or("").trim().to_owned()
    }

    fn list(&mut self, list: &List, environment: &mut Environment, input: &Input) -> Output {
        let mut output = Some(String::new());
        for item in &list.0 {
            if !self.spend() {
                return None;
            }
            let printed = self.item(item, environment, input);
            output = match (output, printed) {
                (Some(mut before), Some(printed)) if item.after == After::Always => {
                    before.push_str(&printed);
                    Some(before)
                }
                _ => None,
            };
        }
        output
    }

    fn item(&mut self, item: &Item, environment: &mut Environment, input: &Input) -> Output {
        if item.background {
            let mut copy = environment.clone();
            self.parallel += 1;
            let output = self.command(&item.command, &mut copy, input);
            self.parallel -= 1;
            return output;
        }
        match item.after {
            After::Always => self.command(&item.command, environment, input),
            After::Perhaps => self.perhaps(environment, |walker, environment| {
                walker.command(&item.command, environment, input)
            }),
        }
    }

    /// Follows something that may not happen.
    fn perhaps<T>(
        &mut self,
        environment: &mut Environment,
        follow: impl FnOnce(&mut Self, &mut Environment) -> T,
    ) -> T {
        let before = environment.clone();
        self.perhaps += 1;
        let result = follow(self, environment);
        self.perhaps -= 1;
        environment.merge(&before);
        result
    }

    fn command(&mut self, command: &Command, environment: &mut Environment, input: &Input) -> Output {
        if !self.spend() {
            return None;
        }
        self.here = self.nested.unwrap_or(command.span);
        if let Kind::Simple { assignments, words } = &command.kind {
            return self.simple(command, (assignments, words), environment, input);
        }
        let mut place = self.redirects(&command.redirects, environment, input);
        place.span = self.here;
        let redirected = !place.writes.is_empty();
        if redirected || !place.reads.is_empty() {
            self.redirected(&place);
        }
        let input = &place.input.clone();
        let output = self.compound(&command.kind, environment, input);
        self.note_written(&place, &output);
        if redirected { None } else { output }
    }

    fn compound(&mut self, kind: &Kind, environment: &mut Environment, input: &Input) -> Output {
        match kind {
            Kind::Simple { .. } => None,
            Kind::Pipeline(commands) => self.pipeline(commands, environment, input),
            Kind::Subshell(list) => self.list(list, &mut environment.clone(), input),
            Kind::Group(list) => self.list(list, environment, input),
            Kind::Coprocess(command) => {
                self.parallel += 1;
                // Whoever has its descriptors writes to it.
                let unknown = Input::Unknown { fetched: false, decoded: false };
                self.command(command, &mut environment.clone(), &unknown);
                self.parallel -= 1;
                environment.forget("COPROC");
                None
            }
            Kind::If { branches, otherwise } => {
                let mut reached = environment.clone();
                let mut ends: Vec<Environment> = Vec::new();
                self.perhaps += 1;
                for (condition, body) in branches {
                    self.list(condition, &mut reached, input);
                    let mut end = reached.clone();
                    self.list(body, &mut end, input);
                    ends.push(end);
                }
                if let Some(otherwise) = otherwise {
                    self.list(otherwise, &mut reached, input);
                }
                self.perhaps -= 1;
                ends.iter().for_each(|end| {
                    reached.merge(end);
                });
                *environment = reached;
                None
            }
            Kind::Loop { condition, body } => {
                self.rounds(environment, |walker, environment| {
                    walker.list(condition, environment, input);
                    walker.perhaps(environment, |walker, environment| {
                        walker.list(body, environment, input);
                    });
                });
                None
            }
            Kind::ArithmeticFor { expression, body } => {
                self.rounds(environment, |walker, environment| {
                    walker.arithmetic(expression, environment);
                    walker.list(body, environment, input);
                });
                None
            }
            Kind::For { variable, words, fixed, body } => {
                let values = match words {
                    Some(words) => Some(self.words(words, environment)),
                    None => environment.positional.clone(),
                };
                let values = values
                    .filter(|values| *fixed && values.len() <= 16 && values.iter().all(|v| !v.is_many()));
                let values = values.unwrap_or_else(|| vec![Argument::unknown()]);
                self.rounds(environment, |walker, environment| {
                    for value in &values {
                        environment.set(variable, Variable::Text(value.text().to_owned()));
                        walker.list(body, environment, input);
                    }
                });
                environment.forget(variable);
                None
            }
            Kind::Case { word, items } => {
                self.single(word, environment);
                let before = environment.clone();
                self.perhaps += 1;
                for (patterns, body) in items {
                    for pattern in patterns {
                        self.single(pattern, environment);
                    }
                    // `;&` falls through, so that each may run after any before it.
                    self.list(body, environment, input);
                    environment.merge(&before);
                }
                self.perhaps -= 1;
                None
            }
            Kind::Function { name, body } => {
                environment.define(name, body, self.perhaps == 0);
                Some(String::new())
            }
            Kind::Test(words) => {
                self.arithmetic_used = true;
                for word in words {
                    self.single(word, environment);
                }
                Some(String::new())
            }
            Kind::Arithmetic(parts) => {
                self.arithmetic(parts, environment);
                Some(String::new())
            }
        }
    }

    /// Follows a loop until another round would find the same state.
    fn rounds(&mut self, environment: &mut Environment, mut round: impl FnMut(&mut Self, &mut Environment)) {
        for i in 0..=ROUNDS {
            let before = environment.clone();
            if i == ROUNDS {
                environment.forget_all();
            }
            self.perhaps += 1;
            round(self, environment);
            self.perhaps -= 1;
            let after = environment.clone();
            *environment = before;
            if !environment.merge(&after) || self.fuel == 0 {
                return;
            }
        }
    }

    fn pipeline(&mut self, commands: &[Command], environment: &mut Environment, input: &Input) -> Output {
        let mut input = input.clone();
        let mut output = None;
        let first = self.commands.len();
        self.parallel += 1;
        for command in commands {
            output = self.command(command, &mut environment.clone(), &input);
            input = match &output {
                Some(text) => Input::Text(text.clone()),
                None => self.unknown_input(first),
            };
        }
        self.parallel -= 1;
        output
    }

    /// What comes of the commands found since: fetched from elsewhere, decoded, or neither.
    fn unknown_input(&self, first: usize) -> Input {
        let since = self.commands.get(first..).unwrap_or(&[]);
        let names = || since.iter().filter_map(|simple| simple.argv.first()?.known());
        Input::Unknown {
            fetched: since.iter().any(programs::fetches),
            decoded: names().any(programs::decodes),
        }
    }

    /// `$(...)`: what it prints, without the line ends at its end.
    fn substitution(&mut self, list: &Rc<List>, environment: &Environment) -> Output {
        if !self.spend() {
            return None;
        }
        let here = self.here;
        let output = self.list(list, &mut environment.clone(), &Input::Inherited);
        self.here = here;
        output.map(|text| text.trim_end_matches('\n').to_owned())
    }

    fn process(&mut self, list: &Rc<List>, writes: bool, environment: &Environment) {
        let here = self.here;
        let input = match writes {
            true => Input::Unknown { fetched: false, decoded: false },
            false => Input::Inherited,
        };
        self.parallel += 1;
        self.list(list, &mut environment.clone(), &input);
        self.parallel -= 1;
        self.here = here;
    }

    fn simple(
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
        for assignment in assignments {
            let value = self.assign(assignment, environment, argv.is_empty());
            place.assigned.push((assignment.name.clone(), value));
        }
        self.here = here;
        if !place.assigned.is_empty() {
            rules::judge_assignments(self, &place);
        }
        if argv.is_empty() {
            self.redirected(&place);
            self.note_written(&place, &Some(String::new()));
            // Words that all vanished: the last substitution was the command.
            return if words.is_empty() { Some(String::new()) } else { None };
        }
        let declares =
            matches!(argv[0].known(), Some("declare" | "typeset" | "local" | "export" | "readonly"));
        if declares {
            for assignment in assignments {
                environment.forget(&assignment.name);
            }
        }
        let output = self.run(&argv, &place, environment);
        self.here = here;
        self.note_written(&place, &output);
        if place.writes.is_empty() { output } else { None }
    }

    fn assign(&mut self, assignment: &Assignment, environment: &mut Environment, lasting: bool) -> Argument {
        let (value, variable) = match &assignment.value {
            AssignedValue::Word(word) => {
                let value = self.single(word, environment);
                let variable = match (assignment.indexed, assignment.append) {
                    (true, _) => Variable::Unknown,
                    (false, false) => Variable::Text(value.text().to_owned()),
                    (false, true) => match environment.text(&assignment.name) {
                        Some(before) => Variable::Text(format!("{before}{}", value.text())),
                        None => Variable::Unknown,
                    },
                };
                self.arithmetic_used |= assignment.indexed;
                (value, variable)
            }
            AssignedValue::Array(words) => {
                let keyed = |word: &Word| matches!(word.parts.first(), Some(Part::Plain(text)) if text.starts_with('['));
                let values = self.words(words, environment);
                let known = !assignment.append && !words.iter().any(keyed);
                (Argument::unknown(), if known { Variable::Array(values) } else { Variable::Unknown })
            }
        };
        if let Variable::Text(text) = &variable {
            self.tricky |= text.contains('[') && (text.contains("$(") || text.contains('`'));
        }
        if lasting {
            environment.set(&assignment.name, variable);
        }
        value
    }

    fn redirects(&mut self, redirects: &[Redirect], environment: &mut Environment, input: &Input) -> Place {
        let mut place = Place {
            span: self.here,
            input: input.clone(),
            writes: Vec::new(),
            reads: Vec::new(),
            assigned: Vec::new(),
        };
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
                    if redirect.operator == Operator::Append {
                        // What was there before is unknown.
                        self.wrote(&target, Written::Unknown);
                    }
                    place.writes.push(target);
                }
            }
        }
        place
    }

    /// Remembers what redirections of a command wrote.
    fn note_written(&mut self, place: &Place, output: &Output) {
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
    pub(super) fn wrote(&mut self, path: &Argument, written: Written) {
        let Some(path) = path.known() else {
            self.writes_unknown = true;
            return;
        };
        if path.starts_with("/dev/") {
            return;
        }
        let name = file_name(path).to_owned();
        let written = match self.files.get(&name) {
            None => written,
            Some(before) if *before == written => written,
            Some(Written::Fetched) => Written::Fetched,
            Some(_) => Written::Unknown,
        };
        self.files.insert(name, written);
    }

    /// What is in a file, if this command may have written it.
    fn written(&self, path: &str) -> Option<Written> {
        let found = self.files.get(file_name(path)).cloned();
        found.or(self.writes_unknown.then_some(Written::Unknown))
    }

    /// Redirections of no simple command.
    fn redirected(&mut self, place: &Place) {
        rules::judge_redirects(self, place);
        if !place.writes.is_empty() {
            self.record(&[], Effects::of(&[Effect::Write]));
        }
    }

    /// Notes a simple command.
    fn record(&mut self, argv: &[Argument], effects: Effects) {
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
