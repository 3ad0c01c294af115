//! Builtins that run other commands or change what the shell knows.

use super::environment::{Environment, Variable};
use super::{Input, Output, Place, Walker, text};
use crate::shell::rules;
use crate::shell::verdict::{Argument, UNKNOWN};

impl Walker<'_> {
    /// Follows a builtin; `None` where the name is none, or acts as a program of that name does.
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
            "alias" => {
                self.define_aliases(arguments, environment);
                Some(Some(String::new()))
            }
            "command" | "builtin" | "exec" => self.directly(name, arguments, place, environment),
            "declare" | "typeset" | "local" | "export" | "readonly" => {
                self.declare(arguments, environment);
                Some(Some(String::new()))
            }
            "read" | "unset" | "getopts" | "let" | "mapfile" | "readarray" | "printf" | "wait" => {
                self.sets(name, arguments, environment)
            }
            "set" => {
                self.set_positional(arguments, environment);
                Some(Some(String::new()))
            }
            "shift" => {
                match (&mut environment.positional, arguments) {
                    (Some(values), []) if values.iter().all(|value| !value.is_many()) => {
                        if !values.is_empty() {
                            values.remove(0);
                        }
                    }
                    (positional, _) => *positional = None,
                }
                Some(Some(String::new()))
            }
            "hash" if !arguments.is_empty() => self.asks("unknown.shell-state", arguments, "-r"),
            "enable" | "fc" | "bind" | "complete" | "compgen" | "compopt" => {
                self.asks("unknown.shell-state", arguments, "")
            }
            "jobs" if arguments.iter().any(|argument| argument.text().starts_with("-x")) => {
                self.asks("unknown.command", arguments, "")
            }
            "test" | "[" => {
                self.arithmetic_used = true;
                Some(Some(String::new()))
            }
            _ => None,
        }
    }

    fn asks(&mut self, rule: &'static str, arguments: &[Argument], harmless: &str) -> Option<Output> {
        if arguments.is_empty() || arguments.iter().any(|argument| argument.known() != Some(harmless)) {
            self.hit(rule, None);
        }
        Some(None)
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
    }

    fn trap(&mut self, arguments: &[Argument], environment: &mut Environment) {
        let arguments = match arguments {
            [first, rest @ ..] if first.known() == Some("--") => rest,
            all => all,
        };
        let Some(action) = arguments.first() else { return };
        match action.known() {
            // What it finds when it runs is not known.
            Some(action) if !action.starts_with('-') => {
                let mut later =
                    Environment { functions: environment.functions.clone(), ..Environment::default() };
                self.nested_script(action, &mut later, &Input::Inherited);
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
            if !plain || RESERVED.contains(&name) || argument.known().is_none() {
                self.hit("unknown.shell-state", None);
                continue;
            }
            // Judged where it is defined too: what uses it may not be seen.
            let mut later =
                Environment { functions: environment.functions.clone(), ..Environment::default() };
            self.nested_script(value, &mut later, &Input::Unknown { fetched: false, decoded: false });
            environment.aliases.insert(name.to_owned(), value.to_owned());
        }
    }

    /// `command`, `builtin` and `exec`: no function of that name is meant.
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
                    rest = match name == "exec" && flags.ends_with('a') {
                        true => after.get(1..).unwrap_or(&[]),
                        false => after,
                    };
                }
                _ => break,
            }
        }
        let Some(first) = rest.first() else { return Some(Some(String::new())) };
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

    fn declare(&mut self, arguments: &[Argument], environment: &mut Environment) {
        for argument in arguments {
            let text = argument.text();
            match text.split_once('=') {
                Some((name, value))
                    if name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.is_empty() =>
                {
                    self.tricky |= value.contains('[') && (value.contains("$(") || value.contains('`'));
                    rules::judge_assignment(self, name, &Argument::new(value));
                    environment.set(name, Variable::Text(value.to_owned()));
                }
                Some((name, _)) => {
                    let name: String =
                        name.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
                    self.arithmetic_used = true;
                    environment.forget(&name);
                }
                None if text.starts_with(['-', '+']) && text.contains(['n', 'i', 'u', 'l', 'c']) => {
                    // References and numbers: another variable is meant, or another value.
                    self.arithmetic_used = true;
                    environment.forget_all();
                    if text.contains('n') {
                        self.hit("unknown.shell-state", None);
                    }
                }
                None if argument.may_be_option() => environment.forget_all(),
                None => {}
            }
        }
    }

    fn sets(&mut self, name: &str, arguments: &[Argument], environment: &mut Environment) -> Option<Output> {
        if arguments.iter().any(|argument| argument.may_be_option() && argument.is_many()) && name != "printf"
        {
            environment.forget_all();
        }
        let named = |text: &str| {
            text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>()
        };
        match name {
            "printf" => {
                let variable = match arguments {
                    [first, second, ..] if first.known() == Some("-v") => named(second.text()),
                    [first, ..] if first.text().starts_with("-v") => named(&first.text()[2..]),
                    [first, ..] if first.may_be_option() => {
                        environment.forget_all();
                        return None;
                    }
                    _ => return None,
                };
                self.arithmetic_used = true;
                environment.forget(&variable);
                return Some(text::output("true", &[], &Input::Inherited));
            }
            "mapfile" | "readarray" if arguments.iter().any(|argument| argument.text().starts_with("-C")) => {
                self.hit("unknown.command", None);
            }
            "unset" if arguments.iter().any(|argument| argument.text().starts_with("-f")) => {
                environment.functions.values_mut().for_each(|function| function.certain = false);
            }
            "let" => self.arithmetic_used = true,
            _ => {}
        }
        self.arithmetic_used |= arguments.iter().any(|argument| argument.text().contains('['));
        for argument in arguments {
            let name = named(argument.text());
            if !name.is_empty() {
                environment.forget(&name);
            }
            if name.is_empty() && argument.may_be_option() {
                environment.forget_all();
            }
        }
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
        // From the first word that is no option on, all are: `set x -- y` sets three.
        let options = |argument: &Argument| argument.known().is_some_and(|text| text.starts_with(['-', '+']));
        let after = arguments[dashes + 1..].to_vec();
        environment.positional = arguments[..dashes].iter().all(options).then_some(after);
    }
}
