//! Knowledge of programs by name: their effects, and whether they run or decode things.

use claw_core::tool::{Effect, Effects};

use super::Place;
use crate::shell::verdict::{Argument, Simple};

/// Effects that an unknown program may have.
pub(super) const ANYTHING: Effects =
    Effects::of(&[Effect::Read, Effect::Write, Effect::Execute, Effect::Network]);
pub(super) const NOTHING: Effects = Effects::NONE;

const READERS: &[&str] = &[
    "cat",
    "ls",
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "head",
    "tail",
    "wc",
    "sort",
    "uniq",
    "cut",
    "tr",
    "diff",
    "cmp",
    "comm",
    "file",
    "stat",
    "du",
    "df",
    "tree",
    "less",
    "more",
    "nl",
    "od",
    "xxd",
    "hexdump",
    "strings",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "jq",
    "yq",
    "column",
    "paste",
    "join",
    "tac",
    "rev",
    "fold",
    "fmt",
    "ps",
    "top",
    "free",
    "uptime",
    "who",
    "w",
    "id",
    "whoami",
    "groups",
    "uname",
    "hostname",
    "date",
    "which",
    "whereis",
    "type",
    "env",
    "printenv",
    "readlink",
    "realpath",
    "find",
    "fd",
    "locate",
    "ag",
    "ack",
    "base64",
    "zcat",
    "zgrep",
    "lsof",
    "nproc",
    "lscpu",
    "tokei",
    "cloc",
    "man",
    "info",
    "awk",
    "gawk",
    "mawk",
];
const QUIET: &[&str] = &[
    "echo",
    "printf",
    "true",
    "false",
    ":",
    "test",
    "[",
    "sleep",
    "seq",
    "basename",
    "dirname",
    "pwd",
    "cd",
    "pushd",
    "popd",
    "dirs",
    "exit",
    "return",
    "break",
    "continue",
    "set",
    "shopt",
    "unset",
    "export",
    "declare",
    "typeset",
    "local",
    "readonly",
    "shift",
    "read",
    "let",
    "wait",
    "jobs",
    "fg",
    "bg",
    "umask",
    "ulimit",
    "hash",
    "expr",
    "bc",
    "yes",
    "times",
    "alias",
    "unalias",
    "trap",
    "getopts",
    "mapfile",
    "readarray",
    "history",
    "help",
    "kill",
    "disown",
    "tput",
    "clear",
    "stty",
    "tty",
    "cal",
    "numfmt",
    "factor",
    "mktemp",
    "eval",
    "command",
    "builtin",
    "exec",
];
const WRITERS: &[&str] = &[
    "rm", "rmdir", "mv", "cp", "mkdir", "touch", "tee", "ln", "chmod", "chown", "chgrp", "install",
    "truncate", "dd", "split", "csplit", "patch", "unzip", "zip", "gzip", "gunzip", "bzip2", "xz", "tar",
    "shred", "sed", "rename",
];
const NETWORKERS: &[&str] = &[
    "curl",
    "wget",
    "nc",
    "ncat",
    "netcat",
    "telnet",
    "ssh",
    "scp",
    "sftp",
    "rsync",
    "ftp",
    "lftp",
    "socat",
    "ping",
    "dig",
    "nslookup",
    "host",
    "traceroute",
    "nmap",
    "http",
    "https",
    "xh",
    "aria2c",
    "whois",
    "openssl",
    "tftp",
    "lynx",
    "links",
    "w3m",
    "fetch",
    "axel",
    "gh",
    "aws",
    "gcloud",
    "kubectl",
    "az",
];
const FETCHERS: &[&str] = &[
    "curl",
    "wget",
    "fetch",
    "aria2c",
    "axel",
    "lynx",
    "links",
    "w3m",
    "http",
    "https",
    "xh",
    "nc",
    "ncat",
    "netcat",
    "socat",
    "telnet",
    "ftp",
    "lftp",
    "tftp",
    "scp",
    "sftp",
    "ssh",
    "rsync",
    "openssl",
    "dig",
    "host",
    "nslookup",
    "gh",
    "aws",
    "gsutil",
    "GET",
    "lwp-request",
    "lwp-download",
    "httpie",
    "finger",
    "whois",
    "ftpget",
];
const DECODERS: &[&str] = &[
    "base64",
    "base32",
    "basenc",
    "xxd",
    "uudecode",
    "openssl",
    "gpg",
    "gunzip",
    "zcat",
    "gzip",
    "bzcat",
    "bunzip2",
    "xzcat",
    "unxz",
    "xz",
    "bzip2",
    "zstd",
    "zstdcat",
    "rev",
    "tr",
    "perl",
    "python",
    "python3",
    "ruby",
    "node",
    "php",
    "od",
    "hexdump",
    "iconv",
    "tac",
    "printf",
    "bc",
    "dc",
    "uncompress",
    "lz4",
];
const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "yash", "posh", "pdksh", "ksh93", "oksh",
    "bash5", "csh", "tcsh", "fish", "nu", "xonsh", "elvish", "osh", "ysh", "oil", "rc", "es", "ion",
];
const INTERPRETERS: &[&str] = &[
    "python",
    "python2",
    "python3",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "php",
    "lua",
    "tclsh",
    "deno",
    "bun",
    "Rscript",
    "pypy",
    "pypy3",
    "osascript",
    "guile",
    "julia",
    "ipython",
    "expect",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "luajit",
    "jshell",
    "groovy",
    "elixir",
    "racket",
    "sbcl",
    "swipl",
    "octave",
    "gdb",
    "jjs",
    "irb",
    "pwsh",
    "powershell",
];

