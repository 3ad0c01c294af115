//! Counts of the secrets found, by kind, without their values.

use std::collections::BTreeMap;

use claw_core::redact::Redaction;

/// Counts by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    counts: BTreeMap<&'static str, u64>,
}

impl Report {
    /// The kinds found, in order, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.iter().map(|(&kind, &count)| (kind, count))
    }

    /// Number of secrets of all kinds.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    pub(super) fn count(&mut self, found: &[Redaction]) {
        for redaction in found {
            *self.counts.entry(redaction.kind).or_default() += 1;
        }
    }
}
