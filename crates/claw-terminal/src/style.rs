//! The few styles. They are always written, and removed from output that cannot show them.

use anstyle::{AnsiColor, Style};

/// A failure.
pub const BAD: Style = AnsiColor::Red.on_default().bold();
/// The title of a part.
pub const HEADING: Style = Style::new().bold();
/// Secondary text.
pub const QUIET: Style = Style::new().dimmed();
/// A command that can be typed.
pub const COMMAND: Style = AnsiColor::Cyan.on_default().bold();
/// Code, input and output of programs.
pub const CODE: Style = AnsiColor::Cyan.on_default();
/// Text to be seen first.
pub const STRONG: Style = Style::new().bold();
/// A line that a change put in.
pub const ADDED: Style = AnsiColor::Green.on_default();
/// A line that a change took out.
pub const TAKEN: Style = AnsiColor::Red.on_default();
/// A good state.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// A warning.
pub const WARNING: Style = AnsiColor::Yellow.on_default();
/// A bad state.
pub const WRONG: Style = AnsiColor::Red.on_default();
