//! Code given to an interpreter on the command line.
//!
//! It is not parsed: only its words are examined. Code that names no process, socket, deletion or decoder is
//! allowed, other code is asked about, and code that plainly sends a shell away or deletes trees is denied.

use super::Seen;
use crate::shell::verdict::Argument;
use crate::shell::walk::{Input, Walker};

/// Interpreters, and their options that take code.
const INLINE: &[(&str, &[&str])] = &[
    ("python", &["-c"]),
    ("python2", &["-c"]),
    ("python3", &["-c"]),
    ("pypy", &["-c"]),
    ("pypy3", &["-c"]),
    ("ipython", &["-c"]),
    ("perl", &["-e", "-E", "-ne", "-pe", "-le", "-lne", "-ane", "-nle", "-lane", "-i"]),
    ("ruby", &["-e", "-ne", "-pe", "-rsocket"]),
    ("node", &["-e", "-p", "--eval", "--print", "-pe"]),
    ("nodejs", &["-e", "-p", "--eval", "--print", "-pe"]),
    ("bun", &["-e", "--eval"]),
    ("deno", &["eval"]),
    ("php", &["-r", "-B", "-R"]),
    ("lua", &["-e"]),
    ("luajit", &["-e"]),
    ("tclsh", &["-c"]),
    ("Rscript", &["-e"]),
    ("osascript", &["-e"]),
    ("julia", &["-e", "-E"]),
    ("guile", &["-c"]),
    ("groovy", &["-e"]),
    ("elixir", &["-e", "--eval"]),
    ("iex", &["-e", "--eval"]),
    ("mix", &["-e", "--eval", "eval"]),
    ("erl", &["-eval"]),
    ("ghc", &["-e"]),
    ("ocaml", &["-e"]),
    ("scala", &["-e"]),
    ("kotlin", &["-e"]),
    ("clojure", &["-e", "--eval"]),
    ("clj", &["-e", "--eval"]),
    ("bb", &["-e"]),
    ("crystal", &["eval"]),
    ("rake", &["-e", "-E", "--execute"]),
    ("raku", &["-e"]),
    ("R", &["-e"]),
    ("gnuplot", &["-e"]),
    ("mongo", &["--eval"]),
    ("mongosh", &["--eval"]),
    ("matlab", &["-r", "-batch"]),
    ("maxima", &["--batch-string"]),
    ("m4", &[]),
    ("expect", &["-c"]),
    ("racket", &["-e"]),
    ("octave", &["--eval"]),
    ("swipl", &["-g"]),
    ("sbcl", &["--eval"]),
    ("pwsh", &["-c", "-Command", "-command", "-e", "-EncodedCommand", "-enc"]),
    ("powershell", &["-c", "-Command", "-command", "-e", "-EncodedCommand", "-enc"]),
];

/// Words for processes, connections, deletion and decoding.
const ASKED: &[&str] = &[
    "system",
    "popen",
    "subprocess",
    "exec",
    "spawn",
    "fork",
    "socket",
    "connect(",
    "urlopen",
    "urllib",
    "requests.",
    "http.client",
    "net/http",
    "Net::HTTP",
    "IO::Socket",
    "LWP",
    "fetch(",
    "child_process",
    "rmtree",
    "unlink",
    "os.remove",
    "rmdir",
    "rmSync",
    "rm_rf",
    "remove_entry",
    "File.delete",
    "FileUtils",
    "removedirs",
    "base64",
    "b64decode",
    "unhexlify",
    "fromhex",
    "atob",
    "decode(",
    "eval",
    "compile(",
    "__import__",
    "getattr",
    "importlib",
    "pty",
    "ctypes",
    "fsockopen",
    "proc_open",
    "shell_exec",
    "passthru",
    "pcntl",
    "pack(",
    "codecs",
    "marshal",
    "pickle",
    "Process",
    "Runtime",
    "dup2",
    "kill",
    "os.exec",
    "io.popen",
    "os.execute",
    "os.spawn",
    "open3",
    "Kernel",
    "`",
    "%x",
    "qx",
    "curl",
    "wget",
    "chr(",
    "fromCharCode",
    "Buffer.from",
    "zlib",
    "require('net')",
    "require(\"net\")",
    "require('http",
    "require(\"http",
    "dgram",
    "truncate",
    "shutil",
    "System.cmd",
    "os:cmd",
    "Sys.command",
    "callCommand",
    "readProcess",
    "callProcess",
    "removeSync",
    "Deno.remove",
    "Deno.Command",
    "java.shell",
    "run-program",
    "run(",
    "syscmd",
    "babashka.process",
    "sh \"",
    "sh '",
];
const SHELLS: &[&str] = &[
    "/bin/sh",
    "/bin/bash",
    "\"sh\"",
    "'sh'",
    "\"bash\"",
    "'bash'",
    "bash -i",
    "sh -i",
    "cmd.exe",
    "/bin/dash",
    "/bin/zsh",
    "exec sh",
    "exec bash",
];
const CONNECTIONS: &[&str] =
    &["socket", "Socket", "fsockopen", "connect", "net.", "dup2", "/dev/tcp", "/inet/", "TCPClient"];
