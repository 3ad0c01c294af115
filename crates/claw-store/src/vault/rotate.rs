//! Rotates the key while programs keep working.
//!
//! The new key is added first, then values are resealed in small batches, each within a turn and each only if
//! it is still the value that was read. Running it again finishes an interrupted rotation. An old key is
//! removed only on request, and only when no value is sealed by it.

use claw_core::store::{KeyUse, Resealed, SealKeyId, SealedPlace, SealedRow, SealedTable, StoreError};
use serde::Serialize;

use super::{Vault, why};
use crate::encryption::Ring;

/// The number of values resealed in one turn; writers wait that long.
const BATCH: usize = 64;
/// The number of passes over all values. More than one helps only if programs with other keys, from another
/// variable, write at the same time.
const PASSES: usize = 3;

/// The progress of a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The number of values checked.
    pub done: u64,
    /// The number of values at the beginning.
    pub all: u64,
}

/// The result of a rotation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rotated {
    /// The current key.
    pub key: SealKeyId,
    /// True if the key is new; false if an interrupted rotation was finished, or keys are set from outside.
    pub is_new: bool,
    /// The number of values it resealed.
    pub resealed: u64,
    /// The values that could not be opened.
    pub failed: Vec<Failed>,
}

/// A value that could not be opened; it is as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// The value's place.
    pub place: SealedPlace,
    /// The cause, and what to do.
    pub why: String,
}

/// The result of retiring unused keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Retired {
    /// The result of the rotation before it.
    pub rotated: Rotated,
    /// The keys by which no value is sealed any more.
    pub unused: Vec<SealKeyId>,
    /// True if they were removed; false if they are set from outside.
    pub taken: bool,
    /// The values still sealed by older keys; while there are any, no key is removed.
    pub kept: Vec<KeyUse>,
}

impl Vault {
    /// Finishes an interrupted rotation, or else makes a new key and reseals everything with it.
    pub async fn rotate(&self, tell: impl Fn(Progress)) -> Result<Rotated, StoreError> {
        let finished = self.reseal(&tell).await?;
        if finished.resealed > 0 || !self.keys.is_ours_to_change() {
            return Ok(finished);
        }
        let turn = self.keys.sealing().await?;
        self.keys.add(turn).await?;
        Ok(Rotated { is_new: true, ..self.reseal(&tell).await? })
    }

    /// Finishes a rotation, and removes the keys by which no value is sealed any more.
    pub async fn retire(&self, tell: impl Fn(Progress)) -> Result<Retired, StoreError> {
        let rotated = self.reseal(&tell).await?;
        // Nobody writes what an old key sealed while this turn lasts, so the count stands.
        let turn = self.keys.sealing().await?;
        let current = turn.ring.current();
        let mut kept = self.store.key_use().await?;
        kept.retain(|used| used.key != Some(current));
        let mut unused = turn.ring.ids();
        unused.retain(|id| *id != current && kept.iter().all(|used| used.key != Some(*id)));
        // A row whose key cannot be told may need any of them.
        if kept.iter().any(|used| used.key.is_none()) {
            unused.clear();
        }
        let taken = self.keys.is_ours_to_change() && !unused.is_empty();
        if taken {
            self.keys.retire(turn, unused.clone()).await?;
        }
        Ok(Retired { rotated, unused, taken, kept })
    }

    /// Reseals the values of other keys with the current one.
    async fn reseal(&self, tell: &impl Fn(Progress)) -> Result<Rotated, StoreError> {
        let current = self.keys.refresh().await?.current();
        let others = self.store.key_use().await?.into_iter().filter(|used| used.key != Some(current));
        let mut progress = Progress { done: 0, all: others.map(|used| used.values).sum() };
        let mut rotated = Rotated { key: current, is_new: false, resealed: 0, failed: Vec::new() };
        for _ in 0..PASSES {
            rotated.failed.clear();
            let before = rotated.resealed;
            for table in SealedTable::ALL {
                self.reseal_table(table, &mut rotated, &mut progress, tell).await?;
            }
            if rotated.resealed == before {
                break;
            }
        }
        Ok(rotated)
    }

    async fn reseal_table(
        &self,
        table: SealedTable,
        rotated: &mut Rotated,
        progress: &mut Progress,
        tell: &impl Fn(Progress),
    ) -> Result<(), StoreError> {
        let mut after: Option<SealedPlace> = None;
        loop {
            let turn = self.keys.sealing().await?;
            rotated.key = turn.ring.current();
            let rows = self.store.not_sealed_by(rotated.key, table, after.as_ref(), BATCH).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = Some(last.place.clone());
            progress.done += rows.len() as u64;
            progress.all = progress.all.max(progress.done);
            let mut values = Vec::with_capacity(rows.len());
            for row in rows {
                let place = row.place.clone();
                match anew(&turn.ring, row)? {
                    Ok(value) => values.push(value),
                    Err(why) => rotated.failed.push(Failed { place, why }),
                }
            }
            if !values.is_empty() {
                rotated.resealed += self.store.reseal(&values).await?;
            }
            drop(turn);
            tell(*progress);
        }
    }
}

/// A value as the current key seals it; else why it cannot be opened.
fn anew(ring: &Ring, row: SealedRow) -> Result<Result<Resealed, String>, StoreError> {
    let SealedRow { place, value } = row;
    let old = match value {
        Ok(old) => old,
        Err(error) => return Ok(Err(format!("{error}; set it again, or remove it"))),
    };
    match ring.open(&place, &old) {
        Ok(plain) => {
            let new = ring.seal(&place, &plain)?;
            Ok(Ok(Resealed { place, old, new }))
        }
        Err(unopened) => Ok(Err(why(unopened))),
    }
}
