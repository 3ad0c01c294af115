//! Watching a connection: its health, and the tools that its server lists.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use claw_core::port::Control;
use claw_core::tool::Digest;
use claw_schema::validate::Validator;
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, PaginatedRequestParams, PingRequest, ProtocolVersion, SubscriptionFilter};
use rmcp::service::{Peer, ServiceError};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::dial::deepest;
use super::reconnect::{LONGEST_PAUSE, pause};
use super::{ConnectionState, DIAL_WITHIN, Dialled, Live, Now, Target};
use crate::accepted_definition::pinned;
use crate::handler::Watcher;

/// The interval between health checks of a connection, and the longest the server may take to answer one.
const HEALTH_EVERY: Duration = Duration::from_secs(30);
const HEALTH_WITHIN: Duration = Duration::from_secs(15);
/// The most tools and pages read from one server.
const MOST_TOOLS: usize = 5_000;
const MOST_PAGES: usize = 200;
/// The most bytes of one definition, and of a server's whole list.
const LARGEST_DEFINITION: usize = 128 * 1024;
const MOST_DEFINITIONS: usize = 8 * 1024 * 1024;
/// The listings within a minute after which further ones are delayed.
const FREE_LISTINGS: u32 = 5;

/// The definitions of a server's tools as it lists them, by name.
pub(super) struct Listed(BTreeMap<String, Value>);

impl Listed {
    /// The digest of the whole list.
    pub(super) fn digest(&self) -> Digest {
        Digest::of(&self.0)
    }

    /// The tools whose schemas can be used. They are checked once here, not whenever a tool is listed for a caller.
    pub(super) fn usable(self) -> BTreeMap<String, Value> {
        let mut known: HashSet<Digest> = HashSet::new();
        let mut is_usable = |name: &str, definition: &Value| {
            let schema = definition.get("inputSchema").cloned().unwrap_or_default();
            let digest = Digest::of(&schema);
            if !known.contains(&digest) {
                if let Err(error) = Validator::compile(&schema) {
                    tracing::warn!(tool = name, "an MCP tool is left out: {error}");
                    return false;
                }
                known.insert(digest);
            }
            true
        };
        self.0.into_iter().filter(|(name, definition)| is_usable(name, definition)).collect()
    }
}

/// Reads the definitions of all tools of a server, within bounds.
pub(super) async fn read(peer: &Peer<RoleClient>) -> Result<Listed, String> {
    match timeout(DIAL_WITHIN, read_pages(peer)).await {
        Ok(read) => read.map(Listed),
        Err(_) => Err(format!("it did not list its tools within {} seconds", DIAL_WITHIN.as_secs())),
    }
}

async fn read_pages(peer: &Peer<RoleClient>) -> Result<BTreeMap<String, Value>, String> {
    let (mut tools, mut cursor, mut bytes) = (BTreeMap::new(), None, 0);
    for _ in 0..MOST_PAGES {
        let mut params = PaginatedRequestParams::default();
        params.cursor = cursor.take();
        let page = match peer.list_tools(Some(params)).await {
            Ok(page) => page,
            // A server without tools need not know the request.
            Err(ServiceError::McpError(error)) if error.code == rmcp::model::ErrorCode::METHOD_NOT_FOUND => {
                break;
            }
            Err(error) => return Err(format!("its tools cannot be listed: {}", deepest(&error))),
        };
        for tool in &page.tools {
            let definition = pinned(tool);
            let length = definition.to_string().len();
            if length > LARGEST_DEFINITION {
                let name: String = tool.name.chars().take(100).collect();
                return Err(format!(
                    "the definition of `{name}` has {length} bytes; at most {LARGEST_DEFINITION} are accepted"
                ));
            }
            bytes += length;
            tools.insert(tool.name.to_string(), definition);
        }
        if bytes > MOST_DEFINITIONS {
            return Err(format!("the definitions of its tools have more than {MOST_DEFINITIONS} bytes"));
        }
        cursor = page.next_cursor;
        if tools.len() > MOST_TOOLS {
            return Err(format!("it lists more than {MOST_TOOLS} tools"));
        }
        if cursor.is_none() {
            return Ok(tools);
        }
    }
    match cursor {
        None => Ok(tools),
        Some(_) => Err(format!("its list of tools has more than {MOST_PAGES} pages")),
    }
}

/// Watches a connection until it is lost, and returns why.
pub(super) async fn watch_over(
    target: &Target,
    now: &watch::Sender<Now>,
    live: Live,
    dialled: Dialled,
) -> String {
    let (peer, watcher) = (live.peer.clone(), live.watcher.clone());
    let subscribed = subscribe(&peer, &watcher);
    let mut watched = Watched { target, now, live: Arc::new(live) };
    watched.show();
    let ended = dialled.service.cancellation_token();
    let mut child = dialled.child;
    let mut closed = Box::pin(dialled.service.waiting());
    let mut next = Instant::now() + HEALTH_EVERY;
    let mut relist = Relist::default();
    let why = loop {
        tokio::select! {
            _ = &mut closed => break "the server closed the connection".to_owned(),
            () = child_ended(&mut child) => break "the server's program ended".to_owned(),
            why = watcher.lost() => break why,
            () = watcher.doubted() => {
                watched.hide();
                if let Err(why) = watched.check().await {
                    break why;
                }
                relist.at = None;
            }
            () = watcher.tools_changed() => relist.wanted(),
            () = relist.due() => {
                if let Err(why) = watched.list().await {
                    break why;
                }
                relist.done();
            }
            // A server need not tell that its tools changed, and one that started again cannot.
            () = sleep_until(next) => {
                if let Err(why) = watched.check().await {
                    break why;
                }
                relist.at = None;
                next = Instant::now() + HEALTH_EVERY;
            }
        }
    };
    ended.cancel();
    if let Some(task) = subscribed {
        task.abort();
    }
    if let Some((control, _)) = &mut child {
        control.kill().await;
    }
    why
}

