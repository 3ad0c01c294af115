//! Files within the caller's scope, writing what the plan names.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use claw_core::port::{Access, Files, FsBridge, Place, Stat};
use claw_core::tool::{Ask, Caller, Sight, Target, ToolError};

use super::Grant;

pub(super) fn guard(bridge: Arc<dyn FsBridge>, caller: &Caller, grant: &Arc<Grant>) -> Arc<dyn Files> {
    let (directory, grant) = (caller.workspace.clone(), Arc::clone(grant));
    Arc::new(GuardedFiles { bridge, directory, grant, written: Mutex::default() })
}

struct GuardedFiles {
    bridge: Arc<dyn FsBridge>,
    directory: PathBuf,
    grant: Arc<Grant>,
    /// What the call has written itself, and so may find changed.
    written: Mutex<HashSet<PathBuf>>,
}

impl GuardedFiles {
    fn place(&self) -> Place<'_> {
        Place { directory: &self.directory, scope: &self.grant.scope, seen: None }
    }

    /// What was seen of a file when the call was judged, until the call has written it.
    fn seen(&self, target: &Path) -> Option<&Sight> {
        if self.written.lock().unwrap_or_else(PoisonError::into_inner).contains(target) {
            return None;
        }
        self.grant.sights.iter().find(|sight| match &sight.target {
            Target::File { path } => self.within(path, Access::Write).is_ok_and(|seen| seen == target),
            _ => false,
        })
    }

    fn within(&self, path: &str, access: Access) -> Result<PathBuf, ToolError> {
        self.grant.live()?;
        self.grant.scope.resolve_text(&self.directory, path, access)
    }

    fn named(&self, target: &Path) -> bool {
        self.grant.plan.asks.iter().any(|ask| match ask {
            Ask::Write { path } => self.within(path, Access::Write).is_ok_and(|named| named == target),
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
        let place = Place { seen: self.seen(&target), ..self.place() };
        self.bridge.write(&place, path, bytes).await?;
        self.written.lock().unwrap_or_else(PoisonError::into_inner).insert(target);
        Ok(())
    }
}
