//! The display of a run: text as it streams, calls with their results, approvals.
//!
//! Text comes from the live stream, everything else from the session's log; text that the stream left out is
//! shown when the message is stored.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use anstyle::Style;
use claw_core::message::{Part, Wanted};
use claw_core::store::{
    ApprovalState, Delta, Outcome, Role, RunEnd, RunEvent, SessionEvent, SessionEventBody, Source, ToolEvent,
    Usage, Voice,
};
use claw_core::{ApprovalId, CallId, JobId, MessageId, SessionKey};
use claw_terminal::{Out, Quiet, Speech, Spinner, TICK, complain, style, tell, tell_styled};
use clawsmith::app::Followed;
use clawsmith::app::shown_call::{self, Excerpt, head_and_tail, preview, summary};
use clawsmith::app::shown_session::{Answerer, ShownSession};
use clawsmith::app::words::{seconds, tokens, took};
use serde::Deserialize as _;
use serde_json::json;

use crate::command::tools::approve;
use crate::failure::Failure;

/// The idle time after which the reason for waiting is shown.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);
/// The number of lines shown of a long output, from its beginning and from its end.
const HEAD: usize = 12;
const TAIL: usize = 8;
/// The number of lines shown of a change.
const CHANGED: usize = 40;
/// The number of files named that a command changed.
const DETAILS: usize = 6;
/// About so many bytes are a token.
const TOKEN_BYTES: u64 = 4;

/// Follows a session.
pub(super) struct View {
    session: Box<dyn ShownSession>,
    /// The streaming message, and the bytes of it already shown.
    saying: Option<(MessageId, usize)>,
    calls: HashMap<CallId, Wanted>,
    /// Calls that run, in the order in which they began.
    running: Vec<RunningCall>,
    /// Calls that succeeded and whose result is still to come, with the microseconds each took.
    ended: HashMap<CallId, u64>,
    /// Lines of a call's output that were shown while it ran.
    live: HashMap<CallId, LiveOutput>,
    /// The beginning of the run, and the tokens of its answers so far.
    since: Instant,
    tokens: u64,
    /// Bytes of the answer that is coming.
    coming: u64,
    spinner: Spinner,
    /// Keeps input typed ahead from being echoed.
    quiet: Option<Quiet>,
    /// The text typed before a question.
    typed: String,
    json: bool,
    /// Approvals that were put to a person or announced.
    asked: HashSet<ApprovalId>,
    speech: Speech,
    /// True if the followed run has begun.
    begun: bool,
    /// The message that was shown last: pieces of it that come late are no news.
    finished: Option<MessageId>,
}

impl View {
    /// A view of a session; what happened before is not shown.
    pub(super) fn new(session: Box<dyn ShownSession>, json: bool) -> Self {
        Self {
            session,
            saying: None,
            calls: HashMap::new(),
            running: Vec::new(),
            ended: HashMap::new(),
            live: HashMap::new(),
            since: Instant::now(),
            tokens: 0,
            coming: 0,
            spinner: Spinner::new(json),
            quiet: None,
            typed: String::new(),
            json,
            asked: HashSet::new(),
            speech: Speech::default(),
            begun: false,
            finished: None,
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
            tell("no model is set up: this is a demo that plays a script. The tools it calls are real.");
        }
        Ok(())
    }

