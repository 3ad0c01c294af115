//! Guard of artifacts: kept results of the caller's own session.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::ArtifactId;
use claw_core::port::{Artifact, ArtifactStore, Artifacts, Owner, Part};
use claw_core::tool::ToolError;

use super::{Grant, Site};

pub(super) fn guard(site: &Site<'_>) -> Option<Arc<dyn Artifacts>> {
    let store = site.world().artifacts.clone()?;
    Some(Arc::new(OwnArtifacts { store, owner: super::owner(site.caller()), grant: site.grant() }))
}

struct OwnArtifacts {
    store: Arc<dyn ArtifactStore>,
    owner: Owner,
    grant: Arc<Grant>,
}

#[async_trait]
impl Artifacts for OwnArtifacts {
    async fn list(&self) -> Result<Vec<Artifact>, ToolError> {
        self.grant.live()?;
        self.store.list(&self.owner).await
    }

    async fn lines(&self, id: ArtifactId, first: usize, count: usize) -> Result<Part, ToolError> {
        self.grant.live()?;
        self.store.lines(&self.owner, id, first, count).await
    }
}
