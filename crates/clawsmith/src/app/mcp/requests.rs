//! Requests for access to MCP servers: made by users, reviewed by administrators, and told to both as events.

use std::collections::{HashSet, VecDeque};

use claw_core::port::{Clock as _, UnixMillis};
use claw_core::store::{McpRequest, McpRequestEvent, McpRequestState, McpReview, McpSubject, Topic};
use claw_core::{AccessRequestId, ServerName, UserId};
use claw_host::SystemClock;
use tokio::sync::watch;

use crate::app::access::{Permission, Visitor};
use crate::app::{App, Error};

impl App {
    /// The requests for access, newest first.
    pub async fn mcp_requests(&self) -> Result<Vec<McpRequest>, Error> {
        Ok(self.store.mcp_requests(self.tenant()).await?)
    }

    /// Asks for access to a server.
    pub async fn request_mcp(&self, wish: AccessWish) -> Result<McpRequest, Error> {
        let AccessWish { server, user, subject, tools, reason } = wish;
        if let McpSubject::User(other) = &subject
            && *other != user
        {
            return Err(Error::invalid("you can request access for an agent or for yourself"));
        }
        let (id, at) = (AccessRequestId::new(), SystemClock.now());
        let request = McpRequest { id, server, user, subject, tools, reason, at, review: None };
        self.store.add_mcp_request(self.tenant(), &request).await?;
        Ok(request)
    }

    /// Answers a request for access. If it is approved, the grant is written with the answer.
    pub async fn review_mcp_request(
        &self,
        id: AccessRequestId,
        approved: bool,
        by: UserId,
        note: Option<String>,
    ) -> Result<McpRequest, Error> {
        if !self.mcp_requests().await?.iter().any(|request| request.id == id) {
            return Err(Error::not_found(format!("there is no request `{id}`"))
                .hint("`clawsmith mcp requests` lists them"));
        }
        let review = McpReview { approved, by, note, at: SystemClock.now() };
        Ok(self.store.review_mcp_request(self.tenant(), id, &review).await?)
    }

    /// Follows the requests that the visitor sees: an administrator all of the tenant, others their own. Events at `after`
    /// or later come first; without it, those from now on.
    pub async fn follow_mcp_requests(
        &self,
        visitor: &Visitor,
        after: Option<UnixMillis>,
    ) -> Result<AccessFollower, Error> {
        visitor.may(Permission::RequestMcp)?;
        let of = match visitor.may(Permission::ManageMcp) {
            Ok(()) => Sees::All,
            Err(_) => Sees::Own(visitor.user.clone()),
        };
        let changes = self.store.changes(Topic::Mcp);
        let app = self.of_tenant(&visitor.tenant);
        let mut follower = AccessFollower {
            app,
            of,
            changes,
            is_behind: false,
            told: HashSet::new(),
            ready: VecDeque::new(),
        };
        follower.read().await?;
        follower.ready.retain(|event| after.is_some_and(|after| event.at >= after));
        Ok(follower)
    }
}

/// A wish for access to a server.
#[derive(Debug)]
pub struct AccessWish {
    /// The server.
    pub server: ServerName,
    /// The user who asks.
    pub user: UserId,
    /// The agent or user to get access.
    pub subject: McpSubject,
    /// The requested tools; `None` means all.
    pub tools: Option<Vec<String>>,
    /// The reason for the request.
    pub reason: String,
}

/// The requests that a follower is told of.
enum Sees {
    All,
    /// Those of this user; none where there is no user.
    Own(Option<UserId>),
}

/// Follows requests for access. Events are read from the requests themselves, so that one follower sees the changes of every
/// process.
pub struct AccessFollower {
    app: App,
    of: Sees,
    changes: watch::Receiver<u64>,
    /// Requests may have changed since they were last read.
    is_behind: bool,
    /// The events that were read.
    told: HashSet<(AccessRequestId, McpRequestState)>,
    ready: VecDeque<McpRequestEvent>,
}

impl AccessFollower {
    /// Waits for the next event. Nothing is lost if the returned future is dropped.
    pub async fn next(&mut self) -> Result<McpRequestEvent, Error> {
        loop {
            if let Some(next) = self.ready.pop_front() {
                return Ok(next);
            }
            if self.is_behind {
                self.read().await?;
                continue;
            }
            if self.changes.changed().await.is_err() {
                return Err(Error::failed("the store is closed"));
            }
            self.is_behind = true;
        }
    }

    /// Reads the events that are new, in the order of their times.
    async fn read(&mut self) -> Result<(), Error> {
        let requests = self.app.mcp_requests().await?;
        let is_seen = |request: &&McpRequest| match &self.of {
            Sees::All => true,
            Sees::Own(user) => Some(&request.user) == user.as_ref(),
        };
        let mut events: Vec<McpRequestEvent> =
            requests.iter().filter(is_seen).flat_map(McpRequest::events).collect();
        events.sort_by_key(|event| event.at);
        let told: HashSet<_> = events.iter().map(|event| (event.request.id, event.state)).collect();
        let is_new = |event: &McpRequestEvent| !self.told.contains(&(event.request.id, event.state));
        self.ready.extend(events.into_iter().filter(is_new));
        // Requests of a server that was removed are forgotten with it.
        self.told = told;
        self.is_behind = false;
        Ok(())
    }
}
