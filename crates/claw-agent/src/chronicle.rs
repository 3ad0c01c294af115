//! Writes what happens to calls into the log of their conversation, so that a client can follow and resume.
//!
//! A listener must not block, so what it hears is written by a task of its own, in order. Pieces of progress are
//! not written down.

use std::sync::Arc;

use claw_core::event::{Event, Listener, What};
use claw_core::port::{Clock, UnixMillis};
use claw_core::store::SessionLog;
use claw_core::{SessionKey, TenantId};
use serde_json::{Value, json};
use smol_str::SmolStr;
use tokio::sync::{mpsc, oneshot};

/// Hears of calls, writes down what a client may want to know, and tells whoever listens besides.
pub struct Chronicle {
    clock: Arc<dyn Clock>,
    lines: mpsc::UnboundedSender<Line>,
    besides: Option<Arc<dyn Listener>>,
}

enum Line {
    Event(TenantId, SessionKey, (UnixMillis, SmolStr, Value)),
    /// Everything before it is written.
    Written(oneshot::Sender<()>),
}

impl Chronicle {
    /// Begins to write. Must be called where tasks can be started; ends with its last owner.
    pub fn start<S: SessionLog + ?Sized + 'static>(
        store: Arc<S>,
        clock: Arc<dyn Clock>,
        besides: Option<Arc<dyn Listener>>,
    ) -> Arc<Self> {
        let (lines, mut heard) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(line) = heard.recv().await {
                match line {
                    Line::Event(tenant, session, event) => {
                        if let Err(error) = store.log_event(&tenant, &session, event).await {
                            tracing::error!(%session, %error, "an event could not be written");
                        }
                    }
                    // Whoever asked may be gone.
                    Line::Written(asked) => drop(asked.send(())),
                }
            }
        });
        Arc::new(Self { clock, lines, besides })
    }

    /// Waits until all that was heard so far is written.
    pub async fn written(&self) {
        let (asked, written) = oneshot::channel();
        if self.lines.send(Line::Written(asked)).is_ok() {
            // The writer ends with the process alone.
            let _ = written.await;
        }
    }

    /// Writes something down that is not about a call.
    pub(crate) fn tell(&self, tenant: &TenantId, session: &SessionKey, kind: &'static str, body: Value) {
        let event = (self.clock.now(), SmolStr::new_static(kind), body);
        // The writer ends with the process alone.
        let _ = self.lines.send(Line::Event(tenant.clone(), session.clone(), event));
    }
}

impl Listener for Chronicle {
    fn hear(&self, event: Event) {
        if let Some((kind, body)) = told(&event) {
            self.tell(&event.tenant, &event.session, kind, body);
        }
        if let Some(listener) = &self.besides {
            listener.hear(event);
        }
    }
}

/// What is written of an event.
fn told(event: &Event) -> Option<(&'static str, Value)> {
    let call = event.call;
    Some(match &event.what {
        What::CallStarted { tool } => ("tool", json!({ "call": call, "tool": tool, "state": "started" })),
        What::CallFinished { tool, outcome, micros } => {
            let state = "finished";
            (
                "tool",
                json!({ "call": call, "tool": tool, "state": state, "outcome": outcome, "micros": micros }),
            )
        }
        What::CallRefused { tool, step, reason } => {
            let state = "refused";
            ("tool", json!({ "call": call, "tool": tool, "state": state, "step": step, "reason": reason }))
        }
        What::ApprovalRequested { approval } => {
            let request = &approval.request;
            let body = json!({
                "approval": approval.id,
                "call": call,
                "tool": request.tool,
                "state": approval.state,
                "effects": request.effects,
                "summary": request.summary,
                "reason": request.reason,
                "expires": request.expires,
            });
            ("approval", body)
        }
        What::ApprovalClosed { id, state } => {
            ("approval", json!({ "approval": id, "call": call, "state": state }))
        }
        What::CallProgress { .. } => return None,
    })
}

impl std::fmt::Debug for Chronicle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Chronicle")
    }
}
