//! Writes the events of calls to the log of their session, so that a client can follow and resume.
//!
//! A listener must not block, so a task of its own writes the events, in order. Output of a running call is
//! not an event: it is streamed to followers of the session, and dropped when the call's end is written.

use std::sync::Arc;

use claw_core::event::{Event, Listener, What};
use claw_core::port::{Clock, Owner, UnixMillis};
use claw_core::store::{ApprovalAsked, NewEvent, SessionEventBody, SessionLog, Streams, ToolEvent, Voice};
use claw_core::{CallId, SessionKey, TenantId};
use tokio::sync::{mpsc, oneshot};

/// The most events that are written together.
const MOST_AT_ONCE: usize = 256;

/// Receives events of calls, writes those that clients need, and passes all on to another listener.
pub struct Chronicle {
    clock: Arc<dyn Clock>,
    pass_on: Box<PassOn>,
    lines: mpsc::UnboundedSender<Line>,
    besides: Option<Arc<dyn Listener>>,
}

/// Streams a piece of a call's output.
type PassOn = dyn Fn(&Owner, CallId, &str) + Send + Sync;

enum Line {
    Event(Owner, UnixMillis, SessionEventBody),
    /// The call is over: its output is dropped.
    Over(Owner, CallId),
    /// Asks to be notified when everything before it is written.
    Written(oneshot::Sender<()>),
}

impl Chronicle {
    /// Starts the writer. Must be called within a runtime; the writer ends with the last owner.
    pub fn start<S: SessionLog + Streams + ?Sized + 'static>(
        store: Arc<S>,
        clock: Arc<dyn Clock>,
        besides: Option<Arc<dyn Listener>>,
    ) -> Arc<Self> {
        let (lines, mut heard) = mpsc::unbounded_channel();
        let streams = Arc::clone(&store);
        let pass_on = Box::new(move |owner: &Owner, call: CallId, text: &str| {
            streams.say(owner, call.into(), Voice::Output, text);
        });
        tokio::spawn(async move {
            let mut lines = Vec::new();
            // Events that came while others were written share a transaction.
            while heard.recv_many(&mut lines, MOST_AT_ONCE).await > 0 {
                let mut after = Vec::new();
                let mut events = Vec::new();
                for line in lines.drain(..) {
                    match line {
                        Line::Event(owner, at, body) => events.push(NewEvent { owner, at, body }),
                        line => after.push(line),
                    }
                }
                let count = events.len();
                if count > 0
                    && let Err(error) = store.log_events(events).await
                {
                    tracing::error!(count, %error, "events could not be written");
                }
                for line in after {
                    match line {
                        Line::Over(owner, call) => store.said(&owner, call.into()),
                        // The asker may be gone.
                        Line::Written(asked) => drop(asked.send(())),
                        Line::Event(..) => {}
                    }
                }
            }
        });
        Arc::new(Self { clock, pass_on, lines, besides })
    }

    /// Waits until everything received so far is written.
    pub async fn written(&self) {
        let (asked, written) = oneshot::channel();
        if self.lines.send(Line::Written(asked)).is_ok() {
            // The writer ends only with the process.
            let _ = written.await;
        }
    }

    /// Writes an event.
    pub(crate) fn tell(&self, tenant: &TenantId, session: &SessionKey, event: SessionEventBody) {
        let owner = Owner { tenant: tenant.clone(), session: session.clone() };
        // The writer ends only with the process.
        let _ = self.lines.send(Line::Event(owner, self.clock.now(), event));
    }
}

impl Listener for Chronicle {
    fn hear(&self, event: Event) {
        let Event { tenant, session, call, what } = &event;
        let owner = || Owner { tenant: tenant.clone(), session: session.clone() };
        if let What::CallProgress { text } = what {
            (self.pass_on)(&owner(), *call, text);
        }
        if let Some(told) = told(&event) {
            self.tell(tenant, session, told);
        }
        if let What::CallFinished { .. } = what {
            // The writer ends only with the process.
            let _ = self.lines.send(Line::Over(owner(), *call));
        }
        if let Some(listener) = &self.besides {
            listener.hear(event);
        }
    }
}

/// Returns the session's event for an event of a call; `None` for output, which is streamed.
fn told(event: &Event) -> Option<SessionEventBody> {
    let call = event.call;
    let of_tool = |tool: String, state| SessionEventBody::Tool { call, tool, state };
    Some(match &event.what {
        What::CallStarted { tool } => of_tool(tool.to_string(), ToolEvent::Started),
        What::CallFinished { tool, outcome, micros } => {
            of_tool(tool.to_string(), ToolEvent::Finished { outcome: *outcome, micros: *micros })
        }
        What::CallRefused { tool, step, reason, setting } => {
            let (step, reason, setting) = ((*step).into(), reason.clone(), setting.clone());
            of_tool(tool.clone(), ToolEvent::Refused { step, reason, setting })
        }
        What::ApprovalRequested { approval } => {
            let asked = &approval.request;
            let request = ApprovalAsked {
                tool: asked.tool.clone(),
                effects: asked.effects,
                summary: asked.summary.clone(),
                reason: asked.reason.clone(),
                expires: asked.expires,
            };
            let (approval, state) = (approval.id, approval.state);
            SessionEventBody::Approval { approval, call, state, request: Some(request) }
        }
        What::ApprovalClosed { id, state } => {
            SessionEventBody::Approval { approval: *id, call, state: *state, request: None }
        }
        What::CallProgress { .. } => return None,
    })
}

impl std::fmt::Debug for Chronicle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Chronicle")
    }
}
