//! Streamable HTTP over the guarded client.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use claw_net::{HeaderValue, Method, Request, Response, Times, header};
use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, try_unfold};
use http::HeaderName;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, GetMeta as _, JsonRpcMessage, ProgressToken,
    ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

use super::unread::is_broken;
use super::{FIRST_BYTE, LARGEST_MESSAGE, Remote, SILENCE, SendError};
use crate::error::Unread;
use crate::handler::Watcher;

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

type Events = BoxStream<'static, Result<Sse, SseError>>;
type Failure = StreamableHttpError<SendError>;

/// The guarded client behind the protocol library's interface.
#[derive(Clone)]
pub(crate) struct GuardedHttp {
    pub(crate) remote: Remote,
    pub(crate) watcher: Watcher,
}

impl GuardedHttp {
    fn request(&self, method: Method, headers: HashMap<HeaderName, HeaderValue>) -> Request {
        let mut request = Request::new(method, self.remote.url.clone());
        let accept = HeaderValue::from_static("application/json, text/event-stream");
        request = request.header(header::ACCEPT, accept);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request
    }

    async fn send(&self, request: Request) -> Result<Response, Failure> {
        self.remote.send(request).await.map_err(StreamableHttpError::Client)
    }
}

impl StreamableHttpClient for GuardedHttp {
    type Error = SendError;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let had_session = session_id.is_some();
        let mut request = self
            .request(Method::POST, headers)
            .header(header::CONTENT_TYPE, HeaderValue::from_static(JSON))
            .body(serde_json::to_vec(&message)?)
            .most_bytes(u64::MAX)
            .times(Times { first_byte: FIRST_BYTE, idle: SILENCE, whole: None });
        if let Some(session) = session_id {
            request = request.header(SESSION, text(&session)?);
        }
        let response = self.send(request).await?;
        let status = response.status();
        if matches!(status, 202 | 204) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == 404 && had_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session = response.header("mcp-session-id").map(str::to_owned);
        let kind = response.header("content-type").unwrap_or_default().to_owned();
        if (200..300).contains(&status) && kind.starts_with(EVENTS) {
            let events = events(response, self.watcher.clone(), token(&message));
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        let body = whole(response).await?;
        // Some servers answer so if they do not know the session, as others do to a request that they do not like.
        if status == 400 && had_session && !is_check(&message) {
            self.watcher.note_doubt();
        }
        if !(200..300).contains(&status) {
            return refused(&message, had_session, status, &body).map(|message| match message {
                Some(message) => StreamableHttpPostResponse::Json(message, session),
                None => StreamableHttpPostResponse::Accepted,
            });
        }
        let wants_answer = matches!(message, JsonRpcMessage::Request(_));
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(answer) if kind.starts_with(JSON) => {
                Ok(StreamableHttpPostResponse::Json(addressed(&message, answer), session))
            }
            _ if !wants_answer => Ok(StreamableHttpPostResponse::Accepted),
            Ok(_) => Err(StreamableHttpError::UnexpectedContentType(Some(kind))),
            Err(error) if error.is_data() => Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(
                format!("its answer is not a JSON-RPC message: {error}"),
            ))),
            Err(_) => Err(unreadable(Unread::NotJson)),
        }
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let request = self.request(Method::DELETE, headers).header(SESSION, text(&session_id)?);
        // A server that keeps its sessions says 405; there is nothing else to do about one.
        self.send(request).await.map(drop)
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Failure> {
        let mut request = self.request(Method::GET, headers).most_bytes(u64::MAX).times(Times {
            first_byte: FIRST_BYTE,
            idle: SILENCE,
            whole: None,
        });
        if let Some(session) = session_id {
            request = request.header(SESSION, text(&session)?);
        }
        if let Some(last) = last_event_id {
            request = request.header(LAST_EVENT, text(&last)?);
        }
        let response = self.send(request).await?;
        match response.status() {
            405 => return Err(StreamableHttpError::ServerDoesNotSupportSse),
            status @ (429 | 500..) => return Err(HttpStatusError::new(status, None).into()),
            200..300 => {}
            status => return Err(unexpected(status, b"")),
        }
        let kind = response.header("content-type").map(str::to_owned);
        if !kind.as_deref().is_some_and(|kind| kind.starts_with(EVENTS)) {
            return Err(StreamableHttpError::UnexpectedContentType(kind));
        }
        Ok(events(response, self.watcher.clone(), None))
    }
}

