//! Programs that run other programs: finds the inner command.

use super::Input;
use crate::shell::verdict::{Argument, UNKNOWN};

/// A command that a wrapper runs, or a variable that it sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Inner {
    Command(Vec<Argument>),
    /// Text for a shell.
    Script(String),
    Assignment(String, Argument),
    /// The inner command is known only at run time.
    Unclear,
}

/// The script that a shell runs.
#[derive(Debug)]
pub(super) enum Shell {
    /// A text, and the arguments from `$0` on.
    Script {
        script: Argument,
        positional: Vec<Argument>,
    },
    File(Argument),
    Input,
    Nothing,
    Unclear,
}

/// The form of a wrapper's own arguments.
struct Wrapper {
    names: &'static [&'static str],
    /// Short options that take a value, which may be the next argument.
    short: &'static str,
    /// Long options that take a value in the next argument.
    long: &'static [&'static str],
    /// Number of arguments before the command.
    before: usize,
}

const fn wrapper(
    names: &'static [&'static str],
    short: &'static str,
    long: &'static [&'static str],
    before: usize,
) -> Wrapper {
    Wrapper { names, short, long, before }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper(&["env"], "uCSa", &["unset", "chdir", "split-string", "argv0"], 0),
    wrapper(&["ld.so"], "", &["library-path", "preload", "argv0", "audit", "inhibit-rpath"], 0),
    wrapper(
        &["sudo"],
        "CDghpRrTtUu",
        &[
            "close-from",
            "chdir",
            "group",
            "host",
            "prompt",
            "chroot",
            "role",
            "type",
            "other-user",
            "user",
            "command-timeout",
        ],
        0,
    ),
    wrapper(&["doas"], "Cu", &[], 0),
    wrapper(&["pkexec"], "", &["user"], 0),
    wrapper(&["nice"], "n", &["adjustment"], 0),
    wrapper(
        &["nohup", "setsid", "linux32", "linux64", "catchsegv", "torify", "unbuffer", "eatmydata"],
        "",
        &[],
        0,
    ),
    wrapper(&["torsocks"], "aPup", &["address", "port", "user", "pass"], 0),
    wrapper(&["proxychains", "proxychains4"], "f", &[], 0),
    wrapper(&["fakeroot"], "lsib", &["lib", "faked"], 0),
    wrapper(&["cgexec"], "g", &[], 0),
    wrapper(&["xvfb-run"], "nsefpw", &["server-num", "server-args", "error-file", "auth-file", "wait"], 0),
    wrapper(&["dbus-run-session", "dbus-launch"], "", &["config-file", "dbus-daemon"], 0),
    wrapper(&["timeout"], "ks", &["kill-after", "signal"], 1),
    wrapper(&["stdbuf"], "ioe", &["input", "output", "error"], 0),
    wrapper(&["ionice"], "cnpPu", &["class", "classdata", "pid"], 0),
    wrapper(&["chrt"], "TPDp", &[], 1),
    wrapper(&["taskset"], "", &[], 1),
    wrapper(&["time"], "fo", &["format", "output"], 0),
    wrapper(&["chroot"], "", &["userspec", "groups"], 1),
    wrapper(&["unshare"], "SGRwCl", &["setuid", "setgid", "root", "wd", "propagation", "setgroups"], 0),
    wrapper(&["nsenter"], "tSG", &["target", "setuid", "setgid"], 0),
    wrapper(&["strace", "ltrace"], "eoPpsaEIOSuUbX", &["output", "trace", "attach"], 0),
    wrapper(&["prlimit"], "p", &["pid"], 0),
    wrapper(&["numactl"], "CNmipl", &[], 0),
    wrapper(&["valgrind", "rlwrap", "faketime"], "", &[], 0),
    wrapper(
        &["systemd-run"],
        "pHMuE",
        &["unit", "property", "description", "slice", "uid", "gid", "nice", "setenv", "machine", "host"],
        0,
    ),
    wrapper(&["firejail", "bwrap", "sandbox-exec"], "", &[], 0),
    wrapper(&["sshpass"], "pfdP", &[], 0),
    wrapper(&["entr"], "", &[], 0),
    wrapper(&["caffeinate"], "tw", &[], 0),
    wrapper(&["runuser"], "ug", &["user", "group"], 0),
    wrapper(&["setpriv"], "", &["reuid", "regid", "groups", "inh-caps", "bounding-set"], 0),
    wrapper(&["busybox", "toybox"], "", &[], 0),
    wrapper(
        &["xargs", "gxargs"],
        "aEIdLnPs",
        &["arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var"],
        0,
    ),
];

