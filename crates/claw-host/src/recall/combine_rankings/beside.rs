//! Fills up the number of hits with the text around them: a note that answers a question often stands next to one that
//! shares its words.

use std::collections::HashSet;

use claw_core::port::{MemoryHit, MemoryReason};
use claw_core::store::FoundPassage;

use super::{Fused, Group, SAME, runs, share};

/// Returns the passages that fill up the hits: first those directly before and after each hit, then the rest of their
/// documents, each in the order of the hits. `near` has the passages near each hit, nearest first.
pub(super) fn filling(fused: &Fused, near: Vec<Vec<FoundPassage>>) -> Vec<MemoryHit> {
    let missing = fused.missing();
    let parts = fused.groups.iter().flat_map(|group| &group.parts);
    let mut seen: Vec<HashSet<u64>> = parts.map(|part| runs(&part.text)).collect();
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for (group, near) in fused.groups.iter().zip(near) {
        let (mut before, mut after) = (false, false);
        for found in near {
            let side = if is_before(group, &found) { &mut before } else { &mut after };
            let is_next = !std::mem::replace(side, true);
            if is_next { first.push(found) } else { rest.push(found) }
        }
    }
    let mut filling = Vec::new();
    for found in first.into_iter().chain(rest) {
        if filling.len() == missing {
            break;
        }
        let runs = runs(&found.passage.text);
        // A passage that is a hit, or was taken already, says the same as itself.
        if seen.iter().all(|other| share(other, &runs) < SAME) {
            seen.push(runs);
            filling.push(hit(found));
        }
    }
    filling
}

fn is_before(group: &Group, found: &FoundPassage) -> bool {
    group.parts.first().is_some_and(|part| found.passage.first_line < part.first_line)
}

fn hit(found: FoundPassage) -> MemoryHit {
    let FoundPassage { key, provenance, passage, .. } = found;
    let owner = crate::recall::owner(&key);
    MemoryHit {
        path: key.path,
        start_line: passage.first_line,
        end_line: passage.last_line,
        score: 0.0,
        heading: passage.heading,
        text: passage.text,
        why: MemoryReason { words: Vec::new(), beside: true, similarity: None, owner },
        provenance,
    }
}
