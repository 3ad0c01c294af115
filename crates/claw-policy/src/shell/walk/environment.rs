//! The known state of a shell at some point of a script.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::shell::syntax::Command;
use crate::shell::verdict::{Argument, UNKNOWN};

/// Variables, functions and aliases, as far as the script itself sets them.
#[derive(Debug, Clone, Default)]
pub(super) struct Environment {
    /// A variable that is missing here comes from outside and is unknown.
    pub(super) variables: BTreeMap<String, Variable>,
    pub(super) functions: BTreeMap<String, Function>,
    pub(super) aliases: BTreeMap<String, String>,
    /// `$1` and so on, if the script sets them.
    pub(super) positional: Option<Vec<Argument>>,
    /// Variables that do not simply become the value assigned to them.
    pub(super) odd: BTreeSet<String>,
    /// Words are not split at white space as usual.
    pub(super) other_splitting: bool,
}

/// Variables that the shell itself sets.
const ODD: &[&str] = &[
    "_",
    "UID",
    "EUID",
    "PPID",
    "BASHPID",
    "RANDOM",
    "SRANDOM",
    "SECONDS",
    "EPOCHSECONDS",
    "EPOCHREALTIME",
    "LINENO",
    "PWD",
    "OLDPWD",
    "FUNCNAME",
    "GROUPS",
    "DIRSTACK",
    "BASH_COMMAND",
    "BASH_SUBSHELL",
    "BASH_VERSINFO",
    "BASHOPTS",
    "SHELLOPTS",
    "HISTCMD",
    "PIPESTATUS",
    "BASH_ARGV0",
    "BASH_SOURCE",
    "BASH_LINENO",
    "COMP_WORDBREAKS",
    "BASH_REMATCH",
    "REPLY",
    "COPROC",
    "COPROC_PID",
    "MAPFILE",
    "OPTARG",
    "OPTIND",
    "BASH_ARGC",
    "BASH_ARGV",
    "COLUMNS",
    "LINES",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Variable {
    /// Text with NUL for unknown parts.
    Text(String),
    Array(Vec<Argument>),
    Unknown,
}

/// The commands that a function's name may run.
#[derive(Debug, Clone)]
pub(super) struct Function {
    pub(super) bodies: Vec<Rc<Command>>,
    /// The function is defined in any case; otherwise a program of that name may run instead.
    pub(super) certain: bool,
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.certain == other.certain
            && self.bodies.len() == other.bodies.len()
            && self.bodies.iter().zip(&other.bodies).all(|(one, other)| Rc::ptr_eq(one, other))
    }
}

impl Environment {
    pub(super) fn set(&mut self, name: &str, value: Variable) {
        if name == "IFS" {
            self.other_splitting = true;
        }
        if name == "BASH_ARGV0" {
            self.variables.remove("0");
        }
        let odd = self.odd.contains(name) || ODD.contains(&name);
        self.variables.insert(name.to_owned(), if odd { Variable::Unknown } else { value });
    }

    /// Marks a variable as odd: it does not simply become the assigned value, because it is read-only,
    /// numeric or case-changing.
    pub(super) fn make_odd(&mut self, name: &str) {
        self.odd.insert(name.to_owned());
    }

    /// The state that a child shell sees. Variables and functions may have been exported; exports of
    /// functions are not followed, so that the program of that name may run as well.
    pub(super) fn for_child(&self) -> Self {
        let mut functions = self.functions.clone();
        functions.values_mut().for_each(|function| function.certain = false);
        Self { functions, odd: self.odd.clone(), positional: Some(Vec::new()), ..Self::default() }
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.set(name, Variable::Unknown);
    }

    /// Forgets all variables, after something that may have set any.
    pub(super) fn forget_all(&mut self) {
        self.variables.clear();
        self.positional = None;
        self.other_splitting = true;
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        match self.variables.get(name)? {
            Variable::Text(text) => Some(text),
            Variable::Array(values) => values.first().map(Argument::text),
            Variable::Unknown => None,
        }
    }

    pub(super) fn define(&mut self, name: &str, body: &Rc<Command>, certain: bool) {
        let function =
            self.functions.entry(name.to_owned()).or_insert(Function { bodies: Vec::new(), certain });
        if certain {
            *function = Function { bodies: vec![body.clone()], certain };
        } else if !function.bodies.iter().any(|known| Rc::ptr_eq(known, body)) {
            function.bodies.push(body.clone());
        }
    }

    /// Merges another possible state; returns whether this one changed.
    pub(super) fn merge(&mut self, other: &Self) -> bool {
        let mut changed = false;
        let names: Vec<String> = self.variables.keys().chain(other.variables.keys()).cloned().collect();
        for name in names {
            let (one, two) = (self.variables.get(&name), other.variables.get(&name));
            if one != two && one != Some(&Variable::Unknown) {
                self.variables.insert(name, Variable::Unknown);
                changed = true;
            }
        }
        for (name, function) in &other.functions {
            match self.functions.get_mut(name) {
                Some(known) if known == function => {}
                Some(known) => {
                    for body in &function.bodies {
                        if !known.bodies.iter().any(|known| Rc::ptr_eq(known, body)) {
                            known.bodies.push(body.clone());
                            changed = true;
                        }
                    }
                    changed |= known.certain && !function.certain;
                    known.certain &= function.certain;
                }
                None => {
                    self.functions.insert(name.clone(), Function { certain: false, ..function.clone() });
                    changed = true;
                }
            }
        }
        for (name, function) in &mut self.functions {
            if function.certain && !other.functions.contains_key(name) {
                function.certain = false;
                changed = true;
            }
        }
        for (name, alias) in &other.aliases {
            if self.aliases.get(name) != Some(alias) {
                // Its meaning is unknown, which the text of an alias can express.
                let text = if self.aliases.contains_key(name) { UNKNOWN.to_string() } else { alias.clone() };
                changed |= self.aliases.insert(name.clone(), text.clone()) != Some(text);
            }
        }
        if self.positional != other.positional && self.positional.is_some() {
            self.positional = None;
            changed = true;
        }
        for name in &other.odd {
            changed |= self.odd.insert(name.clone());
        }
        changed |= other.other_splitting && !self.other_splitting;
        self.other_splitting |= other.other_splitting;
        changed
    }
}