/// Wrappers that start a shell if no command is given.
const STARTS_SHELL: &[&str] = &["fakeroot", "unshare", "nsenter", "chroot", "setarch", "linux32", "linux64"];

/// Returns whether the inner command of a program is followed here.
pub(super) fn is_wrapper(name: &str) -> bool {
    const OTHERS: &[&str] =
        &["find", "gfind", "watch", "parallel", "flock", "su", "script", "ssh", "git", "tar"];
    OTHERS.contains(&name) || WRAPPERS.iter().any(|wrapper| wrapper.names.contains(&name))
}

/// The inner commands of a program.
pub(super) fn peel(name: &str, arguments: &[Argument], input: &Input) -> Vec<Inner> {
    match name {
        "find" | "gfind" => find(arguments),
        "watch" => after(&wrapper(&["watch"], "n", &["interval"], 0), arguments)
            .map_or_else(unclear, |rest| joined(&rest)),
        "parallel" => parallel(arguments, input),
        "flock" => flock(arguments),
        "su" | "script" | "runuser" | "capsh" if has_command_option(arguments) => command_option(arguments),
        "ssh" => ssh(arguments),
        "cmake" => cmake(arguments),
        "make" | "gmake" => make(arguments),
        "git" => git(arguments),
        "tar" | "bsdtar" | "gtar" => tar(arguments),
        "perf" | "poetry" | "pipenv" | "uv" | "bundle" | "hatch" | "pdm" | "rye" => match arguments {
            [verb, rest @ ..] if matches!(verb.known(), Some("run" | "exec" | "stat" | "record")) => {
                let rest = rest.iter().skip_while(|a| a.text().starts_with('-')).cloned().collect();
                vec![Inner::Command(rest)]
            }
            _ => Vec::new(),
        },
        "xargs" | "gxargs" => xargs(arguments, input),
        "env" => env(arguments),
        "busybox" | "toybox" => match arguments {
            [applet, ..] if !applet.text().starts_with('-') => vec![Inner::Command(arguments.to_vec())],
            _ => Vec::new(),
        },
        _ => match WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name)) {
            Some(wrapper) => match after(wrapper, arguments) {
                // Without a command these start a shell, which reads their input.
                Some(rest) if rest.is_empty() && STARTS_SHELL.contains(&name) => {
                    vec![Inner::Command(vec![Argument::new("sh")])]
                }
                Some(rest) if rest.is_empty() => Vec::new(),
                // `sudo X=1 cmd`.
                Some(rest) => assignments(rest),
                None => unclear(),
            },
            None => Vec::new(),
        },
    }
}

fn unclear() -> Vec<Inner> {
    vec![Inner::Unclear]
}

/// The arguments after a wrapper's own; `None` if that is not clear.
fn after(wrapper: &Wrapper, arguments: &[Argument]) -> Option<Vec<Argument>> {
    let (mut rest, mut before) = (arguments, wrapper.before);
    while let [first, after @ ..] = rest {
        let text = first.text();
        if first.may_be_option() || first.is_unclear_option(wrapper.short) || (first.is_many() && before > 0)
        {
            return None;
        }
        rest = after;
        if text == "--" {
            return Some(rest.get(before..).unwrap_or(&[]).to_vec());
        } else if let Some(long) = text.strip_prefix("--") {
            if !long.contains('=') && wrapper.long.iter().any(|name| name.starts_with(long)) {
                rest = rest.get(1..).unwrap_or(&[]);
            }
        } else if text.len() > 1 && text.starts_with('-') {
            let flags = &text[1..];
            if let Some(at) = flags.find(|flag| wrapper.short.contains(flag))
                && at + 1 == flags.len()
            {
                rest = rest.get(1..).unwrap_or(&[]);
            }
        } else if before > 0 {
            before -= 1;
        } else {
            let mut all = vec![first.clone()];
            all.extend_from_slice(rest);
            return Some(all);
        }
    }
    Some(Vec::new())
}

