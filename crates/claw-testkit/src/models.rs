//! A server on loopback that speaks the wire formats of the model providers, and plays scripts.
//!
//! It refuses what the real ones refuse (results that do not follow their calls, empty texts, too many cache
//! marks), and fails as scripted: with a status before the first piece, in the stream after it, by reset,
//! garbage or silence. It can also send every byte alone, to show that chunk boundaries do not matter.

mod anthropic;
mod gemini;
mod http;
mod openai;

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use claw_core::image::Image;
use claw_core::message::Part;
use claw_core::port::{Fault, Question};
use claw_core::store::Tokens;
use claw_llm::{Scene, Script, Step};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use http::{Connection, Received};

/// An image as providers are sent it: its media type, and its bytes in base64.
fn image(mime: &Value, data: &Value) -> Result<Part, String> {
    let mime = mime.as_str().ok_or("an image without a type")?;
    let data = data.as_str().ok_or("an image without data")?;
    let data = base64::engine::general_purpose::STANDARD.decode(data);
    Ok(Part::Image(Image::new(mime, data.map_err(|error| format!("an image that is not base64: {error}"))?)))
}

/// The behaviour of a server beyond its script.
#[derive(Debug, Clone, Default)]
pub struct Manners {
    /// Sends every byte of an answer alone.
    pub byte_by_byte: bool,
    /// Interleaves the arguments of consecutive calls, if the wire format can.
    pub interleaved: bool,
    /// The refused keys, each with its status.
    pub refused_keys: Vec<(String, u16)>,
    /// The known models, if the wire format names them in the body; empty: any.
    pub models: Vec<String>,
    /// Sends the answer at once as JSON, if the wire format can.
    pub unstreamed: bool,
    /// The stream ends before the answer does, as if all were well.
    pub unfinished: bool,
    /// The connection stays open after the answer.
    pub left_open: bool,
    /// Every request is answered with a web page and status 200.
    pub page: bool,
}

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The path, with the query.
    pub path: String,
    /// The key.
    pub key: Option<String>,
    /// The headers, by lower-case name, without those of the transport.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Value,
}

/// A server that speaks the three wire formats.
pub struct ModelServer {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: JoinHandle<()>,
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A wire format.
trait Wire: Sync {
    /// Reads the messages of a request, or returns why the real server would refuse it.
    fn read(&self, body: &Value) -> Result<Question, String>;
    /// The key of a request.
    fn key_header(&self) -> (&'static str, &'static str);
    /// A refusal's body.
    fn refusal(&self, status: u16, message: &str) -> Value;
    /// Returns the events of an answer, each with its delays.
    fn events(&self, scene: &Scene, manners: &Manners) -> Vec<Event>;
    /// Returns the complete answer.
    fn whole(&self, scene: &Scene) -> Option<Value>;
}

/// The next step of a response.
enum Event {
    /// Text of the stream.
    Send(String),
    /// A pause.
    Wait(Duration),
    /// Silence forever.
    Hang,
    /// The connection is reset.
    Reset,
}

impl ModelServer {
    /// Plays a script.
    pub async fn start(script: &str, manners: Manners) -> Self {
        let script = Arc::new(Script::parse("server", script).expect("a script"));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (heard, manners) = (asked.clone(), Arc::new(manners));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (script, manners, heard) = (script.clone(), manners.clone(), heard.clone());
                // A client that goes away is no failure of the server.
                tokio::spawn(async move { serve(stream, &script, &manners, &heard).await.ok() });
            }
        });
        Self { port, asked, task }
    }

    /// Returns its address for a kind of provider, as for `base_url`.
    pub fn base_url(&self, kind: claw_llm::ProviderKind) -> String {
        let path = match kind {
            claw_llm::ProviderKind::OpenAi => "/v1",
            claw_llm::ProviderKind::Gemini => "/v1beta",
            claw_llm::ProviderKind::Anthropic | claw_llm::ProviderKind::Scripted => "",
        };
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no panic").clone()
    }
}

