//! Guard of talks: the sessions that the caller may know of, its own or its group's.
//!
//! The visible sessions are derived here from the caller, and every query carries that down to the store.
//! Messages to another session are scrubbed like everything that leaves a call, and a tool whose plan sends
//! nothing cannot send.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::SessionKey;
use claw_core::port::{Posted, Talk, TalkHost, TalkLine, TalkLines, TalkPage, Talks};
use claw_core::store::Circle;
use claw_core::tool::{Ask, Caller, Effect, Effects, ErrorKind, Sight, Target, ToolError};

use super::{Grant, Site, unplanned};
use crate::{Executor, Offer};

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

impl OwnTalks {
    /// Refuses a session that the plan does not name, or whose workspace is not the one that was seen.
    async fn planned(&self, session: &SessionKey, sends: bool) -> Result<(), ToolError> {
        let named = |ask: &Ask| matches!(ask, Ask::Session { session: named, sends: said } if named == session.as_str() && *said == sends);
        if !self.grant.plan.asks.iter().any(named) {
            return Err(unplanned(format!("session `{session}`")));
        }
        let now = seen(&*self.host, &self.caller, session.as_str()).await?;
        match self.grant.sights.iter().find(|sight| sight.target == now.target) {
            Some(before) if *before == now => Ok(()),
            _ => Err(ToolError::new(
                ErrorKind::Conflict,
                format!("session `{session}` works elsewhere since the call was judged"),
            )
            .try_instead("call again, so that it is judged again")),
        }
    }
}

/// Tells the workspaces of sessions.
pub(crate) async fn look_at_sessions(offer: &Offer, targets: Vec<Target>) -> Result<Vec<Sight>, ToolError> {
    let Some(host) = &offer.0.registry.world().talks else { return Ok(Vec::new()) };
    let mut sights = Vec::new();
    for target in targets {
        if let Target::Session { session } = target {
            sights.push(seen(&**host, offer.caller(), &session).await?);
        }
    }
    Ok(sights)
}

/// A session's workspace, if the caller may know of the session and it is not the caller's own workspace.
async fn seen(host: &dyn TalkHost, caller: &Caller, session: &str) -> Result<Sight, ToolError> {
    let workspace = match SessionKey::new(session) {
        Ok(key) => host.workspace(caller, &key).await?,
        Err(_) => None,
    };
    let elsewhere = workspace.filter(|workspace| *workspace != caller.workspace);
    let path = elsewhere.map(|workspace| workspace.display().to_string());
    let target = Target::Session { session: session.to_owned() };
    Ok(Sight { target, path, identity: None, credential: None, writable: false })
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
        self.planned(session, false).await?;
        let circle = Circle::of(&self.caller);
        self.host.history(&self.caller.tenant, &circle, session, TalkLines { before, limit }).await
    }

    async fn send(&self, session: &SessionKey, text: &str) -> Result<Posted, ToolError> {
        self.grant.live()?;
        let planned = self.grant.plan.all_effects(self.ceiling).common(self.grant.effects);
        if !Effects::of(&[Effect::Message, Effect::Spawn]).within(planned) {
            return Err(unplanned(format!("sending a message to session `{session}`")));
        }
        self.planned(session, true).await?;
        let scrubber = self.executor.scrubbers().for_tenant(&self.caller.tenant);
        self.host.send(&self.caller, session, &scrubber.said(text)).await
    }
}