fn assignments(mut arguments: Vec<Argument>) -> Vec<Inner> {
    let mut inner = Vec::new();
    while let Some((name, value)) = arguments.first().and_then(|first| first.text().split_once('=')) {
        let value = Argument::new(value);
        inner.push(Inner::Assignment(name.to_owned(), value));
        arguments.remove(0);
    }
    if !arguments.is_empty() {
        inner.push(Inner::Command(arguments));
    }
    inner
}

fn env(arguments: &[Argument]) -> Vec<Inner> {
    // `-S` takes a whole command line in one argument.
    for (i, argument) in arguments.iter().enumerate() {
        let text = argument.text();
        if !text.starts_with('-') && !text.contains('=') {
            break;
        }
        let split = match long_option(text, "--split-string") {
            Some(None) => arguments.get(i + 1).map(|next| (next.text(), i + 2)),
            Some(Some(line)) => Some((line, i + 1)),
            None => match split_option(text) {
                Some("") => arguments.get(i + 1).map(|next| (next.text(), i + 2)),
                line => line.map(|line| (line, i + 1)),
            },
        };
        if let Some((line, next)) = split {
            if line.contains([UNKNOWN, '\\', '\'', '"', '$', '#']) {
                return unclear();
            }
            let words = line.split_whitespace().map(Argument::new);
            let all: Vec<_> = words.chain(arguments.get(next..).unwrap_or(&[]).iter().cloned()).collect();
            return env(&all);
        }
    }
    match WRAPPERS.first().and_then(|wrapper| after(wrapper, arguments)) {
        // `env - cmd` is `env -i cmd`.
        Some(rest) if rest.first().is_some_and(|first| first.known() == Some("-")) => env(&rest[1..]),
        Some(rest) => assignments(rest),
        None => unclear(),
    }
}

/// The text after `S` among short options of `env`; options that take a value end the search.
fn split_option(text: &str) -> Option<&str> {
    let flags = text.strip_prefix('-').filter(|flags| !flags.starts_with('-'))?;
    let at = flags.find(['S', 'u', 'C', 'a'])?;
    flags[at..].strip_prefix('S')
}

fn xargs(arguments: &[Argument], input: &Input) -> Vec<Inner> {
    let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&"xargs")) else {
        return unclear();
    };
    let Some(mut command) = after(wrapper, arguments) else { return unclear() };
    if command.is_empty() {
        return Vec::new();
    }
    let own = &arguments[..arguments.len() - command.len()];
    let replaced = own.iter().enumerate().find_map(|(i, argument)| match argument.text() {
        "-I" => own.get(i + 1).map(|next| next.text().to_owned()),
        "-i" | "--replace" => Some("{}".to_owned()),
        text => text
            .strip_prefix("-I")
            .or_else(|| text.strip_prefix("--replace="))
            .or_else(|| text.strip_prefix("-i"))
            .map(str::to_owned),
    });
    match replaced {
        Some(mark) if !mark.is_empty() => {
            for argument in &mut command {
                if argument.text().contains(&mark) {
                    *argument = Argument::new(argument.text().replace(&mark, &UNKNOWN.to_string()));
                }
            }
        }
        _ => match input {
            // Quotes and backslashes count for xargs; otherwise words are taken as they are.
            Input::Text(text) if !text.contains(['\'', '"', '\\']) && own.is_empty() => {
                command.extend(text.split_whitespace().map(Argument::new));
            }
            _ => command.push(Argument::some_unknown()),
        },
    }
    vec![Inner::Command(command)]
}

