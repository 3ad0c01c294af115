//! The run that answers a question, streamed as it comes.

mod streamed;

use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::{HeaderName, HeaderValue};
use clawsmith::app::{App, Followed, Follower};
use clawsmith::message::{self, Args, Part, Turn};
use clawsmith::port::Owner;
use clawsmith::store::{
    ApprovalState, Circle, JobFilter, JobState, MessagePage, Role, RunEnd, RunEvent, SessionEventBody,
    Source, Tokens, UsageFilter, Voice,
};
use clawsmith::{ApprovalId, Block, CallId, CallScrubber, Caller, JobId};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::streamed::StreamedText;
use crate::api::Visit;
use crate::client_tools::ToolCall;

/// The header that names the session to continue, and reports the session used.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("x-clawsmith-session");
const RUN: HeaderName = HeaderName::from_static("x-clawsmith-run");

/// The silence after which it is checked whether the run is still alive.
const LOOK: Duration = Duration::from_secs(2);

/// The number of last messages searched for an answer.
const LAST: usize = 50;

/// Stops a run whose client is gone.
struct StopIfDropped {
    app: App,
    run: JobId,
    by: String,
    is_over: bool,
    ending: CancellationToken,
}

impl Drop for StopIfDropped {
    fn drop(&mut self) {
        // A client that the gateway itself cuts off did not ask for that.
        if self.is_over || self.ending.is_cancelled() {
            return;
        }
        let (app, run, by) = (self.app.clone(), self.run, std::mem::take(&mut self.by));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = app.cancel_run(run, &by).await {
                    tracing::warn!(%error, %run, "a run whose client is gone could not be stopped");
                }
            });
        }
    }
}

/// A run that is being answered.
pub(crate) struct Answering {
    /// The time of the question, in seconds of Unix time.
    pub(crate) created: u64,
    /// The model's name, as the client gave it.
    pub(crate) model: String,
    pub(crate) run: JobId,
    owner: Owner,
    app: App,
    /// Takes secrets out of what is called: that is stored as the model said it, since it is run so.
    scrubber: CallScrubber,
    follower: Follower,
    /// The streaming message, as far as it was sent.
    saying: Option<StreamedText>,
    /// The message already sent completely: later pieces of it are ignored.
    whole: Option<Source>,
    told_any: bool,
    /// Items that wait for their turn, in reverse order.
    waiting: Vec<AnswerItem>,
    approval: Option<ApprovalId>,
    /// Names of the client's tools.
    client_tools: HashSet<String>,
    /// Calls of the client's tools, which it is told of when the run has ended.
    handed: Vec<AnswerItem>,
    /// True if the run has begun: messages from then on are its own.
    has_begun: bool,
    /// True if the run is parked, or another has answered: nothing more is sent.
    is_parked: bool,
    stop: StopIfDropped,
}

/// The next item of an answer.
pub(crate) enum AnswerItem {
    /// Text of the agent.
    Words(String),
    /// The agent calls a tool of its own, with these arguments.
    Call { id: CallId, tool: String, args: String },
    /// The agent calls a tool of the client, which makes the call after the end of this answer.
    Handed(ToolCall),
    /// A call has ended.
    Result { id: CallId, text: String, failed: bool },
    /// The answer is whole.
    End(Ended),
    /// The run failed.
    Failed(String),
}

/// The end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The agent was done, or waits for an approval.
    Stop,
    /// A limit was reached.
    Limit,
    /// The client makes calls, and sends their results.
    Called,
}

impl Answering {
    pub(crate) fn new(visit: &Visit, caller: &Caller, run: JobId, follower: Follower, model: &str) -> Self {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let app = visit.gateway.app().of_tenant(&caller.tenant);
        let by = visit.visitor().signature();
        let ending = visit.gateway.ending().clone();
        Self {
            created,
            model: model.to_owned(),
            run,
            owner: Owner { tenant: caller.tenant.clone(), session: caller.session.clone() },
            app: app.clone(),
            scrubber: visit.sessions().deployment().executor.scrubbers().for_tenant(&caller.tenant),
            follower,
            saying: None,
            whole: None,
            told_any: false,
            waiting: Vec::new(),
            approval: None,
            client_tools: HashSet::new(),
            handed: Vec::new(),
            has_begun: false,
            is_parked: false,
            stop: StopIfDropped { app, run, by, is_over: false, ending },
        }
    }

