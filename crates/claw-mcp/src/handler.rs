//! Requests and notifications that a server sends to us.
#![expect(deprecated, reason = "servers of older protocols log by notifications and ask for roots")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use claw_core::tool::Call;
use claw_registry::TimeLimit;
use rmcp::ClientHandler;
use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorData, FormElicitationCapability, Implementation, ListRootsResult,
    LoggingLevel, LoggingMessageNotificationParam, NumberOrString, ProgressNotificationParam, ProgressToken,
    ProtocolVersion, Root, RootsCapabilities, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext};
use tokio::sync::{Notify, watch};

use crate::elicitation;
use crate::error::Unread;

/// The most requests for input of one server that wait at a time, over all calls.
const MOST_ASKING: usize = 20;

/// The client side of one connection. Sampling is not offered: a server gets nothing from us that no call gave it, or that
/// the person behind a call was not asked for. Its roots are the directories that it was granted anyway.
#[derive(Clone, Default)]
pub(crate) struct Watcher(Arc<Shared>);

#[derive(Default)]
struct Shared {
    server: String,
    /// The directories that the server may work in, as `file` URLs.
    roots: Vec<String>,
    /// Values that are removed from what the server logs; `None` where a login has values that are not known here.
    hidden: Option<Vec<String>>,
    /// The calls that wait for an answer, by the token of their progress.
    calls: Mutex<HashMap<NumberOrString, Waiting>>,
    /// The number of calls that were followed.
    followed: AtomicUsize,
    /// The number of requests for input that wait.
    asking: AtomicUsize,
    changed: Notify,
    /// The server may be another one than the one that was listed: it is checked before the next call.
    is_doubted: AtomicBool,
    doubted: Notify,
    /// The cause, once the connection cannot be used any more.
    lost: OnceLock<String>,
    gone: Notify,
}

/// A call that waits for the server's answer, and its limit of time.
#[derive(Clone)]
struct Waiting {
    call: Call,
    time: TimeLimit,
    unread: watch::Sender<Option<UnreadMessage>>,
}

/// A message of a server that could not be read while a call waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnreadMessage {
    pub(crate) problem: Unread,
    /// It was the answer of this call, as far as can be told: no other call waited.
    pub(crate) is_answer: bool,
}

impl Watcher {
    pub(crate) fn new(server: &str, roots: Vec<String>, hidden: Option<Vec<String>>) -> Self {
        Self(Arc::new(Shared { server: server.to_owned(), roots, hidden, ..Shared::default() }))
    }

    /// The directories that the server may work in.
    pub(crate) fn roots(&self) -> ListRootsResult {
        ListRootsResult::new(self.0.roots.iter().map(Root::new).collect())
    }

    /// Passes the progress of a call and the server's requests for input on until the guard is dropped. The call is known
    /// before it is sent: its server may answer before the sender goes on.
    pub(crate) fn follow(&self, call: Call, time: TimeLimit) -> Following {
        let (unread, received) = watch::channel(None);
        let unsent = self.0.followed.fetch_add(1, Ordering::Relaxed);
        let token = NumberOrString::String(format!("unsent-{unsent}").into());
        self.calls().insert(token.clone(), Waiting { call, time, unread });
        Following { watcher: self.clone(), token, unread: received }
    }

    /// Tells the calls that wait that a message could not be read. With a token it was the answer of that call. Without one
    /// it counts as the answer if only one call waits.
    pub(crate) fn note_unread(&self, of: Option<&ProgressToken>, problem: Unread) {
        let calls = self.calls();
        let is_answer = of.is_some() || calls.len() == 1;
        let meant = calls.iter().filter(|(token, _)| of.is_none_or(|of| of.0 == **token));
        for (_, waiting) in meant {
            waiting.unread.send_replace(Some(UnreadMessage { problem, is_answer }));
        }
        tracing::debug!(server = %self.0.server, "a message was discarded: it {problem}");
    }

    /// Marks the connection as one that cannot be used any more: no call uses it from now on.
    pub(crate) fn note_lost(&self, why: &str) {
        let _ = self.0.lost.set(why.to_owned());
        self.0.gone.notify_one();
    }

    /// Waits until the connection cannot be used any more, and returns why.
    pub(crate) async fn lost(&self) -> String {
        self.0.gone.notified().await;
        self.0.lost.get().cloned().unwrap_or_default()
    }

    /// Marks the server as one that may have ended or started again: calls wait until it has been checked.
    pub(crate) fn note_doubt(&self) {
        self.0.is_doubted.store(true, Ordering::Release);
        self.0.doubted.notify_one();
    }

    /// Waits until the server has to be checked.
    pub(crate) async fn doubted(&self) {
        self.0.doubted.notified().await;
    }

    /// Marks the server as checked.
    pub(crate) fn trust(&self) {
        self.0.is_doubted.store(false, Ordering::Release);
    }

    /// Returns whether calls may use the connection: it is not lost, and the server need not be checked first.
    pub(crate) fn is_usable(&self) -> bool {
        self.0.lost.get().is_none() && !self.0.is_doubted.load(Ordering::Acquire)
    }

