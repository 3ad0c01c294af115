//! A simple command: resolves it to a function, builtin, wrapper, shell or program, and follows that.

use super::environment::{Environment, Variable};
use super::skips::Skips;
use super::wrappers::{self, Inner};
use super::{Input, Output, Place, Walker, Written, known_output, programs, stdin_readers};
use crate::shell::verdict::{Argument, UNKNOWN};
use crate::shell::{builtins, rules};

impl Walker<'_> {
    /// Follows a command whose words are expanded.
    pub(super) fn run(&mut self, argv: &[Argument], place: &Place, environment: &mut Environment) -> Output {
        self.here = place.span;
        let (program, arguments) = argv.split_first()?;
        let Some(written) = program.known().map(str::to_owned) else {
            self.record(argv, programs::ANYTHING);
            self.hit("unknown.command", None);
            rules::judge_unknown(self, argv, place);
            rules::judge_redirects(self, place);
            return None;
        };
        if self.depth > super::parse::DEEPEST || !self.spend() {
            self.hit("unknown.size", None);
            return None;
        }
        if let Some(alias) = environment.aliases.get(&written).cloned() {
            self.alias(&alias, arguments, place, environment);
        }
        let before = environment.functions.contains_key(&written).then(|| environment.clone());
        if let Some(output) = self.function(&written, arguments, place, environment) {
            return output;
        }
        let Some(before) = before else { return self.program(&written, argv, place, environment) };
        // Either the function ran, or the program.
        let mut instead = before;
        self.program(&written, argv, place, &mut instead);
        environment.merge(&instead);
        None
    }

    /// Follows a program or builtin, without regard to functions and aliases.
    pub(super) fn program(
        &mut self,
        written: &str,
        argv: &[Argument],
        place: &Place,
        environment: &mut Environment,
    ) -> Output {
        let name = programs::name(written);
        let arguments = &argv[1..];
        self.record(argv, programs::effects(&name, arguments, place));
        rules::judge(self, &name, argv, place);
        if self.takes_script
            && place.input == Input::Inherited
            && stdin_readers::reads_input(&name, arguments)
        {
            self.hit("unknown.script", Some("it reads lines of the same script as its shell"));
        }
        self.runs_written_file(written, arguments, place, environment);
        if programs::is_interpreter(&name) {
            self.interprets_written_file(arguments);
        }
        self.notes_written_files(&name, arguments, place);
        let is_builtin = !written.contains('/') && builtins::is_builtin(&name);
        self.note_texts(&name, is_builtin, arguments, &place.input);
        if !written.contains('/')
            && let Some(output) = self.builtin(&name, argv, place, environment)
        {
            return output;
        }
        if programs::is_shell(&name) {
            return self.shell(&name, arguments, place, environment);
        }
        self.depth += 1;
        let inner = wrappers::peel(&name, arguments, &place.input);
        if name == "ssh" && inner.is_empty() && !arguments.is_empty() {
            // Without a command, the remote shell reads one.
            match &place.input {
                Input::Text(script) => {
                    self.nested_script(&script.clone(), &mut Environment::default(), &Input::Inherited);
                }
                Input::Inherited => {}
                input => rules::judge_piped(self, &name, input),
            }
        }
        for inner in inner {
            self.here = place.span;
            match inner {
                Inner::Command(inner) => self.inner_command(&name, inner, place, environment),
                Inner::Script(script) => {
                    let mut outside = environment.clone();
                    outside.positional = None;
                    // The remote side of `ssh` reads this input.
                    let input = if name == "ssh" { place.input.clone() } else { Input::Inherited };
                    self.nested_script(&script, &mut outside, &input);
                }
                Inner::Assignment(name, value) => {
                    let place = Place { assigned: vec![(name, value)], ..place.clone() };
                    rules::judge_assignments(self, &place);
                }
                Inner::Unclear => self.hit("unknown.command", None),
            }
        }
        self.runner(&name, arguments, place, environment);
        self.depth -= 1;
        self.here = place.span;
        // The directory of temporary files, and so the output, may have been changed.
        let moved = environment.variables.contains_key("TMPDIR")
            || place.assigned.iter().any(|(variable, _)| variable == "TMPDIR");
        match name == "mktemp" && moved {
            true => None,
            false => known_output::output(&name, arguments, &place.input),
        }
    }

    /// Follows a command that a program runs.
    fn inner_command(
        &mut self,
        name: &str,
        mut inner: Vec<Argument>,
        place: &Place,
        environment: &Environment,
    ) {
        // To the shell's own `time` these are keywords.
        let grammar = |word: &Argument| matches!(word.known(), Some("!" | "coproc"));
        while name == "time" && inner.first().is_some_and(grammar) {
            // If they are quoted, they are programs.
            self.record(&inner, programs::ANYTHING);
            inner.remove(0);
        }
        // A program that runs others knows no functions and aliases.
        let mut outside = match name {
            // This may be the shell's own `time`.
            "time" => environment.clone(),
            _ => Environment { variables: environment.variables.clone(), ..Environment::default() },
        };
        self.run(&inner, place, &mut outside);
    }

    fn alias(&mut self, alias: &str, arguments: &[Argument], place: &Place, environment: &mut Environment) {
        use crate::shell::syntax::{Kind, List};
        if alias.ends_with([' ', '\t']) || alias.contains(UNKNOWN) {
            self.hit("unknown.command", None);
            return;
        }
        let one = super::parse(alias, self.depth + 1).ok().and_then(|List(items)| match items.as_slice() {
            [item] => match &item.command.kind {
                Kind::Simple { assignments, words }
                    if assignments.is_empty() && item.command.redirects.is_empty() =>
                {
                    Some(words.clone())
                }
                _ => None,
            },
            _ => None,
        });
        let Some(words) = one else {
            self.hit("unknown.command", None);
            return;
        };
        let mut argv = self.words(&words, environment);
        argv.extend_from_slice(arguments);
        // An alias is not expanded within itself.
        let aliases = std::mem::take(&mut environment.aliases);
        self.depth += 1;
        self.run(&argv, place, environment);
        self.depth -= 1;
        environment.aliases = aliases;
    }

    /// Follows a function; `None` if a program of that name may run as well, or instead.
    fn function(
        &mut self,
        name: &str,
        arguments: &[Argument],
        place: &Place,
        environment: &mut Environment,
    ) -> Option<Output> {
        let function = environment.functions.get(name)?.clone();
        self.called.insert(name.to_owned());
        if self.calls.iter().any(|call| call == name) {
            self.hit(if self.parallel > 0 { "fork-bomb.function" } else { "unknown.recursion" }, None);
            environment.forget_all();
            return Some(None);
        }
        self.record(&[&[Argument::new(name)], arguments].concat(), programs::NOTHING);
        arguments.iter().for_each(|argument| self.arithmetic.keeps(argument.text()));
        rules::judge_redirects(self, place);
        self.calls.push(name.to_owned());
        self.depth += 1;
        let outer = environment.positional.replace(arguments.to_vec());
        let locals = std::mem::take(&mut self.locals);
        for (name, value) in &place.assigned {
            environment.set(name, Variable::Text(value.text().to_owned()));
        }
        let skips = self.skips;
        let mut output = None;
        let only = function.bodies.len() == 1;
        for body in &function.bodies {
            let mut copy = environment.clone();
            output = self.command(body, &mut copy, &place.input);
            match only {
                true => *environment = copy,
                false => {
                    environment.merge(&copy);
                }
            }
        }
        let Skips { of_loop, of_function, .. } = skips;
        self.skips = Skips { of_loop, of_function, ..self.skips };
        environment.positional = outer;
        // Afterwards the outer values are valid again; they are not stored here.
        for name in std::mem::replace(&mut self.locals, locals) {
            environment.forget(&name);
        }
        for (name, _) in &place.assigned {
            environment.forget(name);
        }
        self.depth -= 1;
        self.calls.pop();
        // In POSIX mode these are the shell's own, whatever functions are defined.
        const SPECIAL: &[&str] = &[
            "break", ":", ".", "continue", "eval", "exec", "exit", "export", "readonly", "return", "set",
            "shift", "source", "times", "trap", "unset",
        ];
        (function.certain && only && !SPECIAL.contains(&name)).then_some(output)
    }

    /// Follows `sh -c`, a script in a file, or a script from standard input.
    fn shell(
        &mut self,
        name: &str,
        arguments: &[Argument],
        place: &Place,
        environment: &mut Environment,
    ) -> Output {
        if name == "rbash" {
            // Commands that fail there would run in another shell.
            self.hit("unknown.script", Some("it is a restricted shell"));
        }
        let mut copy = environment.for_child();
        for (name, value) in &place.assigned {
            copy.set(name, Variable::Text(value.text().to_owned()));
        }
        self.depth += 1;
        for (script, file) in wrappers::shell_start(name, arguments) {
            match (script.known(), file) {
                (_, true) => self.shell_file(&script, &mut copy),
                (Some(script), false) => {
                    self.nested_script(script, &mut copy, &Input::Inherited);
                }
                (None, false) => rules::judge_dynamic(self, script.text()),
            }
        }
        let given = wrappers::shell(arguments);
        let outer = std::mem::replace(&mut self.reads_script, matches!(given, wrappers::Shell::Input));
        let output = match given {
            wrappers::Shell::Script { script, positional } => {
                positional.iter().for_each(|argument| self.arithmetic.keeps(argument.text()));
                set_positional(&mut copy, &positional);
                match script.known() {
                    Some(script) => self.nested_script(script, &mut copy, &place.input),
                    None => {
                        rules::judge_dynamic(self, script.text());
                        None
                    }
                }
            }
            wrappers::Shell::Input => self.shell_input(name, &place.input, &mut copy),
            wrappers::Shell::File(path) => {
                match path.known() {
                    Some("/dev/stdin" | "/proc/self/fd/0" | "/dev/fd/0" | "-") => {
                        let place = Place { input: place.input.clone(), ..place.clone() };
                        self.depth -= 1;
                        self.reads_script = outer;
                        return self.shell(name, &[], &place, environment);
                    }
                    _ if matches!(place.input, Input::Unknown { fetched: true, .. })
                        && path.may_be_option() =>
                    {
                        rules::judge_piped(self, name, &place.input);
                    }
                    _ => self.shell_file(&path, &mut copy),
                }
                None
            }
            // `curl ... | xargs sh -c`: fetched text becomes the script.
            wrappers::Shell::Unclear if matches!(place.input, Input::Unknown { fetched: true, .. }) => {
                rules::judge_piped(self, name, &place.input);
                None
            }
            wrappers::Shell::Unclear => {
                self.hit("unknown.script", None);
                self.attempt_texts(arguments);
                None
            }
            wrappers::Shell::Nothing => None,
        };
        self.reads_script = outer;
        self.depth -= 1;
        output
    }

    /// Follows a script that a shell reads from its input.
    fn shell_input(&mut self, name: &str, input: &Input, environment: &mut Environment) -> Output {
        match input {
            Input::Text(script) => {
                let outer = std::mem::replace(&mut self.takes_script, true);
                let output = self.nested_script(script, environment, &Input::Inherited);
                self.takes_script = outer;
                output
            }
            Input::File(path) => {
                self.shell_file(path, environment);
                None
            }
            input => {
                rules::judge_piped(self, name, input);
                None
            }
        }
    }

    /// Follows a script in a file: left to the sandbox, unless this command wrote the file.
    pub(super) fn shell_file(&mut self, path: &Argument, environment: &mut Environment) {
        let name = path.text().rsplit('/').next().unwrap_or("");
        match path.text() {
            _ if name.contains(UNKNOWN) || path.is_many() => self.hit("unknown.script", None),
            path if is_descriptor(path) => self.hit("unknown.script", None),
            // A file is identified by its name, wherever it is.
            path => match self.run_file(path) {
                Some(Written::Text(script)) => {
                    self.nested_script(&script, environment, &Input::Inherited);
                }
                Some(Written::Fetched) => self.hit("remote-code.fetched-file", None),
                Some(Written::Unknown) => self.hit("unknown.script", None),
                Some(Written::Program(_)) | None => {}
            },
        }
    }

    /// Judges `./x` if this command wrote `x`.
    fn runs_written_file(
        &mut self,
        written: &str,
        arguments: &[Argument],
        place: &Place,
        environment: &mut Environment,
    ) {
        let is_found_by_path = self.path_is_set && self.files.contains_key(written);
        if !written.contains('/') && !is_found_by_path {
            return;
        }
        match self.run_file(written) {
            Some(Written::Text(script)) if script.starts_with("#!") && !shell_shebang(&script) => {
                rules::judge_code(self, &script);
            }
            Some(Written::Text(script)) => {
                self.nested_script(&script, &mut environment.for_child(), &Input::Inherited);
            }
            Some(Written::Program(program)) => self.renamed(&program, arguments, place, environment),
            Some(Written::Fetched) => self.hit("remote-code.fetched-file", None),
            Some(Written::Unknown) => {
                self.hit("unknown.script", None);
                for held in self.held(written) {
                    if let Written::Program(program) = held {
                        self.attempt(|walker| walker.renamed(&program, arguments, place, environment));
                    }
                }
            }
            None => {}
        }
    }

    /// Judges `python x` if this command wrote `x`.
    fn interprets_written_file(&mut self, arguments: &[Argument]) {
        // Words after the script's name are its arguments.
        let operand = arguments.iter().position(|argument| !argument.text().starts_with('-'));
        let own = arguments.iter().take(operand.map_or(arguments.len(), |at| at + 1));
        for argument in own.filter_map(Argument::known) {
            if is_descriptor(argument) {
                self.hit("unknown.script", None);
            }
            match self.written(argument) {
                Some(Written::Text(code)) => rules::judge_code(self, &code),
                Some(Written::Fetched) => self.hit("remote-code.fetched-file", None),
                Some(Written::Unknown) => self.hit("unknown.script", None),
                Some(Written::Program(_)) | None => {}
            }
        }
    }

    /// Notes the files that a program such as `tee`, `cp` or `mkfifo` writes, and judges `chmod` of a fetched one.
    fn notes_written_files(&mut self, name: &str, arguments: &[Argument], place: &Place) {
        self.note_reworked(name, arguments);
        match name {
            "tee" => {
                let written = match &place.input {
                    Input::Text(text) => Written::Text(text.clone()),
                    Input::Unknown { fetched: true, .. } => Written::Fetched,
                    _ => Written::Unknown,
                };
                for argument in arguments.iter().filter(|argument| !argument.text().starts_with('-')) {
                    self.wrote(argument, written.clone());
                }
            }
            // Any program that opens it can write to it.
            "mkfifo" | "mknod" => {
                for argument in arguments.iter().filter(|argument| !argument.text().starts_with('-')) {
                    self.wrote(argument, Written::Unknown);
                }
            }
            // A written file may be replaced here.
            "cp" | "mv" | "ln" | "link" | "install" | "rsync"
                if !self.files.is_empty() || self.writes_unknown =>
            {
                let fetched = self.files.values().any(|written| *written == Written::Fetched);
                let written = if fetched { Written::Fetched } else { Written::Unknown };
                if let Some(target) = arguments.last() {
                    self.wrote(target, written);
                }
            }
            _ => {}
        }
        if matches!(name, "cp" | "mv" | "ln" | "install") {
            self.note_copies(arguments);
        }
        if name == "chmod" {
            for argument in arguments.iter().filter_map(Argument::known) {
                if self.written(argument) == Some(Written::Fetched) {
                    self.hit("remote-code.fetched-file", None);
                }
            }
        }
    }

    /// Follows a program under another name.
    fn renamed(
        &mut self,
        program: &str,
        arguments: &[Argument],
        place: &Place,
        environment: &mut Environment,
    ) {
        let argv = [&[Argument::new(program)], arguments].concat();
        self.depth += 1;
        if self.depth <= super::parse::DEEPEST {
            self.program(program, &argv, place, environment);
        }
        self.depth -= 1;
    }

    /// Remembers programs that are copied or linked to another name.
    fn note_copies(&mut self, arguments: &[Argument]) {
        let operands: Vec<&Argument> =
            arguments.iter().filter(|argument| !argument.text().starts_with('-')).collect();
        let Some((target, sources)) = operands.split_last() else { return };
        for source in sources {
            match source.known() {
                Some(path) if path.starts_with('/') => {
                    self.wrote(target, Written::Program(programs::name(path)));
                }
                Some(_) => {}
                None if source.may_be_option() && !source.text().contains('/') => {
                    self.wrote(target, Written::Unknown);
                }
                None => {}
            }
        }
    }
}

/// Returns whether a path names a file descriptor.
fn is_descriptor(path: &str) -> bool {
    path.starts_with("/dev/fd/") || (path.starts_with("/proc/") && path.contains("/fd/"))
}

fn shell_shebang(script: &str) -> bool {
    script
        .lines()
        .next()
        .is_some_and(|line| line.trim_start_matches("#!").split([' ', '/']).any(programs::is_shell))
}

/// Sets `$0` and the positional parameters of `sh -c`, as far as their number is known.
fn set_positional(environment: &mut Environment, words: &[Argument]) {
    let (zero, rest) = words.split_first().map_or((None, &[][..]), |(a, b)| (Some(a), b));
    environment.positional = zero.is_none_or(|zero| !zero.is_many()).then(|| rest.to_vec());
    if let Some(zero) = zero.filter(|zero| !zero.is_many()) {
        environment.set("0", Variable::Text(zero.text().to_owned()));
    }
}
