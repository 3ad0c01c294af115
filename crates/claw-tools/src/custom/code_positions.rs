//! Finds the words of a command that a program reads as code. No value may stand there: quoting keeps a value
//! one word, but the program still runs that word.

/// A program that reads some of its words as code.
#[derive(Debug, PartialEq, Eq)]
struct Language {
    names: &'static [&'static str],
    /// Letters of options whose value is code.
    flags: &'static str,
    /// Long options whose value is code.
    long: &'static [&'static str],
    /// Letters of options whose value is not code.
    valued: &'static str,
    operands: Operands,
}

/// The operands that are code, or name a file of code.
#[derive(Debug, PartialEq, Eq)]
enum Operands {
    None,
    /// The first, if no option gave code.
    First,
    /// All from this one on.
    From(usize),
}

const LANGUAGES: &[Language] = &[
    Language {
        names: &["ash", "bash", "dash", "fish", "ksh", "mksh", "sh", "zsh"],
        flags: "c",
        long: &["--command", "--init-file", "--rcfile"],
        valued: "oO",
        operands: Operands::First,
    },
    Language {
        names: &["python", "python2", "python3", "pypy", "pypy3"],
        flags: "cm",
        long: &[],
        valued: "WX",
        operands: Operands::First,
    },
    Language {
        names: &["perl", "ruby", "lua", "luajit", "osascript", "Rscript"],
        flags: "eEMr",
        long: &[],
        valued: "I",
        operands: Operands::First,
    },
    Language {
        names: &["node", "nodejs", "deno", "bun"],
        flags: "epr",
        long: &["--eval", "--print", "--require", "--import"],
        valued: "",
        operands: Operands::First,
    },
    Language { names: &["php"], flags: "rBREF", long: &["--run"], valued: "dc", operands: Operands::First },
    Language {
        names: &["awk", "gawk", "mawk", "nawk", "sed"],
        flags: "ef",
        long: &["--expression", "--file", "--source"],
        valued: "Fv",
        operands: Operands::First,
    },
    Language {
        names: &["su", "runuser", "script", "flock", "git"],
        flags: "c",
        long: &["--command", "--session-command"],
        valued: "",
        operands: Operands::None,
    },
    // The other side's shell reads all words as one script.
    Language {
        names: &["ssh"],
        flags: "o",
        long: &[],
        valued: "bcDEeFIiJLlmOpQRSWw",
        operands: Operands::From(1),
    },
    Language {
        names: &[
            ".",
            "alias",
            "declare",
            "eval",
            "getopts",
            "let",
            "local",
            "mapfile",
            "parallel",
            "read",
            "readarray",
            "readonly",
            "source",
            "trap",
            "typeset",
            "unset",
            "watch",
        ],
        flags: "",
        long: &[],
        valued: "",
        operands: Operands::From(0),
    },
];

/// Programs that run another program, which is somewhere among their words.
const RUNNERS: &[&str] = &[
    "busybox", "chroot", "chrt", "docker", "doas", "env", "exec", "find", "ionice", "kubectl", "lxc",
    "nerdctl", "nice", "nohup", "nsenter", "podman", "setpriv", "setsid", "stdbuf", "strace", "sudo",
    "taskset", "time", "timeout", "toybox", "unshare", "xargs",
];

/// Reads the words of one command, and tells whether the next is code.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reads {
    begun: bool,
    runner: bool,
    language: Option<&'static Language>,
    operands: usize,
    /// The next word is the value of an option.
    value: Option<Value>,
    /// An option gave the code.
    given: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Value {
    Code,
    Plain,
}

impl Reads {
    /// Takes the next word, without its quotes; `None` if only a call or a shell knows it.
    pub(super) fn word(&mut self, word: Option<&str>) {
        if !std::mem::replace(&mut self.begun, true) {
            let name = name(word.unwrap_or_default());
            self.runner = RUNNERS.contains(&name);
            self.language = language(name);
            return;
        }
        let Some(known) = self.language else {
            if self.runner {
                self.language = word.map(name).and_then(language);
            }
            return;
        };
        match (self.value.take(), word) {
            (Some(Value::Code), _) => self.given = true,
            (Some(Value::Plain), _) => {}
            // It may be an option whose value is code.
            (None, None) => self.value = (!self.given).then_some(Value::Code),
            (None, Some(word)) if !self.given && known.takes_code(word) => {
                // `--eval=x` has its value already.
                match word.starts_with("--") && word.contains('=') {
                    true => self.given = true,
                    false => self.value = Some(Value::Code),
                }
            }
            (None, Some(word)) if known.takes_value(word) => self.value = Some(Value::Plain),
            (None, Some(word)) if word.starts_with('-') && word.len() > 1 => {}
            (None, Some(_)) => self.operands += 1,
        }
    }

    /// Returns whether the next word would be read as code; `start` is the literal part before its first
    /// value.
    pub(super) fn is_code(&self, start: &str) -> bool {
        let Some(language) = self.language else { return false };
        if self.value == Some(Value::Plain) {
            return false;
        }
        let is_operand = match language.operands {
            Operands::None => false,
            Operands::First => self.operands == 0 && !self.given,
            Operands::From(first) => self.operands >= first,
        };
        self.value == Some(Value::Code)
            || (!self.given && language.takes_code(start))
            || (is_operand && !start.starts_with('-'))
    }
}

impl Language {
    /// Returns whether a word is an option whose value is code, or a group of short options with such an
    /// option in it.
    fn takes_code(&self, word: &str) -> bool {
        match word.strip_prefix("--") {
            Some(_) => self.long.iter().any(|long| word.split('=').next() == Some(long)),
            None => {
                word.strip_prefix('-').is_some_and(|letters| letters.contains(|c| self.flags.contains(c)))
            }
        }
    }

    fn takes_value(&self, word: &str) -> bool {
        let mut letters = word.chars();
        letters.next() == Some('-')
            && letters.next().is_some_and(|c| self.valued.contains(c))
            && letters.next().is_none()
    }
}

fn name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or_default()
}

fn language(name: &str) -> Option<&'static Language> {
    // Python and others have versions in their names.
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    LANGUAGES.iter().find(|language| {
        language.names.contains(&name) || (!plain.is_empty() && language.names.contains(&plain))
    })
}
