//! The session that a chat shows: in the store of this process, or at a gateway.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use claw_agent::Deployment;
use claw_core::port::{Model, Owner};
use claw_core::store::{ApprovalState, Message, Usage, UsageFilter};
use claw_core::tool::Caller;
use claw_core::{ApprovalId, JobId, SessionKey};
use clawsmith::app::{App, Followed, Follower, Sessions};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::command::tools::approve::{self, Question};
use crate::failure::Failure;

/// A session that is shown while it goes on.
#[async_trait(?Send)]
pub(super) trait ShownSession {
    fn key(&self) -> &SessionKey;
    /// Waits for the next event or piece. Nothing is lost if the returned future is dropped.
    async fn next(&mut self) -> Result<Followed, Failure>;
    /// The message at this place.
    async fn message(&self, seq: u64) -> Result<Option<Message>, Failure>;
    /// Tokens and cost of a run and those below it, or of the whole session.
    async fn usage(&self, run: Option<JobId>) -> Result<Usage, Failure>;
    /// The pending approvals of the session.
    async fn pending(&self) -> Result<Vec<ApprovalId>, Failure>;
    /// An approval that is pending; `None` once it is not.
    async fn question(&self, id: ApprovalId) -> Result<Option<Question>, Failure>;
    /// Asks the person at the terminal.
    async fn put(&self, question: Question);
    /// Says where an approval can be answered.
    fn announce(&self, question: &Question);
    /// The directory in which a change can be previewed; `None` where it is not on this machine.
    fn workspace(&self) -> Option<&Path>;
    /// A text without secrets.
    fn scrubbed(&self, text: &str) -> String;
    /// The content of a message without secrets.
    fn scrubbed_json(&self, content: &Value) -> Value;
}

/// The provider and model that answer.
pub(super) struct Answerer {
    pub(super) provider: String,
    pub(super) model: String,
    /// It only plays a script.
    pub(super) demo: bool,
}

impl Answerer {
    pub(super) fn of(model: &dyn Model) -> Self {
        let card = model.card();
        Self { provider: card.provider.to_string(), model: card.model.to_string(), demo: card.demo }
    }
}

/// A session in the store of this process.
pub(super) struct LocalSession {
    app: App,
    deployment: Deployment,
    owner: Owner,
    by: String,
    follower: Follower,
    workspace: PathBuf,
    /// Rings when no worker of this process takes runs any more.
    deserted: CancellationToken,
}

impl LocalSession {
    /// Follows the caller's session from now on.
    pub(super) async fn new(sessions: &Sessions, app: &App, caller: &Caller) -> Result<Self, Failure> {
        let owner = Owner { tenant: caller.tenant.clone(), session: caller.session.clone() };
        Ok(Self {
            app: app.clone(),
            deployment: sessions.deployment().clone(),
            by: caller.user.as_ref().map_or_else(|| "cli".to_owned(), ToString::to_string),
            follower: sessions.follow(owner.clone(), None).await?,
            owner,
            workspace: caller.workspace.clone(),
            deserted: sessions.deserted().clone(),
        })
    }
}

#[async_trait(?Send)]
impl ShownSession for LocalSession {
    fn key(&self) -> &SessionKey {
        &self.owner.session
    }

    async fn next(&mut self) -> Result<Followed, Failure> {
        Ok(self.follower.next().await?)
    }

    async fn message(&self, seq: u64) -> Result<Option<Message>, Failure> {
        let Owner { tenant, session } = &self.owner;
        let stored = self.deployment.store.messages(tenant, session, seq.saturating_sub(1), 1).await;
        let stored = stored.map_err(|error| Failure::failed("the session cannot be read").because(error))?;
        Ok(stored.into_iter().next())
    }

    async fn usage(&self, run: Option<JobId>) -> Result<Usage, Failure> {
        let session = run.is_none().then(|| self.owner.session.clone());
        let filter = UsageFilter { root: run, session, ..UsageFilter::default() };
        let usage = self.deployment.store.usage(&self.owner.tenant, &filter).await;
        usage.map_err(|error| Failure::failed("what it cost cannot be read").because(error))
    }

    async fn pending(&self) -> Result<Vec<ApprovalId>, Failure> {
        let pending = self.app.pending_approvals().await?;
        let own = pending.iter().filter(|approval| approval.request.session == self.owner.session);
        Ok(own.map(|approval| approval.id).collect())
    }

    async fn question(&self, id: ApprovalId) -> Result<Option<Question>, Failure> {
        let found = self.deployment.store.approval(&self.owner.tenant, id).await;
        let found = found.map_err(|error| Failure::failed("the approval cannot be read").because(error))?;
        Ok(found.filter(|approval| approval.state == ApprovalState::Pending).as_ref().map(Question::from))
    }

    async fn put(&self, question: Question) {
        let found = self.deployment.store.approval(&self.owner.tenant, question.id).await;
        let Ok(Some(approval)) = found else { return };
        tokio::select! {
            () = approve::put(&self.app, approval, self.by.clone()) => {}
            // Nobody is left to make the call; that is said where the session is followed.
            () = self.deserted.cancelled() => {}
        }
    }

    fn announce(&self, question: &Question) {
        approve::announce(question);
    }

    fn workspace(&self) -> Option<&Path> {
        Some(&self.workspace)
    }

    fn scrubbed(&self, text: &str) -> String {
        self.deployment.executor.scrubbers().for_tenant(&self.owner.tenant).said(text)
    }

    fn scrubbed_json(&self, content: &Value) -> Value {
        self.deployment.executor.scrubbers().for_tenant(&self.owner.tenant).json(content)
    }
}
