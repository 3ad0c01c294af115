//! A session over a real store, for the tests of this crate.

use claw_core::MessageId;
use clawsmith::app::{App, Follower, Sessions, SessionsOptions, Setup};
use clawsmith::config::Surroundings;
use clawsmith::port::Owner;
use clawsmith::store::{RunEnd, RunEvent, SessionEventBody, Source, Voice};
use clawsmith::{JobId, SessionKey, TenantId, UnixMillis};
use tempfile::TempDir;

/// More pieces than are kept for a listener that does not read.
const TOO_MANY: usize = 1_100;

pub(crate) struct Stage {
    pub(crate) app: App,
    pub(crate) sessions: Sessions,
    pub(crate) owner: Owner,
    _home: TempDir,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let around = Surroundings {
            directory: home.path().to_owned(),
            variables: vec![("HOME".into(), home.path().into())],
        };
        let app = Setup::load(None, &around).unwrap().open().await.unwrap();
        let sessions = app.sessions(SessionsOptions::default()).await.unwrap();
        let session = SessionKey::new("agent:default:http:direct:ann:1").unwrap();
        Self { app, sessions, owner: Owner { tenant: TenantId::main(), session }, _home: home }
    }

    /// A follower that did not read while more was said than is kept for it. One event follows.
    pub(crate) async fn lagging(&self) -> Follower {
        let follower = self.sessions.follow(self.owner.clone(), Some(0)).await.unwrap();
        let source = Source::Message(MessageId::new());
        for _ in 0..TOO_MANY {
            self.app.store().say(&self.owner, source, Voice::Text, "x");
        }
        follower
    }

    /// Adds an event to the session.
    pub(crate) async fn event(&self) {
        let state = RunEvent::Ended { end: RunEnd::Answered };
        let event = SessionEventBody::Run { run: JobId::new(), state };
        let Owner { tenant, session } = &self.owner;
        self.app.store().log_event(tenant, session, UnixMillis(1), event).await.unwrap();
    }
}
