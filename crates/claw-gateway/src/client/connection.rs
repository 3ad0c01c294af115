//! The connection of a client: one task writes requests and reads answers and events.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderValue, header};
use clawsmith::app::Error;
use futures_util::{SinkExt as _, StreamExt as _};
use rustls_platform_verifier::BuilderVerifierExt as _;
use secrecy::{ExposeSecret as _, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::{EventFrame, GatewayAddress, Received};
use crate::ws::frames::Command;

/// How long connecting, and an answer, may take.
const LONGEST: Duration = Duration::from_secs(30);
/// The longest frame that is read, in bytes: a page of messages is longer than any request.
const LONGEST_FRAME: usize = 64 * 1024 * 1024;

/// A request that waits to be sent.
struct Asked {
    command: Command,
    reply: oneshot::Sender<Result<Value, Error>>,
}

/// Requests to a gateway. Clones share the connection, also one that was made again.
#[derive(Clone)]
pub struct GatewayClient(Arc<Mutex<mpsc::UnboundedSender<Asked>>>);

impl GatewayClient {
    /// Connects to a gateway with a key; events come by the receiver, which ends with the connection.
    pub(super) async fn connect(
        address: &GatewayAddress,
        key: &SecretString,
    ) -> Result<(Self, mpsc::UnboundedReceiver<EventFrame>), Error> {
        let late =
            |_| unreachable_gateway(address).because(std::io::Error::from(std::io::ErrorKind::TimedOut));
        let stream = timeout(LONGEST, connect_tcp(address)).await.map_err(late)??;
        let (asked, requests) = mpsc::unbounded_channel();
        let (events, frames) = mpsc::unbounded_channel();
        if address.is_tls {
            let stream = timeout(LONGEST, secure(address, stream)).await.map_err(late)??;
            let socket = timeout(LONGEST, upgrade(address, key, stream)).await.map_err(late)??;
            tokio::spawn(carry(socket, requests, events));
        } else {
            let socket = timeout(LONGEST, upgrade(address, key, stream)).await.map_err(late)??;
            tokio::spawn(carry(socket, requests, events));
        }
        Ok((Self(Arc::new(Mutex::new(asked))), frames))
    }

    /// Uses the connection of another client from now on.
    pub(super) fn replace(&self, other: &Self) {
        let asked = other.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = asked;
    }

    /// Returns whether the connection has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_closed()
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, command: Command) -> Result<T, Error> {
        let gone = || Error::failed("the connection to the gateway was lost").hint("try again");
        let (reply, answer) = oneshot::channel();
        let asked = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        asked.send(Asked { command, reply }).map_err(|_| gone())?;
        let late = |_| Error::failed(format!("the gateway gave no answer within {} s", LONGEST.as_secs()));
        let payload = timeout(LONGEST, answer).await.map_err(late)?.map_err(|_| gone())??;
        serde_json::from_value(payload).map_err(|error| {
            Error::failed("the gateway's answer cannot be read")
                .because(error)
                .hint("use the same version of Clawsmith as the gateway")
        })
    }
}

impl std::fmt::Debug for GatewayClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("GatewayClient").finish()
    }
}

fn unreachable_gateway(address: &GatewayAddress) -> Error {
    Error::failed(format!("the gateway at {}:{} cannot be reached", address.host, address.port))
        .hint("is `clawsmith serve` running there?")
}

