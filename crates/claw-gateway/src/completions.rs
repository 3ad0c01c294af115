//! Chat completions, as OpenAI's clients speak them: the model's name picks the agent.
//!
//! An agent keeps its sessions; such a client sends the whole conversation each time. Without the header
//! `x-clawsmith-session` a request begins a fresh session, and what stands before the last question is given to the agent
//! as what was said before. With it, the session goes on and only what is new is said.

use std::convert::Infallible;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use claw_core::image::Image;
use clawsmith::app::access::{CallerWish, Permission};
use clawsmith::app::{App, Followed, Follower};
use clawsmith::message::{Part, Turn};
use clawsmith::port::Owner;
use clawsmith::store::{
    ApprovalState, Circle, JobFilter, JobState, Role, RunEnd, RunEvent, SessionEventBody, Source,
    UsageFilter, Voice,
};
use clawsmith::{ApprovalId, Asking, Caller, JobId};
use futures_util::stream::unfold;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::Gateway;
use crate::error::ApiError;
use crate::guard::Who;

/// Names the session that goes on, and tells which one it was.
const SESSION: HeaderName = HeaderName::from_static("x-clawsmith-session");
const RUN: HeaderName = HeaderName::from_static("x-clawsmith-run");

/// How long nothing may be heard before it is looked whether anything will.
const LOOK: Duration = Duration::from_secs(2);

/// How many of the last messages are searched for an answer.
const LAST: usize = 50;

/// A request. What an agent decides by itself (temperature and the like) is taken and left out.
#[derive(Debug, Deserialize)]
pub(crate) struct Completion {
    model: String,
    messages: Vec<Said>,
    #[serde(default)]
    stream: bool,
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    tools: Vec<Value>,
    /// Only these tools, of those that the agent has.
    allowed_tools: Option<Vec<String>>,
    n: Option<u32>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Debug, Deserialize)]