async fn serve(
    stream: TcpStream,
    script: &Script,
    manners: &Manners,
    heard: &Mutex<Vec<Asked>>,
) -> io::Result<()> {
    let mut connection = Connection::new(stream)?;
    let Some(request) = connection.receive().await? else { return Ok(()) };
    let path = request.path.split('?').next().unwrap_or_default();
    let wire: &dyn Wire = if path.ends_with("/chat/completions") {
        &openai::OpenAi
    } else if path.ends_with("/v1/messages") {
        &anthropic::Anthropic
    } else if path.ends_with(":streamGenerateContent") {
        &gemini::Gemini
    } else {
        return connection.json(404, &[], "{\"error\":{\"message\":\"no such path\"}}").await;
    };
    let asked = note(&request, wire);
    heard.lock().expect("no panic").push(asked.clone());
    if manners.page {
        return connection.answer(200, "text/html; charset=utf-8", &[], "<html>Welcome</html>").await;
    }
    let refused = |status: u16, message: &str| (status, wire.refusal(status, message).to_string());
    if let Some((key, status)) = manners.refused_keys.iter().find(|(key, _)| Some(key) == asked.key.as_ref())
    {
        let (status, body) = refused(*status, &format!("no more with the key {key}"));
        return connection.json(status, &[], &body).await;
    }
    let model = asked.body["model"].as_str().unwrap_or_default();
    if !manners.models.is_empty() && !manners.models.iter().any(|known| known == model) {
        let (status, body) = refused(404, &format!("the model {model} does not exist"));
        return connection.json(status, &[], &body).await;
    }
    let scene =
        match wire.read(&asked.body).and_then(|question| script.play(&question).map_err(|e| e.to_string())) {
            Ok(scene) => scene,
            Err(message) => {
                let (status, body) = refused(400, &message);
                return connection.json(status, &[], &body).await;
            }
        };
    if let [Step::Fail { fault, message }] = &scene.steps[..] {
        return fail(&mut connection, wire, *fault, message).await;
    }
    if manners.unstreamed
        && let Some(whole) = wire.whole(&scene)
    {
        return connection.json(200, &[], &whole.to_string()).await;
    }
    let mut begun = false;
    let mut events = wire.events(&scene, manners);
    if manners.unfinished {
        events.truncate(events.len().saturating_sub(2));
    }
    for event in events {
        match event {
            Event::Send(text) => {
                if !std::mem::replace(&mut begun, true) {
                    connection.begin().await?;
                }
                connection.send(text.as_bytes(), manners.byte_by_byte).await?;
            }
            Event::Wait(time) => tokio::time::sleep(time).await,
            Event::Hang => return connection.hang().await,
            Event::Reset => return connection.reset(),
        }
    }
    if manners.left_open {
        return connection.hang().await;
    }
    connection.end().await
}

fn note(request: &Received, wire: &dyn Wire) -> Asked {
    let (name, prefix) = wire.key_header();
    let key = request.headers.iter().find(|(header, _)| header == name);
    let key = key.and_then(|(_, value)| value.strip_prefix(prefix)).map(str::to_owned);
    let of_transport = ["host", "content-length", "user-agent", name];
    let headers = request.headers.iter().filter(|(name, _)| !of_transport.contains(&name.as_str())).cloned();
    let body = serde_json::from_slice(&request.body).unwrap_or(Value::Null);
    Asked { path: request.path.clone(), key, headers: headers.collect(), body }
}

/// A failure before anything else.
async fn fail(connection: &mut Connection, wire: &dyn Wire, fault: Fault, message: &str) -> io::Result<()> {
    let status = match fault {
        Fault::RateLimited { .. } => 429,
        Fault::Unavailable => 503,
        Fault::Unauthorised => 401,
        Fault::TooLong | Fault::BadRequest => 400,
        Fault::NotSetUp => 404,
        Fault::Connection => return connection.reset(),
        Fault::TimedOut => return connection.hang().await,
        Fault::Garbled => return connection.garbage().await,
    };
    let message = if fault == Fault::TooLong { "prompt is too long: 9 tokens > 8 maximum" } else { message };
    let after = match fault {
        Fault::RateLimited { retry_after: Some(after) } => {
            vec![("retry-after", after.as_secs().to_string())]
        }
        _ => Vec::new(),
    };
    connection.json(status, &after, &wire.refusal(status, message).to_string()).await
}

/// Returns a failure in the middle of a stream; `None` if the stream itself reports it.
fn broken(fault: Fault) -> Option<Event> {
    match fault {
        Fault::Connection => Some(Event::Reset),
        Fault::TimedOut => Some(Event::Hang),
        Fault::Garbled => Some(Event::Send("data: {\"half\": \n\n".to_owned())),
        _ => None,
    }
}

/// Waits before a piece.
fn pause(delay: Duration) -> Option<Event> {
    (!delay.is_zero()).then_some(Event::Wait(delay))
}

/// Returns the arguments of calls in the order in which they are sent: one call after the other, or a piece
/// of each in turn.
fn in_turns(calls: &[Vec<String>], interleaved: bool) -> Vec<(usize, String)> {
    let each = calls.iter().enumerate();
    if !interleaved {
        return each.flat_map(|(at, pieces)| pieces.iter().map(move |piece| (at, piece.clone()))).collect();
    }
    let longest = calls.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest)
        .flat_map(|n| each.clone().filter_map(move |(at, pieces)| Some((at, pieces.get(n)?.clone()))))
        .collect()
}

fn tokens(scene: &Scene) -> Tokens {
    scene.tokens.unwrap_or(Tokens { input: 11, output: 7, ..Tokens::default() })
}
