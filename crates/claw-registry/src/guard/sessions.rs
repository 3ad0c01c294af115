//! Guard of sessions: the figures of the caller's own session.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::{SessionStatus, Sessions};
use claw_core::tool::ToolError;

use super::{Grant, Site};
use crate::{Executor, Offer};

pub(super) fn guard(site: &Site<'_>) -> Arc<dyn Sessions> {
    Arc::new(OwnSession { executor: site.executor.clone(), offer: site.offer.clone(), grant: site.grant() })
}

struct OwnSession {
    executor: Executor,
    offer: Offer,
    grant: Arc<Grant>,
}

#[async_trait]
impl Sessions for OwnSession {
    async fn status(&self) -> Result<SessionStatus, ToolError> {
        self.grant.live()?;
        let caller = self.offer.caller();
        let store = &self.executor.0.store;
        let calls = store.tally(&caller.tenant, &caller.session).await.map_err(ToolError::internal)?;
        let now = self.offer.0.registry.world().clock.now();
        let pending = store.pending(&caller.tenant, now).await.map_err(ToolError::internal)?;
        let talk = match &self.offer.0.registry.world().talks {
            Some(host) => Some(host.figures(&super::owner(caller)).await?),
            None => None,
        };
        Ok(SessionStatus {
            calls,
            tools_offered: self.offer.len(),
            tools_deferred: self.offer.deferred(),
            approvals_pending: pending.iter().filter(|row| row.request.session == caller.session).count(),
            talk,
        })
    }
}
