//! Follows a script as a shell would, without running it, and records every simple command that it may run.
//!
//! At a branch, both ways are followed, and state that differs after them is unknown. Subshells see a copy of
//! the state. Loops are followed until another round would bring nothing new.

mod arithmetic;
mod braces;
mod builtin;
mod call;
mod environment;
mod expand;
mod files;
mod known_output;
mod programs;
mod runners;
mod simple;
mod skips;
mod stdin_readers;
mod wrappers;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

pub(super) use self::programs::{is_shell, name};
pub(super) use self::wrappers::long_option;

use self::arithmetic::Arithmetic;
use self::environment::{Environment, Variable};
use self::simple::SimpleWords;
use self::skips::Skips;
use super::parse::{self, parse};
use super::rules::{self, Rules};
use super::syntax::{After, Command, Item, Kind, List, Word};
use super::verdict::{Argument, Decision, Finding, Simple, Span, UNKNOWN};

/// Number of steps for following a script.
const FUEL: usize = 20_000;
/// Number of rounds of a loop before its variables count as unknown.
const ROUNDS: usize = 3;

/// The input of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    /// The input of the script itself.
    Inherited,
    /// This text.
    Text(String),
    /// A file.
    File(Argument),
    /// Known only at run time.
    Unknown { fetched: bool, decoded: bool },
}

/// The content of a file that the script wrote itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Written {
    Text(String),
    Unknown,
    Fetched,
    /// A copy of this program, or a link to it.
    Program(String),
}

/// The standard output of a command, if it is known.
pub(super) type Output = Option<String>;

/// The position and surroundings of a simple command.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) span: Span,
    pub(super) input: Input,
    /// Files that redirections write.
    pub(super) writes: Vec<Argument>,
    /// Files that redirections read.
    pub(super) reads: Vec<Argument>,
    /// Variables set only for this command.
    pub(super) assigned: Vec<(String, Argument)>,
    /// Errors go to the output.
    pub(super) mixes: bool,
    /// Writing appends to the file.
    pub(super) appends: bool,
    /// A descriptor is named that may not be open.
    pub(super) uncertain: bool,
}

impl Place {
    /// Returns whether a file may fail to open, so that nothing runs here.
    fn may_fail(&self) -> bool {
        self.uncertain || self.writes.iter().chain(&self.reads).any(|path| path.known() != Some("/dev/null"))
    }

    /// A place without surroundings.
    pub(super) fn nowhere() -> Self {
        Self {
            span: Span::default(),
            input: Input::Inherited,
            writes: Vec::new(),
            reads: Vec::new(),
            assigned: Vec::new(),
            mixes: false,
            appends: false,
            uncertain: false,
        }
    }
}

pub(super) struct Walker<'r> {
    pub(super) rules: &'r Rules,
    text: &'r str,
    pub(super) findings: Vec<Finding>,
    pub(super) commands: Vec<Simple>,
    /// Files that redirections read.
    pub(super) reads: Vec<Argument>,
    fuel: usize,
    depth: usize,
    /// The position of a nested text, used for everything in it.
    nested: Option<Span>,
    /// The current position.
    here: Span,
    /// Functions that are being followed.
    calls: Vec<String>,
    called: BTreeSet<String>,
    /// Number of enclosing parts that run in parallel.
    parallel: usize,
    /// Number of enclosing conditions that may turn out otherwise.
    perhaps: usize,
    /// The parts of the script that the shell may skip from here on.
    skips: Skips,
    /// Number of enclosing compound commands.
    inside: usize,
    /// Output from here on may go elsewhere, end early or be mixed with more: descriptors were changed, a
    /// trap was set, or errors end the shell.
    moved: bool,
    /// Texts of the script that a program may have put into a file.
    texts: Vec<String>,
    /// Files that such a program was given, by their names.
    given: BTreeSet<String>,
    /// The content of the files that this command wrote itself, by name without directory.
    pub(super) files: BTreeMap<String, Written>,
    /// Everything that is known to have been written to each of them, in any order.
    held: BTreeMap<String, Vec<Written>>,
    /// Files that may be the same, by name.
    linked: BTreeSet<String>,
    /// Scripts that were run before this command wrote them, by their names.
    ran: BTreeSet<String>,
    /// It wrote a file with an unknown name.
    writes_unknown: bool,
    /// Programs may be searched in other directories than before.
    pub(super) path_is_set: bool,
    /// Something runs later than its position: by a trap, or in the background.
    defers: bool,
    /// Variables that may be arrays.
    arrays: BTreeSet<String>,
    /// Local variables of the function that is being followed.
    locals: Vec<String>,
    /// The shell that is followed reads its script from its input.
    reads_script: bool,
    /// This shell or an enclosing one does, so that a program that reads this input takes lines of a script.
    takes_script: bool,
    /// The text being followed may not be a command.
    attempting: bool,
    arithmetic: Arithmetic,
}