fn find(arguments: &[Argument]) -> Vec<Inner> {
    let mut inner = Vec::new();
    let mut rest = arguments;
    while let Some(at) = rest.iter().position(|a| {
        // `$X-exec`, if `$X` is empty.
        matches!(a.text().trim_start_matches(UNKNOWN), "-exec" | "-execdir" | "-ok" | "-okdir")
    }) {
        let command = &rest[at + 1..];
        let end = command.iter().position(|a| matches!(a.text(), ";" | "+")).unwrap_or(command.len());
        let fill = |argument: &Argument| match argument.text().contains("{}") {
            true => Argument::new(argument.text().replace("{}", &format!("./{UNKNOWN}"))),
            false => argument.clone(),
        };
        inner.push(Inner::Command(command[..end].iter().map(fill).collect()));
        rest = command.get(end..).unwrap_or(&[]);
    }
    if arguments.iter().any(|argument| argument.may_be_option() && argument.is_many()) && inner.is_empty() {
        // `find $X` may contain an action; `find "$X"` is a path.
        return unclear();
    }
    inner
}

fn joined(arguments: &[Argument]) -> Vec<Inner> {
    let words: Vec<&str> = arguments.iter().map(Argument::text).collect();
    if words.is_empty() {
        return Vec::new();
    }
    vec![Inner::Script(words.join(" "))]
}

fn parallel(arguments: &[Argument], input: &Input) -> Vec<Inner> {
    let wrapper = wrapper(
        &["parallel"],
        "jIaSN",
        &["jobs", "arg-file", "joblog", "results", "delay", "timeout", "colsep"],
        0,
    );
    let Some(rest) = after(&wrapper, arguments) else { return unclear() };
    let end = rest.iter().position(|a| a.text().starts_with(":::")).unwrap_or(rest.len());
    if end == 0 {
        // Each argument, or each line of the input, is a command.
        let given = rest.iter().filter(|argument| !argument.text().starts_with(":::"));
        let scripts: Vec<Inner> = given.map(|argument| Inner::Script(argument.text().to_owned())).collect();
        return match (scripts.is_empty(), input) {
            (true, Input::Text(lines)) => vec![Inner::Script(lines.clone())],
            (true, _) => unclear(),
            (false, _) => scripts,
        };
    }
    let fill = |argument: &Argument| match argument.text().contains('{') {
        true => Argument::unknown(),
        false => argument.clone(),
    };
    let mut command: Vec<Argument> = rest[..end].iter().map(fill).collect();
    if command.len() == 1 && command[0].text().contains(' ') {
        // A single argument with spaces is a line for the shell.
        return vec![Inner::Script(command[0].text().to_owned())];
    }
    command.push(Argument::some_unknown());
    vec![Inner::Command(command)]
}

fn flock(arguments: &[Argument]) -> Vec<Inner> {
    let wrapper = wrapper(&["flock"], "wE", &["timeout", "conflict-exit-code"], 1);
    if has_command_option(arguments) {
        return command_option(arguments);
    }
    match after(&wrapper, arguments) {
        Some(rest) if rest.is_empty() => Vec::new(),
        Some(rest) => vec![Inner::Command(rest)],
        None => unclear(),
    }
}

/// If a text is a long option, shortened as programs allow, returns the value that is joined to it.
pub(in crate::shell) fn long_option<'a>(text: &'a str, option: &str) -> Option<Option<&'a str>> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    (name.len() > 3 && name.starts_with("--") && option.starts_with(name)).then_some(value)
}

fn is_command_option(text: &str) -> bool {
    let cluster = |flags: &str| {
        flags.len() <= 4 && flags.ends_with('c') && flags.bytes().all(|b| b.is_ascii_alphabetic())
    };
    long_option(text, "--command").is_some() || text.strip_prefix('-').is_some_and(cluster)
}

fn has_command_option(arguments: &[Argument]) -> bool {
    arguments.iter().any(|argument| is_command_option(argument.text()))
}

