//! What a person or a program is shown of a run: words as they come, calls as they are made and what they gave,
//! questions.
//!
//! Words come from the stream of what is being said, everything else from the conversation's log; what the stream
//! left out is shown when the message is stored.

use std::collections::{HashMap, HashSet};

use anstyle::Style;
use claw_agent::Deployment;
use claw_core::message::{Args, Part, Wanted, is_mark};
use claw_core::port::{Model, Owner};
use claw_core::store::{
    ApprovalState, Delta, Outcome, Role, RunEnd, RunEvent, SessionEvent, SessionEventBody, Source, ToolEvent,
    Voice,
};
use claw_core::tool::{Block, Caller};
use claw_core::{ApprovalId, CallId, JobId, MessageId};
use claw_registry::CallScrubber;
use clawsmith::app::{App, Followed, Follower, Sessions};
use serde::Deserialize as _;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::speech::Speech;
use crate::command::tools::approve;
use crate::failure::Failure;
use crate::output::{Out, complain, style, tell, tell_styled};

/// How long nothing happens before it is said why.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);
/// How many lines of a result are shown.
const LINES: usize = 24;
/// How much of a call's arguments is shown.
const SHOWN: usize = 100;

/// Follows a conversation.
pub(super) struct View {
    app: App,
    deployment: Deployment,
    owner: Owner,
    by: String,
    follower: Follower,
    /// How much was shown of the message that is being said.
    saying: Option<(MessageId, usize)>,
    calls: HashMap<CallId, Wanted>,
    /// Approvals that were put to a person or announced.
    asked: HashSet<ApprovalId>,
    speech: Speech,
    /// Whether the run that is followed has begun.
    begun: bool,
    /// Rings when nobody works on the conversation any more.
    deserted: CancellationToken,
}

impl View {
    /// Begins to listen; what happened before is not shown.
    pub(super) async fn new(sessions: &Sessions, app: &App, caller: &Caller) -> Result<Self, Failure> {
        let (deployment, deserted) = (sessions.deployment(), sessions.deserted().clone());
        let owner = Owner { tenant: caller.tenant.clone(), session: caller.session.clone() };
        let by = caller.user.as_ref().map_or_else(|| "cli".to_owned(), ToString::to_string);
        let follower = sessions.follow(owner.clone(), None).await?;
        Ok(Self {
            app: app.clone(),
            deployment: deployment.clone(),
            owner,
            by,
            follower,
            saying: None,
            calls: HashMap::new(),
            asked: HashSet::new(),
            speech: Speech::default(),
            begun: false,
            deserted,
        })
    }

    /// Says who will answer.
    pub(super) fn introduce(&self, out: &mut Out, model: &dyn Model) -> Result<(), Failure> {
        let card = model.card();
        if out.json {
            let session = &self.owner.session;
            let (provider, model, demo) = (&card.provider, &card.model, card.demo);
            return out.json_line(
                &json!({ "type": "chat", "session": session, "provider": provider, "model": model, "demo": demo }),
            );
        }
        if card.demo && card.provider == "demo" {
            tell("no model is set up: this is a demo that plays a script. The tools it calls are real.");
        }
        Ok(())
    }

    /// Shows what happens until this run is over; returns the exit code.
    pub(super) async fn follow(&mut self, out: &mut Out, run: JobId) -> Result<u8, Failure> {
        self.open_approvals().await;
        let mut quiet = Some(tokio::time::Instant::now() + PATIENCE);
        loop {
            tokio::select! {
                followed = self.follower.next() => match followed? {
                    Followed::Piece(piece) => {
                        quiet = None;
                        self.say(out, &piece)?;
                    }
                    Followed::Event(event) => {
                        self.begun |= matches!(event.what, SessionEventBody::Run { run: of, .. } if of == run);
                        if let Some(code) = self.show(out, &event, run).await? {
                            self.begun = false;
                            return Ok(code);
                        }
                    }
                },
                () = until(quiet.filter(|_| !self.begun)) => {
                    quiet = None;
                    tell("waiting for another run of this conversation to end");
                }
            }
        }
    }

