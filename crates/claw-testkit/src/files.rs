//! Files in memory, under the suite that every bridge passes.

pub use claw_host::files::MemoryFiles;

#[cfg(test)]
mod tests;
