//! The syntax tree of a command, as bash reads it, with only the parts that the analysis needs.

use std::cell::OnceCell;
use std::rc::Rc;

use super::verdict::Span;

/// Commands one after the other.
#[derive(Debug, Clone, Default)]
pub(super) struct List(pub(super) Vec<Item>);

/// A command of a list.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) command: Command,
    /// The connection to the command before it.
    pub(super) after: After,
    /// The command ends in `&`, with all commands that it is connected to.
    pub(super) background: bool,
}

/// The connection of a command to the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// It runs in any case.
    Always,
    /// `&&` or `||`: it runs or it does not.
    Perhaps,
}

/// A command with its position.
#[derive(Debug, Clone)]
pub(super) struct Command {
    pub(super) kind: Kind,
    pub(super) redirects: Vec<Redirect>,
    pub(super) span: Span,
}

/// The kind of a command.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Simple {
        assignments: Vec<Assignment>,
        words: Vec<Word>,
    },
    Pipeline(Vec<Command>),
    Subshell(List),
    Group(List),
    If {
        branches: Vec<(List, List)>,
        otherwise: Option<List>,
    },
    Loop {
        condition: List,
        body: List,
    },
    /// `for`, or `select` if the value is not `fixed`.
    For {
        variable: String,
        words: Option<Vec<Word>>,
        fixed: bool,
        body: List,
    },
    ArithmeticFor {
        expression: Vec<Part>,
        body: List,
    },
    Case {
        word: Word,
        items: Vec<(Vec<Word>, List)>,
    },
    Function {
        name: String,
        body: Rc<Command>,
    },
    Test(Vec<Word>),
    Arithmetic(Vec<Part>),
    Coprocess(Box<Command>),
}

/// `NAME=value`, `NAME+=value`, `NAME[i]=value` or `NAME=(...)`.
#[derive(Debug, Clone)]
pub(super) struct Assignment {
    pub(super) name: String,
    pub(super) value: AssignedValue,
    pub(super) append: bool,
    /// A single element of an array is set.
    pub(super) indexed: bool,
}

#[derive(Debug, Clone)]
pub(super) enum AssignedValue {
    Word(Word),
    Array(Vec<Word>),
}

/// A redirection.
#[derive(Debug, Clone)]
pub(super) struct Redirect {
    pub(super) operator: Operator,
    /// The file, the descriptor or the here-string; the delimiter of a here-document.
    pub(super) target: Word,
    /// The body of a here-document, filled when its lines are reached.
    pub(super) body: Rc<OnceCell<Word>>,
    /// The descriptor as written before the operator: a number, `{NAME}`, or empty.
    pub(super) descriptor: String,
    /// The redirection is of standard input: no descriptor was named, or 0.
    pub(super) default_descriptor: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Read,
    Write,
    Append,
    ReadWrite,
    /// `<&` and `>&`.
    Duplicate,
    /// `&>` and `&>>`.
    Both,
    HereDocument,
    HereString,
}

/// A word, which becomes no argument, one or several.
#[derive(Debug, Clone, Default)]
pub(super) struct Word {
    pub(super) parts: Vec<Part>,
    pub(super) span: Span,
}

/// A part of a word.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// Text as written: patterns, braces and a tilde count.
    Plain(String),
    /// Quoted text.
    Quoted(String),
    /// `"..."`.
    Double(Vec<Part>),
    Parameter(Box<Parameter>),
    /// `$(...)` and backquotes.
    Command(Rc<List>),
    /// `<(...)` and `>(...)`.
    Process {
        list: Rc<List>,
        writes: bool,
    },
    /// `$((...))`, with the expansions in it.
    Arithmetic(Vec<Part>),
    /// Quoted bytes that are not valid text.
    Bytes,
}

/// `$name` and `${...}`.
#[derive(Debug, Clone, Default)]
pub(super) struct Parameter {
    pub(super) name: String,
    /// Written without braces, so that text after it could join its name.
    pub(super) bare: bool,
    /// The text between `[` and `]`.
    pub(super) index: Option<Vec<Part>>,
    /// The text between name and word, such as `:-`; `#` and `!` before the name are `len` and `indirect`.
    pub(super) operator: String,
    pub(super) word: Vec<Part>,
}

impl Word {
    /// The text of a plain word, without quotes and expansions.
    pub(super) fn plain(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Plain(text)] => Some(text),
            _ => None,
        }
    }
}