fn text(value: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::from_str(value).map_err(|_| {
        StreamableHttpError::UnexpectedServerResponse(Cow::Borrowed(
            "an id that the server sent is not a valid header value",
        ))
    })
}

fn unexpected(status: u16, body: &[u8]) -> Failure {
    let body: String = String::from_utf8_lossy(body).chars().take(256).collect();
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("HTTP {status}: {body}")))
}

/// The meaning of an answer that is no success: a JSON-RPC error, the sign of an older server, or a failure.
fn refused(
    message: &ClientJsonRpcMessage,
    had_session: bool,
    status: u16,
    body: &[u8],
) -> Result<Option<ServerJsonRpcMessage>, Failure> {
    let error = match serde_json::from_slice::<ServerJsonRpcMessage>(body) {
        Ok(JsonRpcMessage::Error(error)) => Some(error),
        _ => None,
    };
    // An older server refuses discovery, often in words and with an id of its own. Put in JSON-RPC and with our id, the
    // lifecycle falls back to `initialize`.
    if let JsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && !had_session
        && (400..500).contains(&status)
        && status != 403
    {
        let error = error.map(|error| error.error);
        let error =
            error.unwrap_or_else(|| ErrorData::invalid_request(format!("refused with HTTP {status}"), None));
        return Ok(Some(ServerJsonRpcMessage::error(error, Some(request.id.clone()))));
    }
    match error {
        Some(error) if status != 403 => Ok(Some(addressed(message, JsonRpcMessage::Error(error)))),
        _ if status == 429 || status >= 500 => Err(HttpStatusError::new(status, None).into()),
        _ => Err(unexpected(status, body)),
    }
}

/// The answer to a message. The protocol library drops an error without an id, and the request would wait for ever.
fn addressed(message: &ClientJsonRpcMessage, mut answer: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    if let (JsonRpcMessage::Request(request), JsonRpcMessage::Error(error)) = (message, &mut answer) {
        error.id.get_or_insert_with(|| request.id.clone());
    }
    answer
}

/// Returns whether a message is part of the check of a server: its own failure shows that the server is in doubt.
const fn is_check(message: &ClientJsonRpcMessage) -> bool {
    match message {
        JsonRpcMessage::Request(request) => {
            matches!(request.request, ClientRequest::PingRequest(_) | ClientRequest::ListToolsRequest(_))
        }
        // A notification has no answer to wait for.
        _ => true,
    }
}

/// A body that is read whole, up to the size of the largest message.
async fn whole(mut response: Response) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) =
        response.chunk().await.map_err(|error| StreamableHttpError::Client(error.into()))?
    {
        if body.len() + chunk.len() > LARGEST_MESSAGE {
            return Err(unreadable(Unread::TooLarge));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The token by which the call of a request is known.
fn token(message: &ClientJsonRpcMessage) -> Option<ProgressToken> {
    match message {
        JsonRpcMessage::Request(request) => request.request.get_meta().get_progress_token(),
        _ => None,
    }
}

fn unreadable(problem: Unread) -> Failure {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("its answer {problem}")))
}

/// Returns the events of a body, which answers the call with this token, if it answers one. An event larger than the largest
/// message ends the stream with an error. The call is told of events that cannot be read.
pub(super) fn events(response: Response, watcher: Watcher, of: Option<ProgressToken>) -> Events {
    let events = SseStream::from_bytes_stream(bounded(response, watcher.clone(), of.clone()));
    let noted = events.inspect(move |event| {
        let data = event.as_ref().ok().and_then(|event| event.data.as_deref());
        if data.is_some_and(|data| is_broken(data.as_bytes())) {
            watcher.note_unread(of.as_ref(), Unread::NotJson);
        }
    });
    noted.boxed()
}

fn bounded(
    response: Response,
    watcher: Watcher,
    of: Option<ProgressToken>,
) -> BoxStream<'static, Result<Bytes, std::io::Error>> {
    let begin = (response, Gauge::default(), watcher, of);
    let pieces = try_unfold(begin, |(mut response, mut gauge, watcher, of)| async move {
        let chunk = response.chunk().await.map_err(std::io::Error::other)?;
        let Some(chunk) = chunk else { return Ok(None) };
        if !gauge.take(&chunk) {
            watcher.note_unread(of.as_ref(), Unread::TooLarge);
            return Err(std::io::Error::other(format!("an event {}", Unread::TooLarge)));
        }
        Ok(Some((chunk, (response, gauge, watcher, of))))
    });
    pieces.boxed()
}

/// Counts the bytes of the current event. An empty line ends one.
#[derive(Default)]
struct Gauge {
    bytes: usize,
    blank: bool,
}