    /// Asks about the approvals that an earlier run of the session waits for.
    async fn open_approvals(&mut self) {
        let Ok(pending) = self.app.pending_approvals().await else { return };
        for approval in pending {
            if approval.request.session == self.owner.session {
                self.approval(approval.id).await;
            }
        }
    }

    /// A piece of what is being said.
    fn say(&mut self, out: &mut Out, delta: &Delta) -> Result<(), Failure> {
        let Delta { source, voice, offset, text } = delta;
        let message = match source {
            Source::Message(message) => message,
            Source::Call(call) if out.json => {
                let line = json!({ "type": "output", "call": call, "offset": offset, "text": text });
                return out.json_line(&line);
            }
            Source::Call(_) => return Ok(()),
        };
        if out.json {
            let kind = if *voice == Voice::Text { "text" } else { "thinking" };
            return out
                .json_line(&json!({ "type": kind, "message": message, "offset": offset, "text": text }));
        }
        if *voice != Voice::Text {
            return Ok(());
        }
        let shown = match self.saying {
            Some((saying, shown)) if saying == *message => shown,
            // An answer that failed half-way begins anew.
            Some(_) => {
                self.speech.say(out, "\n")?;
                0
            }
            None => 0,
        };
        if usize::try_from(*offset).ok() == Some(shown) {
            self.speech.say(out, text)?;
            self.saying = Some((*message, shown + text.len()));
        }
        Ok(())
    }

    /// Shows an event; gives the exit code where the run is over with it.
    async fn show(&mut self, out: &mut Out, event: &SessionEvent, run: JobId) -> Result<Option<u8>, Failure> {
        match &event.what {
            SessionEventBody::Message { seq, .. } => self.message(out, *seq).await?,
            what if out.json => {
                let mut line = serde_json::to_value(what)?;
                line["at"] = json!(event.at);
                out.json_line(&line)?;
            }
            SessionEventBody::Tool { call, tool, state } => self.tool(*call, tool, state),
            SessionEventBody::Run { state, .. } => self.run(state),
            SessionEventBody::Approval { .. } => {}
        }
        if let SessionEventBody::Approval { approval, state: ApprovalState::Pending, .. } = event.what {
            self.approval(approval).await;
        }
        Ok(match &event.what {
            SessionEventBody::Run { run: of, state } if *of == run => match state {
                RunEvent::Ended { end: RunEnd::Stopped } | RunEvent::Cancelled { .. } => Some(130),
                RunEvent::Ended { end: RunEnd::Limited } => Some(4),
                RunEvent::Ended { end: RunEnd::Answered } => Some(0),
                RunEvent::Reported { .. } => Some(1),
                _ => None,
            },
            _ => None,
        })
    }

    async fn message(&mut self, out: &mut Out, seq: u64) -> Result<(), Failure> {
        let Owner { tenant, session } = &self.owner;
        let stored = self.deployment.store.messages(tenant, session, seq.saturating_sub(1), 1).await;
        let stored =
            stored.map_err(|error| Failure::failed("the conversation cannot be read").because(error))?;
        let Some(message) = stored.first() else { return Ok(()) };
        if out.json {
            // What a model wants to call is kept as it is said, since it is run so.
            let scrubber = self.deployment.executor.scrubbers().for_tenant(&self.owner.tenant);
            let mut message = serde_json::to_value(message)?;
            message["content"] = scrubber.json(&message["content"]);
            return out.json_line(&json!({ "type": "message", "message": message }));
        }
        let parts = Vec::<Part>::deserialize(&message.new.content).unwrap_or_default();
        let words: String = parts
            .iter()
            .filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        match message.new.role {
            Role::Assistant => {
                self.finish(out, message.new.id, &words)?;
                for part in parts {
                    if let Part::Call(wanted) = part {
                        self.calls.insert(wanted.call, wanted);
                    }
                }
            }
            Role::System => complain("run", &words),
            Role::Tool => parts.iter().for_each(result),
            Role::User => {}
        }
        Ok(())
    }

