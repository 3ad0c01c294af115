//! A question to an agent in OpenAI's form, and the run that answers it, streamed as it comes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine as _;
use claw_core::image::Image;
use clawsmith::app::access::CallerWish;
use clawsmith::app::{App, Followed, Follower};
use clawsmith::message::{self, Args, Part, Turn};
use clawsmith::port::Owner;
use clawsmith::store::{
    ApprovalState, Circle, JobFilter, JobState, Role, RunEnd, RunEvent, SessionEventBody, Source, Tokens,
    UsageFilter, Voice,
};
use clawsmith::{ApprovalId, Asking, Block, CallId, CallScrubber, Caller, JobId};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::api::Visit;
use crate::error::ApiError;

/// The header that names the session to continue, and reports the session used.
pub(crate) const SESSION: HeaderName = HeaderName::from_static("x-clawsmith-session");
const RUN: HeaderName = HeaderName::from_static("x-clawsmith-run");

/// The silence after which it is checked whether the run is still alive.
const LOOK: Duration = Duration::from_secs(2);

/// The number of last messages searched for an answer.
const LAST: usize = 50;

/// A question to an agent.
pub(crate) struct Question<'a> {
    /// The model's name, which picks the agent.
    pub(crate) model: &'a str,
    /// The session to continue; `None` begins a new one.
    pub(crate) session: Option<String>,
    /// The only tools to offer, of those that the agent has.
    pub(crate) allowed_tools: Option<&'a [String]>,
    /// The messages.
    pub(crate) messages: &'a [Said],
}

/// The session that the request's header names.
pub(crate) fn session_in(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(session) = headers.get(&SESSION) else { return Ok(None) };
    let session = session.to_str().map_err(|_| ApiError::invalid("the session's key is not text"))?;
    Ok(Some(session.to_owned()))
}

/// Asks an agent.
pub(crate) async fn ask(visit: &Visit, question: Question<'_>) -> Result<Answering, ApiError> {
    let agent = question.model.strip_prefix("agent:").unwrap_or(question.model);
    let agent = if agent == "clawsmith" { "default" } else { agent };
    let wish = CallerWish { agent: Some(agent), session: question.session.as_deref() };
    let mut caller = visit.gateway.app().caller_of(visit.visitor(), &wish).await?;
    caller.request_allow = question.allowed_tools.map(|allow| allow.to_vec().into());
    let parts = parts(question.messages, question.session.is_some())?;
    visit.gateway.check_open_runs(visit.visitor()).await?;
    let owner = Owner { tenant: caller.tenant.clone(), session: caller.session.clone() };
    let follower = visit.sessions().follow(owner, None).await?;
    let run = visit.sessions().send(&caller, parts, Asking::Unwatched).await?;
    Ok(Answering::new(visit, (&caller, run), follower, question.model))
}

/// A message of a client.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Said {
    /// `system`, `developer`, `user` or `assistant`.
    pub(crate) role: String,
    pub(crate) content: Option<Content>,
}

/// The content of a message: a text, or texts and images.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

/// A text or an image.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ContentPart {
    /// `text` or `image_url`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) text: Option<String>,
    pub(crate) image_url: Option<ImageUrl>,
}

/// An image.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ImageUrl {
    /// A data URL, such as `data:image/png;base64,...`.
    pub(crate) url: String,
}

impl Said {
    /// Returns the text, with a mark for each image.
    fn text(&self) -> Result<String, ApiError> {
        match &self.content {
            None => Ok(String::new()),
            Some(Content::Text(text)) => Ok(text.clone()),
            Some(Content::Parts(parts)) => {
                let mut text = String::new();
                for part in parts {
                    match (part.kind.as_str(), &part.text) {
                        ("text", Some(words)) => text.push_str(words),
                        ("image_url", _) => text.push_str("[an image]"),
                        (kind, _) => {
                            let what = format!(
                                "content of the type `{kind}` is not taken here; send text or images"
                            );
                            return Err(ApiError::invalid(what));
                        }
                    }
                }
                Ok(text)
            }
        }
    }

    /// The images.
    fn images(&self) -> Result<Vec<Part>, ApiError> {
        let Some(Content::Parts(parts)) = &self.content else { return Ok(Vec::new()) };
        let urls = parts.iter().filter(|part| part.kind == "image_url");
        urls.map(|part| image(part.image_url.as_ref().map_or("", |image| image.url.as_str()))).collect()
    }
}

/// The image in a data URL. Nothing is fetched: a URL could lead anywhere.
fn image(url: &str) -> Result<Part, ApiError> {
    let unreadable = || {
        ApiError::invalid("an image must be a data URL such as `data:image/png;base64,...`")
            .hint("send the image itself: nothing is fetched")
    };
    let (mime, data) =
        url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")).ok_or_else(unreadable)?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(data).map_err(|_| unreadable())?;
    Ok(Part::Image(Image::new(mime, bytes)))
}

