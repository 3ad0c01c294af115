//! The rules that deny or ask, based on the tree: programs, arguments, files and inputs, not text.

mod code;
mod custom;
mod destructive;
mod environment;
mod files;
mod network;
mod options;
mod sed;
mod system;
mod table;

pub use custom::{CustomRule, RuleError, Rules, ShellConfig};
pub use table::{RULES, Rule};

pub(super) use table::find;

pub(super) use code::judge_code;
pub(super) use environment::{judge_assignment, judge_assignments, judge_filled};
pub(super) use files::judge_redirects;

use super::verdict::{Argument, UNKNOWN};
use super::walk::{Input, Place, Walker};

/// A command as the rules see it.
pub(super) struct Seen<'a> {
    /// The program, without its directory.
    pub(super) name: &'a str,
    pub(super) argv: &'a [Argument],
    pub(super) place: &'a Place,
}

impl Seen<'_> {
    fn arguments(&self) -> &[Argument] {
        self.argv.get(1..).unwrap_or(&[])
    }

    /// Returns whether a short option is among the arguments, alone or with others.
    fn short(&self, flag: char) -> bool {
        self.options().any(|text| {
            text.strip_prefix('-').is_some_and(|flags| !flags.starts_with('-') && flags.contains(flag))
        })
    }

    /// Returns whether a long option is among them, shortened or not, with or without a value. `least` is the
    /// length of its shortest form.
    fn long(&self, name: &str, least: usize) -> bool {
        self.options().any(|text| {
            let Some(long) = text.strip_prefix("--") else { return false };
            let long = long.split('=').next().unwrap_or(long);
            long.len() >= least && name.starts_with(long)
        })
    }

    /// The arguments up to `--`.
    fn options(&self) -> impl Iterator<Item = &str> {
        self.arguments().iter().map(Argument::text).take_while(|text| *text != "--")
    }

    /// Returns whether the program is only asked for help or its version.
    fn only_asks_for_help(&self) -> bool {
        matches!(self.arguments(), [one] if matches!(one.known(), Some("--help" | "--version")))
    }

    /// The arguments that are not options.
    fn operands(&self) -> impl Iterator<Item = &str> {
        let mut dashes = false;
        self.arguments().iter().map(Argument::text).filter(move |text| {
            let option = !dashes && text.starts_with('-') && text.len() > 1;
            dashes |= *text == "--";
            !option
        })
    }

    fn has(&self, argument: &str) -> bool {
        self.arguments().iter().any(|found| found.text() == argument)
    }

    fn any(&self, test: impl Fn(&str) -> bool) -> bool {
        self.arguments().iter().any(|argument| test(argument.text()))
    }

    /// The first argument that is not an option: the verb, if the program has verbs.
    fn verb(&self) -> &str {
        self.operands().next().unwrap_or("")
    }
}

/// Applies all rules to a simple command.
pub(super) fn judge(walker: &mut Walker<'_>, name: &str, argv: &[Argument], place: &Place) {
    let seen = Seen { name, argv, place };
    destructive::judge(walker, &seen);
    system::judge(walker, &seen);
    network::judge(walker, &seen);
    options::judge(walker, &seen);
    options::judge_packages(walker, &seen);
    code::judge(walker, &seen);
    files::judge(walker, &seen);
    judge_redirects(walker, place);
    custom::judge(walker, &seen);
}

/// Judges a command whose program is unknown, by its arguments alone.
pub(super) fn judge_unknown(walker: &mut Walker<'_>, argv: &[Argument], _: &Place) {
    let program = argv.first().map_or("", Argument::text);
    // `$X -rf /` and `/bin/r? -rf /` are asked about anyway; a program with a known name in an unknown
    // directory is judged.
    if let Some((_, name)) = program.rsplit_once('/')
        && !name.is_empty()
        && !name.contains([UNKNOWN, '*', '?', '['])
    {
        let place = Place::nowhere();
        let seen = Seen { name, argv, place: &place };
        destructive::judge(walker, &seen);
        files::judge(walker, &seen);
    }
}

/// Judges text that is created at run time and run as a script.
pub(super) fn judge_dynamic(walker: &mut Walker<'_>, text: &str) {
    walker.hit("unknown.script", None);
    let first = text.trim_start().split([' ', '\t', '\n']).next().unwrap_or("");
    if first.starts_with(UNKNOWN) || text.trim_start().starts_with(UNKNOWN) {
        walker.hit("eval.dynamic", None);
    }
}

/// Judges a shell that reads its script from a pipe.
pub(super) fn judge_piped(walker: &mut Walker<'_>, name: &str, input: &Input) {
    // Asked about even if the rule against it is off: nobody has seen the script.
    walker.hit("unknown.script", Some(&format!("`{name}` reads its commands from another source")));
    match input {
        Input::Unknown { fetched: true, .. } => walker.hit("remote-code.piped", None),
        Input::Unknown { decoded: true, .. } => walker.hit("eval.decoded", None),
        _ => {}
    }
}
