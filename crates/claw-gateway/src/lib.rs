//! Clawsmith over HTTP: agents and tools for programs, with the same checks on every call.
//!
//! ```text
//!  request ──▶ admit: host, origin, key ──▶ route: one permission ──▶ handler ──▶ application ──▶ JSON or events
//! ```
//!
//! A front end like the command line: it holds transport and rendering. The application below,
//! [`clawsmith::app`], decides as whom a request acts, what it may do and what happens then. `routes.rs` is
//! the table of all paths; the OpenAPI document is generated from it.

mod admit;
mod agents;
mod answering;
mod api;
mod approvals;
mod calls_under_way;
pub mod client;
mod client_address;
mod client_tools;
mod completions;
mod connections;
mod custom;
mod error;
mod events;
mod feed;
mod graph;
mod health;
mod keys_and_users;
mod listing;
mod mcp;
mod memory;
mod metrics;
mod offers;
mod openapi;
mod policy;
mod programs;
mod question;
mod records;
mod reload;
mod request_body;
mod request_layer;
mod responses;
mod routes;
mod run_quota;
mod sessions;
mod settings;
mod skills;
mod slow_reader;
#[cfg(test)]
mod testing;
mod tls;
mod tools;
mod undo;
mod ws;

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use axum::Router;
use axum::handler::Handler as _;
use axum::middleware::from_fn_with_state;
use clawsmith::app::access::Door;
use clawsmith::app::listen::{OwnListener, TlsFiles};
use clawsmith::app::reload::ConfigurationStatus;
use clawsmith::app::{App, Error, Sessions, SessionsOptions};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::Access;
use crate::calls_under_way::CallsUnderWay;
use crate::connections::Entrance;
use crate::metrics::Metrics;
use crate::offers::Offers;
pub use crate::reload::ReloadOptions;
use crate::request_layer::Front;
use crate::run_quota::StartLocks;

/// The lane whose runs the gateway's workers take.
pub const LANE: &str = "main";
/// The number of concurrent runs.
const SLOTS: usize = 64;
/// The time in which WebSocket clients are told that the gateway ends.
const LONGEST_FAREWELL: Duration = Duration::from_secs(2);

/// The options of the gateway.
#[derive(Debug, Clone, Default)]
pub struct GatewayOptions {
    /// Additional valid `Host` names, besides loopback ones and the address itself.
    pub hosts: Vec<String>,
    /// The certificate to speak TLS with; `None` for plain HTTP.
    pub tls: Option<TlsFiles>,
    /// The only addresses from which connections are accepted; `None` means all.
    pub peers: Option<Vec<IpAddr>>,
    /// Proxies that are believed what they say of a client's address.
    pub proxies: Vec<IpAddr>,
    /// A script that is played instead of every model.
    pub script: Option<std::path::PathBuf>,
    /// The time that requests and runs have to come to their end when the gateway ends.
    pub drain: Duration,
    /// Reloads the configuration while the gateway runs; `None` keeps it as it is.
    pub reload: Option<ReloadOptions>,
}

/// The state that every handler gets.
#[derive(Clone)]
struct Gateway(Arc<Inner>);

struct Inner {
    /// The application, with the configuration that holds.
    app: RwLock<App>,
    configuration: Mutex<ConfigurationStatus>,
    sessions: Sessions,
    door: Door,
    offers: Offers,
    calls: CallsUnderWay,
    starts: StartLocks,
    hosts: Vec<String>,
    proxies: Vec<IpAddr>,
    metrics: Metrics,
    /// The place of the replay of a policy: one at a time.
    replays: Semaphore,
    /// Places of WebSocket connections that have not shown a key yet.
    without_key: Arc<Semaphore>,
    /// The WebSocket connections, which are told that the gateway ends.
    websockets: TaskTracker,
    /// Rings when the gateway ends: streams end then, and runs of clients that are cut off go on.
    ending: CancellationToken,
}

