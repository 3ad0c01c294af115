//! A terminal and the person at it, for any front end: output as tables, prose, Markdown, diffs and progress;
//! input as edited lines, questions and secrets.
//!
//! Standard output is for results, standard error for progress and questions. Nothing here knows an agent, a
//! tool or a store. Text from elsewhere is never shown with its control characters: they could move the cursor
//! and rewrite earlier output.

mod ask;
mod editor;
mod live;
mod markdown;
mod out;
mod progress;
mod quiet;
mod speech;
mod spinner;
pub mod style;
mod table;
mod wrap;

pub use ask::{AnswerInput, AnswerWanted, AskError, ask_hidden, ask_line, ask_secret, can_ask};
pub use editor::{Completion, Heard, LineEditor};
pub use live::Live;
pub use out::{Out, complain, fit_to, tell, tell_styled, told_columns, visible};
pub use progress::Progress;
pub use quiet::Quiet;
pub use speech::Speech;
pub use spinner::{Spinner, TICK};
pub use table::{Cell, Column, Table};
pub use wrap::{beside, indent, prose, width};
