//! The events of many sessions: those of a visitor's own with one agent, or all of the tenant.

use clawsmith::app::access::{Permission, Visitor};
use clawsmith::app::{Error, FeedFollower};
use clawsmith::store::FeedEvent;
use clawsmith::{AgentId, SessionKey};

use crate::api::Visit;
use crate::error::ApiError;

/// The sessions whose events are followed.
#[derive(Debug, Clone)]
pub(crate) enum FeedTopic {
    /// The visitor's own with this agent.
    Agent(AgentId),
    /// All of the tenant.
    Tenant,
}

/// The events of a feed that a visitor sees.
pub(crate) struct Feed {
    follower: FeedFollower,
    visitor: Visitor,
    topic: FeedTopic,
}

impl Feed {
    /// Follows what the visitor may see, from the event after place `after` of the tenant's feed.
    pub(crate) async fn begin(visit: &Visit, topic: FeedTopic, after: Option<u64>) -> Result<Self, ApiError> {
        match &topic {
            FeedTopic::Agent(agent) => visit.visitor().may_use(agent)?,
            FeedTopic::Tenant => visit.visitor().may(Permission::FollowTenant).map_err(|error| {
                let what = "the events of a whole tenant are for its administrators";
                Error::invalid(format!("{what}: {}", error.message())).refusing()
            })?,
        }
        let visitor = visit.visitor().clone();
        let follower = visit.sessions().follow_feed(visitor.tenant.clone(), after).await?;
        Ok(Self { follower, visitor, topic })
    }

    /// The place of the last event that was read.
    pub(crate) fn seen(&self) -> u64 {
        self.follower.seen()
    }

    /// Waits for the next event. Nothing is lost if the returned future is dropped.
    pub(crate) async fn next(&mut self) -> Result<FeedEvent, Error> {
        loop {
            let event = self.follower.next().await?;
            if self.has(&event.session) {
                return Ok(event);
            }
        }
    }

    fn has(&self, session: &SessionKey) -> bool {
        match &self.topic {
            FeedTopic::Agent(agent) => self.visitor.own_session(agent, session.as_str()).is_ok(),
            FeedTopic::Tenant => true,
        }
    }
}