    /// Names the tools whose calls are the client's to make.
    pub(crate) fn with_client_tools(mut self, names: HashSet<String>) -> Self {
        self.client_tools = names;
        self
    }

    /// Adds the session and the run to the headers of an answer.
    pub(crate) fn head(&self) -> [(HeaderName, HeaderValue); 2] {
        let value = |text: String| HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""));
        [(SESSION, value(self.owner.session.to_string())), (RUN, value(self.run.to_string()))]
    }

    /// Waits for the next item.
    pub(crate) async fn next(&mut self) -> AnswerItem {
        if let Some(told) = self.waiting.pop() {
            return told;
        }
        if self.is_parked {
            return AnswerItem::End(Ended::Stop);
        }
        loop {
            let followed = match timeout(LOOK, self.follower.next()).await {
                Ok(Ok(followed)) => followed,
                Ok(Err(error)) => return self.over(AnswerItem::Failed(error.message().to_owned())),
                Err(_) => match self.look().await {
                    Some(told) => return told,
                    None => continue,
                },
            };
            let told = match followed {
                // Runs of a session follow each other: what is said before this one began is another's.
                Followed::Piece(piece)
                    if piece.voice == Voice::Text
                        && self.has_begun
                        && self.whole.as_ref() != Some(&piece.source) =>
                {
                    let text = self.streamed(piece.source);
                    let (is_first, new) = (text.is_empty(), text.piece(&piece).to_owned());
                    self.words(&new, is_first)
                }
                // The offset of the next piece tells that some were missed.
                Followed::Piece(_) | Followed::Lagged => None,
                Followed::Event(event) => self.event(event.what).await,
            };
            if let Some(told) = told {
                return told;
            }
        }
    }

    fn over(&mut self, told: AnswerItem) -> AnswerItem {
        self.stop.is_over = true;
        told
    }

    /// The streaming text of a message.
    fn streamed(&mut self, source: Source) -> &mut StreamedText {
        if self.saying.as_ref().is_some_and(|text| text.source != source) {
            self.saying = None;
        }
        self.saying.get_or_insert_with(|| StreamedText::new(source))
    }

    /// Text to be sent; the first of a message stands apart from the message before.
    fn words(&mut self, text: &str, is_first: bool) -> Option<AnswerItem> {
        let gap = if is_first && self.told_any { "\n\n" } else { "" };
        self.told_any |= !text.is_empty();
        (!text.is_empty()).then(|| AnswerItem::Words(format!("{gap}{text}")))
    }

    async fn event(&mut self, what: SessionEventBody) -> Option<AnswerItem> {
        match what {
            SessionEventBody::Message { id, seq, role, run } if run == self.run && role != Role::User => {
                let turn = self.turn(seq).await?;
                self.waiting = turn.parts.iter().rev().filter_map(call_of).collect();
                self.hand_over();
                let words = if role == Role::Tool { None } else { self.rest(Source::Message(id), &turn) };
                words.or_else(|| self.waiting.pop())
            }
            SessionEventBody::Approval { approval, state: ApprovalState::Pending, .. } if self.has_begun => {
                self.approval = Some(approval);
                None
            }
            SessionEventBody::Run { run, state } if run == self.run => match state {
                RunEvent::Began { .. } | RunEvent::Resumed { .. } | RunEvent::Woken => {
                    self.has_begun = true;
                    None
                }
                RunEvent::Ended { end: RunEnd::Called } => {
                    self.waiting = std::iter::once(AnswerItem::End(Ended::Called))
                        .chain(self.handed.drain(..).rev())
                        .collect();
                    let told = self.waiting.pop()?;
                    Some(self.over(told))
                }
                RunEvent::Ended { end: RunEnd::Limited } => Some(self.over(AnswerItem::End(Ended::Limit))),
                RunEvent::Ended { .. } | RunEvent::Cancelled { .. } => {
                    Some(self.over(AnswerItem::End(Ended::Stop)))
                }
                RunEvent::Reported { why } => Some(self.over(AnswerItem::Failed(why))),
                RunEvent::Parked { .. } => Some(self.parked()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Keeps the calls that the client makes until the run has ended: until then an approval may park it. A call that the client
    /// cannot make is answered in the run.
    fn hand_over(&mut self) {
        let names = &self.client_tools;
        let answered: Vec<CallId> = self
            .waiting
            .iter()
            .filter_map(|told| match told {
                AnswerItem::Result { id, .. } => Some(*id),
                _ => None,
            })
            .collect();
        self.handed.retain(
            |told| !matches!(told, AnswerItem::Handed(call) if answered.iter().any(|id| call.is_of(*id))),
        );
        let is_handed =
            |told: &mut AnswerItem| matches!(told, AnswerItem::Call { tool, .. } if names.contains(tool));
        let handed: Vec<AnswerItem> = self.waiting.extract_if(.., is_handed).collect();
        for told in handed.into_iter().rev() {
            if let AnswerItem::Call { id, tool, args } = told {
                self.handed.push(AnswerItem::Handed(ToolCall::new(self.run, id, tool, args)));
            }
        }
    }

    /// Checks whether the run can still end by itself: another run of the session may have taken its
    /// question, or wait for an approval before it.
    async fn look(&mut self) -> Option<AnswerItem> {
        if self.has_begun {
            return None;
        }
        let Owner { tenant, session } = &self.owner;
        let job = self.app.store().job(tenant, self.run).await.ok()??;
        if job.state.is_over() {
            let circle = Circle::Session(session.clone());
            let page = MessagePage::last(LAST);
            let last = self.app.store().said_in(tenant, &circle, session, page).await.ok()??;
            let last = last.iter().rev().find(|message| message.new.role == Role::Assistant)?.seq;
            let words = words_of(&self.turn(last).await?);
            self.is_parked = true;
            return Some(self.over(AnswerItem::Words(words)));
        }
        let states = vec![JobState::Parked];
        let filter = JobFilter { session: Some(session.clone()), states, limit: 1, ..JobFilter::default() };
        let parked = self.app.runs(&filter).await.ok()?;
        if parked.is_empty() || job.state != JobState::Pending {
            return None;
        }
        self.is_parked = true;
        let waits = format!(
            "[an earlier run of session `{session}` waits for an approval; this message is answered after it]"
        );
        Some(self.over(AnswerItem::Words(waits)))
    }

    /// Ends the stream of a run that waits for an approval, and resumes whenever that is given: the client is
    /// told and need not wait.
    fn parked(&mut self) -> AnswerItem {
        self.stop.is_over = true;
        let approval =
            self.approval.map_or_else(|| "an approval".to_owned(), |id| format!("approval `{id}`"));
        let gap = if self.told_any { "\n\n" } else { "" };
        self.is_parked = true;
        AnswerItem::Words(format!(
            "{gap}[waiting for {approval}; answer it, then continue in session `{}`]",
            self.owner.session
        ))
    }

    /// Returns the rest of a message that was not streamed.
    fn rest(&mut self, source: Source, turn: &Turn) -> Option<AnswerItem> {
        let text = self.streamed(source);
        let (is_first, rest) = (text.is_empty(), text.rest(&words_of(turn)));
        self.whole = Some(source);
        self.words(&rest, is_first)
    }

    async fn turn(&self, seq: u64) -> Option<Turn> {
        let Owner { tenant, session } = &self.owner;
        let found = self.app.store().messages(tenant, session, seq.saturating_sub(1), 1).await.ok()?;
        let message = found.into_iter().next()?;
        let parts: Vec<Part> = serde_json::from_value(self.scrubber.json(&message.new.content)).ok()?;
        Some(Turn { role: message.new.role, parts })
    }

    /// Returns the tokens used by the run and those below it.
    pub(crate) async fn usage(&self) -> Tokens {
        let filter = UsageFilter { root: Some(self.run), ..UsageFilter::default() };
        self.app.store().usage(&self.owner.tenant, &filter).await.unwrap_or_default().tokens
    }
}

fn words_of(turn: &Turn) -> String {
    let words = turn.words();
    if turn.role == Role::System { format!("[{words}]") } else { words }
}

/// Converts a call, or a call's result.
pub(crate) fn call_of(part: &Part) -> Option<AnswerItem> {
    match part {
        Part::Call(wanted) => {
            let args = match &wanted.args {
                Args::Json(args) => args.to_string(),
                Args::Broken { text, .. } => text.clone(),
            };
            Some(AnswerItem::Call { id: wanted.call, tool: wanted.tool.clone(), args })
        }
        Part::Result(message::ToolResult { call, content, failed, .. }) => {
            let texts = content.iter().filter_map(|block| match block {
                Block::Text { text } => Some(text.as_str()),
                _ => None,
            });
            let text = texts.collect::<Vec<&str>>().join("\n");
            Some(AnswerItem::Result { id: *call, text, failed: *failed })
        }
        Part::Text { .. } | Part::Thinking { .. } | Part::Image(_) => None,
    }
}
