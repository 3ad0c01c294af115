//! Reads a person's input: lines with history, several at once, completed with Tab.

use std::borrow::Cow;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use clawsmith::app::Setup;
use clawsmith::app::completion::{self, Names};
use reedline::{
    ColumnarMenu, Completer, CompletionResult, EditCommand, Emacs, FileBackedHistory, KeyCode, KeyModifiers,
    MenuBuilder as _, Prompt, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus, Reedline,
    ReedlineEvent, ReedlineMenu, Signal, Span, Suggestion, ValidationResult, Validator,
    default_emacs_keybindings,
};

use crate::cli::Session;
use crate::failure::Failure;

/// The number of lines remembered.
const LINES: usize = 1000;
const MENU: &str = "completions";

/// The person's input.
pub(super) enum Heard {
    Line(String),
    /// Ctrl-C: the line is dropped.
    Nothing,
    /// Ctrl-D.
    End,
}

/// Reads lines, with those of earlier chats in the history.
pub(super) struct Lines {
    editor: Option<Reedline>,
    known: Arc<Mutex<Known>>,
}

/// The completable names and files.
#[derive(Debug, Default)]
struct Known {
    names: Names,
    workspace: PathBuf,
}

impl Lines {
    pub(super) fn new(setup: &Setup, session: &Session) -> Result<Self, Failure> {
        let file = setup.data_dir()?.join("chat-history");
        // The history is readable by its owner alone.
        let made = OpenOptions::new().create(true).append(true).mode(0o600).open(&file);
        let history = made.ok().and_then(|_| FileBackedHistory::with_file(LINES, file).ok());
        let known = Arc::new(Mutex::new(Known::default()));
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
            .with_ansi_colors(session.out.shows_styles())
            .use_bracketed_paste(true)
            .with_validator(Box::new(Continued))
            .with_completer(Box::new(Completions(Arc::clone(&known))))
            .with_quick_completions(true)
            .with_partial_completions(true)
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_edit_mode(Box::new(Emacs::new(keys)));
        if let Some(history) = history {
            editor = editor.with_history(Box::new(history));
        }
        Ok(Self { editor: Some(editor), known })
    }

    /// Sets the names and files to complete.
    pub(super) fn know(&self, names: Names, workspace: PathBuf) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Known { names, workspace };
    }

    /// Puts a text into the next line, as if it were typed.
    pub(super) fn put(&mut self, text: &str) {
        if let Some(editor) = &mut self.editor
            && !text.is_empty()
        {
            editor.run_edit_commands(&[EditCommand::InsertString(text.to_owned())]);
        }
    }

    /// The next line. Reading a terminal cannot be stopped, so it has a thread of its own.
    pub(super) async fn next(&mut self, prompt: String) -> Result<Heard, Failure> {
        let gone = || Failure::failed("the terminal cannot be read");
        let mut editor = self.editor.take().ok_or_else(gone)?;
        let read = tokio::task::spawn_blocking(move || {
            let read = editor.read_line(&Named(prompt));
            (editor, read)
        });
        let (editor, read) = read.await.map_err(|error| gone().because(error))?;
        self.editor = Some(editor);
        match read.map_err(|error| gone().because(error))? {
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

struct Completions(Arc<Mutex<Known>>);

impl Completer for Completions {
    fn complete(&mut self, line: &str, at: usize) -> CompletionResult {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = completion::complete(line, at, &known.names, &known.workspace);
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
