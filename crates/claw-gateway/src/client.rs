//! A client of a gateway: requests and their answers over one WebSocket, and the events of the session that it follows.
//!
//! A key never crosses a network in the clear: without TLS, only a gateway on this machine is spoken to.

mod connection;
mod shown;

use std::str::FromStr;
use std::time::Duration;

use axum::http::Uri;
use clawsmith::app::{Error, Followed, InputValues, RuleFor, Verdict};
use clawsmith::store::{SessionEvent, SessionEventBody, Usage};
use clawsmith::{ApprovalId, JobId, SessionKey, UnixMillis};
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc;

pub use self::connection::GatewayClient;
pub use self::shown::ShownRemote;
pub use crate::approvals::ApprovalView;
use crate::approvals::{AlwaysGiven, AlwaysScope, Approvals as ApprovalList};
pub use crate::sessions::MessageView;
use crate::ws::frames::{Answer, Command, History, Nothing, OfSession, Open, Send, Subscribe, UsageOf};
pub use crate::ws::frames::{Approvals, OpenedSession};

/// How often, and after which waits, a connection that broke is made again.
const ATTEMPTS: u32 = 20;
const WAIT: Duration = Duration::from_millis(500);

/// The address of a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayAddress {
    host: String,
    port: u16,
    is_tls: bool,
}

impl FromStr for GatewayAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| {
            Error::invalid(format!("`{text}` is not the address of a gateway: {why}"))
                .hint("such as http://127.0.0.1:7373 or https://agents.example.org")
        };
        let uri: Uri = text.parse().map_err(|_| wrong("it is not a URL"))?;
        let is_tls = match uri.scheme_str() {
            Some("https" | "wss") => true,
            Some("http" | "ws") => false,
            _ => return Err(wrong("it begins neither with `https://` nor with `http://`")),
        };
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(wrong("it has a path"));
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| wrong("it has no host"))?;
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(wrong("it contains a user name"));
        }
        if !is_tls && !is_loopback(host) {
            return Err(wrong("without TLS others on the network could read the key")
                .hint("use `https://`, or a tunnel with an address of this machine"));
        }
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        Ok(Self { host: host.to_owned(), port, is_tls })
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A frame that a gateway sends.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Received {
    Res { id: Option<String>, ok: bool, payload: Option<Value>, error: Option<Value> },
    Event(EventFrame),
}

/// An event as it comes.
#[derive(Debug, Deserialize)]
struct EventFrame {
    event: String,
    session: Option<SessionKey>,
    seq: Option<u64>,
    at: Option<UnixMillis>,
    payload: Option<Value>,
}

impl GatewayClient {
    /// Names a session of one's own, and the model that answers there; a fresh session where none is given.
    pub async fn open(&self, agent: Option<&str>, session: Option<&str>) -> Result<OpenedSession, Error> {
        let (agent_id, session_key) = (agent.map(str::to_owned), session.map(str::to_owned));
        self.ask(Command::ChatOpen(Open { agent_id, session_key })).await
    }

    /// Stops the runs of a session.
    pub async fn abort(&self, session: &SessionKey) -> Result<(), Error> {
        let stopped: Value =
            self.ask(Command::ChatAbort(OfSession { session_key: session.to_string() })).await?;
        drop(stopped);
        Ok(())
    }