fn command_option(arguments: &[Argument]) -> Vec<Inner> {
    let Some(at) = arguments.iter().position(|argument| is_command_option(argument.text())) else {
        return unclear();
    };
    let script = match long_option(arguments[at].text(), "--command").flatten() {
        Some(script) => Some(script.to_owned()),
        None => arguments.get(at + 1).map(|next| next.text().to_owned()),
    };
    script.map_or_else(unclear, |script| vec![Inner::Script(script)])
}

fn ssh(arguments: &[Argument]) -> Vec<Inner> {
    let wrapper = wrapper(&["ssh"], "BbcDEeFIiJLlmOopQRSWw", &[], 1);
    let mut inner = match after(&wrapper, arguments) {
        Some(rest) => joined(&rest),
        None if arguments.first().is_some_and(|first| first.may_be_option() && !first.is_many()) => {
            joined(arguments.get(1..).unwrap_or(&[]))
        }
        None => unclear(),
    };
    for argument in arguments {
        let option = argument.text().strip_prefix("-o").unwrap_or(argument.text());
        let option = option.trim_start();
        let value = option.split_once(['=', ' ']);
        if let Some((name, command)) = value {
            let name = name.to_ascii_lowercase();
            if matches!(name.as_str(), "proxycommand" | "localcommand" | "knownhostscommand") {
                inner.push(Inner::Script(command.trim().to_owned()));
            }
        }
    }
    inner
}

fn git(arguments: &[Argument]) -> Vec<Inner> {
    let mut inner = Vec::new();
    for (i, argument) in arguments.iter().enumerate() {
        let next = || arguments.get(i + 1).map(|next| next.text().to_owned());
        let rebases = || arguments.iter().any(|a| a.text() == "rebase");
        let after = |verb: &str| arguments[..i].iter().any(|a| a.text() == verb);
        match argument.text() {
            "-x" if rebases() => inner.extend(next().map(Inner::Script)),
            "foreach" if after("submodule") => {
                let rest = arguments.get(i + 1..).unwrap_or(&[]);
                let rest: Vec<_> = rest.iter().skip_while(|a| a.text().starts_with('-')).cloned().collect();
                inner.extend(joined(&rest));
            }
            "run" if after("bisect") => {
                inner.push(Inner::Command(arguments.get(i + 1..).unwrap_or(&[]).to_vec()));
            }
            text => match long_option(text, "--exec").filter(|_| rebases()) {
                Some(Some(script)) => inner.push(Inner::Script(script.to_owned())),
                Some(None) => inner.extend(next().map(Inner::Script)),
                None => {}
            },
        }
    }
    inner
}

/// `cmake -E rm -rf x`: its own tools, named like the programs.
fn cmake(arguments: &[Argument]) -> Vec<Inner> {
    let tool = arguments.iter().position(|argument| argument.text() == "-E");
    match tool.map(|at| arguments.get(at + 1..).unwrap_or(&[])) {
        Some([verb, rest @ ..]) if matches!(verb.known(), Some("remove_directory" | "remove")) => {
            let words = ["rm", "-r"].map(Argument::new).into_iter().chain(rest.iter().cloned());
            vec![Inner::Command(words.collect())]
        }
        Some(command) if !command.is_empty() => vec![Inner::Command(command.to_vec())],
        _ => Vec::new(),
    }
}

/// `make CC=...`: variables, as if set before it.
fn make(arguments: &[Argument]) -> Vec<Inner> {
    let set = arguments.iter().filter(|argument| !argument.text().starts_with('-'));
    set.filter_map(|argument| argument.text().split_once('='))
        .map(|(name, value)| {
            Inner::Assignment(name.trim_end_matches([':', '?', '+']).to_owned(), Argument::new(value))
        })
        .collect()
}

fn tar(arguments: &[Argument]) -> Vec<Inner> {
    let mut inner = Vec::new();
    for (i, argument) in arguments.iter().enumerate() {
        let text = argument.text();
        let next = || arguments.get(i + 1).map(|next| next.text().to_owned());
        for option in [
            "--to-command",
            "--use-compress-program",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
        ] {
            let script = match long_option(text, option) {
                Some(None) => next(),
                joined => joined.flatten().map(str::to_owned),
            };
            inner.extend(script.map(Inner::Script));
        }
        if matches!(text, "-I" | "-F") {
            inner.extend(next().map(Inner::Script));
        }
        if let Some((_, script)) = text.split_once("exec=") {
            inner.push(Inner::Script(script.to_owned()));
        }
    }
    inner
}

