//! A question to an agent in OpenAI's form: messages, images, tools of the client and the results of their calls.

use axum::http::HeaderMap;
use base64::Engine as _;
use claw_core::image::Image;
use clawsmith::app::access::CallerWish;
use clawsmith::app::{ClientMessage, ClientTools};
use clawsmith::message::Part;
use clawsmith::port::Owner;
use clawsmith::{CallId, JobId};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::answering::{Answering, SESSION};
use crate::api::Visit;
use crate::client_tools::{self, ToolCall};
use crate::error::ApiError;

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
    /// The tools that the client makes itself.
    pub(crate) tools: ClientTools,
}

/// The session that the request's header names.
pub(crate) fn session_in(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(session) = headers.get(&SESSION) else { return Ok(None) };
    let session = session.to_str().map_err(|_| ApiError::invalid("the session's key is not text"))?;
    Ok(Some(session.to_owned()))
}

/// Asks an agent. Results of calls continue the session of the run that made the calls.
pub(crate) async fn ask(visit: &Visit, question: Question<'_>) -> Result<Answering, ApiError> {
    let app = visit.app();
    let aliases = &app.setup().config().gateway.aliases;
    let named = aliases.get(question.model).map_or(question.model, String::as_str);
    let agent = named.strip_prefix("agent:").unwrap_or(named);
    let agent = if agent == "clawsmith" { "default" } else { agent };
    let results = results(question.messages)?;
    let session = match &results {
        Some((run, _)) => Some(session_of(visit, *run, question.session).await?),
        None => question.session,
    };
    let wish = CallerWish { agent: Some(agent), session: session.as_deref() };
    let mut caller = visit.gateway.app().caller_of(visit.visitor(), &wish).await?;
    caller.request_allow = question.allowed_tools.map(|allow| allow.to_vec().into());
    let parts = parts(question.messages, session.is_some(), results.is_some())?;
    let _starting = visit.gateway.check_open_runs(visit.visitor()).await?;
    let owner = Owner { tenant: caller.tenant.clone(), session: caller.session.clone() };
    let follower = visit.sessions().follow(owner, None).await?;
    let names = question.tools.tools.iter().map(|tool| tool.name.to_string()).collect();
    let message = ClientMessage { parts, tools: question.tools, results };
    let run = visit.sessions().send_from_client(&caller, message).await?;
    Ok(Answering::new(visit, &caller, run, follower, question.model).with_client_tools(names))
}

/// The session of the run whose calls the client made; `named` is the one that the request names.
async fn session_of(visit: &Visit, run: JobId, named: Option<String>) -> Result<String, ApiError> {
    let unknown = || ApiError::invalid(format!("you have no run `{run}` whose calls wait for results"));
    let job = crate::sessions::own_run(visit, run).await.map_err(|_| unknown())?;
    let session = job.new.session.ok_or_else(unknown)?.to_string();
    match named {
        Some(named) if named != session => Err(ApiError::invalid(format!(
            "the results belong to calls of session `{session}`, not `{named}`"
        ))),
        _ => Ok(session),
    }
}

/// A run, and the texts that a client sends as the results of its calls.
type ClientResults = (JobId, Vec<(CallId, String)>);

/// The results that the messages after the last answer bring.
fn results(messages: &[Said]) -> Result<Option<ClientResults>, ApiError> {
    let mut found: Option<ClientResults> = None;
    for said in new(messages).iter().filter(|said| said.role == "tool") {
        let id = said.tool_call_id.as_deref().unwrap_or_default();
        let (run, call) = client_tools::read_id(id).ok_or_else(|| {
            let shown: String = id.chars().take(100).collect();
            ApiError::invalid(format!("no call has the id `{shown}`"))
                .hint("a `tool` message must name a call of the last answer in its `tool_call_id`")
        })?;
        if !said.images()?.is_empty() {
            return Err(ApiError::invalid("a result must be text"));
        }
        let result = (call, said.text()?);
        match &mut found {
            None => found = Some((run, vec![result])),
            Some((of, results)) if *of == run => results.push(result),
            Some(_) => return Err(ApiError::invalid("the results belong to calls of different answers")),
        }
    }
    Ok(found)
}

/// The messages after the last answer.
fn new(messages: &[Said]) -> &[Said] {
    let last = messages.iter().rposition(|said| said.role == "assistant").map_or(0, |last| last + 1);
    messages.get(last..).unwrap_or_default()
}

