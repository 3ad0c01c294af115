//! Input of the person behind a call: asked as an approval, one request at a time, and bounded.
//!
//! The words are those of a server that a tool speaks to. They are scrubbed, shown as the server's, and nothing of them
//! is trusted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use claw_core::port::{InputAnswer, InputForm, InputRequest, Inputs};
use claw_core::store::{Approval, ApprovalState, NewApproval};
use claw_core::tool::{Digest, Effect, Effects, ErrorKind, ToolError};
use claw_core::{CallId, ToolName};
use serde_json::Value;
use tokio::sync::Mutex;

use super::{Grant, Site};
use crate::execute::summary::{block, plain};
use crate::scrub::CallScrubber;
use crate::{Asking, Executor, Offer, approval};
use claw_schema::validate::{Validator, measure};

/// The most requests for input of one call.
const MOST_REQUESTS: usize = 10;
/// The most bytes of a request's words, and of its form or address.
const LARGEST: usize = 128 * 1024;
/// The most characters of a server's words that are shown.
const LONGEST_MESSAGE: usize = 4_000;
/// The most fields of one request.
const MOST_FIELDS: usize = 50;

pub(super) fn guard(site: &Site<'_>) -> Arc<dyn Inputs> {
    Arc::new(OwnInputs {
        executor: site.executor.clone(),
        offer: site.offer.clone(),
        call: site.call,
        tool: site.meta.name.clone(),
        grant: site.grant(),
        requests: AtomicUsize::new(0),
        asking: Mutex::new(()),
    })
}

struct OwnInputs {
    executor: Executor,
    offer: Offer,
    call: CallId,
    tool: ToolName,
    grant: Arc<Grant>,
    /// The number of requests so far, with those that wait.
    requests: AtomicUsize,
    /// Held while a person is asked: a call has one open approval.
    asking: Mutex<()>,
}

#[async_trait]
impl Inputs for OwnInputs {
    async fn ask(&self, request: InputRequest) -> Result<InputAnswer, ToolError> {
        self.grant.live()?;
        // Counted and measured before it waits: a request stays in memory as long as a person takes for others.
        let number = self.requests.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if number > MOST_REQUESTS {
            let what =
                format!("`{}` asked for input more than {MOST_REQUESTS} times in one call", request.server);
            return Err(ToolError::new(ErrorKind::Forbidden, what));
        }
        if self.grant.asking == Asking::Impossible {
            return Ok(InputAnswer::Cancelled);
        }
        if is_too_large(&request) {
            return Err(not_given(&request.server, &format!("it has more than {LARGEST} bytes")));
        }
        let _asking = self.asking.lock().await;
        self.grant.live()?;
        let tenant = &self.offer.caller().tenant;
        let scrubber = self.executor.scrubbers().for_call(tenant, &self.grant.secrets);
        let request = checked(request, &scrubber)?;
        let asking = self.approval_request(request, number, &scrubber);
        let _paused = self.grant.time.pause();
        let tell = |row: &Approval| {
            if let Some(listener) = &self.grant.inputs {
                // A front end that has gone hears nothing; others still answer.
                let _ = listener.send(row.clone());
            }
        };
        let waited =
            approval::put_and_wait(&self.executor, &self.offer, asking, &self.grant.cancel, &tell).await;
        let row = waited.map_err(ToolError::internal)?;
        if self.grant.cancel.is_cancelled() {
            return Err(ToolError::new(ErrorKind::Cancelled, "the call was cancelled"));
        }
        Ok(match row.state {
            ApprovalState::Approved => {
                let taken = self.executor.0.store.take_values(tenant, row.id).await;
                taken.map_err(ToolError::internal)?.map_or(InputAnswer::Cancelled, InputAnswer::Accepted)
            }
            ApprovalState::Denied => InputAnswer::Declined,
            _ => InputAnswer::Cancelled,
        })
    }
}

