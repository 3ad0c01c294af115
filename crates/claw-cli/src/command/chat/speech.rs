//! Words on a terminal as they come. Once a line is whole it is written again, dressed.

use super::markdown::Markdown;
use crate::failure::Failure;
use crate::output::{Out, visible};

/// What is being said.
#[derive(Debug, Default)]
pub(super) struct Speech {
    markdown: Markdown,
    /// What was written of the line that is not whole yet.
    line: String,
}

impl Speech {
    /// Says more.
    pub(super) fn say(&mut self, out: &mut Out, text: &str) -> Result<(), Failure> {
        let Some(columns) = out.columns() else { return out.piece(text) };
        for piece in text.split_inclusive('\n') {
            let Some(rest) = piece.strip_suffix('\n') else {
                out.piece(piece)?;
                self.line.push_str(&visible(piece));
                continue;
            };
            out.piece(rest)?;
            self.line.push_str(&visible(rest));
            let line = std::mem::take(&mut self.line);
            match self.markdown.line(&line) {
                // What went over the edge cannot be written over.
                Some(dressed) if width(&line) < columns => {
                    out.raw(format!("\r\x1b[2K{dressed}\n").as_bytes())?;
                }
                _ => out.raw(b"\n")?,
            }
        }
        out.flush()
    }
}

/// At most how many columns a line takes.
fn width(line: &str) -> usize {
    line.chars().map(|c| if c == '\t' { 8 } else { 1 + usize::from(!c.is_ascii()) }).sum()
}