/// A message of a client.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct Said {
    /// `system`, `developer`, `user`, `assistant` or `tool`.
    pub(crate) role: String,
    pub(crate) content: Option<Content>,
    /// The calls of an answer that were handed to the client.
    pub(crate) tool_calls: Option<Vec<ToolCall>>,
    /// The call that a `tool` message is the result of.
    pub(crate) tool_call_id: Option<String>,
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
                            let what =
                                format!("content of the type `{kind}` is not supported; send text or images");
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
            .hint("send the image itself: the gateway fetches no URLs")
    };
    let (mime, data) =
        url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")).ok_or_else(unreadable)?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(data).map_err(|_| unreadable())?;
    Ok(Part::Image(Image::new(mime, bytes)))
}

/// Composes the question to the agent: the text, and the images of the new messages. Empty if results alone are new: the agent
/// has the rest.
fn parts(messages: &[Said], goes_on: bool, has_results: bool) -> Result<Vec<Part>, ApiError> {
    let new = new(messages);
    let before = messages.get(..messages.len() - new.len()).unwrap_or_default();
    let (mut asked, mut images) = (String::new(), Vec::new());
    for said in new {
        match said.role.as_str() {
            "user" => {
                images.extend(said.images()?);
                asked.push_str(&said.text()?);
                asked.push('\n');
            }
            "system" | "developer" | "tool" => {}
            role => {
                return Err(ApiError::invalid(format!(
                    "messages of the role `{role}` are not supported; use `user`"
                )));
            }
        }
    }
    if asked.trim().is_empty() {
        return match has_results && images.is_empty() {
            true => Ok(Vec::new()),
            false => Err(ApiError::invalid("the last message must have the role `user` and text")),
        };
    }
    let mut text = String::new();
    for said in messages.iter().filter(|said| matches!(said.role.as_str(), "system" | "developer")) {
        text.push_str(&format!("[instructions of the client]\n{}\n\n", said.text()?));
    }
    if !goes_on && !before.is_empty() {
        text.push_str("[earlier messages]\n");
        for said in before.iter().filter(|said| !matches!(said.role.as_str(), "system" | "developer")) {
            earlier(said, &mut text)?;
        }
        text.push_str("[the question]\n");
    }
    text.push_str(asked.trim_end());
    images.insert(0, Part::text(text));
    Ok(images)
}

/// Adds a message of before to the text.
fn earlier(said: &Said, text: &mut String) -> Result<(), ApiError> {
    let words = said.text()?;
    if !words.is_empty() {
        text.push_str(&format!("{}: {words}\n", said.role));
    }
    for call in said.tool_calls.iter().flatten() {
        text.push_str(&format!(
            "{} called `{}`: {}\n",
            said.role, call.function.name, call.function.arguments
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clawsmith::message::Turn;
    use clawsmith::store::Role;
    use serde_json::{Value, json};

    use super::*;

    fn said(messages: Value, goes_on: bool) -> Result<String, String> {
        let messages: Vec<Said> = serde_json::from_value(messages).unwrap();
        let parts = parts(&messages, goes_on, false).map_err(|error| format!("{error:?}"))?;
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
            "[instructions of the client]\nBe brief.\n\n[earlier messages]\nuser: one\nassistant: two\n\
             [the question]\nthree"
        );
        assert_eq!(said(messages, true).unwrap(), "[instructions of the client]\nBe brief.\n\nthree");
        assert_eq!(said(json!([{ "role": "user", "content": "hi" }]), false).unwrap(), "hi");
        for none in [
            json!([]),
            json!([{ "role": "user", "content": " " }]),
            json!([{ "role": "assistant", "content": "x" }]),
        ] {
            assert!(said(none, false).unwrap_err().contains("must have the role `user`"));
        }
        let image = |url: &str| {
            json!([{ "role": "user", "content": [
            { "type": "text", "text": "what is this? " },
            { "type": "image_url", "image_url": { "url": url } },
        ] }])
        };
        let messages: Vec<Said> =
            serde_json::from_value(image("data:image/png;base64,iVBORw0KGgo=")).unwrap();
        let parts = parts(&messages, false, false).unwrap();
        assert!(matches!(&parts[..], [Part::Text { .. }, Part::Image(_)]), "{parts:?}");
        for url in ["https://evil.example/x.png", "data:image/png;base64,!", "file:///etc/passwd", ""] {
            assert!(said(image(url), false).unwrap_err().contains("must be a data URL"), "{url}");
        }
        let audio = json!([{ "role": "user", "content": [{ "type": "input_audio" }] }]);
        assert!(said(audio, false).unwrap_err().contains("`input_audio` is not supported"));
    }
}