/// The texts that a shell runs before anything else, and files (`true`).
pub(super) fn shell_start(name: &str, arguments: &[Argument]) -> Vec<(Argument, bool)> {
    let mut found = Vec::new();
    for (i, argument) in arguments.iter().enumerate() {
        let (option, joined) = match argument.text().split_once('=') {
            Some((option, value)) => (option, Some(Argument::new(value))),
            None => (argument.text(), None),
        };
        let file = matches!(option, "--rcfile" | "--init-file" | "-rcfile" | "-init-file");
        let text = matches!(option, "--command" | "--commands" | "--init-command" | "--execute")
            || (option == "-C" && name == "fish")
            || (option == "-e" && name == "nu");
        if file || text {
            found.extend(joined.or_else(|| arguments.get(i + 1).cloned()).map(|value| (value, file)));
        }
    }
    found
}

/// Long options of bash, which it also accepts after one dash.
const LONG_OF_BASH: &[&str] = &[
    "debug",
    "debugger",
    "dump-po-strings",
    "dump-strings",
    "help",
    "init-file",
    "login",
    "noediting",
    "noprofile",
    "norc",
    "posix",
    "pretty-print",
    "protected",
    "rcfile",
    "restricted",
    "verbose",
    "version",
    "wordexp",
];

/// The script that a shell runs with these arguments.
pub(super) fn shell(arguments: &[Argument]) -> Shell {
    let mut rest = arguments;
    let mut reads_command = false;
    while let [first, after @ ..] = rest {
        let text = first.text();
        // A long option of bash is several letters to other shells.
        let is_either = text.strip_prefix('-').is_some_and(|name| LONG_OF_BASH.contains(&name));
        if (first.may_be_option() && first.is_many()) || first.is_unclear_option("") || is_either {
            return Shell::Unclear;
        }
        if text == "--restricted" {
            return Shell::Unclear;
        }
        if !reads_command && matches!(text, "--help" | "--version") {
            return Shell::Nothing;
        }
        if text == "--" || text == "-" {
            rest = after;
            break;
        }
        if let Some(long) = text.strip_prefix("--") {
            rest = match matches!(long, "rcfile" | "init-file") {
                true => after.get(1..).unwrap_or(&[]),
                false => after,
            };
            continue;
        }
        if !(text.starts_with('-') || text.starts_with('+')) || text.len() < 2 {
            break;
        }
        // `-k` takes assignments out of arguments, `B` is about braces, `O` changes many things.
        let plain = |name: &Argument| {
            matches!(
                name.known(),
                Some("nullglob" | "globstar" | "dotglob" | "nocaseglob" | "expand_aliases")
            )
        };
        if text.contains(['k', 'B', 'r']) || (text.contains('O') && !after.first().is_some_and(plain)) {
            return Shell::Unclear;
        }
        if text.contains('o')
            && after.first().is_some_and(|name| matches!(name.text(), "keyword" | "braceexpand"))
        {
            return Shell::Unclear;
        }
        rest = after;
        reads_command |= text.starts_with('-') && text.contains('c');
        if text.ends_with('o') || text.ends_with('O') {
            rest = rest.get(1..).unwrap_or(&[]);
        }
        if text.contains('s') && text.starts_with('-') && !reads_command {
            return Shell::Input;
        }
        if text.contains('n') && text.len() == 2 && !reads_command {
            // Only reads, runs nothing.
            return Shell::Nothing;
        }
    }
    match (reads_command, rest) {
        (true, [script, ..]) if script.is_many() => Shell::Unclear,
        (true, [script, positional @ ..]) => {
            Shell::Script { script: script.clone(), positional: positional.to_vec() }
        }
        (true, []) => Shell::Nothing,
        (false, [file, ..]) => Shell::File(file.clone()),
        (false, []) => Shell::Input,
    }
}
