//! A terminal and the person at it, for any front end: output as tables, prose, Markdown, diffs and progress;
//! input as edited lines, questions and secrets.
//!
//! Standard output is for results, standard error for progress and questions. Nothing here knows the types of an
//! agent, a tool or a store: the display of a run and the prompt of an approval take plain values. Text from elsewhere is never shown with its control characters: they could move the cursor
//! and rewrite earlier output.

mod approval;
mod ask;
mod call_progress;
mod completion;
mod control_characters;
mod editor;
mod markdown;
mod output;
mod progress;
mod run;
mod spinner;
mod streamed_text;
pub mod style;
mod table;
mod typed_ahead;
mod wrap;

pub use approval::{AnswerScope, ApprovalAnswer, ApprovalPrompt, AskedApproval, PromptInput, ValuesCheck};
pub use ask::{
    AnswerInput, AnswerWanted, AskError, ask_hidden, ask_line, ask_secret, ask_until, ask_yes, bounded_line,
    can_ask, is_piped, on_interrupt, stop_requested, typed_lines,
};
pub use call_progress::Live;
pub use completion::{Completion, Names, complete};
pub use control_characters::visible;
pub use editor::{Entry, Heard, LineEditor};
pub use output::{Out, complain, fit_to, tell, tell_styled, told_columns};
pub use progress::{Progress, StepCount};
pub use run::{CallResult, RunDisplay, tell_change, took};
pub use spinner::{Spinner, TICK};
pub use streamed_text::Speech;
pub use table::{Cell, Column, Table};
pub use typed_ahead::Quiet;
pub use wrap::{beside, indent, prose, width};