    /// The call that a request for input belongs to. The protocol does not say which it is: if calls of several sessions
    /// wait for this server, nobody is asked, since the wrong person could be.
    fn asking_call(&self) -> Result<Waiting, &'static str> {
        let calls = self.calls();
        let mut waiting = calls.values();
        let first = waiting.next().ok_or("no call waits for this server, so there is nobody to ask")?;
        let owner = |waiting: &Waiting| {
            let caller = waiting.call.caller();
            (caller.tenant.clone(), caller.user.clone(), caller.agent.clone(), caller.session.clone())
        };
        let of_first = owner(first);
        if waiting.any(|other| owner(other) != of_first) {
            return Err(
                "calls of several sessions wait for this server, and the request does not say whose it is",
            );
        }
        Ok(first.clone())
    }

    /// Takes a place among the requests for input that wait; `None` if too many do.
    fn place(&self) -> Option<Place<'_>> {
        let waiting = self.0.asking.fetch_add(1, Ordering::Relaxed);
        let place = Place(&self.0.asking);
        (waiting < MOST_ASKING).then_some(place)
    }

    /// Waits until the server announces changed tools.
    pub(crate) async fn tools_changed(&self) {
        self.0.changed.notified().await;
    }

    pub(crate) fn note_change(&self) {
        self.0.changed.notify_one();
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, HashMap<NumberOrString, Waiting>> {
        self.0.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place among the requests for input that wait, until it is dropped.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Ends the passing on of progress and requests when it is dropped.
pub(crate) struct Following {
    watcher: Watcher,
    token: NumberOrString,
    unread: watch::Receiver<Option<UnreadMessage>>,
}

impl Following {
    /// Notes the token under which the call was sent.
    pub(crate) fn sent(&mut self, token: &ProgressToken) {
        let mut calls = self.watcher.calls();
        if let Some(waiting) = calls.remove(&self.token) {
            calls.insert(token.0.clone(), waiting);
        }
        drop(calls);
        self.token = token.0.clone();
    }

    /// Waits until the answer of the call has come and could not be read.
    pub(crate) async fn unreadable(&mut self) -> Unread {
        let answer = self.unread.wait_for(|message| message.is_some_and(|message| message.is_answer)).await;
        match answer.ok().and_then(|message| *message) {
            Some(message) => message.problem,
            None => std::future::pending().await,
        }
    }

    /// The last message that could not be read while the call waited.
    pub(crate) fn unread(&self) -> Option<Unread> {
        self.unread.borrow().map(|message| message.problem)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.watcher.calls().remove(&self.token);
    }
}

impl ClientHandler for Watcher {
    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let waiting = self.calls().get(&params.progress_token.0).cloned();
        let Some(waiting) = waiting else { return };
        let listener = waiting.call.progress();
        let share = match params.total {
            Some(total) => format!("{}/{total}", params.progress),
            None => params.progress.to_string(),
        };
        match params.message {
            Some(message) => listener.tell(&format!("{share} {message}\n")),
            None => listener.tell(&format!("{share}\n")),
        }
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        // First scrubbed, then cut.
        let text = match &self.0.hidden {
            Some(hidden) => hidden
                .iter()
                .fold(params.data.to_string(), |text, value| text.replace(value.as_str(), "[REDACTED]")),
            None => "(left out: the server has a login)".to_owned(),
        };
        let text: String = text.chars().take(1_000).collect();
        let server = &self.0.server;
        match params.level {
            LoggingLevel::Debug | LoggingLevel::Info | LoggingLevel::Notice => {
                tracing::debug!(%server, level = ?params.level, "an MCP server logs: {text}");
            }
            // A server's error is none of ours: its calls tell what went wrong.
            _ => tracing::info!(%server, level = ?params.level, "an MCP server logs: {text}"),
        }
    }

    /// Puts a request for input to the person behind the call that waits. Where nobody can be asked, it is cancelled.
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let cancelled = |why: &str| {
            tracing::debug!(server = %self.0.server, "a request for input is cancelled: {why}");
            Ok(ElicitResult::new(ElicitationAction::Cancel))
        };
        let Some(_place) = self.place() else { return cancelled("too many wait already") };
        let Waiting { call, time, .. } = match self.asking_call() {
            Ok(waiting) => waiting,
            Err(why) => return cancelled(why),
        };
        let _paused = time.pause();
        tokio::select! {
            asked = elicitation::ask(&call, &self.0.server, request) => match asked {
                Ok(answer) => Ok(answer),
                Err(error) => cancelled(&error.message),
            },
            () = context.ct.cancelled() => cancelled("the server withdrew it"),
        }
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(self.roots())
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.note_change();
    }

    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("clawsmith", env!("CARGO_PKG_VERSION"));
        // The newer lifecycle sends this with every request, so it holds no more than a server needs to know.
        let elicitation = ElicitationCapability::new()
            .with_form(FormElicitationCapability::new())
            .with_url(UrlElicitationCapability::new());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        capabilities.roots = (!self.0.roots.is_empty()).then(RootsCapabilities::default);
        let mut config = ClientConfig::new(capabilities, us);
        config.protocol_version = ProtocolVersion::V_2025_11_25;
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_more_requests_for_input_than_may_wait_at_a_time() {
        let watcher = Watcher::default();
        let mut places: Vec<_> = (0..MOST_ASKING).map(|_| watcher.place().unwrap()).collect();
        assert!(watcher.place().is_none() && watcher.place().is_none());
        places.pop();
        assert!(watcher.place().is_some(), "a refused one takes no place");
    }
}