const FETCHES: &[&str] = &[
    "urlopen",
    "requests.get",
    "urllib",
    "http.get",
    "https.get",
    "('http').",
    "(\"http\").",
    "('https').",
    "(\"https\").",
    "fetch(",
    "Net::HTTP",
    "open-uri",
    "LWP",
    "file_get_contents('http",
    "file_get_contents(\"http",
    "URI.open",
    "open(\"http",
    "open('http",
    "DownloadString",
    "curl",
    "wget",
];
const DELETES: &[&str] = &[
    "rmtree",
    "rm_rf",
    "rm -rf",
    "rm -fr",
    "rm -r",
    "remove_tree",
    "rmSync",
    "mkfs",
    "dd if=",
    "remove_entry_secure",
    "rimraf",
    "rm_r(",
    "removedirs",
    "rmdirSync",
];
const RUNS: &[&str] = &[
    "exec(",
    "eval(",
    "eval ",
    "exec \"",
    "exec '",
    "execl",
    "execv",
    "execSync",
    "execFile",
    "os.execute",
    "system(",
    "system \"",
    "system '",
    "os.system",
    "popen",
    "subprocess",
    "spawn",
    "runInThisContext",
    "Function(",
    "instance_eval",
    "iex",
    "assert(",
];

/// Judges inline code of a command.
pub(super) fn judge(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    if matches!(seen.name, "awk" | "gawk" | "mawk" | "nawk" | "busybox-awk") {
        judge_awk(walker, seen);
        return;
    }
    let Some((_, options)) = INLINE.iter().find(|(name, _)| *name == seen.name) else { return };
    let arguments = seen.arguments();
    let mut inline = false;
    // Options after a script's name belong to the script.
    let own = arguments.iter().take_while(|argument| argument.text().starts_with('-'));
    if own.into_iter().any(|argument| argument.is_unclear_option(valued(seen.name))) {
        walker.hit("unknown.script", None);
        arguments.iter().filter_map(Argument::known).for_each(|code| judge_code(walker, code));
    }
    for (i, argument) in arguments.iter().enumerate() {
        let text = argument.text();
        let short = |option: &&&str| option.len() == 2 && option.starts_with('-') && **option != "-i";
        let joined = options
            .iter()
            .filter(short)
            .find_map(|option| text.strip_prefix(*option).filter(|rest| !rest.is_empty()));
        // `-we`, `-lne`: the last letter of a cluster takes the code.
        let cluster = text.len() > 2
            && text.starts_with('-')
            && !text.starts_with("--")
            && text[1..].bytes().all(|byte| byte.is_ascii_alphanumeric())
            && options.iter().filter(short).any(|option| text.ends_with(&option[1..]));
        if options.contains(&text) || cluster {
            inline = true;
            if let Some(code) = arguments.get(i + 1) {
                judge_argument(walker, code);
            }
        } else if let Some(code) = joined.filter(|_| !cluster) {
            inline = true;
            judge_argument(walker, &Argument::new(code));
        } else if let Some((option, code)) = text.split_once('=')
            && options.contains(&option)
        {
            inline = true;
            judge_argument(walker, &Argument::new(code));
        }
        if argument.may_be_option() && argument.is_many() && i == 0 {
            walker.hit("unknown.script", None);
        }
    }
    // Modules that take code like `-c`.
    let module = arguments.windows(2).find(|two| two[0].text() == "-m").map(|two| two[1].text());
    if matches!(module, Some("timeit" | "pdb" | "cProfile" | "profile")) {
        for code in arguments.iter().filter(|argument| argument.text().contains(['(', ' ', ';'])) {
            judge_argument(walker, code);
        }
    }
    let file = seen.operands().any(|operand| !matches!(operand, "-" | "/dev/stdin"))
        || seen
            .arguments()
            .iter()
            .any(|a| matches!(a.text(), "-m" | "--version" | "-V" | "-v" | "--help" | "-h"));
    if !inline && !file {
        match &seen.place.input {
            Input::Text(code) => judge_code(walker, &code.clone()),
            Input::Unknown { fetched: true, .. } => walker.hit("remote-code.piped", None),
            Input::Unknown { decoded: true, .. } => walker.hit("eval.decoded", None),
            Input::Unknown { .. } => walker.hit("unknown.script", None),
            Input::Inherited | Input::File(_) => {}
        }
    }
    if matches!(seen.place.input, Input::Unknown { fetched: true, .. })
        && !inline
        && seen
            .operands()
            .any(|operand| operand.starts_with('\0') || operand == "-" || operand == "/dev/stdin")
    {
        walker.hit("remote-code.piped", None);
    }
}

