//! Kept results in memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use claw_core::port::{Artifact, ArtifactStore, Owner, Part};
use claw_core::tool::ToolError;
use claw_core::{ArtifactId, CallId, TenantId};

use super::{ArtifactLimits, check_first, count_lines, not_found};

const TOGETHER: ArtifactLimits = ArtifactLimits { count: 10_000, bytes: 256 * 1024 * 1024 };

/// Kept results that live as long as the process: for each session within its limits, and for all of them
/// together at most 10,000 texts of 256 MiB. If that is exceeded, the tenant that keeps most makes room.
#[derive(Debug)]
pub struct MemoryArtifacts {
    limits: ArtifactLimits,
    together: ArtifactLimits,
    newest_first: Mutex<VecDeque<Kept>>,
}

#[derive(Debug)]
struct Kept {
    owner: Owner,
    artifact: Artifact,
    text: Arc<str>,
}

impl MemoryArtifacts {
    /// An empty store with these limits for each session.
    pub fn new(limits: ArtifactLimits) -> Self {
        Self::within(limits, TOGETHER)
    }

    /// An empty store with these limits for each session, and for all of them together.
    pub(super) fn within(limits: ArtifactLimits, together: ArtifactLimits) -> Self {
        Self { limits, together, newest_first: Mutex::default() }
    }

    /// Returns for each text whether it stays, now that one of `owner` was added.
    fn staying(&self, newest_first: &VecDeque<Kept>, owner: &Owner) -> Vec<bool> {
        let is_own = |kept: &&Kept| kept.owner == *owner;
        let own = newest_first.iter().filter(is_own).map(|kept| kept.artifact.bytes);
        let mut fitting = self.limits.fitting(own);
        let mut stays: Vec<bool> = newest_first
            .iter()
            .map(|kept| {
                let own = is_own(&kept);
                let fits = !own || fitting > 0;
                fitting -= usize::from(own && fits);
                fits
            })
            .collect();
        let staying = newest_first.iter().zip(&stays).filter(|(_, stays)| **stays).map(|(kept, _)| kept);
        let mut left = left_to_each(staying, self.together);
        for (kept, stays) in newest_first.iter().zip(&mut stays).filter(|(_, stays)| **stays) {
            *stays = left.get_mut(&kept.owner.tenant).is_some_and(|share| share.sizes.pop().is_some());
        }
        stays
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.newest_first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryArtifacts {
    fn default() -> Self {
        Self::new(ArtifactLimits::default())
    }
}

#[async_trait]
impl ArtifactStore for MemoryArtifacts {
    async fn put(&self, owner: &Owner, call: CallId, text: &str) -> Result<Artifact, ToolError> {
        self.limits.admit(text)?;
        self.together.admit(text)?;
        let (id, bytes, lines) = (ArtifactId::new(), text.len(), count_lines(text));
        let artifact = Artifact { id, call, bytes, lines };
        let mut kept = self.kept();
        kept.push_front(Kept { owner: owner.clone(), artifact: artifact.clone(), text: text.into() });
        let stays = self.staying(&kept, owner);
        if stays.first() == Some(&false) {
            kept.pop_front();
            return Err(ToolError::failed("there is no room to keep the result")
                .try_instead("ask for less at a time"));
        }
        let mut stays = stays.into_iter();
        kept.retain(|_| stays.next().unwrap_or(false));
        Ok(artifact)
    }

    async fn list(&self, owner: &Owner) -> Result<Vec<Artifact>, ToolError> {
        let kept = self.kept();
        Ok(kept.iter().filter(|kept| kept.owner == *owner).map(|kept| kept.artifact.clone()).collect())
    }

    async fn lines(
        &self,
        owner: &Owner,
        id: ArtifactId,
        first: usize,
        count: usize,
    ) -> Result<Part, ToolError> {
        let is_it = |kept: &&Kept| kept.artifact.id == id && kept.owner == *owner;
        let found =
            self.kept().iter().find(is_it).map(|kept| (kept.artifact.clone(), Arc::clone(&kept.text)));
        let (artifact, text) = found.ok_or_else(|| not_found(id))?;
        check_first(&artifact, first)?;
        let lines = text.split_inclusive('\n').skip(first - 1).take(count);
        let (count, text) = lines.fold((0, String::new()), |(count, text), line| (count + 1, text + line));
        Ok(Part { text, first, count, total: artifact.lines })
    }
}

/// The share of one tenant.
#[derive(Default)]
struct Share {
    bytes: usize,
    /// The sizes of its texts, newest first.
    sizes: Vec<usize>,
}

/// Returns how many of each tenant's newest texts stay within `limits` for all tenants together. The tenant
/// that keeps most always loses its oldest text, so that no tenant can push out the texts of one that keeps
/// less.
fn left_to_each<'a>(
    newest_first: impl Iterator<Item = &'a Kept>,
    limits: ArtifactLimits,
) -> BTreeMap<TenantId, Share> {
    let mut shares: BTreeMap<TenantId, Share> = BTreeMap::new();
    let (mut bytes, mut count) = (0, 0);
    for kept in newest_first {
        let share = shares.entry(kept.owner.tenant.clone()).or_default();
        share.bytes += kept.artifact.bytes;
        share.sizes.push(kept.artifact.bytes);
        bytes += kept.artifact.bytes;
        count += 1;
    }
    while bytes > limits.bytes || count > limits.count {
        let by_bytes = bytes > limits.bytes;
        let size = |share: &&mut Share| if by_bytes { share.bytes } else { share.sizes.len() };
        let Some(most) = shares.values_mut().max_by_key(size) else { break };
        let dropped = most.sizes.pop().unwrap_or_default();
        most.bytes -= dropped;
        bytes -= dropped;
        count -= 1;
    }
    shares
}
