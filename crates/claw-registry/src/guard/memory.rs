//! Guard of memory. The owner of the documents is derived from the caller, never from an argument.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::{Memory, MemoryFound, MemoryHost, MemoryPart, MemoryQuery, MemoryReader, MemoryText};
use claw_core::provenance::RunTrace;
use claw_core::tool::ToolError;

use super::{Grant, Site};

pub(super) fn guard(site: &Site<'_>) -> Option<Arc<dyn Memory>> {
    let caller = site.caller();
    let (reader, trace, grant) = (MemoryReader::of(caller), caller.trace.clone(), site.grant());
    Some(Arc::new(OwnMemory { host: site.world().memory.clone()?, reader, trace, grant }))
}

struct OwnMemory {
    host: Arc<dyn MemoryHost>,
    reader: MemoryReader,
    /// Learns of untrusted documents that are read.
    trace: RunTrace,
    grant: Arc<Grant>,
}

#[async_trait]
impl Memory for OwnMemory {
    async fn search(&self, query: &MemoryQuery) -> Result<MemoryFound, ToolError> {
        self.grant.live()?;
        let found = self.host.search(&self.reader, query).await?;
        if found.hits.iter().any(|hit| hit.provenance.untrusted) {
            self.trace.read_untrusted();
        }
        Ok(found)
    }

    async fn get(&self, part: &MemoryPart) -> Result<Option<MemoryText>, ToolError> {
        self.grant.live()?;
        let found = self.host.get(&self.reader, part).await?;
        if found.as_ref().is_some_and(|found| found.provenance.untrusted) {
            self.trace.read_untrusted();
        }
        Ok(found)
    }

    async fn paths(&self) -> Result<Vec<String>, ToolError> {
        self.grant.live()?;
        self.host.paths(&self.reader).await
    }
}
