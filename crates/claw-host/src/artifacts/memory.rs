//! Kept results in memory.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use claw_core::port::{Artifact, ArtifactStore, Owner, Part};
use claw_core::tool::ToolError;
use claw_core::{ArtifactId, CallId};

use super::{ArtifactLimits, check_first, count_lines, not_found};

const ALL_SESSIONS: ArtifactLimits = ArtifactLimits { count: 10_000, bytes: 256 * 1024 * 1024 };

/// Kept results that live as long as the process: for each session within its limits, and for all of them
/// together at most 10,000 texts of 256 MiB.
#[derive(Debug, Default)]
pub struct MemoryArtifacts {
    limits: ArtifactLimits,
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
        Self { limits, newest_first: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.newest_first.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ArtifactStore for MemoryArtifacts {
    async fn put(&self, owner: &Owner, call: CallId, text: &str) -> Result<Artifact, ToolError> {
        self.limits.admit(text)?;
        ALL_SESSIONS.admit(text)?;
        let (id, bytes, lines) = (ArtifactId::new(), text.len(), count_lines(text));
        let artifact = Artifact { id, call, bytes, lines };
        let mut kept = self.kept();
        kept.push_front(Kept { owner: owner.clone(), artifact: artifact.clone(), text: text.into() });
        let is_own = |kept: &&Kept| kept.owner == *owner;
        let mut fitting = self.limits.fitting(kept.iter().filter(is_own).map(|kept| kept.artifact.bytes));
        kept.retain(|kept| {
            let own = is_own(&kept);
            let fits = !own || fitting > 0;
            fitting -= usize::from(own && fits);
            fits
        });
        let fitting = ALL_SESSIONS.fitting(kept.iter().map(|kept| kept.artifact.bytes));
        kept.truncate(fitting);
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