    /// The last messages of a session before message `before`, oldest first.
    pub async fn messages(
        &self,
        session: &SessionKey,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<MessageView>, Error> {
        #[derive(Deserialize)]
        struct Page {
            messages: Vec<MessageView>,
        }
        let (session_key, cursor) = (session.to_string(), before.map(|before| before.to_string()));
        let page: Page =
            self.ask(Command::ChatHistory(History { session_key, cursor, limit: Some(limit) })).await?;
        Ok(page.messages)
    }

    /// Tokens and cost of a session, or of one run and those below it.
    pub async fn usage(&self, session: &SessionKey, run: Option<JobId>) -> Result<Usage, Error> {
        self.ask(Command::ChatUsage(UsageOf { session_key: session.to_string(), run_id: run })).await
    }

    /// The pending approvals that the key sees.
    pub async fn approvals(&self) -> Result<Vec<ApprovalView>, Error> {
        let list: ApprovalList = self.ask(Command::ApprovalsList(Nothing {})).await?;
        Ok(list.approvals)
    }

    /// Answers an approval.
    pub async fn answer(&self, approval: ApprovalId, verdict: Verdict) -> Result<ApprovalView, Error> {
        let mut answer = Answer {
            approval_id: approval.to_string(),
            approve: !matches!(verdict, Verdict::Deny { .. } | Verdict::Dismiss),
            reason: None,
            always: None,
            values: None,
            allow_secrets: false,
            dismiss: verdict == Verdict::Dismiss,
        };
        match verdict {
            Verdict::Deny { reason } => answer.reason = reason,
            Verdict::Always { scope, lasts, width } => {
                let scope = match scope {
                    RuleFor::Session => AlwaysScope::Session,
                    RuleFor::Agent => AlwaysScope::Agent,
                    RuleFor::Tenant => AlwaysScope::Tenant,
                };
                let seconds = lasts.map(|lasts| u32::try_from(lasts.as_secs()).unwrap_or(u32::MAX));
                answer.always = Some(AlwaysGiven { width, scope, seconds });
            }
            Verdict::Values(InputValues { values, allow_secrets }) => {
                (answer.values, answer.allow_secrets) = (Some(values), allow_secrets);
            }
            Verdict::Once | Verdict::Dismiss => {}
        }
        self.ask(Command::ApprovalsAnswer(answer)).await
    }

    async fn subscribe(&self, session: &SessionKey, after: u64) -> Result<(), Error> {
        let wanted = Subscribe {
            session_key: Some(session.to_string()),
            agent_id: None,
            tenant: false,
            access_requests: false,
            after: Some(after),
        };
        self.ask::<Value>(Command::Subscribe(wanted)).await.map(drop)
    }

    async fn send(
        &self,
        opened: &OpenedSession,
        message: &str,
        approvals: Approvals,
    ) -> Result<JobId, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Sent {
            run_id: JobId,
        }
        let send = Send {
            message: message.to_owned(),
            agent_id: Some(opened.agent_id.to_string()),
            session_key: Some(opened.session_key.to_string()),
            approvals: Some(approvals),
            allowed_tools: None,
        };
        Ok(self.ask::<Sent>(Command::ChatSend(send)).await?.run_id)
    }
}

/// A session at a gateway, followed from now on. A connection that breaks is made again, and events go on where they were.
pub struct RemoteSession {
    address: GatewayAddress,
    key: SecretString,
    client: GatewayClient,
    frames: mpsc::UnboundedReceiver<EventFrame>,
    opened: OpenedSession,
    /// The number of the last event that was returned.
    seen: u64,
    is_followed: bool,
}

impl RemoteSession {
    /// Connects, and names the session; a fresh one where none is given.
    pub async fn open(
        address: GatewayAddress,
        key: SecretString,
        agent: Option<&str>,
        session: Option<&str>,
    ) -> Result<Self, Error> {
        let (client, frames) = GatewayClient::connect(&address, &key).await?;
        let opened = client.open(agent, session).await?;
        let seen = opened.last;
        Ok(Self { address, key, client, frames, opened, seen, is_followed: false })
    }

    /// Goes on in another session of the same agent; a fresh one where none is given.
    pub async fn move_to(&mut self, session: Option<&str>) -> Result<(), Error> {
        let opened = self.client.open(Some(self.opened.agent_id.as_str()), session).await?;
        // A new connection follows nothing, and nothing of the old session comes any more.
        let (client, frames) = GatewayClient::connect(&self.address, &self.key).await?;
        self.client.replace(&client);
        (self.frames, self.seen, self.opened, self.is_followed) = (frames, opened.last, opened, false);
        Ok(())
    }

    /// The session, and the model that answers in it.
    pub fn opened(&self) -> &OpenedSession {
        &self.opened
    }

    /// Requests to the gateway, also while the session is followed.
    pub fn client(&self) -> &GatewayClient {
        &self.client
    }