/// Composes the question to the agent: the text, and the images of the new messages.
fn parts(messages: &[Said], goes_on: bool) -> Result<Vec<Part>, ApiError> {
    let last = messages.iter().rposition(|said| said.role == "assistant").map_or(0, |last| last + 1);
    let (before, new) = messages.split_at(last);
    let mut text = String::new();
    for said in messages.iter().filter(|said| matches!(said.role.as_str(), "system" | "developer")) {
        text.push_str(&format!("[instructions of the client]\n{}\n\n", said.text()?));
    }
    if !goes_on && !before.is_empty() {
        text.push_str("[what was said before]\n");
        for said in before.iter().filter(|said| matches!(said.role.as_str(), "user" | "assistant")) {
            text.push_str(&format!("{}: {}\n", said.role, said.text()?));
        }
        text.push_str("[the question]\n");
    }
    let (mut asked, mut images) = (String::new(), Vec::new());
    for said in new {
        match said.role.as_str() {
            "user" => {
                images.extend(said.images()?);
                asked.push_str(&said.text()?);
                asked.push('\n');
            }
            "system" | "developer" => {}
            role => return Err(ApiError::invalid(format!("`{role}` is no role that can ask; use `user`"))),
        }
    }
    if asked.trim().is_empty() {
        return Err(ApiError::invalid(
            "there is no question: the last message must be a `user`'s, with text",
        ));
    }
    text.push_str(asked.trim_end());
    images.insert(0, Part::text(text));
    Ok(images)
}

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
    /// The streaming message, and the text already sent.
    saying: Option<(Source, String)>,
    /// The message already sent completely: later pieces of it are ignored.
    whole: Option<Source>,
    told_any: bool,
    /// Items that wait for their turn, in reverse order.
    waiting: Vec<Told>,
    approval: Option<ApprovalId>,
    /// True if the run has begun: messages from then on are its own.
    has_begun: bool,
    /// True if the run is parked, or another has answered: nothing more is sent.
    is_parked: bool,
    stop: StopIfDropped,
}

/// The next item of an answer.
pub(crate) enum Told {
    /// Text of the agent.
    Words(String),
    /// The agent calls a tool of its own, with these arguments.
    Call { id: CallId, tool: String, args: String },
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
}

