//! Reads a person's input: lines with history, several at once, completed with Tab.

use std::borrow::Cow;
use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use reedline::{
    ColumnarMenu, Completer, CompletionResult, EditCommand, Emacs, FileBackedHistory, KeyCode, KeyModifiers,
    MenuBuilder as _, Prompt, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus, Reedline,
    ReedlineEvent, ReedlineMenu, Signal, Span, Suggestion, ValidationResult, Validator,
    default_emacs_keybindings,
};

use crate::{Completion, tell};

/// The number of lines remembered.
const LINES: usize = 1000;
const MENU: &str = "completions";

/// The person's input.
#[derive(Debug)]
pub enum Heard {
    /// A line, or several.
    Line(String),
    /// Ctrl-C: the line is dropped.
    Nothing,
    /// Ctrl-D.
    End,
}

/// An entry in an interactive chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A message, of a line or several.
    Message(String),
    /// A line `/word rest`.
    Command {
        /// The word, without its slash.
        word: String,
        /// The text after it.
        rest: String,
    },
    /// The person goes.
    End,
}

impl Entry {
    /// The entry that a text is; `None` for a blank one.
    pub fn of(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        let Some(command) = text.strip_prefix('/').filter(|_| !text.contains('\n')) else {
            return Some(Self::Message(text.to_owned()));
        };
        let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        Some(match word {
            "quit" | "exit" | "q" => Self::End,
            word => Self::Command { word: word.to_owned(), rest: rest.trim().to_owned() },
        })
    }
}

/// Completes a line at a byte of it.
type Complete = dyn Fn(&str, usize) -> Vec<Completion> + Send;

/// Reads lines, with those of earlier times in the history.
pub struct LineEditor {
    editor: Option<Reedline>,
    complete: Arc<Mutex<Box<Complete>>>,
    /// The person was told how to leave.
    told_leaving: bool,
}

impl fmt::Debug for LineEditor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineEditor").finish_non_exhaustive()
    }
}

impl LineEditor {
    /// An editor with its history in this file, which only its owner may read.
    pub fn new(history: &Path, colours: bool) -> Self {
        let made = OpenOptions::new().create(true).append(true).mode(0o600).open(history);
        let history = made.ok().and_then(|_| FileBackedHistory::with_file(LINES, history.to_owned()).ok());
        let complete: Arc<Mutex<Box<Complete>>> = Arc::new(Mutex::new(Box::new(|_, _| Vec::new())));
        let mut keys = default_emacs_keybindings();
        let next =
            ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext]);
        keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, next);
        keys.add_binding(
            KeyModifiers::ALT,
            KeyCode::Enter,
            ReedlineEvent::Edit(vec![EditCommand::InsertNewline]),
        );
        let menu = ColumnarMenu::default().with_name(MENU);
        let mut editor = Reedline::create()
            .with_ansi_colors(colours)
            .use_bracketed_paste(true)
            .with_validator(Box::new(Continued))
            .with_completer(Box::new(Completions(Arc::clone(&complete))))
            .with_quick_completions(true)
            .with_partial_completions(true)
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_edit_mode(Box::new(Emacs::new(keys)));
        if let Some(history) = history {
            editor = editor.with_history(Box::new(history));
        }
        Self { editor: Some(editor), complete, told_leaving: false }
    }

    /// Sets how Tab completes a line.
    pub fn complete_with(&self, complete: impl Fn(&str, usize) -> Vec<Completion> + Send + 'static) {
        *self.complete.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(complete);
    }

    /// Puts a text into the next line, as if it were typed.
    pub fn put(&mut self, text: &str) {
        if let Some(editor) = &mut self.editor
            && !text.is_empty()
        {
            editor.run_edit_commands(&[EditCommand::InsertString(text.to_owned())]);
        }
    }

    /// The next message or command; blank lines are passed over.
    pub async fn entry(&mut self, prompt: &str) -> io::Result<Entry> {
        loop {
            let line = match self.next(prompt.to_owned()).await? {
                Heard::Line(line) => line,
                Heard::Nothing => {
                    if !std::mem::replace(&mut self.told_leaving, true) {
                        tell("Ctrl-D or /quit leaves");
                    }
                    continue;
                }
                Heard::End => return Ok(Entry::End),
            };
            if matches!(line.trim(), "exit" | "quit") {
                tell("going; the session is kept (`/exit` and `/quit` do the same)");
                return Ok(Entry::End);
            }
            if let Some(entry) = Entry::of(&line) {
                return Ok(entry);
            }
        }
    }

    /// The next line. Reading a terminal cannot be stopped, so it has a thread of its own.
    pub async fn next(&mut self, prompt: String) -> io::Result<Heard> {
        let gone = || io::Error::other("a line is being read already");
        let mut editor = self.editor.take().ok_or_else(gone)?;
        let read = tokio::task::spawn_blocking(move || {
            let read = editor.read_line(&Named(prompt));
            (editor, read)
        });
        let (editor, read) = read.await.map_err(io::Error::other)?;
        self.editor = Some(editor);
        match read.map_err(io::Error::other)? {
            Signal::Success(line) => Ok(Heard::Line(line.replace("\\\n", "\n"))),
            Signal::CtrlD => Ok(Heard::End),
            _ => Ok(Heard::Nothing),
        }
    }
}

/// Continues a line that ends with a backslash in the next.
struct Continued;

impl Validator for Continued {
    fn validate(&self, line: &str) -> ValidationResult {
        match line.ends_with('\\') {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Complete,
        }
    }
}

struct Completions(Arc<Mutex<Box<Complete>>>);

impl Completer for Completions {
    fn complete(&mut self, line: &str, at: usize) -> CompletionResult {
        let complete = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = complete(line, at);
        let suggestions: Vec<Suggestion> = found
            .into_iter()
            .map(|found| Suggestion {
                value: found.value,
                description: Some(found.about).filter(|about| !about.is_empty()),
                span: Span::new(found.start, at),
                append_whitespace: found.is_whole,
                ..Suggestion::default()
            })
            .collect();
        CompletionResult::fresh(suggestions)
    }
}

/// A name before each line.
struct Named(String);

impl Prompt for Named {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.0)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let found = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "nothing for ",
        };
        Cow::Owned(format!("({found}{}) ", search.term))
    }
}