async fn connect_tcp(address: &GatewayAddress) -> Result<TcpStream, Error> {
    let host = address.host.trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((host, address.port)).await;
    let stream = stream.map_err(|error| unreachable_gateway(address).because(error))?;
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

async fn secure(
    address: &GatewayAddress,
    stream: TcpStream,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, Error> {
    let untrusted = || Error::failed(format!("no trusted TLS connection to `{}`", address.host));
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_platform_verifier())
        .map_err(|error| untrusted().because(error))?
        .with_no_client_auth();
    let host = address.host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(host).map_err(|error| untrusted().because(error))?;
    let connected = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    connected.map_err(|error| {
        untrusted().because(error).hint(
            "to trust its certificate, set `SSL_CERT_FILE` to a file with your own certificate authorities",
        )
    })
}

async fn upgrade<S: AsyncRead + AsyncWrite + Unpin>(
    address: &GatewayAddress,
    key: &SecretString,
    stream: S,
) -> Result<WebSocketStream<S>, Error> {
    let scheme = if address.is_tls { "wss" } else { "ws" };
    let url = format!("{scheme}://{}:{}/v1/ws", address.host, address.port);
    let mut request =
        url.into_client_request().map_err(|error| unreachable_gateway(address).because(error))?;
    let bearer = format!("Bearer {}", key.expose_secret());
    let mut bearer = HeaderValue::from_str(&bearer).map_err(|_| {
        Error::invalid("the API key has invalid characters")
            .hint("create one with `clawsmith api-keys create`")
    })?;
    bearer.set_sensitive(true);
    request.headers_mut().insert(header::AUTHORIZATION, bearer);
    let config =
        WebSocketConfig::default().max_message_size(Some(LONGEST_FRAME)).max_frame_size(Some(LONGEST_FRAME));
    match client_async_with_config(request, stream, Some(config)).await {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::Error::Http(response)) => {
            let status = response.status();
            let problem: Value =
                serde_json::from_slice(response.body().as_deref().unwrap_or_default()).unwrap_or_default();
            let detail = problem["detail"].as_str().map(str::to_owned);
            let detail = detail.unwrap_or_else(|| format!("the gateway answered {status}"));
            let error = Error::invalid(detail).refusing();
            Err(match problem["hint"].as_str() {
                Some(hint) => error.hint(hint),
                None => error,
            })
        }
        Err(error) => Err(unreachable_gateway(address).because(error)),
    }
}

/// Carries requests and answers until either end is gone.
async fn carry<S: AsyncRead + AsyncWrite + Unpin>(
    mut socket: WebSocketStream<S>,
    mut requests: mpsc::UnboundedReceiver<Asked>,
    events: mpsc::UnboundedSender<EventFrame>,
) {
    let mut open: HashMap<String, oneshot::Sender<Result<Value, Error>>> = HashMap::new();
    let mut number = 0_u64;
    loop {
        tokio::select! {
            asked = requests.recv() => {
                let Some(Asked { command, reply }) = asked else { break };
                number += 1;
                let mut frame = serde_json::to_value(&command).unwrap_or_default();
                frame["type"] = "req".into();
                frame["id"] = number.to_string().into();
                open.insert(number.to_string(), reply);
                if socket.send(Message::Text(frame.to_string().into())).await.is_err() {
                    return;
                }
            }
            frame = socket.next() => match frame {
                Some(Ok(Message::Text(text))) => match serde_json::from_str(text.as_str()) {
                    Ok(Received::Event(event)) => {
                        if events.send(event).is_err() {
                            break;
                        }
                    }
                    Ok(Received::Res { id, ok, payload, error }) => {
                        let reply = id.and_then(|id| open.remove(&id));
                        let answer = if ok { Ok(payload.unwrap_or_default()) } else { Err(told(&error.unwrap_or_default())) };
                        if let Some(reply) = reply {
                            let _ = reply.send(answer);
                        }
                    }
                    Err(error) => tracing::warn!(%error, "a frame of the gateway cannot be read"),
                },
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            }
        }
    }
    let _ = timeout(Duration::from_secs(1), socket.close(None)).await;
}

/// The error of a request, as the gateway tells it.
fn told(error: &Value) -> Error {
    let detail = error["detail"].as_str().unwrap_or("the gateway refused the request").to_owned();
    let told = match error["code"].as_str() {
        Some("not_found") => Error::not_found(detail),
        Some("forbidden") => Error::invalid(detail).refusing(),
        Some("invalid_request") => Error::invalid(detail),
        _ => Error::failed(detail),
    };
    match error["hint"].as_str() {
        Some(hint) => told.hint(hint),
        None => told,
    }
}