/// The letters of an interpreter's options that take a value other than code.
fn valued(name: &str) -> &'static str {
    match name {
        "perl" => "IMmixCDF0l",
        "ruby" => "rICEFiKTxW",
        "python" | "python2" | "python3" | "pypy" | "pypy3" => "mWXQ",
        "node" | "nodejs" | "bun" => "r",
        "php" => "cdfStz",
        "m4" => "DUIBFLlot",
        _ => "",
    }
}

fn judge_argument(walker: &mut Walker<'_>, code: &Argument) {
    match code.known() {
        Some(code) => judge_code(walker, code),
        None => {
            walker.hit("eval.inline-code", Some("part of the code is only known at run time"));
            judge_code(walker, code.text());
        }
    }
}

/// Judges code in any of the languages.
pub(crate) fn judge_code(walker: &mut Walker<'_>, code: &str) {
    let names = |words: &[&str]| words.iter().any(|word| code.contains(word));
    if names(CONNECTIONS) && names(SHELLS) {
        walker.hit("reverse-shell.inline", None);
    } else if names(FETCHES) && names(RUNS) {
        walker.hit("remote-code.inline", None);
    } else if names(DELETES) {
        walker.hit("eval.inline-destructive", None);
    } else if names(&["b64decode", "base64", "fromhex", "unhexlify", "atob", "unpack", "pack("])
        && names(&["exec", "eval", "system"])
    {
        walker.hit("eval.decoded", None);
    } else if names(SHELLS) && names(RUNS) || names(&["pty.spawn", "setuid(0)", "setreuid", "os.setuid"]) {
        walker.hit("eval.option", None);
    } else if names(ASKED) {
        walker.hit("eval.inline-code", None);
    }
}

fn judge_awk(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    let typed = match &seen.place.input {
        Input::Text(text)
            if seen
                .arguments()
                .windows(2)
                .any(|two| two[0].text() == "-f" && matches!(two[1].text(), "-" | "/dev/stdin")) =>
        {
            Some(text.as_str())
        }
        _ => None,
    };
    for argument in seen.arguments().iter().map(Argument::text).chain(typed) {
        if argument.contains("system(")
            || argument.contains("@load")
            || argument.contains("|getline")
            || argument.contains("| getline")
            || argument.contains("/inet/")
            || argument.contains("|&")
            || pipes(argument)
        {
            let shell = ["\"sh\"", "\"bash\"", "/sh\"", "/bash\""].iter().any(|name| argument.contains(name));
            let bad = argument.contains("/inet/") || argument.contains("system(") || shell;
            walker.hit(if bad { "eval.option" } else { "eval.inline-code" }, None);
        }
        if argument.contains('\0') && argument.starts_with('\0') && !seen.any(|a| a.contains('{')) {
            walker.hit("eval.inline-code", Some("the program is only known at run time"));
        }
    }
}

/// Returns whether awk code pipes to a command: `print | "cmd"` or `print | c`.
fn pipes(program: &str) -> bool {
    program.match_indices('|').any(|(at, _)| {
        let (before, after) = (&program[..at], program[at + 1..].trim_start());
        let in_text = before.matches('"').count() - before.matches("\\\"").count();
        if before.ends_with('|') || after.starts_with('|') || in_text % 2 == 1 {
            return false;
        }
        let statement = before.rsplit(['{', ';', '\n']).next().unwrap_or(before).trim_start();
        // Within a pattern it is between slashes.
        let pattern = before.matches('/').count() % 2 == 1;
        after.starts_with('"')
            || (statement.starts_with("print")
                && !pattern
                && after.starts_with(|c: char| c.is_ascii_alphabetic() || "_($".contains(c)))
    })
}
