//! The conversations that the caller may know of: their own, or their group's.
//!
//! The circle is made here from who calls, and every question carries it down to the store. What is said in another
//! conversation is scrubbed like all else that leaves a call, and a tool whose plan starts nothing says nothing.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::SessionKey;
use claw_core::port::{Posted, Talk, TalkHost, TalkLine, TalkPage, Talks};
use claw_core::store::Circle;
use claw_core::tool::{Caller, Effect, Effects, ToolError};

use super::{Grant, Site, unplanned};
use crate::Executor;

pub(super) fn guard(site: &Site<'_>) -> Option<Arc<dyn Talks>> {
    Some(Arc::new(OwnTalks {
        host: site.world().talks.clone()?,
        executor: site.executor.clone(),
        caller: Arc::clone(site.caller()),
        ceiling: site.meta.effects,
        grant: site.grant(),
    }))
}

struct OwnTalks {
    host: Arc<dyn TalkHost>,
    executor: Executor,
    caller: Arc<Caller>,
    ceiling: Effects,
    grant: Arc<Grant>,
}

#[async_trait]
impl Talks for OwnTalks {
    async fn list(&self, page: &TalkPage) -> Result<Vec<Talk>, ToolError> {
        self.grant.live()?;
        self.host.list(&self.caller.tenant, &Circle::of(&self.caller), page).await
    }

    async fn history(
        &self,
        session: &SessionKey,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Option<Vec<TalkLine>>, ToolError> {
        self.grant.live()?;
        let circle = Circle::of(&self.caller);
        self.host.history((&self.caller.tenant, &circle), session, before, limit).await
    }

    async fn send(&self, session: &SessionKey, text: &str) -> Result<Posted, ToolError> {
        self.grant.live()?;
        let planned = self.grant.plan.all_effects(self.ceiling).common(self.grant.effects);
        if !Effects::of(&[Effect::Message, Effect::Spawn]).within(planned) {
            return Err(unplanned(format!("saying something in session `{session}`")));
        }
        let scrubber = self.executor.scrubbers().for_tenant(&self.caller.tenant);
        self.host.send(&self.caller, session, &scrubber.said(text)).await
    }
}