/// The name by which rules know a program: without directory, version and `.exe`.
pub(in crate::shell) fn name(written: &str) -> String {
    let name = written.rsplit('/').next().unwrap_or(written);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    if name.starts_with("ld-linux") || name.starts_with("ld-musl") {
        return "ld.so".to_owned();
    }
    for known in ["python", "perl", "ruby", "php", "lua", "node"] {
        if let Some(version) = name.strip_prefix(known)
            && !version.is_empty()
            && version.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        {
            return if known == "python" { "python3".to_owned() } else { known.to_owned() };
        }
    }
    name.to_owned()
}

pub(in crate::shell) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// Returns whether a program is known not to run its arguments, or is followed elsewhere.
pub(super) fn only_itself(name: &str) -> bool {
    [READERS, QUIET, WRITERS, NETWORKERS, INTERPRETERS, SHELLS].iter().any(|names| names.contains(&name))
        || super::wrappers::is_wrapper(name)
}

pub(super) fn is_interpreter(name: &str) -> bool {
    INTERPRETERS.contains(&name)
}

pub(super) fn decodes(written: &str) -> bool {
    DECODERS.contains(&name(written).as_str())
}

/// Returns whether a command fetches something from another machine.
pub(super) fn fetches(simple: &Simple) -> bool {
    let Some(program) = simple.argv.first().and_then(Argument::known).map(name) else { return false };
    match program.as_str() {
        "git" => {
            simple.argv.iter().any(|a| matches!(a.text(), "archive" | "show"))
                && simple.argv.iter().any(|a| a.text().starts_with("--remote"))
        }
        "openssl" => simple.argv.get(1).is_some_and(|a| a.text() == "s_client"),
        name => FETCHERS.contains(&name),
    }
}

/// The effects that a program may have, judged by its name and arguments.
pub(super) fn effects(name: &str, arguments: &[Argument], place: &Place) -> Effects {
    let writes = place.writes.iter().any(|path| path.known() != Some("/dev/null"));
    let own = if QUIET.contains(&name) {
        NOTHING
    } else if READERS.contains(&name) {
        Effects::of(&[Effect::Read])
    } else if WRITERS.contains(&name) {
        Effects::of(&[Effect::Read, Effect::Write])
    } else if NETWORKERS.contains(&name) {
        Effects::of(&[Effect::Read, Effect::Write, Effect::Network])
    } else if name == "git" {
        match arguments.iter().find(|a| !a.text().starts_with('-')).and_then(Argument::known) {
            Some(
                "status" | "log" | "diff" | "show" | "blame" | "grep" | "rev-parse" | "ls-files" | "describe",
            ) => Effects::of(&[Effect::Read]),
            Some("clone" | "fetch" | "pull" | "push" | "remote" | "submodule") => {
                Effects::of(&[Effect::Read, Effect::Write, Effect::Network])
            }
            _ => Effects::of(&[Effect::Read, Effect::Write]),
        }
    } else {
        ANYTHING
    };
    if writes { own.and(Effects::of(&[Effect::Write])) } else { own }
}