    /// A message is stored: what was not shown of it is shown now.
    fn finish(&mut self, out: &mut Out, message: MessageId, words: &str) -> Result<(), Failure> {
        // Pieces that wait are of this message, or of one before.
        for piece in self.follower.pieces() {
            self.say(out, &piece)?;
        }
        let shown = match self.saying.take() {
            Some((saying, shown)) if saying == message => shown,
            _ => 0,
        };
        self.speech.say(out, words.get(shown..).unwrap_or_default())?;
        if words.is_empty() || words.ends_with('\n') { Ok(()) } else { self.speech.say(out, "\n") }
    }

    fn tool(&self, call: CallId, tool: &str, state: &ToolEvent) {
        let scrubber = self.deployment.executor.scrubbers().for_tenant(&self.owner.tenant);
        let args = self.calls.get(&call).map(|wanted| shown(&wanted.args, &scrubber)).unwrap_or_default();
        match state {
            ToolEvent::Started => tell(format_args!("→ {tool} {args}")),
            ToolEvent::Finished { outcome, micros } => {
                let took = *micros as f64 / 1000.0;
                match outcome {
                    Outcome::Done => tell(format_args!("✓ {tool} ({took:.1} ms)")),
                    outcome => tell(format_args!("✗ {tool} {outcome} ({took:.1} ms)")),
                }
            }
            ToolEvent::Refused { reason, .. } => {
                tell(format_args!("✗ {tool} {args} refused: {reason}"));
                if approve::is_unasked(reason) {
                    tell(approve::NOBODY_HERE);
                }
            }
        }
    }

    fn run(&self, state: &RunEvent) {
        match state {
            RunEvent::Resumed { .. } => tell("going on with a run that was not finished"),
            RunEvent::Failed { why, .. } => complain("failed", format_args!("{why}; it is tried again")),
            _ => {}
        }
    }

    /// Asks the person at the terminal, or says where the question can be answered.
    async fn approval(&mut self, id: ApprovalId) {
        if !self.asked.insert(id) {
            return;
        }
        let Ok(Some(approval)) = self.deployment.store.approval(&self.owner.tenant, id).await else { return };
        if approval.state != ApprovalState::Pending {
            return;
        }
        match approve::can_ask() {
            true => tokio::select! {
                () = approve::put(&self.app, approval, self.by.clone()) => {}
                // Nobody is left to do what is asked about; that is said where it is followed.
                () = self.deserted.cancelled() => {}
            },
            false => approve::announce(&approval),
        }
    }
}

async fn until(time: Option<tokio::time::Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// What a tool gave, as far as a person wants to see it at once: how a file changed, what a command printed.
fn result(part: &Part) {
    let Part::Result(told) = part else { return };
    let lines = told.content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.lines().filter(|line| !is_mark(line))),
        _ => None,
    });
    let lines: Vec<&str> = lines.flatten().collect();
    let (lines, style): (Vec<&str>, fn(&str) -> Style) = match told.tool.as_str() {
        _ if told.failed => return,
        "edit" | "write_file" => {
            (lines.into_iter().skip_while(|line| !line.starts_with("--- ")).collect(), changed)
        }
        "exec" | "process" | "credentialed_exec" => (lines, |_| style::QUIET),
        _ => return,
    };
    for line in lines.iter().take(LINES) {
        tell_styled(style(line), format_args!("  {line}"));
    }
    if lines.len() > LINES {
        tell_styled(style::QUIET, format_args!("  … {} more lines", lines.len() - LINES));
    }
}

fn changed(line: &str) -> Style {
    match line.as_bytes().first() {
        Some(b'+') => style::ADDED,
        Some(b'-') => style::TAKEN,
        _ => style::QUIET,
    }
}

fn shown(args: &Args, scrubber: &CallScrubber) -> String {
    let text = scrubber.said(&match args {
        Args::Json(args) => args.to_string(),
        Args::Broken { text, .. } => text.clone(),
    });
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
