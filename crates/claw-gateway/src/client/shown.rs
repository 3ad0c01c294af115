//! A session at a gateway, as a chat shows it.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use async_trait::async_trait;
use clawsmith::app::question::{AskedFor, InputCheck, Question};
use clawsmith::app::shown_session::ShownSession;
use clawsmith::app::{Error, Followed, Verdict};
use clawsmith::store::{Message, NewMessage, Usage};
use clawsmith::{ApprovalId, JobId, SessionKey, TenantId};
use serde_json::Value;
use tokio::sync::Mutex;

use super::{ApprovalView, GatewayClient, MessageView, RemoteSession};

/// The interval between checks whether a question at the gateway still waits.
const LOOKED_AFTER: Duration = Duration::from_secs(2);

/// A session at a gateway. The gateway scrubs what it sends, and checks what it is given.
pub struct ShownRemote {
    session: Rc<Mutex<RemoteSession>>,
    client: GatewayClient,
    key: SessionKey,
    tenant: TenantId,
}

impl ShownRemote {
    /// The session as it is now.
    pub async fn of(session: &Rc<Mutex<RemoteSession>>) -> Self {
        let open = session.lock().await;
        let (client, opened) = (open.client().clone(), open.opened());
        let (key, tenant) = (opened.session_key.clone(), opened.tenant.clone());
        Self { session: Rc::clone(session), client, key, tenant }
    }
}

#[async_trait(?Send)]
impl ShownSession for ShownRemote {
    fn key(&self) -> &SessionKey {
        &self.key
    }

    async fn next(&mut self) -> Result<Followed, Error> {
        self.session.lock().await.next().await
    }

    async fn message(&self, seq: u64) -> Result<Option<Message>, Error> {
        let found = self.client.messages(&self.key, Some(seq.saturating_add(1)), 1).await?;
        Ok(found.into_iter().find(|message| message.seq == seq).map(|message| {
            let MessageView { id, seq, role, content, run_id, at } = message;
            let (tenant, session) = (self.tenant.clone(), self.key.clone());
            Message { new: NewMessage { id, tenant, session, role, content, at }, seq, run: run_id }
        }))
    }

    async fn usage(&self, run: Option<JobId>) -> Result<Usage, Error> {
        self.client.usage(&self.key, run).await
    }

    async fn pending(&self) -> Result<Vec<ApprovalId>, Error> {
        let pending = self.client.approvals().await?;
        let own = pending.iter().filter(|approval| approval.session_key == self.key);
        Ok(own.map(|approval| approval.id).collect())
    }

    async fn question(&self, id: ApprovalId) -> Result<Option<Question>, Error> {
        let pending = self.client.approvals().await?;
        Ok(pending.into_iter().find(|approval| approval.id == id).map(question))
    }

    async fn asked_for(&self, _: &Question) -> Option<Box<dyn AskedFor + '_>> {
        Some(Box::new(RemoteApproval(self.client.clone())))
    }

    async fn deserted(&self) {
        std::future::pending::<()>().await;
    }

    fn elsewhere(&self, _: &Question) -> Vec<String> {
        vec!["`clawsmith chat --connect` at a terminal, with a key that has `approvals:answer`".to_owned()]
    }

    fn workspace(&self) -> Option<&Path> {
        None
    }

    fn scrubbed(&self, text: &str) -> String {
        text.to_owned()
    }

    fn scrubbed_json(&self, content: &Value) -> Value {
        content.clone()
    }
}

/// An approval at the gateway.
struct RemoteApproval(GatewayClient);

#[async_trait(?Send)]
impl AskedFor for RemoteApproval {
    fn look_after(&self) -> Duration {
        LOOKED_AFTER
    }

    async fn ended(&self, question: &Question) -> Option<String> {
        let pending = self.0.approvals().await.ok()?;
        let is_over = pending.iter().all(|approval| approval.id != question.id);
        is_over.then(|| {
            "the approval is no longer pending: it was answered elsewhere, expired or was withdrawn"
                .to_owned()
        })
    }

    fn checker(&self) -> Box<InputCheck> {
        Box::new(|_| Ok(()))
    }

    async fn answer(&self, question: &Question, verdict: Verdict) -> Result<(), Error> {
        self.0.answer(question.id, verdict).await.map(drop)
    }
}

fn question(approval: ApprovalView) -> Question {
    Question {
        id: approval.id,
        tool: approval.tool,
        effects: approval.effects,
        reason: approval.reason,
        summary: approval.summary,
        call: approval.call_id,
        asked: approval.asked,
        expires: approval.expires,
        offered: approval.widths.into_iter().map(|rule| (rule.width, rule.covers)).collect(),
        input: approval.input.map(Box::new),
    }
}
