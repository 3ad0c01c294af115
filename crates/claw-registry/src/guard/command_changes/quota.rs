//! The quota of a workspace, for changes of commands.

use claw_core::port::{ChangeKind, ChangedEntry, Expect, FileChange, FilePlace, WorkspaceGrowth};
use claw_core::tool::ToolError;

use super::super::Grant;
use super::ChangeSite;

impl ChangeSite {
    /// Reserves room for changes in the workspace; an error if they exceed its quota.
    pub(super) async fn reserve(&self, grant: &Grant, growth: WorkspaceGrowth) -> Result<(), ToolError> {
        let bridge = &self.executor.registry().world().bridge;
        let Some(bridge) = bridge.as_ref().filter(|_| grant.scope.quota.is_some()) else { return Ok(()) };
        let caller = self.offer.caller();
        let (directory, scope) = (&caller.workspace, &grant.scope);
        bridge.reserve(&FilePlace { caller, directory, scope, expect: Expect::Anything }, growth).await
    }
}

/// The growth of the workspace by these changes.
pub(super) fn growth(changes: &[FileChange]) -> WorkspaceGrowth {
    let signed = |bytes: Option<u64>| i64::try_from(bytes.unwrap_or(0)).unwrap_or(i64::MAX);
    let mut growth = WorkspaceGrowth::default();
    for change in changes {
        if change.entry == ChangedEntry::File {
            let by = signed(change.bytes_after).saturating_sub(signed(change.bytes_before));
            growth.bytes = growth.bytes.saturating_add(by);
        }
        growth.entries += match change.kind {
            ChangeKind::Created => 1,
            ChangeKind::Changed => 0,
            ChangeKind::Deleted => -1,
        };
    }
    growth
}