    /// Shows events until this run is over; returns the exit code.
    pub(super) async fn follow(&mut self, out: &mut Out, run: JobId) -> Result<u8, Failure> {
        (self.since, self.tokens, self.coming) = (Instant::now(), 0, 0);
        self.quiet = Quiet::begin().filter(|_| !self.json);
        let ended = self.follow_to_end(out, run).await;
        self.spinner.clear();
        self.running.clear();
        self.quiet = None;
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
                    Followed::Event(event) => {
                        self.spinner.clear();
                        self.begun |= matches!(event.what, SessionEventBody::Run { run: of, .. } if of == run);
                        if let Some(code) = self.show(out, &event, run).await? {
                            self.begun = false;
                            return Ok(code);
                        }
                    }
                },
                () = until(quiet.filter(|_| !self.begun)) => {
                    quiet = None;
                    tell("waiting for another run of this session to end");
                }
                _ = tick.tick() => if self.begun && self.speech.is_at_line_start() {
                    let what = self.waits_for();
                    self.spinner.tick(&what);
                }
            }
        }
    }

    /// Describes what the run waits for.
    fn waits_for(&self) -> String {
        match self.running.last() {
            Some(call) => {
                let lines = self.live.get(&call.id).map_or(0, |live| live.lines);
                let lines = if lines > HEAD { format!(" · {lines} lines") } else { String::new() };
                format!("{} · {}{lines} · Ctrl-C stops", call.what, seconds(call.since.elapsed()))
            }
            None => {
                let count = self.tokens + self.coming / TOKEN_BYTES;
                let count = if count > 0 { format!(" · {}", tokens(count)) } else { String::new() };
                format!("thinking · {}{count} · Ctrl-C stops", seconds(self.since.elapsed()))
            }
        }
    }

    /// Takes the input typed before a question, to be put back.
    pub(super) fn take_typed(&mut self) -> String {
        std::mem::take(&mut self.typed)
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
            Source::Message(message) => message,
            Source::Call(call) if out.json => {
                let line = json!({ "type": "output", "call": call, "offset": offset, "text": text });
                return Ok(out.json_line(&line)?);
            }
            Source::Call(call) => {
                self.print(*call, *offset, text);
                return Ok(());
            }
        };
        if self.finished == Some(*message) {
            return Ok(());
        }
        self.coming += text.len() as u64;
        if out.json {
            let kind = if *voice == Voice::Text { "text" } else { "thinking" };
            return Ok(
                out.json_line(&json!({ "type": kind, "message": message, "offset": offset, "text": text }))?
            );
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
            self.spinner.clear();
            self.speech.say(out, text)?;
            self.saying = Some((*message, shown + text.len()));
        }
        Ok(())
    }

    /// Shows the output of a running command, its first lines as they come.
    fn print(&mut self, call: CallId, offset: u64, text: &str) {
        let live = self.live.entry(call).or_default();
        if offset != live.bytes {
            return;
        }
        live.bytes += text.len() as u64;
        live.partial.push_str(text);
        while let Some(end) = live.partial.find('\n') {
            let line: String = live.partial.drain(..=end).collect();
            live.lines += 1;
            if live.lines <= HEAD {
                self.spinner.clear();
                live.shown += 1;
                tell_styled(style::QUIET, format_args!("  {}", line.trim_end()));
            }
        }
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
        let words: String = parts
            .iter()
            .filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        match message.new.role {
            Role::Assistant => {
                self.coming = 0;
                if let Ok(usage) = self.session.usage(Some(message.run)).await {
                    self.tokens = usage.tokens.input + usage.tokens.output + usage.tokens.cache_write;
                }
                self.finish(out, message.new.id, &words)?;
                for part in parts {
                    if let Part::Call(wanted) = part {
                        self.calls.insert(wanted.call, wanted);
                    }
                }
            }
            Role::System => complain("run", &words),
            Role::Tool => parts.iter().for_each(|part| self.result(part)),
            Role::User => {}
        }
        Ok(())
    }

    /// Shows the rest of a message that is now stored.
    fn finish(&mut self, out: &mut Out, message: MessageId, words: &str) -> Result<(), Failure> {
        self.finished = Some(message);
        let shown = match self.saying.take() {
            Some((saying, shown)) if saying == message => shown,
            _ => 0,
        };
        self.speech.say(out, words.get(shown..).unwrap_or_default())?;
        if !words.is_empty() && !words.ends_with('\n') {
            self.speech.say(out, "\n")?;
        }
        Ok(self.speech.finish(out)?)
    }

    fn tool(&mut self, call: CallId, tool: &str, state: &ToolEvent) {
        let what = self.what(call, tool);
        match state {
            ToolEvent::Started => {
                tell(format_args!("→ {what}"));
                self.running.push(RunningCall { id: call, what, since: Instant::now() });
            }
            ToolEvent::Finished { outcome, micros } => {
                self.running.retain(|running| running.id != call);
                // How a command ended, its result says.
                if *outcome == Outcome::Done {
                    self.ended.insert(call, *micros);
                } else {
                    tell(format_args!("✗ {what} {outcome} ({})", took(*micros)));
                }
            }
            ToolEvent::Refused { reason, setting, .. } => {
                self.running.retain(|running| running.id != call);
                tell(format_args!("✗ {what} refused: {reason}"));
                if let Some(setting) = setting {
                    tell(format_args!("  to allow it: {setting}"));
                }
                if approve::is_unasked(reason) {
                    tell(approve::NOBODY_HERE);
                }
            }
        }
    }

    /// Summarizes a call.
    fn what(&self, call: CallId, tool: &str) -> String {
        let about = self.calls.get(&call).map(|wanted| summary(tool, &wanted.args)).unwrap_or_default();
        format!("{tool} {}", self.session.scrubbed(&about)).trim_end().to_owned()
    }

    /// Removes secrets from lines: the arguments of a call are the model's own words.
    fn scrubbed(&self, lines: &[String]) -> Vec<String> {
        self.session.scrubbed(&lines.join("\n")).lines().map(str::to_owned).collect()
    }

    /// Shows the result of a call.
    fn result(&mut self, part: &Part) {
        let Part::Result(told) = part else { return };
        let Some(micros) = self.ended.remove(&told.call) else { return };
        let live = self.live.remove(&told.call).unwrap_or_default();
        let wanted = self.calls.get(&told.call);
        let shown = shown_call::result(told, wanted.map(|wanted| &wanted.args));
        for part in head_and_tail(&shown.printed, HEAD, TAIL, live.shown) {
            match part {
                Excerpt::Line(line) => tell_styled(style::QUIET, format_args!("  {line}")),
                Excerpt::Left(count) => tell_styled(style::QUIET, format_args!("  … {count} lines …")),
            }
        }
        let sign = if shown.is_good { "✓" } else { "✗" };
        let note = if shown.note.is_empty() { String::new() } else { format!(" ({})", shown.note) };
        tell(format_args!("{sign} {}{note} {}", self.what(told.call, &told.tool), took(micros)));
        let is_change = matches!(told.tool.as_str(), "edit" | "write_file");
        let most = if is_change { CHANGED } else { DETAILS };
        let details = self.scrubbed(&shown.details);
        for line in details.iter().take(most) {
            tell_styled(if is_change { changed(line) } else { style::QUIET }, format_args!("  {line}"));
        }
        if details.len() > most {
            tell_styled(style::QUIET, format_args!("  … {} more lines", details.len() - most));
        }
    }

    fn run(&self, state: &RunEvent) {
        match state {
            RunEvent::Resumed { .. } => tell("going on with a run that was not finished"),
            RunEvent::Failed { why, .. } => complain("failed", format_args!("{why}; it is tried again")),
            _ => {}
        }
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
        if !claw_terminal::can_ask() {
            return approve::announce(&question, &self.session.elsewhere(&question));
        }
        let quiet = self.quiet.take();
        if let Some(quiet) = &quiet {
            self.typed += &quiet.take_typed();
        }
        drop(quiet);
        let wanted = self.calls.get(&question.call).zip(self.session.workspace());
        let change = wanted.and_then(|(wanted, workspace)| preview(&wanted.tool, &wanted.args, workspace));
        for line in self.scrubbed(&change.unwrap_or_default()) {
            tell_styled(changed(&line), format_args!("  {line}"));
        }
        if let Some(approval) = self.session.asked_for(&question).await {
            tokio::select! {
                () = approve::ask_person(&*approval, question) => {}
                // Nobody is left to make the call; that is said where the session is followed.
                () = self.session.deserted() => {}
            }
        }
        self.quiet = Quiet::begin();
    }
}

async fn until(time: Option<tokio::time::Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// A call that runs.
struct RunningCall {
    id: CallId,
    what: String,
    since: Instant,
}

/// The output of a running command so far.
#[derive(Default)]
struct LiveOutput {
    bytes: u64,
    lines: usize,
    shown: usize,
    /// A line that has not ended.
    partial: String,
}

fn changed(line: &str) -> Style {
    match line.as_bytes().first() {
        Some(b'+') => style::ADDED,
        Some(b'-') => style::TAKEN,
        _ => style::QUIET,
    }
}
