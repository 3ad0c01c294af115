//! Files within the caller's scope, writing what the plan names.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::{Access, Files, FsBridge, Place, Stat};
use claw_core::tool::{Ask, Caller, ToolError};

use super::Grant;

pub(super) fn guard(bridge: Arc<dyn FsBridge>, caller: &Caller, grant: &Arc<Grant>) -> Arc<dyn Files> {
    Arc::new(GuardedFiles { bridge, directory: caller.workspace.clone(), grant: Arc::clone(grant) })
}

struct GuardedFiles {
    bridge: Arc<dyn FsBridge>,
    directory: PathBuf,
    grant: Arc<Grant>,
}

impl GuardedFiles {
    fn place(&self) -> Place<'_> {
        Place { directory: &self.directory, scope: &self.grant.scope }
    }

    fn within(&self, path: &str, access: Access) -> Result<PathBuf, ToolError> {
        self.grant.scope.resolve_text(&self.directory, path, access)
    }

    fn named(&self, target: &PathBuf) -> bool {
        self.grant.plan.asks.iter().any(|ask| match ask {
            Ask::Write { path } => self.within(path, Access::Write).is_ok_and(|named| named == *target),
            _ => false,
        })
    }
}

#[async_trait]
impl Files for GuardedFiles {
    async fn stat(&self, path: &str) -> Result<Option<Stat>, ToolError> {
        self.within(path, Access::Read)?;
        self.bridge.stat(&self.place(), path).await
    }

    async fn read(&self, path: &str) -> Result<Vec<u8>, ToolError> {
        self.within(path, Access::Read)?;
        self.bridge.read(&self.place(), path).await
    }

    async fn write(&self, path: &str, bytes: &[u8]) -> Result<(), ToolError> {
        let target = self.within(path, Access::Write)?;
        if !self.named(&target) {
            return Err(super::unplanned(format!("writing `{path}`")));
        }
        self.bridge.write(&self.place(), path, bytes).await
    }
}
