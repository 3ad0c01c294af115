//! Requests for access to MCP servers: made by users, reviewed by administrators, and told to both as events.

use std::collections::{HashSet, VecDeque};

use claw_core::port::{Clock as _, UnixMillis};
use claw_core::store::{McpRequest, McpRequestEvent, McpRequestState, McpReview, McpSubject, Topic};
use claw_core::{AccessRequestId, ServerName, UserId};
use claw_host::SystemClock;
use tokio::sync::watch;

use crate::app::access::{Permission, Visitor};
use crate::app::rule_check::check_entries;
use crate::app::{App, Error};

/// The most requests of one user that wait for an answer.
const MOST_PENDING: usize = 20;
/// The most tools of one request.
const MOST_TOOLS: usize = 256;
/// The most characters of a reason or of a reviewer's note.
const LONGEST_TEXT: usize = 2_000;

impl App {
    /// The requests for access, newest first.
    pub async fn mcp_requests(&self) -> Result<Vec<McpRequest>, Error> {
        Ok(self.store.mcp_requests(self.tenant()).await?)
    }

    /// Asks for access to a server. Refused if the request is too long, or if the user has too many pending ones.
    pub async fn request_mcp(&self, wish: AccessWish) -> Result<McpRequest, Error> {
        let AccessWish { server, user, subject, tools, reason } = wish;
        if let McpSubject::User(other) = &subject
            && *other != user
        {
            return Err(Error::invalid("you can request access for an agent or for yourself"));
        }
        self.check_subject(&subject).await?;
        check_length("reason", &reason)?;
        check_entries("the list of tools", tools.as_deref().unwrap_or_default(), MOST_TOOLS).map_err(
            |error| error.hint("name fewer tools, or request access to all of them: leave the list out"),
        )?;
        let pending = self.mcp_requests().await?;
        let pending =
            pending.iter().filter(|request| request.user == user && request.review.is_none()).count();
        if pending >= MOST_PENDING {
            let what = format!(
                "user `{user}` has {pending} pending requests; at most {MOST_PENDING} can be pending"
            );
            let hint = "wait until an administrator has answered some; `clawsmith mcp requests` lists them";
            return Err(Error::conflict(what).hint(hint));
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
        check_length("note", note.as_deref().unwrap_or_default())?;
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

/// Refuses a text that is too long to be stored with a request.
fn check_length(name: &str, text: &str) -> Result<(), Error> {
    match text.chars().count() {
        ..=LONGEST_TEXT => Ok(()),
        count => Err(Error::invalid(format!(
            "the {name} has {count} characters; at most {LONGEST_TEXT} are accepted"
        ))
        .hint("shorten it")),
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

#[cfg(test)]
mod tests {
    use claw_core::AgentId;
    use claw_core::store::{McpEndpoint, McpGrant, McpServer, McpTransport};

    use super::*;
    use crate::app::{Kind, Setup};
    use crate::config::Surroundings;

    fn user(name: &str) -> UserId {
        UserId::new(name).unwrap()
    }

    fn server() -> ServerName {
        ServerName::new("work").unwrap()
    }

    fn wish(name: &str) -> AccessWish {
        let (user, reason) = (user(name), "builds".to_owned());
        AccessWish { server: server(), subject: McpSubject::User(user.clone()), user, tools: None, reason }
    }

    /// An application whose store has a server.
    async fn app(home: &tempfile::TempDir) -> App {
        let around = Surroundings {
            directory: home.path().to_owned(),
            variables: vec![("HOME".into(), home.path().into())],
        };
        let app = Setup::load(None, &around).unwrap().open().await.unwrap();
        let url = "https://work.example/mcp".to_owned();
        let endpoint = McpEndpoint { url, headers: Vec::new(), private: false, oauth: None };
        let added = McpServer::new(server(), McpTransport::Http(endpoint));
        app.store.put_mcp_server(app.tenant(), &added, SystemClock.now()).await.unwrap();
        app
    }

    #[tokio::test]
    async fn refuses_a_request_of_megabytes() {
        let home = tempfile::tempdir().unwrap();
        let app = app(&home).await;
        let tools = |count: usize| -> Option<Vec<String>> {
            Some((0..count).map(|number| format!("tool_{number}")).collect())
        };
        for (wish, says) in [
            (
                AccessWish { reason: "x".repeat(8 << 20), ..wish("ann") },
                "reason has 8388608 characters; at most 2000",
            ),
            (AccessWish { reason: "ä".repeat(2_001), ..wish("ann") }, "reason has 2001 characters"),
            (
                AccessWish { tools: tools(257), ..wish("ann") },
                "the list of tools has 257 entries; at most 256",
            ),
            (AccessWish { tools: Some(vec!["x".repeat(129)]), ..wish("ann") }, "129 bytes; at most 128"),
        ] {
            let error = app.request_mcp(wish).await.unwrap_err();
            assert_eq!(error.kind(), Kind::Invalid, "{error}");
            assert!(error.message().contains(says) && error.advice().is_some(), "{error}");
        }
        assert_eq!(app.mcp_requests().await.unwrap(), []);
        let longest = AccessWish { reason: "ä".repeat(2_000), tools: tools(256), ..wish("ann") };
        let asked = app.request_mcp(longest).await.unwrap();
        let noted = app.review_mcp_request(asked.id, true, user("root"), Some("x".repeat(2_001))).await;
        assert!(noted.unwrap_err().message().contains("note has 2001 characters"));
        app.review_mcp_request(asked.id, true, user("root"), Some("fine".to_owned())).await.unwrap();
    }

    #[tokio::test]
    async fn an_approved_request_for_an_agent_grants_exactly_that_agent() {
        let home = tempfile::tempdir().unwrap();
        let app = app(&home).await;
        let agent = |name: &str| McpSubject::Agent(AgentId::new(name).unwrap());
        let ghost = app.request_mcp(AccessWish { subject: agent("ghost"), ..wish("ann") }).await.unwrap_err();
        assert!(ghost.message().contains("ghost"), "{ghost}");
        assert_eq!(app.mcp_requests().await.unwrap(), []);
        let subject = agent("default");
        let asked = app.request_mcp(AccessWish { subject: subject.clone(), ..wish("ann") }).await.unwrap();
        assert_eq!(app.store.mcp_grants(app.tenant()).await.unwrap(), []);
        app.review_mcp_request(asked.id, true, user("root"), None).await.unwrap();
        let grants = app.store.mcp_grants(app.tenant()).await.unwrap();
        assert_eq!(grants, [McpGrant::new(server(), subject)]);
    }

    #[tokio::test]
    async fn refuses_a_user_who_floods_the_administrators_with_requests() {
        let home = tempfile::tempdir().unwrap();
        let app = app(&home).await;
        let mut asked = Vec::new();
        for _ in 0..MOST_PENDING {
            asked.push(app.request_mcp(wish("ann")).await.unwrap().id);
        }
        let full = app.request_mcp(wish("ann")).await.unwrap_err();
        assert_eq!(full.kind(), Kind::Conflict, "{full}");
        assert!(full.message().contains("has 20 pending requests; at most 20"), "{full}");
        assert!(full.advice().is_some_and(|advice| advice.contains("administrator")), "{full}");
        app.request_mcp(wish("ben")).await.unwrap();
        app.review_mcp_request(asked[0], false, user("root"), None).await.unwrap();
        app.request_mcp(wish("ann")).await.unwrap();
        assert!(app.request_mcp(wish("ann")).await.is_err(), "full again");
    }
}
