//! Scripts: files of turns that a model plays, offline and the same every time.
//!
//! A script is TOML. The first turn that fits the conversation is played:
//!
//! ```
//! let script = claw_llm::Script::parse("greetings.toml", r#"
//!     [[turn]]
//!     when.said_matches = '(?i)\bread (?<path>\S+)'
//!     do = [{ say = "Let me look." }, { call = "read_file", args = { path = "{{said.path}}" } }]
//!
//!     [[turn]]
//!     when.result_of = "read_file"
//!     do = [{ say = "It says:\n{{result}}" }]
//!
//!     [[turn]]
//!     do = [{ say = "Tell me to read a file." }]
//! "#);
//! assert!(script.is_ok());
//! ```
//!
//! A script that cannot be played as written is refused when it is loaded, with the line and the reason. The
//! matching turn is derived from the conversation, so that it is the same after a restart; only `time` and
//! `first` are counted, by this process.

mod file;
mod load;
mod matching;
mod template;
#[cfg(test)]
pub(crate) mod tests;

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use claw_core::port::{Fault, Prices, Question, Stop};
use claw_core::store::Tokens;
use smol_str::SmolStr;

use matching::{Conversation, When};
use template::{ArgsTemplate, Template};

/// Largest script file, in bytes.
const MOST_BYTES: u64 = 4 * 1024 * 1024;

/// The demo script, played if no provider is set up.
static DEMO: LazyLock<Result<Arc<Script>, ScriptError>> =
    LazyLock::new(|| Script::parse("demo.toml", include_str!("script/demo.toml")).map(Arc::new));

/// A script that can be played.
#[derive(Debug)]
pub struct Script {
    name: SmolStr,
    about: Model,
    turns: Vec<Turn>,
}

/// Properties of the model that plays the script.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Model {
    pub(crate) context: u64,
    pub(crate) output: u64,
    pub(crate) images: bool,
    pub(crate) prices: Prices,
}

/// A turn of the script, with the condition under which it is played.
#[derive(Debug)]
struct Turn {
    when: When,
    steps: Vec<Written>,
    stop: Option<Stop>,
    tokens: Option<Tokens>,
    /// Number of times the turn has fitted, apart from `time` and `first`.
    fitted: AtomicU32,
}

/// A step as written, with its placeholders.
#[derive(Debug)]
enum Written {
    Say { text: Template, pace: Pace, cut: Option<usize> },
    Think { text: Template, pace: Pace, cut: Option<usize> },
    Call { tool: Template, args: ArgsTemplate, id: Option<String>, pace: Pace, cut: Option<usize> },
    Wait(Duration),
    Fail { fault: Fault, message: Template },
    Hang,
}

/// The speed of streaming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Characters per piece.
    pub piece: usize,
    /// Delay before each piece.
    pub delay: Duration,
}

/// An answer that a script plays.
#[derive(Debug, Clone, PartialEq)]
pub struct Scene {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Stop reason, unless the answer fails or hangs before.
    pub stop: Stop,
    /// Token usage that the script states.
    pub tokens: Option<Tokens>,
}

/// A step of an answer. Cut texts are already cut, and nothing follows them.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Text.
    Say {
        /// The text.
        text: String,
        /// The speed.
        pace: Pace,
    },
    /// A thought.
    Think {
        /// The thought.
        text: String,
        /// The speed.
        pace: Pace,
    },
    /// A call of a tool.
    Call {
        /// The tool's name.
        tool: String,
        /// The arguments as text: JSON, or invalid.
        args: String,
        /// The model's id of the call, if the script gives one.
        id: Option<String>,
        /// The speed.
        pace: Pace,
        /// The arguments were cut off.
        cut: bool,
    },
    /// Waits.
    Wait(Duration),
    /// The answer fails here.
    Fail {
        /// The kind of failure.
        fault: Fault,
        /// The error message.
        message: String,
    },
    /// The answer never continues.
    Hang,
}

/// No turn of a script matches a conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no turn of the script `{script}` matches the last user message `{said}`; add a turn without `when`")]
pub struct NoTurn {
    /// The script's name.
    pub script: SmolStr,
    /// The beginning of the user's last words.
    pub said: String,
}

/// An error in a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", self.place())]
pub struct ScriptError {
    /// The script's name.
    pub script: SmolStr,
    /// The line at fault, counted from 1, if there is one.
    pub line: Option<usize>,
    /// The problem, and what to try.
    pub reason: String,
}

