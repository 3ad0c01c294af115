//! Writes the events of calls to the log of their session, so that a client can follow and resume.
//!
//! A listener must not block, so a task of its own writes the events, in order. None is dropped: while many are
//! waiting to be written, calls wait before they begin, so that callers cannot outrun the database. Output of a
//! running call is not an event: it is streamed to followers of the session, and dropped when the call's end is
//! written.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use claw_core::event::{Event, Listener, Room, What};
use claw_core::port::{Clock, Owner, UnixMillis};
use claw_core::store::{ApprovalAsked, NewEvent, SessionEventBody, SessionLog, Streams, ToolEvent, Voice};
use claw_core::{CallId, SessionKey, TenantId};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;

/// The most events that are written together.
const MOST_AT_ONCE: usize = 256;
/// The time in which events gather before they are written together, unless somebody waits for them.
const GATHERING: Duration = Duration::from_millis(2);
/// The number of unwritten events from which on calls wait before they begin. Calls that already run may add theirs.
const MOST_UNWRITTEN: usize = 4_096;

/// Receives events of calls, writes those that clients need, and passes all on to another listener.
pub struct Chronicle {
    clock: Arc<dyn Clock>,
    pass_on: Box<PassOn>,
    lines: mpsc::UnboundedSender<Line>,
    unwritten: Arc<Unwritten>,
    besides: Option<Arc<dyn Listener>>,
}

/// Streams a piece of a call's output.
type PassOn = dyn Fn(&Owner, CallId, &str) + Send + Sync;

/// Counts what the writer has not written yet.
#[derive(Default)]
struct Unwritten {
    count: AtomicUsize,
    /// Notified when something was written.
    written: Notify,
    /// Notified when somebody waits for everything to be written.
    hurry: Notify,
}

impl Unwritten {
    fn is_full(&self) -> bool {
        self.count.load(Ordering::Acquire) >= MOST_UNWRITTEN
    }

    fn remove(&self, count: usize) {
        self.count.fetch_sub(count, Ordering::AcqRel);
        self.written.notify_waiters();
    }

    async fn room(&self) {
        loop {
            let written = self.written.notified();
            if !self.is_full() {
                return;
            }
            written.await;
        }
    }
}

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
        let unwritten = Arc::new(Unwritten::default());
        let (streams, counted) = (Arc::clone(&store), Arc::clone(&unwritten));
        let pass_on = Box::new(move |owner: &Owner, call: CallId, text: &str| {
            streams.say(owner, call.into(), Voice::Output, text);
        });
        tokio::spawn(async move {
            let mut lines = Vec::new();
            // Events that came while others were gathered or written share a transaction.
            loop {
                let mut taken = heard.recv_many(&mut lines, MOST_AT_ONCE).await;
                if taken == 0 {
                    break;
                }
                if taken < MOST_AT_ONCE && !lines.iter().any(|line| matches!(line, Line::Written(_))) {
                    // Whoever hurries after this look leaves a permit, and is heard at once.
                    let _ = timeout(GATHERING, counted.hurry.notified()).await;
                    if !heard.is_empty() {
                        taken += heard.recv_many(&mut lines, MOST_AT_ONCE - taken).await;
                    }
                }
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
                counted.remove(taken);
            }
        });
        Arc::new(Self { clock, pass_on, lines, unwritten, besides })
    }

    /// Gives a line to the writer.
    fn add(&self, line: Line) -> bool {
        self.unwritten.count.fetch_add(1, Ordering::AcqRel);
        self.lines.send(line).is_ok()
    }

    /// Waits until everything received so far is written.
    pub async fn written(&self) {
        let (asked, written) = oneshot::channel();
        if self.add(Line::Written(asked)) {
            self.unwritten.hurry.notify_one();
            // The writer ends only with the process.
            let _ = written.await;
        }
    }

    /// Writes an event.
    pub(crate) fn tell(&self, tenant: &TenantId, session: &SessionKey, event: SessionEventBody) {
        let owner = Owner { tenant: tenant.clone(), session: session.clone() };
        // The writer ends only with the process.
        self.add(Line::Event(owner, self.clock.now(), event));
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
            self.add(Line::Over(owner(), *call));
        }
        if let Some(listener) = &self.besides {
            listener.hear(event);
        }
    }

    fn room(&self) -> Option<Room<'_>> {
        if !self.unwritten.is_full() || self.lines.is_closed() {
            return self.besides.as_ref().and_then(|listener| listener.room());
        }
        Some(Box::pin(async {
            tokio::select! {
                () = self.unwritten.room() => {}
                // Without a writer there is nothing to wait for.
                () = self.lines.closed() => {}
            }
        }))
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
