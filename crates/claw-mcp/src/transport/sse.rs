//! The older transport: an event stream from the server, and a second address for messages to it.

use claw_net::{HeaderValue, Method, Origin, Request, Times, Url, header};
use futures_util::StreamExt as _;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::worker::{Worker, WorkerContext, WorkerQuitReason};
use tokio::task::JoinSet;

use super::http::events;
use super::{FIRST_BYTE, Remote, SILENCE, SendError};
use crate::handler::Watcher;

/// Messages that may be on their way to the server at once.
const MOST_POSTS: usize = 64;

/// Why the event stream or a message failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SseFailure {
    #[error("{0}")]
    Send(#[from] SendError),
    #[error("HTTP {0}")]
    Status(u16),
    #[error("{0}")]
    Protocol(String),
    #[error("the connection is closed")]
    Closed,
}

/// Speaks the older transport for the protocol library.
pub(crate) struct SseWorker {
    pub(crate) remote: Remote,
    pub(crate) watcher: Watcher,
}

type Quit = WorkerQuitReason<SseFailure>;

impl Worker for SseWorker {
    type Error = SseFailure;
    type Role = RoleClient;

    fn err_closed() -> SseFailure {
        SseFailure::Closed
    }

    fn err_join(error: tokio::task::JoinError) -> SseFailure {
        SseFailure::Protocol(error.to_string())
    }

    async fn run(self, mut context: WorkerContext<Self>) -> Result<(), Quit> {
        let fatal = |error: SseFailure| Quit::fatal(error, "reading the event stream");
        let request = Request::new(Method::GET, self.remote.url.clone())
            .header(header::ACCEPT, HeaderValue::from_static("text/event-stream"))
            .most_bytes(u64::MAX)
            .times(Times { first_byte: FIRST_BYTE, idle: SILENCE, whole: None });
        let response = self.remote.send(request).await.map_err(|error| fatal(error.into()))?;
        if response.status() != 200 {
            return Err(fatal(SseFailure::Status(response.status())));
        }
        let mut stream = events(response, self.watcher.clone(), None);
        let mut address: Option<Url> = None;
        let mut posts = JoinSet::new();
        loop {
            let may_send = address.is_some() && posts.len() < MOST_POSTS;
            tokio::select! {
                () = context.cancellation_token.cancelled() => return Err(Quit::Cancelled),
                event = stream.next() => {
                    let Some(event) = event else { return Err(Quit::TransportClosed) };
                    let event = event.map_err(|error| fatal(SseFailure::Protocol(error.to_string())))?;
                    let data = event.data.unwrap_or_default();
                    if event.event.as_deref() == Some("endpoint") {
                        address = Some(self.endpoint(data.trim()).map_err(fatal)?);
                    } else if let Ok(message) = serde_json::from_str::<ServerJsonRpcMessage>(&data) {
                        context.send_to_handler(message).await?;
                    } else if !data.trim().is_empty() {
                        tracing::debug!("ignored an event that is not a JSON-RPC message");
                    }
                }
                sent = context.from_handler_rx.recv(), if may_send => {
                    let Some(sent) = sent else { return Err(Quit::HandlerTerminated) };
                    let (remote, address) = (self.remote.clone(), address.clone());
                    posts.spawn(async move {
                        let posted = match address {
                            Some(address) => post(&remote, address, &sent.message).await,
                            None => Err(SseFailure::Closed),
                        };
                        let _ = sent.responder.send(posted);
                    });
                }
                Some(_) = posts.join_next(), if !posts.is_empty() => {}
            }
        }
    }
}

impl SseWorker {
    /// Returns the address for messages. It must have the same origin: a server must not redirect our headers
    /// elsewhere.
    fn endpoint(&self, text: &str) -> Result<Url, SseFailure> {
        let url = self.remote.url.join(text).map_err(|error| SseFailure::Protocol(error.to_string()))?;
        if Origin::of(&url) == Origin::of(&self.remote.url) {
            return Ok(url);
        }
        Err(SseFailure::Protocol(
            "the address that the server gives for messages has another origin".to_owned(),
        ))
    }
}

async fn post(remote: &Remote, address: Url, message: &ClientJsonRpcMessage) -> Result<(), SseFailure> {
    let body = serde_json::to_vec(message).map_err(|error| SseFailure::Protocol(error.to_string()))?;
    let request = Request::new(Method::POST, address)
        .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .body(body);
    let response = remote.send(request).await?;
    match response.status() {
        200..300 => Ok(()),
        status => Err(SseFailure::Status(status)),
    }
}
