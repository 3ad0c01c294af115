//! Builtins that run other commands or change the state of the shell.

use super::environment::{Environment, Variable};
use super::{Input, Output, Place, Walker, Written, known_output};
use crate::shell::rules;
use crate::shell::verdict::{Argument, UNKNOWN};

impl Walker<'_> {
    /// Follows a builtin; `None` if the name is no builtin, or one that acts like the program of that name.
    pub(super) fn builtin(
        &mut self,
        name: &str,
        argv: &[Argument],
        place: &Place,
        environment: &mut Environment,
    ) -> Option<Output> {
        let arguments = &argv[1..];
        match name {
            "eval" => Some(self.eval(arguments, place, environment)),
            "source" | "." => {
                self.source(arguments, place, environment);
                Some(None)
            }
            "trap" => {
                self.trap(arguments, environment);
                Some(Some(String::new()))
            }
            "break" | "continue" => {
                match arguments.iter().all(|argument| argument.known() == Some("1")) {
                    true => self.skips.of_loop = true,
                    // It affects enclosing loops too.
                    false => self.skips.of_line = true,
                }
                Some(Some(String::new()))
            }
            "return" => {
                match self.calls.is_empty() {
                    true => self.skips.of_line = true,
                    false => self.skips.of_function = true,
                }
                Some(Some(String::new()))
            }
            "alias" => {
                self.define_aliases(arguments, environment);
                Some(Some(String::new()))
            }
            "command" | "builtin" | "exec" => self.directly(name, arguments, place, environment),
            "declare" | "typeset" | "local" | "export" | "readonly" => {
                self.declare(name, arguments, environment);
                Some(Some(String::new()))
            }
            "read" | "unset" | "getopts" | "let" | "mapfile" | "readarray" | "printf" | "wait" => {
                self.sets(name, arguments, environment)
            }
            "shopt" => {
                self.shopt(arguments);
                Some(Some(String::new()))
            }
            "set" => {
                self.set(arguments, environment);
                Some(Some(String::new()))
            }
            "shift" => {
                shift(arguments, environment);
                Some(Some(String::new()))
            }
            "hash" if !arguments.is_empty() => self.asks("unknown.shell-state", arguments, "-r"),
            "enable" | "fc" | "bind" | "complete" | "compgen" | "compopt" => {
                self.asks("unknown.shell-state", arguments, "")
            }
            "jobs"
                if arguments
                    .iter()
                    .any(|argument| argument.known().is_none_or(|text| text.contains('x'))) =>
            {
                self.asks("unknown.command", arguments, "")
            }
            "test" | "[" => {
                self.arithmetic.used = true;
                Some(Some(String::new()))
            }
            _ => None,
        }
    }

    /// Judges options of the shell: those that change how commands are read are unknown.
    fn shopt(&mut self, arguments: &[Argument]) {
        const PLAIN: &[&str] = &[
            "-s",
            "-u",
            "-q",
            "-p",
            "nullglob",
            "globstar",
            "dotglob",
            "nocaseglob",
            "expand_aliases",
            "inherit_errexit",
            "checkwinsize",
            "histappend",
        ];
        if arguments.iter().any(|argument| argument.known().is_none_or(|text| !PLAIN.contains(&text))) {
            self.hit("unknown.shell-state", None);
        }
    }

    /// Follows `set`: options, and the positional parameters.
    fn set(&mut self, arguments: &[Argument], environment: &mut Environment) {
        // `-k` takes assignments out of the arguments, `+B` turns off brace expansion.
        let options = arguments.iter().take_while(|argument| argument.text() != "--");
        if options.into_iter().any(|argument| {
            let text = argument.text();
            let switch = text.starts_with(['-', '+']) && text.contains(['k', 'B', 'r']);
            matches!(text, "keyword" | "braceexpand")
                || switch
                || argument.may_be_option()
                || argument.is_unclear_option("")
        }) {
            self.hit("unknown.shell-state", None);
        }
        // A failure, or an unset variable, may end the shell.
        self.moved |=
            arguments.iter().any(|argument| argument.text().starts_with('-') && argument.text() != "--");
        self.set_positional(arguments, environment);
    }

    fn asks(&mut self, rule: &'static str, arguments: &[Argument], harmless: &str) -> Option<Output> {
        if arguments.is_empty() || arguments.iter().any(|argument| argument.known() != Some(harmless)) {
            self.hit(rule, None);
        }
        self.attempt_texts(arguments);
        Some(None)
    }

    /// Follows arguments that may be scripts for later: callbacks, completions, keys.
    pub(super) fn attempt_texts(&mut self, arguments: &[Argument]) {
        for text in arguments.iter().filter_map(Argument::known) {
            // `bind -x '"key": command'`.
            let text = text.rsplit_once("\":").map_or(text, |(_, command)| command);
            if text.contains(' ') {
                self.attempt_script(text);
            }
        }
    }

    fn eval(&mut self, arguments: &[Argument], place: &Place, environment: &mut Environment) -> Output {
        let arguments = match arguments {
            [first, rest @ ..] if first.known() == Some("--") => rest,
            all => all,
        };
        let text: Vec<&str> = arguments.iter().map(Argument::text).collect();
        let text = text.join(" ");
        if arguments.iter().any(Argument::is_many) || text.contains(UNKNOWN) {
            rules::judge_dynamic(self, &text);
            self.hit("eval.dynamic", None);
            environment.forget_all();
            return None;
        }
        self.depth += 1;
        let output = self.nested_script(&text, environment, &place.input);
        self.depth -= 1;
        output
    }

    fn source(&mut self, arguments: &[Argument], place: &Place, environment: &mut Environment) {
        let Some(path) = arguments.iter().find(|argument| argument.known() != Some("--")) else { return };
        match path.known() {
            Some("/dev/stdin" | "/proc/self/fd/0" | "/dev/fd/0") => match &place.input {
                Input::Text(script) => {
                    self.nested_script(&script.clone(), environment, &Input::Inherited);
                }
                input => rules::judge_piped(self, "source", input),
            },
            _ if matches!(place.input, Input::Unknown { fetched: true, .. }) && path.may_be_option() => {
                rules::judge_piped(self, "source", &place.input);
            }
            _ => self.shell_file(path, environment),
        }
        environment.forget_all();
        environment.other_splitting = false;
        // It may contain a `break`.
        self.skips.of_line = true;
    }

    fn trap(&mut self, arguments: &[Argument], environment: &mut Environment) {
        self.defers = true;
        // A shell may print more at its end.
        self.moved = true;
        let arguments = match arguments {
            [first, rest @ ..] if first.known() == Some("--") => rest,
            all => all,
        };
        let Some(action) = arguments.first() else { return };
        match action.known() {
            // The state in which it will run is not known.
            Some(action) if !action.starts_with('-') => {
                let mut later =
                    Environment { functions: environment.functions.clone(), ..Environment::default() };
                let skips = std::mem::take(&mut self.skips);
                self.nested_script(action, &mut later, &Input::Inherited);
                let skips_then = std::mem::replace(&mut self.skips, skips);
                self.skips.of_line |= skips_then.any();
                // It may run between any two following commands, and set these variables.
                for name in later.variables.keys() {
                    environment.make_odd(name);
                    environment.forget(name);
                }
                for (name, function) in &later.functions {
                    if environment.functions.get(name) != Some(function) {
                        function.bodies.iter().for_each(|body| environment.define(name, body, false));
                        environment.functions.entry(name.clone()).and_modify(|own| own.certain = false);
                    }
                }
            }
            Some(_) => {}
            None => rules::judge_dynamic(self, action.text()),
        }
    }

    fn define_aliases(&mut self, arguments: &[Argument], environment: &mut Environment) {
        for argument in arguments {
            let Some((name, value)) = argument.text().split_once('=') else {
                if argument.may_be_option() {
                    self.hit("unknown.shell-state", None);
                }
                continue;
            };
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "._-+:/".contains(c));
            const RESERVED: &[&str] = &[
                "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac",
                "in", "function", "select", "time", "coproc",
            ];
            // If a here-document begins in an alias, the lines after its use decide where it ends.
            let lines = value.contains('\n') || value.contains("<<");
            if !plain || RESERVED.contains(&name) || argument.known().is_none() || lines {
                self.hit("unknown.shell-state", None);
                continue;
            }
            // Also judged at its definition: its use may not be seen.
            let mut later =
                Environment { functions: environment.functions.clone(), ..Environment::default() };
            self.nested_script(value, &mut later, &Input::Unknown { fetched: false, decoded: false });
            environment.aliases.insert(name.to_owned(), value.to_owned());
        }
    }

    /// Follows `command`, `builtin` and `exec`, which skip functions of that name.
    fn directly(
        &mut self,
        name: &str,
        arguments: &[Argument],
        place: &Place,
        environment: &mut Environment,
    ) -> Option<Output> {
        let mut rest = arguments;
        while let [first, after @ ..] = rest {
            match first.known() {
                Some("--") => {
                    rest = after;
                    break;
                }
                Some(flags) if flags.len() > 1 && flags.starts_with('-') => {
                    if name == "command" && flags.contains(['v', 'V']) {
                        return Some(None);
                    }
                    // The text after `a` in the same word is its value: `-aname`, `-claa`.
                    rest = match name == "exec" && flags.find('a') == Some(flags.len() - 1) {
                        true => after.get(1..).unwrap_or(&[]),
                        false => after,
                    };
                }
                _ => break,
            }
        }
        let Some(first) = rest.first() else {
            self.moved |= place.mixes || !place.writes.is_empty();
            // `exec > f`: the following commands write to it.
            for path in &place.writes {
                self.wrote(path, Written::Unknown);
            }
            // `exec <<< ...`: a shell that reads its script continues with this.
            match &place.input {
                Input::Text(script) if self.reads_script => {
                    self.nested_script(&script.clone(), environment, &Input::Inherited);
                }
                Input::File(path) if self.reads_script => self.shell_file(&path.clone(), environment),
                Input::Unknown { .. } if self.reads_script => self.hit("unknown.script", None),
                _ => {}
            }
            return Some(Some(String::new()));
        };
        self.depth += 1;
        let output = match first.known().map(str::to_owned) {
            Some(written) => self.program(&written, rest, place, environment),
            None => {
                self.run(rest, place, environment);
                None
            }
        };
        self.depth -= 1;
        Some(output)
    }

    fn declare(&mut self, builtin: &str, arguments: &[Argument], environment: &mut Environment) {
        let flags: String =
            arguments.iter().map(Argument::text).filter(|text| text.starts_with(['-', '+'])).collect();
        if arguments.iter().any(Argument::may_be_option) {
            environment.forget_all();
            self.hit("unknown.shell-state", None);
        }
        if flags.contains('n') && builtin != "export" {
            // A reference: the name means another variable from here on.
            self.hit("unknown.shell-state", None);
        }
        if flags.contains('f') && (builtin == "readonly" || flags.contains('r')) {
            // A definition may fail from here on.
            self.hit("unknown.shell-state", None);
        }
        // A failure here ends the line.
        let plain = |argument: &Argument| !argument.text().contains('[');
        if flags.contains(['A', 'i', 'r']) || !arguments.iter().all(plain) {
            self.skips.of_line = true;
        }
        // A failing declaration, or one that only shows, sets nothing.
        let fails = flags.contains(|flag: char| !"-+aAgirtxluc".contains(flag))
            || (builtin == "local" && self.calls.is_empty());
        let odd = builtin == "readonly" || flags.contains(['r', 'i', 'u', 'l', 'c']);
        self.arithmetic.used |= flags.contains('i');
        let local = !self.calls.is_empty() && matches!(builtin, "local" | "declare" | "typeset");
        for text in arguments.iter().map(Argument::text).filter(|text| !text.starts_with(['-', '+'])) {
            let name = variable_of(text);
            if text.split('=').next().is_some_and(|name| name.contains(UNKNOWN)) {
                self.hit("unknown.shell-state", None);
            }
            if flags.contains(['a', 'A']) {
                self.arrays.insert(name.clone());
            }
            match text[name.len()..].strip_prefix('=') {
                Some(value) => {
                    if value.starts_with(UNKNOWN) && self.arrays.contains(&name) {
                        self.hit("unknown.script", Some("the value of an array is expanded again"));
                    }
                    rules::judge_assignment(self, &name, &Argument::new(value));
                    match value.strip_prefix('(') {
                        // For an array these are words, which are expanded.
                        Some(words) => {
                            self.hit("unknown.script", Some("the value of an array is expanded again"));
                            self.attempt_script(&format!(": {}", words.trim_end_matches(')')));
                            environment.forget(&name);
                        }
                        None if fails => environment.forget(&name),
                        None => environment.set(&name, Variable::Text(value.to_owned())),
                    }
                }
                // An element, an appended value, or no value: the result is not followed.
                None if text.len() > name.len() || local => {
                    if text.contains("=(") {
                        self.hit("unknown.script", Some("the value of an array is expanded again"));
                    }
                    self.arithmetic.used |= text.contains('[');
                    environment.forget(&name);
                }
                None => {}
            }
            if odd {
                environment.make_odd(&name);
                if flags.contains(['i', 'u', 'l', 'c']) {
                    environment.forget(&name);
                }
            }
            if local {
                self.locals.push(name);
            }
        }
    }

    fn sets(&mut self, name: &str, arguments: &[Argument], environment: &mut Environment) -> Option<Output> {
        if arguments.iter().any(|argument| argument.may_be_option() && argument.is_many()) && name != "printf"
        {
            environment.forget_all();
        }
        match name {
            "printf" => return self.prints_into(arguments, environment),
            "mapfile" | "readarray"
                if arguments.iter().any(|argument| {
                    let option = argument.text().starts_with('-') || argument.may_be_option();
                    option && (argument.text().contains('C') || argument.may_be_option())
                }) =>
            {
                self.attempt_texts(arguments);
                self.hit("unknown.command", None);
            }
            "unset" if arguments.iter().any(|argument| argument.text().starts_with("-f")) => {
                environment.functions.values_mut().for_each(|function| function.certain = false);
            }
            "let" => self.arithmetic.used = true,
            _ => {}
        }
        self.arithmetic.used |= arguments.iter().any(|argument| argument.text().contains(['[', UNKNOWN]));
        let names_one = |(i, argument): (usize, &Argument)| {
            // `read -p "$X"`: the value of an option.
            let before = i.checked_sub(1).and_then(|before| arguments.get(before)).map_or("", Argument::text);
            let value = before.starts_with('-') && before.ends_with(['p', 't', 'd', 'n', 'N', 'u', 'i']);
            argument.may_be_option() && !value
        };
        if matches!(name, "read" | "mapfile" | "readarray" | "getopts")
            && arguments.iter().enumerate().any(names_one)
        {
            self.hit("unknown.shell-state", Some("the variable's name is only known at run time"));
        }
        if name == "unset" && arguments.iter().any(Argument::may_be_option) {
            environment.functions.values_mut().for_each(|function| function.certain = false);
        }
        for (i, argument) in arguments.iter().enumerate() {
            let variable = variable_of(argument.text());
            if !variable.is_empty() {
                environment.forget(&variable);
            }
            if name != "unset" || variable == "PATH" {
                self.fill(&variable);
            }
            let name = variable;
            if name.is_empty() && names_one((i, argument)) {
                environment.forget_all();
            }
        }
        self.arithmetic.reads();
        for name in ["REPLY", "MAPFILE", "OPTARG"] {
            environment.forget(name);
        }
        if matches!(name, "unset") {
            for argument in arguments.iter().filter_map(Argument::known) {
                if let Some(function) = environment.functions.get_mut(argument) {
                    function.certain = false;
                }
            }
        }
        Some(None)
    }

    /// Follows `printf -v`, which sets a variable; `None` if it prints.
    fn prints_into(&mut self, arguments: &[Argument], environment: &mut Environment) -> Option<Output> {
        let variable = match arguments {
            [first, second, ..] if first.known() == Some("-v") => second.text().to_owned(),
            [first, ..] if first.text().starts_with("-v") => first.text()[2..].to_owned(),
            [first, ..] if first.may_be_option() => {
                // It may be `-v`, which sets any variable.
                let option = first.text().trim_start_matches(UNKNOWN).starts_with('-');
                if option || (first.is_many() && arguments.len() > 1) {
                    self.hit("unknown.shell-state", None);
                }
                environment.forget_all();
                return None;
            }
            _ => return None,
        };
        self.arithmetic.used = true;
        if variable.contains(UNKNOWN) {
            self.hit("unknown.shell-state", Some("the variable's name is only known at run time"));
            environment.forget_all();
        }
        let variable = variable_of(&variable);
        self.fill(&variable);
        environment.forget(&variable);
        Some(known_output::output("true", &[], &Input::Inherited))
    }

    /// Notes that a builtin sets a variable.
    fn fill(&mut self, variable: &str) {
        match variable {
            "" => {}
            name => rules::judge_filled(self, name),
        }
    }

    fn set_positional(&mut self, arguments: &[Argument], environment: &mut Environment) {
        let Some(dashes) = arguments.iter().position(|argument| argument.known() == Some("--")) else {
            if arguments.iter().any(|argument| !argument.text().starts_with(['-', '+'])) {
                environment.positional = match arguments.iter().any(Argument::may_be_option)
                    || arguments[0].text().starts_with(['-', '+'])
                {
                    true => None,
                    false => Some(arguments.to_vec()),
                };
            }
            return;
        };
        // All words after the first that is not an option count: `set x -- y` sets three.
        let options = |argument: &Argument| argument.known().is_some_and(|text| text.starts_with(['-', '+']));
        let after = arguments[dashes + 1..].to_vec();
        environment.positional = arguments[..dashes].iter().all(options).then_some(after);
    }
}

/// Drops the first positional parameter; more than one makes them unknown.
fn shift(arguments: &[Argument], environment: &mut Environment) {
    match (&mut environment.positional, arguments) {
        (Some(values), []) if values.iter().all(|value| !value.is_many()) => {
            if !values.is_empty() {
                values.remove(0);
            }
        }
        (positional, _) => *positional = None,
    }
}

/// The name of a variable at the beginning of a text.
fn variable_of(text: &str) -> String {
    text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
}
