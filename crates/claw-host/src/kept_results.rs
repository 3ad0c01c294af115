//! Results too long to send whole, kept for their session.
//!
//! [`FileArtifacts`] keeps them under a directory, [`IndexedArtifacts`] adds a limit per tenant, and
//! [`MemoryArtifacts`] keeps them as long as the process lives. All are bounded: the oldest results make
//! room, and a single text that exceeds the limit is refused. Texts are scrubbed before they are kept here.

mod file;
mod indexed;
mod memory;

use claw_core::ArtifactId;
use claw_core::port::Artifact;
use claw_core::tool::ToolError;

pub use self::file::FileArtifacts;
pub use self::indexed::{ArtifactKeeping, IndexedArtifacts};
pub use self::memory::MemoryArtifacts;

/// The limits on kept results of one session.
#[derive(Debug, Clone, Copy)]
pub struct ArtifactLimits {
    /// Texts.
    pub count: usize,
    /// Bytes of all of them together.
    pub bytes: usize,
}

impl Default for ArtifactLimits {
    fn default() -> Self {
        Self { count: 200, bytes: 64 * 1024 * 1024 }
    }
}

impl ArtifactLimits {
    fn admit(&self, text: &str) -> Result<(), ToolError> {
        if text.len() <= self.bytes {
            return Ok(());
        }
        let message = format!("the result has {} bytes and at most {} can be kept", text.len(), self.bytes);
        Err(ToolError::failed(message).try_instead("ask for less at a time"))
    }

    /// Returns the number of newest results that fit, given their sizes, newest first.
    fn fitting(&self, newest_first: impl Iterator<Item = usize>) -> usize {
        let total = |sum: &mut usize, bytes| {
            *sum = sum.saturating_add(bytes);
            Some(*sum)
        };
        newest_first.scan(0, total).take_while(|sum| *sum <= self.bytes).take(self.count).count()
    }
}

fn count_lines(text: &str) -> usize {
    text.split_inclusive('\n').count()
}

/// Refuses to read from a line that does not exist.
fn check_first(artifact: &Artifact, first: usize) -> Result<(), ToolError> {
    if (1..=artifact.lines).contains(&first) {
        return Ok(());
    }
    Err(match artifact.lines {
        0 => ToolError::invalid(format!("the kept result `{}` is empty", artifact.id)),
        lines => ToolError::invalid(format!("the kept result `{}` has {lines} lines", artifact.id))
            .try_instead("ask from line 1"),
    })
}

fn not_found(id: ArtifactId) -> ToolError {
    ToolError::not_found(format!("there is no kept result `{id}` in this session"))
        .try_instead("list the kept results; old ones are deleted")
}

#[cfg(test)]
mod tests;