impl<'r> Walker<'r> {
    pub(super) fn new(rules: &'r Rules, text: &'r str) -> Self {
        Self {
            rules,
            text,
            findings: Vec::new(),
            commands: Vec::new(),
            reads: Vec::new(),
            fuel: FUEL,
            depth: 0,
            nested: None,
            here: Span::default(),
            calls: Vec::new(),
            called: BTreeSet::new(),
            parallel: 0,
            perhaps: 0,
            skips: Skips::default(),
            inside: 0,
            moved: false,
            texts: Vec::new(),
            given: BTreeSet::new(),
            files: BTreeMap::new(),
            held: BTreeMap::new(),
            linked: BTreeSet::new(),
            ran: BTreeSet::new(),
            writes_unknown: false,
            path_is_set: false,
            defers: false,
            arrays: BTreeSet::new(),
            locals: Vec::new(),
            reads_script: false,
            takes_script: false,
            attempting: false,
            arithmetic: Arithmetic::default(),
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
        self.judge_arithmetic();
    }

    /// Follows a text that is run as a script in this state.
    fn nested_script(&mut self, text: &str, environment: &mut Environment, input: &Input) -> Output {
        if text.contains(UNKNOWN) {
            self.hit("unknown.script", None);
            return None;
        }
        match parse(text, self.depth + 1) {
            Ok(list) => {
                let outer = self.nested.replace(self.here);
                let before = environment.clone();
                self.depth += 1;
                let output = self.list(&list, environment, input);
                self.depth -= 1;
                self.nested = outer;
                // Bash may find an error that is not seen here, and then runs nothing of it.
                environment.merge(&before);
                if text.contains("[[") { None } else { output }
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

    /// Follows functions that are never called here: unseen code may call them.
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

    /// Spends one step; returns false once there have been too many.
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

    /// Records a rule's objection to the current position.
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
            verdict: self.rules.decision(rule),
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
                (Some(mut before), Some(printed))
                    if item.after == After::Always && !self.skips.any() && !self.moved =>
                {
                    before.push_str(&printed);
                    Some(before)
                }
                _ => None,
            };
        }
        output
    }

    fn item(&mut self, item: &Item, environment: &mut Environment, input: &Input) -> Output {
        self.defers |= item.background;
        if item.background {
            let mut copy = environment.clone();
            self.parallel += 1;
            let output = self.command(&item.command, &mut copy, input);
            self.parallel -= 1;
            return output;
        }
        if self.is_line(item) {
            self.skips.of_line = false;
        }
        self.skips.of_line |= skips::may_fail(&item.command, environment);
        match item.after {
            After::Always if !self.skips.any() => self.command(&item.command, environment, input),
            After::Always | After::Perhaps => self.perhaps(environment, |walker, environment| {
                walker.command(&item.command, environment, input)
            }),
        }
    }

    /// Returns whether a line of the script itself begins here. A failure before has ended with the previous
    /// line.
    fn is_line(&self, item: &Item) -> bool {
        let before = self.text.get(..item.command.span.start).unwrap_or("");
        let before = before.trim_end_matches([' ', '\t']);
        self.inside == 0
            && self.depth == 0
            && self.nested.is_none()
            && self.calls.is_empty()
            && before.ends_with('\n')
            // A continued line is not a new one.
            && !before.ends_with("\\\n")
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
            return self.simple(command, SimpleWords { assignments, words }, environment, input);
        }
        let mut place = self.redirects(&command.redirects, environment, input);
        place.span = self.here;
        let redirected = !place.writes.is_empty();
        if redirected || !place.reads.is_empty() {
            self.redirected(&place);
        }
        let input = &place.input.clone();
        let before = place.may_fail().then(|| environment.clone());
        self.inside += 1;
        let output = self.compound(&command.kind, environment, input);
        self.inside -= 1;
        if let Some(before) = before {
            environment.merge(&before);
        }
        self.note_written(&place, &output);
        if redirected || place.mixes { None } else { output }
    }