impl Gateway {
    fn app(&self) -> App {
        self.0.app.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_app(&self, app: App) {
        *self.0.app.write().unwrap_or_else(PoisonError::into_inner) = app;
    }

    fn sessions(&self) -> &Sessions {
        &self.0.sessions
    }

    fn ending(&self) -> &CancellationToken {
        &self.0.ending
    }
}

/// Serves on this listener until `stop` is ready, then ends: requests that run are finished, streams end, runs are carried
/// to their end. A run that takes longer than some seconds is parked where it stands: the next start, or another gateway on
/// the same store, takes it at once.
pub async fn serve(
    app: App,
    listener: TcpListener,
    options: GatewayOptions,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let sessions = SessionsOptions {
        lanes: vec![LANE.into()],
        script: options.script,
        instead: None,
        slots: Some(SLOTS),
        owner_answers: false,
    };
    let sessions = app.sessions(sessions).await?;
    let address = listener
        .local_addr()
        .map_err(|error| Error::failed("the listener's address cannot be read").because(error))?;
    // No agent of this gateway reaches it: it would act with whatever key it found.
    let _closed = OwnListener::close_to_agents(address.port(), &options.hosts);
    let (door, hosts, ending) = (app.door(), names(address, options.hosts), CancellationToken::new());
    let entrance = Entrance {
        listener,
        tls: options.tls.as_ref().map(tls::acceptor).transpose()?,
        peers: options.peers,
    };
    let metrics = Metrics::new();
    let (connections, drain) = (metrics.connections.clone(), options.drain);
    let configuration = Mutex::new(ConfigurationStatus::at_start(app.setup()));
    let (app, ends, proxies) = (RwLock::new(app), ending.clone(), options.proxies);
    let inner = Inner {
        app,
        configuration,
        sessions,
        door,
        offers: Offers::default(),
        calls: CallsUnderWay::default(),
        starts: StartLocks::default(),
        hosts,
        proxies,
        metrics,
        replays: Semaphore::new(1),
        without_key: Arc::new(Semaphore::new(ws::connect::MOST_WITHOUT_KEY)),
        websockets: TaskTracker::new(),
        ending: ends,
    };
    let gateway = Gateway(Arc::new(inner));
    if let Some(reload) = options.reload {
        tokio::spawn(reload::watch(gateway.clone(), reload));
    }
    let open = entrance.accept(router(gateway.clone()), ending, connections, stop).await;
    let websockets = &gateway.0.websockets;
    websockets.close();
    // One whose client does not read cannot be told, and nothing is lost with it: events are stored.
    let told = timeout(LONGEST_FAREWELL.min(drain), websockets.wait());
    let answered = async {
        open.wait().await;
        gateway.0.calls.ended().await;
    };
    let connections = async { tokio::join!(answered, told) };
    let (requests, runs) = tokio::join!(timeout(drain, connections), gateway.sessions().end(Some(drain)));
    // Calls that were finished meanwhile have events, too.
    gateway.sessions().deployment().chronicle.written().await;
    if requests.is_err() {
        tracing::warn!("unfinished requests are cut off; their runs are resumed at the next start");
    }
    runs.map(drop)
}

/// The names that a `Host` header may have.
fn names(address: SocketAddr, more: Vec<String>) -> Vec<String> {
    let own = [address.ip().to_string(), "localhost".to_owned(), "127.0.0.1".to_owned(), "[::1]".to_owned()];
    more.into_iter().chain(own).collect()
}

fn router(gateway: Gateway) -> Router {
    let elsewhere = Front { gateway: gateway.clone(), path: None, access: Access::Open };
    let elsewhere = from_fn_with_state(elsewhere, request_layer::pass);
    routes::table(mcp::server(&gateway))
        .router(&gateway)
        .fallback(error::no_such_path.layer(elsewhere.clone()))
        .method_not_allowed_fallback(error::no_such_method.layer(elsewhere))
        .with_state(gateway)
}
