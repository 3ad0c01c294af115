//! The display of a run: the events of a session, shown by the terminal or as lines of JSON, and its approvals.
//!
//! Text comes from the live stream, everything else from the session's log; text that the stream left out is
//! shown when the message is stored.

use std::collections::HashSet;
use std::time::Duration;

use claw_core::message::Part;
use claw_core::store::{
    ApprovalState, Delta, Outcome, Role, RunEnd, RunEvent, SessionEvent, SessionEventBody, Source, ToolEvent,
    Usage, Voice,
};
use claw_core::{ApprovalId, CallId, JobId, MessageId, SessionKey};
use claw_terminal::{
    CallResult, Out, RunDisplay, TICK, can_ask, complain, on_interrupt, tell, tell_change, took,
};
use clawsmith::app::question::{ASK_ELSEWHERE, is_unasked};
use clawsmith::app::shown_call::{SeenCalls, ShownResult};
use clawsmith::app::shown_session::{Answerer, ShownSession};
use clawsmith::app::{Error, Followed};
use serde::Deserialize as _;
use serde_json::json;

use crate::command::tools::approve;
use crate::exit_code::Failure;

/// The idle time after which the reason for waiting is shown.
const PATIENCE: Duration = Duration::from_secs(2);

/// Follows a session.
pub(super) struct View {
    session: Box<dyn ShownSession>,
    display: RunDisplay<MessageId, CallId>,
    /// The calls that messages of the session made.
    calls: SeenCalls,
    json: bool,
    /// Approvals that were put to a person or announced.
    asked: HashSet<ApprovalId>,
    /// True if the followed run has begun.
    begun: bool,
}

impl View {
    /// A view of a session; what happened before is not shown.
    pub(super) fn new(session: Box<dyn ShownSession>, json: bool) -> Self {
        Self {
            session,
            display: RunDisplay::new(json),
            calls: SeenCalls::default(),
            json,
            asked: HashSet::new(),
            begun: false,
        }
    }

    /// The session that is shown.
    pub(super) fn key(&self) -> &SessionKey {
        self.session.key()
    }

    /// Tokens and cost of the session.
    pub(super) async fn usage(&self) -> Result<Usage, Failure> {
        Ok(self.session.usage(None).await?)
    }

    /// Prints who will answer.
    pub(super) fn introduce(&self, out: &mut Out, answerer: &Answerer) -> Result<(), Failure> {
        let Answerer { provider, model, demo } = answerer;
        if out.json {
            let session = self.session.key();
            return Ok(out.json_line(
                &json!({ "type": "chat", "session": session, "provider": provider, "model": model, "demo": demo }),
            )?);
        }
        if *demo && provider == "demo" {
            tell("no model is set up: a demo plays a script instead. The tools that it calls are real.");
        }
        Ok(())
    }

    /// Shows events until this run is over; returns the exit code. Ctrl-C calls `stop`; with a note, a second one ends the
    /// program.
    pub(super) async fn follow(
        &mut self,
        out: &mut Out,
        run: JobId,
        note: Option<&str>,
        stop: impl AsyncFn() -> Result<(), Error>,
    ) -> Result<u8, Failure> {
        let stop = async || stop().await.unwrap_or_else(|error| complain("not stopped", error));
        self.display.begin(self.json);
        let ended = tokio::select! {
            ended = self.follow_to_end(out, run) => ended,
            never = on_interrupt(note, stop) => match never {},
        };
        self.display.end();
        ended
    }

