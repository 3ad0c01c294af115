//! Guard of memory. The owner of the documents is derived from the caller, never from an argument.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::{Memory, MemoryFound, MemoryHost, MemoryPart, MemoryQuery, MemoryReader, MemoryText};
use claw_core::tool::ToolError;

use super::{Grant, Site};

pub(super) fn guard(site: &Site<'_>) -> Option<Arc<dyn Memory>> {
    let caller = site.caller();
    let reader = MemoryReader {
        tenant: caller.tenant.clone(),
        agent: caller.agent.clone(),
        user: caller.user.clone(),
    };
    Some(Arc::new(OwnMemory { host: site.world().memory.clone()?, reader, grant: site.grant() }))
}

struct OwnMemory {
    host: Arc<dyn MemoryHost>,
    reader: MemoryReader,
    grant: Arc<Grant>,
}

#[async_trait]
impl Memory for OwnMemory {
    async fn search(&self, query: &MemoryQuery) -> Result<MemoryFound, ToolError> {
        self.grant.live()?;
        self.host.search(&self.reader, query).await
    }

    async fn get(&self, part: &MemoryPart) -> Result<Option<MemoryText>, ToolError> {
        self.grant.live()?;
        self.host.get(&self.reader, part).await
    }

    async fn paths(&self) -> Result<Vec<String>, ToolError> {
        self.grant.live()?;
        self.host.paths(&self.reader).await
    }
}
