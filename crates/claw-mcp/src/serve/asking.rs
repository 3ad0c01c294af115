//! Approvals and requests for input, asked of the MCP client whose call waits for them.
//!
//! Only a client whose key may answer approvals is asked, and only if it can ask its user. Everything else stays a pending
//! approval that is answered elsewhere.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use claw_core::ApprovalId;
use claw_core::port::InputForm;
use claw_core::store::Approval;
use rmcp::model::{
    ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    InputRequest as WireRequest, InputRequests, InputRequiredResult, InputResponses,
};
use rmcp::{Peer, RoleServer};
use serde_json::{Map, Value, json};

/// The longest wait for the answer of a client's user.
const ANSWER_WITHIN: Duration = Duration::from_secs(600);
/// The name of the field by which a user approves a call.
const APPROVE: &str = "approve";

/// The answer of a client's user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientAnswer {
    /// The call may run; a request for input gets these values.
    Approve(Map<String, Value>),
    /// The call is denied; a request for input is declined.
    Deny,
    /// A request for input is dismissed.
    Dismiss,
}

/// Answers approvals in the name of a client whose key may do so.
#[async_trait]
pub trait ClientApprovals: Send + Sync {
    /// Returns a pending approval. The error is logged.
    async fn pending(&self, id: ApprovalId) -> Result<Approval, String>;

    /// Answers a pending approval. The error is logged; it may have been answered elsewhere.
    async fn answer(&self, approval: &Approval, answer: ClientAnswer) -> Result<(), String>;
}

/// A client whose user can be asked.
#[derive(Clone)]
pub(super) struct AskableClient {
    approvals: Arc<dyn ClientApprovals>,
    form: bool,
    url: bool,
}

impl AskableClient {
    /// `None` where the client's key may not answer approvals, or where it cannot ask its user for anything.
    pub(super) fn new(
        approvals: Option<Arc<dyn ClientApprovals>>,
        capabilities: Option<ClientCapabilities>,
    ) -> Option<Self> {
        let approvals = approvals?;
        let elicitation = capabilities?.elicitation?;
        // A client that names no kind asks for values.
        let (form, url) =
            (elicitation.form.is_some() || elicitation.url.is_none(), elicitation.url.is_some());
        Some(Self { approvals, form, url })
    }

    /// Asks for an approval over the connection of an older protocol; `false` where nobody has answered.
    pub(super) async fn ask(&self, peer: &Peer<RoleServer>, id: ApprovalId) -> bool {
        let Some((approval, params)) = self.question(id).await else { return false };
        let asked = peer.create_elicitation_with_timeout(params, Some(ANSWER_WITHIN)).await;
        match asked {
            Ok(result) => self.settle(&approval, result).await,
            Err(error) => {
                tracing::debug!(%id, %error, "an MCP client did not answer");
                false
            }
        }
    }

    /// The result by which a client of the newer protocol is asked for an approval; `None` where it cannot be.
    pub(super) async fn required(&self, id: ApprovalId) -> Option<InputRequiredResult> {
        let (_, params) = self.question(id).await?;
        let requests =
            InputRequests::from([(name_of(id), WireRequest::Elicitation(ElicitRequest::new(params)))]);
        Some(InputRequiredResult::from_input_requests(requests))
    }

    /// Takes the answer that came with a call made again, and returns whether it settled the approval; `None` if none came.
    /// It is an answer to this approval alone, since it goes by the approval's id.
    pub(super) async fn take(&self, id: ApprovalId, responses: &mut InputResponses) -> Option<bool> {
        let response = responses.remove(&name_of(id))?;
        let Ok(result) = serde_json::from_value::<ElicitResult>(response) else { return Some(false) };
        Some(match self.approvals.pending(id).await {
            Ok(approval) => self.settle(&approval, result).await,
            Err(_) => false,
        })
    }

    /// The approval as a question to the client's user.
    async fn question(&self, id: ApprovalId) -> Option<(Approval, ElicitRequestParams)> {
        match self.approvals.pending(id).await {
            Ok(approval) => {
                let params = self.params(&approval)?;
                Some((approval, params))
            }
            Err(why) => {
                tracing::debug!(%id, why, "an approval cannot be shown to an MCP client");
                None
            }
        }
    }

    fn params(&self, approval: &Approval) -> Option<ElicitRequestParams> {
        let request = &approval.request;
        let message = format!("`{}`: {}\n{}", request.tool, request.reason, request.summary);
        let schema = match request.input.as_ref().map(|input| &input.form) {
            Some(InputForm::Url { url }) => {
                let (url, elicitation_id) = (url.clone(), approval.id.to_string());
                let params =
                    ElicitRequestParams::UrlElicitationParams { meta: None, message, url, elicitation_id };
                return self.url.then_some(params);
            }
            Some(InputForm::Form { schema }) => schema.clone(),
            None => json!({
                "type": "object",
                "properties": { APPROVE: { "type": "boolean", "title": "Allow this call, once", "default": false } },
                "required": [APPROVE],
            }),
        };
        let requested_schema = serde_json::from_value(schema).ok()?;
        let params = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
        self.form.then_some(params)
    }

    /// Answers the approval as the user did; `false` where it stays open.
    async fn settle(&self, approval: &Approval, result: ElicitResult) -> bool {
        let values = match result.content {
            Some(Value::Object(values)) => values,
            _ => Map::new(),
        };
        let is_input = approval.request.input.is_some();
        let answer = match result.action {
            ElicitationAction::Accept if is_input => ClientAnswer::Approve(values),
            ElicitationAction::Accept if values.get(APPROVE) == Some(&Value::Bool(true)) => {
                ClientAnswer::Approve(Map::new())
            }
            ElicitationAction::Accept | ElicitationAction::Decline => ClientAnswer::Deny,
            // An approval that was dismissed here can still be given elsewhere.
            _ if is_input => ClientAnswer::Dismiss,
            _ => return false,
        };
        match self.approvals.answer(approval, answer).await {
            Ok(()) => true,
            Err(why) => {
                tracing::debug!(id = %approval.id, why, "the answer of an MCP client was not taken");
                false
            }
        }
    }
}

/// The name of an approval among the inputs of a call.
fn name_of(id: ApprovalId) -> String {
    format!("approval-{id}")
}