    async fn follow_to_end(&mut self, out: &mut Out, run: JobId) -> Result<u8, Failure> {
        self.open_approvals().await;
        let mut quiet = Some(tokio::time::Instant::now() + PATIENCE);
        let mut tick = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                followed = self.session.next() => match followed? {
                    Followed::Piece(piece) => {
                        quiet = None;
                        self.say(out, &piece)?;
                    }
                    Followed::Lagged => {}
                    Followed::Event(event) => {
                        self.display.clear();
                        self.begun |= matches!(event.what, SessionEventBody::Run { run: of, .. } if of == run);
                        if let Some(code) = self.show(out, &event, run).await? {
                            self.begun = false;
                            return Ok(code);
                        }
                    }
                },
                () = until(quiet.filter(|_| !self.begun)) => {
                    quiet = None;
                    tell(self.session.waiting(run).await);
                }
                _ = tick.tick() => if self.begun {
                    self.display.tick(out)?;
                }
            }
        }
    }

    /// Takes the input typed before a question, to be put back.
    pub(super) fn take_typed(&mut self) -> String {
        self.display.take_typed()
    }

    /// Prints the cost of a run, for programs.
    pub(super) async fn tell_usage(&self, out: &mut Out, run: JobId) -> Result<(), Failure> {
        if !out.json {
            return Ok(());
        }
        let usage = self.session.usage(Some(run)).await?;
        Ok(out.json_line(&json!({ "type": "usage", "run": run, "usage": usage }))?)
    }

    /// Asks about the approvals that an earlier run of the session waits for.
    async fn open_approvals(&mut self) {
        let Ok(pending) = self.session.pending().await else { return };
        for approval in pending {
            self.approval(approval).await;
        }
    }

    /// Shows a piece of a streaming message or of a call's output.
    fn say(&mut self, out: &mut Out, delta: &Delta) -> Result<(), Failure> {
        let Delta { source, voice, offset, text } = delta;
        let message = match source {
            Source::Message(message) => *message,
            Source::Call(call) if out.json => {
                let line = json!({ "type": "output", "call": call, "offset": offset, "text": text });
                return Ok(out.json_line(&line)?);
            }
            Source::Call(call) => {
                self.display.print(*call, *offset, text);
                return Ok(());
            }
        };
        if !self.display.comes(message, text) || *voice == Voice::Arguments {
            return Ok(());
        }
        if out.json {
            let kind = if *voice == Voice::Text { "text" } else { "thinking" };
            let line = json!({ "type": kind, "message": message, "offset": offset, "text": text });
            return Ok(out.json_line(&line)?);
        }
        if *voice == Voice::Text {
            self.display.say(out, message, *offset, text)?;
        }
        Ok(())
    }

    /// Shows an event; returns the exit code if it ends the run.
    async fn show(&mut self, out: &mut Out, event: &SessionEvent, run: JobId) -> Result<Option<u8>, Failure> {
        match &event.what {
            SessionEventBody::Message { seq, .. } => self.message(out, *seq).await?,
            what if out.json => {
                let mut line = serde_json::to_value(what)?;
                line["at"] = json!(event.at);
                out.json_line(&line)?;
            }
            SessionEventBody::Tool { call, tool, state } => self.tool(*call, tool, state),
            SessionEventBody::Run { state: RunEvent::Resumed { .. }, .. } => {
                tell("resuming an unfinished run");
            }
            SessionEventBody::Run { state: RunEvent::Failed { why, .. }, .. } => {
                complain("failed", format_args!("{why}; the run is retried"));
            }
            SessionEventBody::Run { .. } | SessionEventBody::Approval { .. } => {}
        }
        if let SessionEventBody::Approval { approval, state: ApprovalState::Pending, .. } = event.what {
            self.approval(approval).await;
        }
        Ok(match &event.what {
            SessionEventBody::Run { run: of, state } if *of == run => match state {
                RunEvent::Ended { end: RunEnd::Stopped } | RunEvent::Cancelled { .. } => Some(130),
                RunEvent::Ended { end: RunEnd::Limited } => Some(4),
                RunEvent::Ended { end: RunEnd::Answered | RunEnd::Called } => Some(0),
                RunEvent::Reported { .. } => Some(1),
                _ => None,
            },
            _ => None,
        })
    }

    async fn message(&mut self, out: &mut Out, seq: u64) -> Result<(), Failure> {
        let Some(message) = self.session.message(seq).await? else { return Ok(()) };
        if out.json {
            // A model's calls are stored unscrubbed, since they are run that way.
            let mut message = serde_json::to_value(message)?;
            message["content"] = self.session.scrubbed_json(&message["content"]);
            return Ok(out.json_line(&json!({ "type": "message", "message": message }))?);
        }
        let parts = Vec::<Part>::deserialize(&message.new.content).unwrap_or_default();
        let words = parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let words: String = words.collect();
        match message.new.role {
            Role::Assistant => {
                let tokens = self.session.usage(Some(message.run)).await.ok().map(|usage| usage.tokens);
                let tokens = tokens.map(|tokens| tokens.input + tokens.output + tokens.cache_write);
                self.display.finish(out, message.new.id, &words, tokens)?;
                self.calls.learn(parts);
            }
            Role::System => complain("run", &words),
            Role::Tool => parts.iter().for_each(|part| self.result(part)),
            Role::User => {}
        }
        Ok(())
    }

    fn tool(&mut self, call: CallId, tool: &str, state: &ToolEvent) {
        let what = self.what(call, tool);
        match state {
            ToolEvent::Started => self.display.call_began(call, what),
            // How a command ended, its result says.
            ToolEvent::Finished { outcome: Outcome::Done, micros } => {
                self.display.call_succeeded(call, *micros);
            }
            ToolEvent::Finished { outcome, micros } => {
                self.display.call_failed(call, format_args!("{what} {outcome} ({})", took(*micros)));
            }
            ToolEvent::Refused { reason, setting, .. } => {
                self.display.call_failed(call, format_args!("{what} refused: {reason}"));
                if let Some(setting) = setting {
                    tell(format_args!("  to allow it: {setting}"));
                }
                if is_unasked(reason) {
                    tell(ASK_ELSEWHERE);
                }
            }
        }
    }

    /// Summarizes a call.
    fn what(&self, call: CallId, tool: &str) -> String {
        self.session.scrubbed(&self.calls.named(call, tool))
    }

    /// Removes secrets from lines: the arguments of a call are the model's own words.
    fn scrubbed(&self, lines: &[String]) -> Vec<String> {
        self.session.scrubbed(&lines.join("\n")).lines().map(str::to_owned).collect()
    }

    /// Shows the result of a call.
    fn result(&mut self, part: &Part) {
        let Part::Result(told) = part else { return };
        let ShownResult { is_good, note, printed, details, is_change } = self.calls.result(told);
        let (what, details) = (self.what(told.call, &told.tool), self.scrubbed(&details));
        self.display.result(told.call, CallResult { what, is_good, note, printed, details, is_change });
    }

    /// Asks the person at the terminal, or prints where the approval can be answered.
    async fn approval(&mut self, id: ApprovalId) {
        if !self.asked.insert(id) {
            return;
        }
        let question = match self.session.question(id).await {
            Ok(Some(question)) => question,
            Ok(None) => return,
            Err(error) => return complain(&format!("approval {id} cannot be answered here"), error),
        };
        if !can_ask() {
            return approve::announce(&question, &self.session.elsewhere(&question));
        }
        self.display.pause();
        if let Some(workspace) = self.session.workspace() {
            tell_change(&self.scrubbed(&self.calls.preview(question.call, workspace)));
        }
        if let Some(approval) = self.session.asked_for(&question).await {
            tokio::select! {
                () = approve::ask_person(&*approval, question) => {}
                // Nobody is left to make the call; that is said where the session is followed.
                () = self.session.deserted() => {}
            }
        }
        self.display.resume();
    }
}

async fn until(time: Option<tokio::time::Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