impl Answering {
    fn new(visit: &Visit, (caller, run): (&Caller, JobId), follower: Follower, model: &str) -> Self {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let app = visit.gateway.app().of_tenant(&caller.tenant);
        let by = caller.user.as_ref().map_or_else(|| "the client".to_owned(), ToString::to_string);
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
            has_begun: false,
            is_parked: false,
            stop: StopIfDropped { app, run, by, is_over: false, ending },
        }
    }

    /// Adds the session and the run to the headers of an answer.
    pub(crate) fn head(&self) -> [(HeaderName, HeaderValue); 2] {
        let value = |text: String| HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""));
        [(SESSION, value(self.owner.session.to_string())), (RUN, value(self.run.to_string()))]
    }

    /// Waits for the next item.
    pub(crate) async fn next(&mut self) -> Told {
        if let Some(told) = self.waiting.pop() {
            return told;
        }
        if self.is_parked {
            return Told::End(Ended::Stop);
        }
        loop {
            let followed = match timeout(LOOK, self.follower.next()).await {
                Ok(Ok(followed)) => followed,
                Ok(Err(error)) => return self.over(Told::Failed(error.message().to_owned())),
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
                    self.piece(piece.source, &piece.text)
                }
                Followed::Piece(_) => None,
                Followed::Event(event) => self.event(event.what).await,
            };
            if let Some(told) = told {
                return told;
            }
        }
    }

    fn over(&mut self, told: Told) -> Told {
        self.stop.is_over = true;
        told
    }

    fn piece(&mut self, source: Source, text: &str) -> Option<Told> {
        let is_new = self.saying.as_ref().is_none_or(|(of, _)| *of != source);
        let gap = if is_new && self.told_any { "\n\n" } else { "" };
        if is_new {
            self.saying = Some((source, String::new()));
        }
        if let Some((_, told)) = &mut self.saying {
            told.push_str(text);
        }
        self.told_any |= !text.is_empty();
        (!text.is_empty()).then(|| Told::Words(format!("{gap}{text}")))
    }

    async fn event(&mut self, what: SessionEventBody) -> Option<Told> {
        match what {
            SessionEventBody::Message { id, seq, role, run } if run == self.run && role != Role::User => {
                let turn = self.turn(seq).await?;
                self.waiting = turn.parts.iter().rev().filter_map(call_of).collect();
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
                RunEvent::Ended { end: RunEnd::Limited } => Some(self.over(Told::End(Ended::Limit))),
                RunEvent::Ended { .. } | RunEvent::Cancelled { .. } => {
                    Some(self.over(Told::End(Ended::Stop)))
                }
                RunEvent::Reported { why } => Some(self.over(Told::Failed(why))),
                RunEvent::Parked { .. } => Some(self.parked()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Checks whether the run can still end by itself: another run of the session may have taken its
    /// question, or wait for an approval before it.
    async fn look(&mut self) -> Option<Told> {
        if self.has_begun {
            return None;
        }
        let Owner { tenant, session } = &self.owner;
        let job = self.app.store().job(tenant, self.run).await.ok()??;
        if job.state.is_over() {
            let circle = Circle::Session(session.clone());
            let last =
                self.app.store().said_in((tenant, &circle), session, u64::MAX >> 1, LAST).await.ok()??;
            let last = last.iter().rev().find(|message| message.new.role == Role::Assistant)?.seq;
            let words = words_of(&self.turn(last).await?);
            self.is_parked = true;
            return Some(self.over(Told::Words(words)));
        }
        let states = vec![JobState::Parked];
        let filter = JobFilter { session: Some(session.clone()), states, limit: 1, ..JobFilter::default() };
        let parked = self.app.runs(&filter).await.ok()?;
        if parked.is_empty() || job.state != JobState::Pending {
            return None;
        }
        self.is_parked = true;
        let waits =
            format!("[an earlier run of session `{session}` waits for an approval; this one comes after it]");
        Some(self.over(Told::Words(waits)))
    }

    /// Ends the stream of a run that waits for an approval, and resumes whenever that is given: the client is
    /// told and need not wait.
    fn parked(&mut self) -> Told {
        self.stop.is_over = true;
        let approval =
            self.approval.map_or_else(|| "an approval".to_owned(), |id| format!("approval `{id}`"));
        let gap = if self.told_any { "\n\n" } else { "" };
        self.is_parked = true;
        Told::Words(format!(
            "{gap}[waits for {approval}; answer it, then go on in session `{}`]",
            self.owner.session
        ))
    }

    /// Returns the rest of a message that was not streamed.
    fn rest(&mut self, source: Source, turn: &Turn) -> Option<Told> {
        let words = words_of(turn);
        let rest = match &self.saying {
            Some((of, told)) if *of == source => {
                words.strip_prefix(told.as_str()).unwrap_or_default().to_owned()
            }
            _ => words,
        };
        let told = self.piece(source, &rest);
        self.whole = self.saying.as_ref().map(|(of, _)| *of);
        told
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
pub(crate) fn call_of(part: &Part) -> Option<Told> {
    match part {
        Part::Call(wanted) => {
            let args = match &wanted.args {
                Args::Json(args) => args.to_string(),
                Args::Broken { text, .. } => text.clone(),
            };
            Some(Told::Call { id: wanted.call, tool: wanted.tool.clone(), args })
        }
        Part::Result(message::Told { call, content, failed, .. }) => {
            let texts = content.iter().filter_map(|block| match block {
                Block::Text { text } => Some(text.as_str()),
                _ => None,
            });
            let text = texts.collect::<Vec<&str>>().join("\n");
            Some(Told::Result { id: *call, text, failed: *failed })
        }
        Part::Text { .. } | Part::Thinking { .. } | Part::Image(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(messages: Value, goes_on: bool) -> Result<String, String> {
        let messages: Vec<Said> = serde_json::from_value(messages).unwrap();
        let parts = parts(&messages, goes_on).map_err(|error| format!("{error:?}"))?;
        Ok(Turn { role: Role::User, parts }.words())
    }

    #[test]
    fn a_conversation_becomes_a_question() {
        let messages = json!([
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": "one" },
            { "role": "assistant", "content": "two" },
            { "role": "user", "content": [{ "type": "text", "text": "three" }] },
        ]);
        let fresh = said(messages.clone(), false).unwrap();
        assert_eq!(
            fresh,
            "[instructions of the client]\nBe brief.\n\n[what was said before]\nuser: one\nassistant: two\n\
             [the question]\nthree"
        );
        assert_eq!(said(messages, true).unwrap(), "[instructions of the client]\nBe brief.\n\nthree");
        assert_eq!(said(json!([{ "role": "user", "content": "hi" }]), false).unwrap(), "hi");
        for none in [
            json!([]),
            json!([{ "role": "user", "content": " " }]),
            json!([{ "role": "assistant", "content": "x" }]),
        ] {
            assert!(said(none, false).unwrap_err().contains("there is no question"));
        }
        let image = |url: &str| {
            json!([{ "role": "user", "content": [
            { "type": "text", "text": "what is this? " },
            { "type": "image_url", "image_url": { "url": url } },
        ] }])
        };
        let messages: Vec<Said> =
            serde_json::from_value(image("data:image/png;base64,iVBORw0KGgo=")).unwrap();
        let parts = parts(&messages, false).unwrap();
        assert!(matches!(&parts[..], [Part::Text { .. }, Part::Image(_)]), "{parts:?}");
        for url in ["https://evil.example/x.png", "data:image/png;base64,!", "file:///etc/passwd", ""] {
            assert!(said(image(url), false).unwrap_err().contains("nothing is fetched"), "{url}");
        }
        let audio = json!([{ "role": "user", "content": [{ "type": "input_audio" }] }]);
        assert!(said(audio, false).unwrap_err().contains("`input_audio` is not taken"));
    }
}