struct Said {
    role: String,
    content: Option<Content>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

#[derive(Debug, Deserialize)]
struct ContentPart {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    image_url: Option<ImageUrl>,
}

#[derive(Debug, Deserialize)]
struct ImageUrl {
    url: String,
}

impl Said {
    /// The words, with a mark where an image is.
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

/// The agents, as models.
pub(crate) async fn models(State(gateway): State<Gateway>, who: Who) -> Result<Json<Value>, ApiError> {
    who.may(Permission::ReadAgents).map_err(ApiError::into_openai)?;
    let agents = gateway.app().of_tenant(&who.0.tenant).agents(&who.0.tenant).await;
    let agents = agents.map_err(|error| ApiError::from(error).into_openai())?;
    let mut names: Vec<String> = agents.iter().map(|agent| format!("agent:{}", agent.agent.id)).collect();
    if !names.iter().any(|name| name == "agent:default") {
        names.insert(0, "agent:default".to_owned());
    }
    let model = |id: &String| json!({ "id": id, "object": "model", "created": 0, "owned_by": "clawsmith" });
    Ok(Json(json!({ "object": "list", "data": names.iter().map(model).collect::<Vec<Value>>() })))
}

pub(crate) async fn create(
    State(gateway): State<Gateway>,
    who: Who,
    headers: HeaderMap,
    body: Result<Json<Completion>, JsonRejection>,
) -> Response {
    let answered = match body {
        Ok(Json(completion)) => answer(gateway, who, &headers, completion).await,
        Err(rejection) => Err(rejection.into()),
    };
    answered.unwrap_or_else(|error| error.into_openai().into_response())
}

async fn answer(
    gateway: Gateway,
    who: Who,
    headers: &HeaderMap,
    completion: Completion,
) -> Result<Response, ApiError> {
    who.may(Permission::WriteSessions)?;
    if !completion.tools.is_empty() {
        return Err(ApiError::new(
            StatusCode::BAD_REQUEST,
            "unsupported",
            "tools of the client are not taken: the agent has its own",
        )
        .hint("leave `tools` out; `allowed_tools` narrows the agent's"));
    }
    if completion.n.is_some_and(|n| n != 1) {
        return Err(ApiError::invalid("`n` can be 1 alone"));
    }
    let session = headers
        .get(&SESSION)
        .map(|session| session.to_str().map_err(|_| ApiError::invalid("the session's key is not text")));
    let session = session.transpose()?;
    let agent = completion.model.strip_prefix("agent:").unwrap_or(&completion.model);
    let agent = if agent == "clawsmith" { "default" } else { agent };
    let wish = CallerWish { agent: Some(agent), session };
    let mut caller = gateway.app().caller_of(&who.0, &wish).await?;
    caller.request_allow = completion.allowed_tools.as_ref().map(|allow| allow.clone().into());
    let parts = question(&completion.messages, session.is_some())?;
    gateway.check_open_runs(&who.0).await?;
    let owner = Owner { tenant: caller.tenant.clone(), session: caller.session.clone() };
    let follower = gateway.sessions().follow(owner, None).await?;
    let run = gateway.sessions().send(&caller, parts, Asking::Unwatched).await?;
    let answering = Answering::new(&gateway, (&caller, run), follower, &completion);
    let mut response = match completion.stream {
        true => streamed(answering, completion.stream_options.unwrap_or_default()),
        false => whole(answering).await?,
    };
    let told = [(SESSION, caller.session.to_string()), (RUN, run.to_string())];
    for (name, value) in told {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}

/// Composes the question to the agent: the text, and the images of the new messages.
fn question(messages: &[Said], goes_on: bool) -> Result<Vec<Part>, ApiError> {
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
struct Answering {
    id: String,
    created: u64,
    model: String,
    run: JobId,
    owner: Owner,
    app: App,
    follower: Follower,
    /// The message that is being said, and how much of it was told.
    saying: Option<(Source, String)>,
    told_any: bool,
    approval: Option<ApprovalId>,
    /// The run has begun: what is said from then on is its own.
    has_begun: bool,
    /// The run waits for something, or another has answered: nothing more is told.
    is_parked: bool,
    stop: StopIfDropped,
}

/// The next thing that is told of an answer.
enum Told {
    Words(String),
    End(&'static str),
    Failed(String),
}

impl Answering {
    fn new(
        gateway: &Gateway,
        (caller, run): (&Caller, JobId),
        follower: Follower,
        completion: &Completion,
    ) -> Self {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let app = gateway.app().of_tenant(&caller.tenant);
        let by = caller.user.as_ref().map_or_else(|| "the client".to_owned(), ToString::to_string);
        Self {
            id: format!("chatcmpl-{run}"),
            created,
            model: completion.model.clone(),
            run,
            owner: Owner { tenant: caller.tenant.clone(), session: caller.session.clone() },
            app: app.clone(),
            follower,
            saying: None,
            told_any: false,
            approval: None,
            has_begun: false,
            is_parked: false,
            stop: StopIfDropped { app, run, by, is_over: false, ending: gateway.ending().clone() },
        }
    }

    /// Waits for the next words, or the end.
    async fn next(&mut self) -> Told {
        if self.is_parked {
            return Told::End("stop");
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
                Followed::Piece(piece) if piece.voice == Voice::Text && self.has_begun => {
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
            SessionEventBody::Message { id, seq, role: Role::Assistant | Role::System, run }
                if run == self.run =>
            {
                let words = self.words(seq).await?;
                // What was missed of it while it was said.
                let source = Source::Message(id);
                let rest = match &self.saying {
                    Some((of, told)) if *of == source => words.strip_prefix(told.as_str())?.to_owned(),
                    _ => words,
                };
                self.piece(source, &rest)
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
                RunEvent::Ended { end: RunEnd::Limited } => Some(self.over(Told::End("length"))),
                RunEvent::Ended { .. } | RunEvent::Cancelled { .. } => Some(self.over(Told::End("stop"))),
                RunEvent::Reported { why } => Some(self.over(Told::Failed(why))),
                RunEvent::Parked { .. } => Some(self.parked()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Looks whether the run can still come to an end of its own: another run of the session may have taken its question,
    /// or wait for an approval before it.
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
            let words = self.words(last).await?;
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

    /// The run waits for an approval, and goes on whenever that is given: the client is told and need not wait.
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

    async fn words(&self, seq: u64) -> Option<String> {
        let Owner { tenant, session } = &self.owner;
        let found = self.app.store().messages(tenant, session, seq.saturating_sub(1), 1).await.ok()?;
        let message = found.into_iter().next()?;
        let parts: Vec<Part> = serde_json::from_value(message.new.content).ok()?;
        let words = Turn { role: message.new.role, parts }.words();
        Some(if message.new.role == Role::System { format!("[{words}]") } else { words })
    }

    /// Tokens that the run used, in OpenAI's words.
    async fn usage(&self) -> Value {
        let filter = UsageFilter { root: Some(self.run), ..UsageFilter::default() };
        let used = self.app.store().usage(&self.owner.tenant, &filter).await.unwrap_or_default().tokens;
        let (prompt, completion) = (used.input + used.cache_read + used.cache_write, used.output);
        json!({ "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion })
    }

    fn chunk(&self, delta: &Value, finish: Option<&str>) -> Value {
        json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model,
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish, "logprobs": null }],
        })
    }
}

/// The answer at one go.
async fn whole(mut answering: Answering) -> Result<Response, ApiError> {
    let mut text = String::new();
    let finish = loop {
        match answering.next().await {
            Told::Words(words) => text.push_str(&words),
            Told::End(finish) => break finish,
            Told::Failed(why) => {
                return Err(ApiError::new(StatusCode::BAD_GATEWAY, "run_failed", why));
            }
        }
    };
    let body = json!({
        "id": answering.id, "object": "chat.completion", "created": answering.created, "model": answering.model,
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": text, "refusal": null },
            "finish_reason": finish,
            "logprobs": null,
        }],
        "usage": answering.usage().await,
    });
    Ok(Json(body).into_response())
}

/// Where a stream stands.
enum Stage {
    Begin,
    Words,
    Usage,
    Done,
    Over,
}

/// The answer as it comes.
fn streamed(answering: Answering, options: StreamOptions) -> Response {
    let events = unfold((answering, Stage::Begin), move |(mut answering, stage)| async move {
        let data = |value: Value| Event::default().data(value.to_string());
        let (event, stage) = match stage {
            Stage::Begin => {
                (data(answering.chunk(&json!({ "role": "assistant", "content": "" }), None)), Stage::Words)
            }
            Stage::Words => match answering.next().await {
                Told::Words(words) => {
                    (data(answering.chunk(&json!({ "content": words }), None)), Stage::Words)
                }
                Told::End(finish) => {
                    let next = if options.include_usage { Stage::Usage } else { Stage::Done };
                    (data(answering.chunk(&json!({}), Some(finish))), next)
                }
                Told::Failed(why) => {
                    let error = json!({ "message": why, "type": "server_error", "param": null, "code": "run_failed" });
                    (data(json!({ "error": error })), Stage::Done)
                }
            },
            Stage::Usage => {
                let mut chunk = answering.chunk(&json!({}), None);
                chunk["choices"] = json!([]);
                chunk["usage"] = answering.usage().await;
                (data(chunk), Stage::Done)
            }
            Stage::Done => (Event::default().data("[DONE]"), Stage::Over),
            Stage::Over => return None,
        };
        Some((Ok::<Event, Infallible>(event), (answering, stage)))
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(messages: Value, goes_on: bool) -> Result<String, String> {
        let messages: Vec<Said> = serde_json::from_value(messages).unwrap();
        let parts = question(&messages, goes_on).map_err(|error| format!("{error:?}"))?;
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
        let parts = question(&messages, false).unwrap();
        assert!(matches!(&parts[..], [Part::Text { .. }, Part::Image(_)]), "{parts:?}");
        for url in ["https://evil.example/x.png", "data:image/png;base64,!", "file:///etc/passwd", ""] {
            assert!(said(image(url), false).unwrap_err().contains("nothing is fetched"), "{url}");
        }
        let audio = json!([{ "role": "user", "content": [{ "type": "input_audio" }] }]);
        assert!(said(audio, false).unwrap_err().contains("`input_audio` is not taken"));
    }
}
