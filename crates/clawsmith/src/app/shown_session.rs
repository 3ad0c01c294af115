//! The session that a chat shows: in the store of this process, or at a gateway.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use claw_agent::Deployment;
use claw_core::port::{Model, Owner};
use claw_core::store::{ApprovalState, JobFilter, JobState, Message, Usage, UsageFilter};
use claw_core::tool::Caller;
use claw_core::{ApprovalId, JobId, SessionKey};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::question::{AskedFor, Question, StoredApproval};
use super::{App, Error, Followed, Follower, Sessions};

/// A session that is shown while it goes on.
#[async_trait(?Send)]
pub trait ShownSession {
    /// Key of the session.
    fn key(&self) -> &SessionKey;
    /// Waits for the next event or piece. Nothing is lost if the returned future is dropped.
    async fn next(&mut self) -> Result<Followed, Error>;
    /// The message at this place.
    async fn message(&self, seq: u64) -> Result<Option<Message>, Error>;
    /// Tokens and cost of a run and those below it, or of the whole session.
    async fn usage(&self, run: Option<JobId>) -> Result<Usage, Error>;
    /// The pending approvals of the session.
    async fn pending(&self) -> Result<Vec<ApprovalId>, Error>;
    /// An approval that is pending; `None` once it is not.
    async fn question(&self, id: ApprovalId) -> Result<Option<Question>, Error>;
    /// The approval behind a question; `None` if it is gone.
    async fn asked_for(&self, question: &Question) -> Option<Box<dyn AskedFor + '_>>;
    /// Waits until nobody is left to make the calls; forever where that cannot be known.
    async fn deserted(&self);
    /// Says what a run that has not begun waits for, and what to do about it.
    async fn waiting(&self, run: JobId) -> String {
        let key = self.key();
        format!(
            "run {run} has not begun; `clawsmith runs list --session {key}`, where the gateway runs, shows what it waits for"
        )
    }
    /// Says where else an approval can be answered, as commands to type.
    fn elsewhere(&self, question: &Question) -> Vec<String>;
    /// The directory in which a change can be previewed; `None` where it is not on this machine.
    fn workspace(&self) -> Option<&Path>;
    /// A text without secrets.
    fn scrubbed(&self, text: &str) -> String;
    /// The content of a message without secrets.
    fn scrubbed_json(&self, content: &Value) -> Value;
}

/// The provider and model that answer.
#[derive(Debug, Clone)]
pub struct Answerer {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// It only plays a script.
    pub demo: bool,
}

impl Answerer {
    /// The provider and name of a model.
    pub fn of(model: &dyn Model) -> Self {
        let card = model.card();
        Self { provider: card.provider.to_string(), model: card.model.to_string(), demo: card.demo }
    }
}

impl std::fmt::Display for Answerer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

/// A session in the store of this process.
pub struct LocalSession {
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
    pub async fn new(sessions: &Sessions, app: &App, caller: &Caller) -> Result<Self, Error> {
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

    async fn next(&mut self) -> Result<Followed, Error> {
        self.follower.next().await
    }

    async fn message(&self, seq: u64) -> Result<Option<Message>, Error> {
        let Owner { tenant, session } = &self.owner;
        let stored = self.deployment.store.messages(tenant, session, seq.saturating_sub(1), 1).await;
        let stored = stored.map_err(|error| Error::failed("the session cannot be read").because(error))?;
        Ok(stored.into_iter().next())
    }

    async fn usage(&self, run: Option<JobId>) -> Result<Usage, Error> {
        let session = run.is_none().then(|| self.owner.session.clone());
        let filter = UsageFilter { root: run, session, ..UsageFilter::default() };
        let usage = self.deployment.store.usage(&self.owner.tenant, &filter).await;
        usage.map_err(|error| Error::failed("the session's cost cannot be read").because(error))
    }

    async fn pending(&self) -> Result<Vec<ApprovalId>, Error> {
        let pending = self.app.pending_approvals().await?;
        let own = pending.iter().filter(|approval| approval.request.session == self.owner.session);
        Ok(own.map(|approval| approval.id).collect())
    }

    async fn question(&self, id: ApprovalId) -> Result<Option<Question>, Error> {
        let found = self.deployment.store.approval(&self.owner.tenant, id).await;
        let found = found.map_err(|error| Error::failed("the approval cannot be read").because(error))?;
        Ok(found.filter(|approval| approval.state == ApprovalState::Pending).as_ref().map(Question::from))
    }

    async fn asked_for(&self, question: &Question) -> Option<Box<dyn AskedFor + '_>> {
        let found = self.deployment.store.approval(&self.owner.tenant, question.id).await;
        let approval = found.ok().flatten()?;
        Some(Box::new(StoredApproval::new(&self.app, approval, self.by.clone())))
    }

    async fn deserted(&self) {
        self.deserted.cancelled().await;
    }

    async fn waiting(&self, run: JobId) -> String {
        let states = vec![JobState::Pending, JobState::Leased, JobState::Parked];
        let session = Some(self.owner.session.clone());
        let filter = JobFilter { session, states, after: Some(run), ..JobFilter::default() };
        // The first to be accepted is the one that goes on; the list begins with the latest.
        match self.app.runs(&filter).await.ok().and_then(|mut earlier| earlier.pop()) {
            Some(earlier) => waiting_for(earlier.new.id, earlier.state),
            None => format!("waiting for a worker to begin run {run}; `clawsmith runs show {run}` says more"),
        }
    }

    fn elsewhere(&self, question: &Question) -> Vec<String> {
        question.elsewhere()
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

/// Names the earlier run of a session that a message waits for, and the commands that end the wait.
fn waiting_for(earlier: JobId, state: JobState) -> String {
    let how = match state {
        JobState::Parked => format!(
            "which waits for an approval; answer it (`clawsmith approvals list`), or stop the run with \
             `clawsmith runs cancel {earlier}`"
        ),
        JobState::Pending => format!(
            "which is queued or waits for a retry; `clawsmith runs show {earlier}` says more, `clawsmith runs release {earlier}` \
             starts it now, `clawsmith runs cancel {earlier}` stops it"
        ),
        _ => format!(
            "which is running; `clawsmith runs cancel {earlier}` stops it, `clawsmith runs release {earlier}` takes it \
             from a worker that does not respond"
        ),
    };
    format!("waiting for run {earlier} of this session, {how}")
}