    fn compound(&mut self, kind: &Kind, environment: &mut Environment, input: &Input) -> Output {
        match kind {
            Kind::Simple { .. } => None,
            Kind::Pipeline(commands) => self.pipeline(commands, environment, input),
            Kind::Subshell(list) => self.list(list, &mut environment.clone(), input),
            Kind::Group(list) => self.list(list, environment, input),
            Kind::Coprocess(command) => {
                self.defers = true;
                self.parallel += 1;
                // Any holder of its descriptors writes to it.
                let unknown = Input::Unknown { fetched: false, decoded: false };
                self.command(command, &mut environment.clone(), &unknown);
                self.parallel -= 1;
                environment.forget("COPROC");
                None
            }
            Kind::If { branches, otherwise } => {
                self.branches(branches, otherwise.as_ref(), environment, input);
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
                    walker.expression(expression, environment);
                    walker.list(body, environment, input);
                });
                None
            }
            Kind::For { variable, words, fixed, body } => {
                let values = self.loop_values(variable, words.as_deref(), environment);
                // `select` reads the choice from the input.
                if !fixed && self.takes_script && *input == Input::Inherited {
                    self.hit("unknown.script", Some("it reads lines of the same script as its shell"));
                }
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
                self.case(word, items, environment, input);
                None
            }
            Kind::Function { name, body } => {
                environment.define(name, body, self.perhaps == 0);
                Some(String::new())
            }
            Kind::Test(words) => {
                self.arithmetic.used = true;
                for word in words {
                    let word = self.single(word, environment);
                    self.arithmetic.keeps(word.text());
                }
                Some(String::new())
            }
            Kind::Arithmetic(parts) => {
                self.expression(parts, environment);
                Some(String::new())
            }
        }
    }

    /// Follows each branch of an `if`, any of which may run.
    fn branches(
        &mut self,
        branches: &[(List, List)],
        otherwise: Option<&List>,
        environment: &mut Environment,
        input: &Input,
    ) {
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
    }

    /// Expands and judges the values that a `for` gives its variable; `None` if they are unknown.
    fn loop_values(
        &mut self,
        variable: &str,
        words: Option<&[Word]>,
        environment: &mut Environment,
    ) -> Option<Vec<Argument>> {
        let values = match words {
            Some(words) => Some(self.words(words, environment)),
            None => environment.positional.clone(),
        };
        for value in values.iter().flatten() {
            rules::judge_assignment(self, variable, value);
            self.arithmetic.keeps(value.text());
        }
        values
    }

    /// Follows each branch of a `case`, any of which may run.
    fn case(
        &mut self,
        word: &Word,
        items: &[(Vec<Word>, List)],
        environment: &mut Environment,
        input: &Input,
    ) {
        self.single(word, environment);
        let before = environment.clone();
        self.perhaps += 1;
        for (patterns, body) in items {
            for pattern in patterns {
                self.single(pattern, environment);
            }
            // `;&` falls through, so that each branch may run after any before it.
            self.list(body, environment, input);
            environment.merge(&before);
        }
        self.perhaps -= 1;
    }

    /// Follows a loop until another round would find the same state.
    fn rounds(&mut self, environment: &mut Environment, round: impl FnMut(&mut Self, &mut Environment)) {
        let skips = self.skips.of_loop;
        self.round_after_round(environment, round);
        self.skips.of_loop = skips;
    }

    fn round_after_round(
        &mut self,
        environment: &mut Environment,
        mut round: impl FnMut(&mut Self, &mut Environment),
    ) {
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
        let outer = match input {
            Input::Unknown { fetched, decoded } => (*fetched, *decoded),
            _ => (false, false),
        };
        let mut input = input.clone();
        let mut output = None;
        let first = self.commands.len();
        self.parallel += 1;
        for command in commands {
            output = self.command(command, &mut environment.clone(), &input);
            input = match &output {
                Some(text) => Input::Text(text.clone()),
                // Input of a group passes through the commands in it.
                None => match self.unknown_input(first) {
                    Input::Unknown { fetched, decoded } => {
                        Input::Unknown { fetched: fetched || outer.0, decoded: decoded || outer.1 }
                    }
                    known => known,
                },
            };
        }
        self.parallel -= 1;
        output
    }

    /// The input from the commands since `first`: fetched from elsewhere, decoded, or neither.
    fn unknown_input(&self, first: usize) -> Input {
        let since = self.commands.get(first..).unwrap_or(&[]);
        let names = || since.iter().filter_map(|simple| simple.argv.first()?.known());
        Input::Unknown {
            fetched: since.iter().any(programs::fetches),
            decoded: names().any(programs::decodes),
        }
    }

    /// The output of `$(...)`, without the line ends at its end.
    fn substitution(&mut self, list: &Rc<List>, environment: &Environment) -> Output {
        if !self.spend() {
            return None;
        }
        let here = self.here;
        self.inside += 1;
        let output = self.list(list, &mut environment.clone(), &Input::Inherited);
        self.inside -= 1;
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
        self.inside += 1;
        self.list(list, &mut environment.clone(), &input);
        self.inside -= 1;
        self.parallel -= 1;
        self.here = here;
    }
}