impl OwnInputs {
    fn approval_request(&self, input: InputRequest, number: usize, scrubber: &CallScrubber) -> NewApproval {
        let (caller, now) = (self.offer.caller(), self.offer.0.registry.world().clock.now());
        let wait = Duration::from_secs(self.executor.0.approvals.load().wait_secs.into());
        NewApproval {
            tenant: caller.tenant.clone(),
            session: caller.session.clone(),
            agent: caller.agent.clone(),
            user: caller.user.clone(),
            call: self.call,
            run: None,
            // The same words asked twice are two questions.
            digest: Digest::of(&(number, &input)),
            tool: self.tool.clone(),
            effects: Effects::of(&[Effect::Network]),
            summary: summary(&input, scrubber),
            reason: format!("MCP server `{}` asks for input; what you give is sent to it", input.server),
            asked: now,
            expires: now.plus(wait),
            remember: None,
            directories: Vec::new(),
            input: Some(Box::new(input)),
        }
    }
}

/// Returns whether a request is too large to be kept while it waits.
fn is_too_large(request: &InputRequest) -> bool {
    let form = match &request.form {
        InputForm::Form { schema } => measure(schema, LARGEST).is_err(),
        InputForm::Url { url } => url.len() > LARGEST,
    };
    form || request.message.len() > LARGEST
}

fn not_given(server: &str, why: &str) -> ToolError {
    ToolError::failed(format!("MCP server `{server}` asks for input that cannot be given: {why}"))
}

/// The request with its words scrubbed and cut; an error where it cannot be put to a person.
fn checked(request: InputRequest, scrubber: &CallScrubber) -> Result<InputRequest, ToolError> {
    let InputRequest { server, message, form } = request;
    let refuse = |why: String| not_given(&server, &why);
    let message: String = scrubber.text(&message).chars().take(LONGEST_MESSAGE).collect();
    let form = match form {
        InputForm::Form { schema } => {
            Validator::compile(&schema).map_err(|error| refuse(error.to_string()))?;
            let fields = schema.get("properties").and_then(Value::as_object).map_or(0, serde_json::Map::len);
            if fields > MOST_FIELDS {
                return Err(refuse(format!("it has {fields} fields; at most {MOST_FIELDS} are allowed")));
            }
            InputForm::Form { schema: scrubber.json(&schema) }
        }
        InputForm::Url { url } => {
            if !(url.starts_with("https://") || url.starts_with("http://")) {
                return Err(refuse("its address is neither https nor http".to_owned()));
            }
            InputForm::Url { url: scrubber.text(&url) }
        }
    };
    Ok(InputRequest { server, message, form })
}

/// The request as a person reads it.
fn summary(input: &InputRequest, scrubber: &CallScrubber) -> String {
    let mut lines = vec![
        format!("MCP server `{}` asks for input. Its message, which nobody has checked:", input.server),
        block(&input.message, scrubber),
    ];
    match &input.form {
        InputForm::Url { url } => {
            lines.push("it asks you to visit this page, which is not opened automatically:".to_owned());
            lines.push(block(url, scrubber));
        }
        InputForm::Form { schema } => {
            lines.push("it asks for these values:".to_owned());
            let required = |name: &str| {
                let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
                names.filter_map(Value::as_str).any(|required| required == name)
            };
            let fields = schema.get("properties").and_then(Value::as_object);
            for (name, field) in fields.into_iter().flatten() {
                let need = if required(name) { "required" } else { "optional" };
                let about = field.get("description").or_else(|| field.get("title")).and_then(Value::as_str);
                let about = about.map(|about| format!(": {}", plain(about, scrubber))).unwrap_or_default();
                let kind = field.get("type").and_then(Value::as_str).unwrap_or("value");
                lines.push(format!("  {} ({}, {need}){about}", plain(name, scrubber), plain(kind, scrubber)));
                if names_a_secret(name) {
                    lines.push(
                        "    this looks like a secret: a server must not ask for one in this way".to_owned(),
                    );
                }
            }
            if fields.is_none_or(serde_json::Map::is_empty) {
                lines.push("  none: it only asks for your consent".to_owned());
            }
        }
    }
    lines.join("\n")
}

/// Returns whether a field by this name asks for a password, a key or the like.
fn names_a_secret(name: &str) -> bool {
    let name: String = name.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    [
        "password",
        "passwd",
        "passphrase",
        "secret",
        "apikey",
        "token",
        "privatekey",
        "creditcard",
        "cvv",
        "pin",
    ]
    .iter()
    .any(|word| if word.len() > 3 { name.contains(word) } else { name == *word })
}