impl ScriptError {
    fn place(&self) -> String {
        match self.line {
            Some(line) => format!("script `{}`, line {line}", self.script),
            None => format!("script `{}`", self.script),
        }
    }
}

impl Script {
    /// Reads a script from its text. The name is used in messages.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScriptError> {
        load::script(name, text)
    }

    /// Reads a script from a file.
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        let name = path.display().to_string();
        let refused = |reason: String| ScriptError { script: name.as_str().into(), line: None, reason };
        let unreadable = |error: std::io::Error| refused(format!("cannot be read: {error}"));
        let size = std::fs::metadata(path).map_err(unreadable)?.len();
        if size > MOST_BYTES {
            return Err(refused(format!("has {size} bytes; a script has at most {MOST_BYTES}")));
        }
        let bytes = std::fs::read(path).map_err(unreadable)?;
        let text = String::from_utf8(bytes).map_err(|_| refused("is not UTF-8; save it as UTF-8".into()))?;
        Self::parse(&name, &text)
    }

    /// The demo: it greets, says that it is a demo, and can read, change and run things if the tools are
    /// offered.
    pub fn demo() -> Result<Arc<Self>, ScriptError> {
        DEMO.clone()
    }

    /// The script's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Properties of the model that plays the script.
    pub(crate) fn about(&self) -> &Model {
        &self.about
    }

    /// Returns the answer to a question. Each call counts: a turn with `first = 1` is not played twice.
    pub fn play(&self, question: &Question) -> Result<Scene, NoTurn> {
        let conversation = Conversation::of(question);
        for turn in &self.turns {
            let Some(found) = turn.when.fits(&conversation) else { continue };
            let before = turn.fitted.fetch_add(1, Ordering::Relaxed);
            if turn.when.counts(before.saturating_add(1)) {
                return Ok(turn.scene(&found));
            }
        }
        let said = conversation.said.chars().take(80).collect();
        Err(NoTurn { script: self.name.clone(), said })
    }
}

impl Turn {
    fn scene(&self, found: &matching::Captured<'_>) -> Scene {
        let mut steps = Vec::with_capacity(self.steps.len());
        let mut was_cut = false;
        for written in &self.steps {
            let (step, cut) = written.fill(found);
            steps.push(step);
            if cut {
                was_cut = true;
                break;
            }
        }
        let calls = steps.iter().any(|step| matches!(step, Step::Call { .. }));
        let stop = match &self.stop {
            Some(stop) => stop.clone(),
            None if was_cut => Stop::Length,
            None if calls => Stop::Calls,
            None => Stop::Done,
        };
        Scene { steps, stop, tokens: self.tokens }
    }
}

impl Written {
    /// The step with its placeholders filled, and whether it was cut.
    fn fill(&self, found: &matching::Captured<'_>) -> (Step, bool) {
        match self {
            Self::Say { text, pace, cut } => {
                let (text, cut) = cut_at(text.fill(found), *cut);
                (Step::Say { text, pace: *pace }, cut)
            }
            Self::Think { text, pace, cut } => {
                let (text, cut) = cut_at(text.fill(found), *cut);
                (Step::Think { text, pace: *pace }, cut)
            }
            Self::Call { tool, args, id, pace, cut } => {
                let (args, cut) = cut_at(args.fill(found), *cut);
                (Step::Call { tool: tool.fill(found), args, id: id.clone(), pace: *pace, cut }, cut)
            }
            Self::Wait(time) => (Step::Wait(*time), false),
            Self::Fail { fault, message } => {
                (Step::Fail { fault: *fault, message: message.fill(found) }, false)
            }
            Self::Hang => (Step::Hang, false),
        }
    }
}

/// Cuts a text after a number of characters. A shorter text stays whole, but still counts as cut.
fn cut_at(mut text: String, at: Option<usize>) -> (String, bool) {
    let Some(at) = at else { return (text, false) };
    if let Some((end, _)) = text.char_indices().nth(at) {
        text.truncate(end);
    }
    (text, true)
}

impl Pace {
    /// The text in pieces.
    pub fn pieces(self, text: &str) -> impl Iterator<Item = &str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let end = rest.char_indices().nth(self.piece.max(1)).map_or(rest.len(), |(at, _)| at);
            let (piece, after) = rest.split_at(end);
            rest = after;
            Some(piece)
        })
    }
}