    /// Sends a message; returns the run that answers it. The session is followed from then on.
    pub async fn send(&mut self, message: &str, approvals: Approvals) -> Result<JobId, Error> {
        // A gateway that was restarted meanwhile has not seen this message, so it can be sent to the new one.
        if self.client.is_closed() {
            self.connect_again().await?;
        }
        let run = self.client.send(&self.opened, message, approvals).await?;
        self.follow().await?;
        Ok(run)
    }

    async fn follow(&mut self) -> Result<(), Error> {
        if !self.is_followed {
            self.client.subscribe(&self.opened.session_key, self.seen).await?;
            self.is_followed = true;
        }
        Ok(())
    }

    /// Waits for the next event or piece of the session. Nothing is lost if the returned future is dropped.
    pub async fn next(&mut self) -> Result<Followed, Error> {
        loop {
            let Some(frame) = self.frames.recv().await else {
                self.connect_again().await?;
                continue;
            };
            if frame.session.as_ref() != Some(&self.opened.session_key) {
                continue;
            }
            if frame.event == "ended" {
                self.is_followed = false;
                self.follow().await?;
            }
            if let Some(followed) = self.followed(frame)? {
                return Ok(followed);
            }
        }
    }

    fn followed(&mut self, frame: EventFrame) -> Result<Option<Followed>, Error> {
        let unreadable = |error: serde_json::Error| {
            Error::failed("an event of the gateway cannot be read")
                .because(error)
                .hint("use the same version of Clawsmith as the gateway")
        };
        match (frame.payload, frame.seq, frame.at) {
            (Some(payload), None, None) if frame.event == "piece" => {
                Ok(Some(Followed::Piece(serde_json::from_value(payload).map_err(unreadable)?)))
            }
            _ if frame.event == "lagged" => Ok(Some(Followed::Lagged)),
            (Some(payload), Some(seq), Some(at)) if seq > self.seen => {
                let what: SessionEventBody = serde_json::from_value(payload).map_err(unreadable)?;
                self.seen = seq;
                Ok(Some(Followed::Event(SessionEvent { seq, at, what })))
            }
            _ => Ok(None),
        }
    }

    async fn connect_again(&mut self) -> Result<(), Error> {
        self.is_followed = false;
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match GatewayClient::connect(&self.address, &self.key).await {
                Ok((client, frames)) => {
                    self.client.replace(&client);
                    self.frames = frames;
                    return self.follow().await;
                }
                Err(error) if error.kind() == clawsmith::app::Kind::Refused => return Err(error),
                Err(error) => last = Some(error),
            }
            tokio::time::sleep(WAIT).await;
        }
        Err(last.unwrap_or_else(|| Error::failed("the connection to the gateway was lost")))
    }
}

impl std::fmt::Debug for RemoteSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteSession").field("opened", &self.opened).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<(&str, u16, bool), &str>) {
        let found = text.parse::<GatewayAddress>();
        match (found, expected) {
            (Ok(found), Ok((host, port, is_tls))) => {
                assert_eq!(found, GatewayAddress { host: host.to_owned(), port, is_tls });
            }
            (Err(error), Err(says)) => assert!(error.message().contains(says), "{error}"),
            (found, expected) => panic!("{text}: {found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn refuses_to_send_a_key_in_the_clear() {
        check("http://127.0.0.1:7373", Ok(("127.0.0.1", 7373, false)));
        check("http://localhost/", Ok(("localhost", 80, false)));
        check("http://[::1]:7373", Ok(("[::1]", 7373, false)));
        check("https://agents.example.org", Ok(("agents.example.org", 443, true)));
        check("http://agents.example.org", Err("could read the key"));
        check("http://127.0.0.1.evil.example", Err("could read the key"));
        check("http://user@127.0.0.1", Err("it contains a user name"));
        check("http://127.0.0.1/v1", Err("it has a path"));
        check("127.0.0.1:7373", Err("begins neither"));
        check("ftp://127.0.0.1", Err("begins neither"));
        check("", Err("is not the address of a gateway"));
    }
}