/// A connection that is up, as it is shown to calls.
struct Watched<'a> {
    target: &'a Target,
    now: &'a watch::Sender<Now>,
    live: Arc<Live>,
}

impl Watched<'_> {
    /// Lets calls use the connection.
    fn show(&self) {
        self.live.watcher.trust();
        let state = ConnectionState::Ready { protocol: self.live.report.protocol.clone() };
        self.now.send_replace(Now { state, live: Some(Arc::clone(&self.live)) });
    }

    /// Lets calls wait. They see by the connection that a failure of the check would be that of the old one: a call that
    /// comes now waits for the next.
    fn hide(&self) {
        let live = Some(Arc::clone(&self.live));
        self.now.send_replace(Now { state: ConnectionState::Connecting, live });
    }

    /// Checks that the server answers, and reads its tools again. The error says why the connection is lost.
    async fn check(&mut self) -> Result<(), String> {
        match unhealthy(&self.live.peer).await {
            Some(why) => Err(why),
            None => self.list().await,
        }
    }

    /// Reads the tools again, and stores them if they changed.
    async fn list(&mut self) -> Result<(), String> {
        let Live { peer, watcher, report, .. } = &*self.live;
        let tools = read(peer).await?;
        if tools.digest() != self.live.listed {
            let live = super::live(self.target, peer.clone(), watcher.clone(), tools, report.clone()).await;
            self.live = Arc::new(live);
        }
        self.show();
        Ok(())
    }
}

/// The next listing of a server's tools. If a server keeps announcing changes, the pauses grow.
#[derive(Default)]
struct Relist {
    at: Option<Instant>,
    last: Option<Instant>,
    in_a_row: u32,
}

impl Relist {
    /// Schedules a listing, because the server announced changed tools.
    fn wanted(&mut self) {
        let now = Instant::now();
        if self.at.is_none() {
            let is_quick = self.last.is_some_and(|last| now.duration_since(last) < LONGEST_PAUSE);
            self.in_a_row = if is_quick { self.in_a_row + 1 } else { 0 };
            let wait = if self.in_a_row < FREE_LISTINGS {
                Duration::ZERO
            } else {
                pause(self.in_a_row - FREE_LISTINGS + 1).min(LONGEST_PAUSE)
            };
            self.at = Some(now + wait);
        }
    }

    fn done(&mut self) {
        (self.at, self.last) = (None, Some(Instant::now()));
    }

    /// Waits until the next listing is due; forever if none is scheduled.
    async fn due(&self) {
        match self.at {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    }
}

async fn child_ended(child: &mut Option<(Box<dyn Control>, watch::Receiver<String>)>) {
    match child {
        Some((control, _)) => drop(control.ended().await),
        None => std::future::pending().await,
    }
}

/// Asks a server of the newer protocol to announce changed tools; older ones do so by themselves. If the announcements end,
/// the server may have started again: it is checked, and asked again after a while.
fn subscribe(peer: &Peer<RoleClient>, watcher: &Watcher) -> Option<tokio::task::JoinHandle<()>> {
    let modern = peer.peer_info().is_some_and(|info| info.protocol_version >= ProtocolVersion::V_2026_07_28);
    let (peer, watcher) = (peer.clone(), watcher.clone());
    modern.then(|| {
        tokio::spawn(async move {
            let filter = SubscriptionFilter::builder().tools_list_changed().build();
            while let Ok(mut subscription) = peer.listen(filter.clone()).await {
                while let Ok(Some(_)) = subscription.next().await {
                    watcher.note_change();
                }
                watcher.note_doubt();
                sleep(HEALTH_EVERY).await;
            }
        })
    })
}

/// Returns why a server fails a health check; `None` if it passes. Any answer counts, an error too.
async fn unhealthy(peer: &Peer<RoleClient>) -> Option<String> {
    let ping = peer.send_request(ClientRequest::PingRequest(PingRequest::default()));
    match timeout(HEALTH_WITHIN, ping).await {
        Ok(Ok(_) | Err(ServiceError::McpError(_))) => None,
        Ok(Err(error)) => Some(format!("a health check failed: {}", deepest(&error))),
        Err(_) => {
            Some(format!("it did not answer a health check within {} seconds", HEALTH_WITHIN.as_secs()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_flaps_is_listed_at_growing_pauses() {
        let (mut relist, start) = (Relist::default(), Instant::now());
        let mut waited = Vec::new();
        for _ in 0..9 {
            let before = Instant::now();
            relist.wanted();
            relist.due().await;
            relist.done();
            waited.push(before.elapsed().as_secs());
        }
        assert_eq!(waited, [0, 0, 0, 0, 0, 2, 4, 8, 16]);
        assert!(start.elapsed() < Duration::from_secs(31));
        sleep(LONGEST_PAUSE).await;
        relist.wanted();
        assert!(relist.at.unwrap() <= Instant::now(), "a calm minute makes up for it");
    }
}
