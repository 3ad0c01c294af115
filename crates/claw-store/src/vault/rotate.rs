//! Another key, while everything goes on.
//!
//! The new key is added first, then values are sealed anew in small batches, each within a turn and each only
//! where it is still what was read. What was killed in between is finished by running it again. An old key is
//! taken away only on request, and only when nothing is sealed by it.

use claw_core::store::{KeyUse, Resealed, SealKeyId, SealedPlace, SealedRow, SealedTable, StoreError};
use serde::Serialize;

use super::{Vault, why};
use crate::seal::Ring;

/// How many values are sealed anew in one turn; writers wait that long.
const BATCH: usize = 64;
/// How often all values are looked through. More than once helps only where programs with other keys, from
/// another variable, write at the same time.
const PASSES: usize = 3;

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// How many values were looked at.
    pub done: u64,
    /// How many there were at the beginning.
    pub all: u64,
}

/// What became of a rotation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rotated {
    /// The current key.
    pub key: SealKeyId,
    /// Whether it is new; else one was finished that had been interrupted, or keys are set from outside.
    pub is_new: bool,
    /// How many values it sealed.
    pub resealed: u64,
    /// Those that could not be opened.
    pub failed: Vec<Failed>,
}

/// A value that could not be opened; it is as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// Where.
    pub place: SealedPlace,
    /// Why, and what to do.
    pub why: String,
}

/// Which keys are not needed any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Retired {
    /// What was sealed anew before.
    pub rotated: Rotated,
    /// Those by which nothing is sealed any more.
    pub unused: Vec<SealKeyId>,
    /// Whether they were taken away; else they are set from outside.
    pub taken: bool,
    /// What is sealed by other keys than the current one, and keeps all of them.
    pub kept: Vec<KeyUse>,
}

impl Vault {
    /// Finishes a rotation that was interrupted, or else makes a new key and seals everything with it.
    pub async fn rotate(&self, tell: impl Fn(Progress)) -> Result<Rotated, StoreError> {
        let finished = self.reseal(&tell).await?;
        if finished.resealed > 0 || !self.keys.is_ours_to_change() {
            return Ok(finished);
        }
        let turn = self.keys.sealing().await?;
        self.keys.add(turn).await?;
        Ok(Rotated { is_new: true, ..self.reseal(&tell).await? })
    }

    /// Finishes a rotation, and takes away the keys by which nothing is sealed any more.
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

    /// Seals with the current key what others sealed.
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