impl Gauge {
    /// Takes a piece; returns `false` once an event is too large.
    fn take(&mut self, piece: &[u8]) -> bool {
        let mut lines = piece.split_inclusive(|byte| *byte == b'\n');
        lines.all(|line| {
            let (text, ends) = line.strip_suffix(b"\n").map_or((line, false), |text| (text, true));
            self.blank &= text.iter().all(|byte| *byte == b'\r');
            if ends && self.blank {
                self.bytes = 0;
                return true;
            }
            self.blank |= ends;
            self.bytes += line.len();
            self.bytes <= LARGEST_MESSAGE
        })
    }
}

#[cfg(test)]
mod tests {
    use claw_core::store::McpEndpoint;
    use claw_net::HeaderMap;
    use rmcp::model::{CallToolRequest, CallToolRequestParams, PingRequest, RequestId};

    use super::*;

    /// A client of a server on loopback that answers every message with this status and body.
    async fn client(status: u16, body: &'static str) -> GuardedHttp {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let answer = move || async move {
            (http::StatusCode::from_u16(status).unwrap(), [(header::CONTENT_TYPE, JSON)], body)
        };
        let router = axum::Router::new().fallback(answer);
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let endpoint = McpEndpoint { url, headers: Vec::new(), private: true, oauth: None };
        let remote = Remote::new(&endpoint, HeaderMap::new()).unwrap();
        GuardedHttp { remote, watcher: Watcher::default() }
    }

    /// Sends a request with the id 7, in a session if it has one; returns the error of the answer with its id.
    async fn sent(
        client: &GuardedHttp,
        request: ClientRequest,
        session: Option<&str>,
    ) -> (Option<RequestId>, String) {
        let message = ClientJsonRpcMessage::request(request, RequestId::Number(7));
        let uri = client.remote.url.as_str().into();
        let answer = client.post_message(uri, message, session.map(Into::into), None, HashMap::new()).await;
        match answer.unwrap() {
            StreamableHttpPostResponse::Json(JsonRpcMessage::Error(error), _) => {
                (error.id, error.error.message.into_owned())
            }
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_lost_session_without_an_id_ends_the_request_and_the_server_is_checked() {
        const LOST: &str =
            r#"{"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "no valid session"}}"#;
        let call = || ClientRequest::CallToolRequest(CallToolRequest::new(CallToolRequestParams::new("t")));
        let ping = || ClientRequest::PingRequest(PingRequest::default());
        let expected = (Some(RequestId::Number(7)), "no valid session".to_owned());
        let client = client(400, LOST).await;
        for (request, session, is_usable) in
            [(call(), None, true), (ping(), Some("s"), true), (call(), Some("s"), false)]
        {
            assert_eq!(sent(&client, request, session).await, expected);
            assert_eq!(client.watcher.is_usable(), is_usable, "{session:?}");
        }
        let told_well = self::client(200, LOST).await;
        assert_eq!(sent(&told_well, call(), Some("s")).await, expected);
        assert!(told_well.watcher.is_usable());
    }

    /// Takes the text in pieces of this size; returns the bytes of the event that is not over, or `None` if one was too large.
    fn taken(text: &[u8], piece: usize) -> Option<usize> {
        let mut gauge = Gauge::default();
        text.chunks(piece).all(|piece| gauge.take(piece)).then_some(gauge.bytes)
    }

    #[test]
    fn an_empty_line_ends_an_event_however_the_text_is_cut() {
        for piece in [1, 2, 3, 5, 64] {
            assert_eq!(taken(b"data: one\n", piece), Some(10), "{piece}");
            assert_eq!(taken(b"data: one\n\n", piece), Some(0), "{piece}");
            assert_eq!(taken(b"data: one\r\n\r\nid", piece), Some(2), "{piece}");
            assert_eq!(taken(b"data: one\n\n\n\ndata: two\n", piece), Some(10), "{piece}");
        }
    }

    #[test]
    fn refuses_an_event_beyond_the_largest_message() {
        let mut text = vec![b'x'; LARGEST_MESSAGE - 1];
        text.push(b'\n');
        assert_eq!(taken(&text, 1 << 16), Some(LARGEST_MESSAGE));
        text.extend_from_slice(b"x");
        assert_eq!(taken(&text, 1 << 16), None);
        // Lines of one event count together.
        let lines = b"data: a line\n".repeat(LARGEST_MESSAGE / 13 + 1);
        assert_eq!(taken(&lines, 1 << 16), None);
    }
}
