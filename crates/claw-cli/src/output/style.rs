//! The few styles. They are always written, and removed from output that cannot show them.

use anstyle::{AnsiColor, Style};

/// A failure.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// The title of a part.
pub(crate) const HEADING: Style = Style::new().bold();
/// Secondary text.
pub(crate) const QUIET: Style = Style::new().dimmed();
/// A command that can be typed.
pub(crate) const COMMAND: Style = AnsiColor::Cyan.on_default().bold();
/// Code, input and output of programs.
pub(crate) const CODE: Style = AnsiColor::Cyan.on_default();
/// Text to be seen first.
pub(crate) const STRONG: Style = Style::new().bold();
/// A line that a change put in.
pub(crate) const ADDED: Style = AnsiColor::Green.on_default();
/// A line that a change took out.
pub(crate) const TAKEN: Style = AnsiColor::Red.on_default();
/// A good state.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// A warning.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default();
/// A bad state.
pub(crate) const WRONG: Style = AnsiColor::Red.on_default();
