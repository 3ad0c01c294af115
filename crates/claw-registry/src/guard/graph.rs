//! Guard of the knowledge graph. The owner of the facts is derived from the caller, never from an argument.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::{Graph, GraphFound, GraphHost, GraphQuery, MemoryReader};
use claw_core::provenance::RunTrace;
use claw_core::tool::ToolError;

use super::{Grant, Site};

pub(super) fn guard(site: &Site<'_>) -> Option<Arc<dyn Graph>> {
    let caller = site.caller();
    let (reader, trace, grant) = (MemoryReader::of(caller), caller.trace.clone(), site.grant());
    Some(Arc::new(OwnGraph { host: site.world().graph.clone()?, reader, trace, grant }))
}

struct OwnGraph {
    host: Arc<dyn GraphHost>,
    reader: MemoryReader,
    /// Learns of untrusted facts that are read.
    trace: RunTrace,
    grant: Arc<Grant>,
}

#[async_trait]
impl Graph for OwnGraph {
    async fn search(&self, query: &GraphQuery) -> Result<GraphFound, ToolError> {
        self.grant.live()?;
        let found = self.host.search(&self.reader, query).await?;
        if found.is_untrusted() {
            self.trace.read_untrusted();
        }
        Ok(found)
    }
}
