//! Clawsmith over HTTP: agents and tools for programs, under the same road.
//!
//! ```text
//!  request ──▶ guard: host, origin, key ──▶ handler: one permission ──▶ application ──▶ JSON or events
//! ```
//!
//! A front end like the command line: it holds transport and rendering. Who a request acts as, what it may do and what
//! happens then is decided below, in [`clawsmith::app`].

mod approvals;
mod completions;
mod custom;
mod error;
mod events;
mod guard;
mod health;
mod mcp;
mod memory;
mod records;
mod sessions;
mod skills;
mod tools;
mod ws;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::routing::{get, patch, post, put};
use clawsmith::app::access::{Door, Visitor};
use clawsmith::app::{App, Error, Sessions, SessionsOptions};
use clawsmith::store::{JobFilter, JobState};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The lane whose runs the gateway's workers take.
pub const LANE: &str = "main";
/// How many runs go on at a time.
const SLOTS: usize = 64;
/// How many open runs are looked at to find those of one user.
const MOST_LISTED: usize = 1_000;
/// How many runs of one user may be open at a time: running, waiting or parked.
const MOST_OPEN_RUNS: usize = 16;
/// How long requests, and then runs, may take to come to their end when the gateway ends.
const LONGEST_END: Duration = Duration::from_secs(10);
/// How long a client may take to send the head of a request.
const LONGEST_HEAD: Duration = Duration::from_secs(10);
/// The longest head of a request, in bytes.
const LONGEST_HEADERS: usize = 64 * 1024;
/// The most connections at a time; others wait to be accepted.
const MOST_CONNECTIONS: usize = 4096;
/// The longest body of a request, in bytes.
const LONGEST_BODY: usize = 8 * 1024 * 1024;

/// How the gateway serves.
#[derive(Debug, Clone, Default)]
pub struct GatewayOptions {
    /// Names, besides loopback ones and the address itself, that a `Host` header may have.
    pub hosts: Vec<String>,
    /// A script that is played instead of every model.
    pub script: Option<std::path::PathBuf>,
}

/// The state that every handler gets.
#[derive(Clone)]
struct Gateway(Arc<Inner>);

struct Inner {
    app: App,
    sessions: Sessions,
    door: Door,
    hosts: Vec<String>,
    /// Rings when the gateway ends: streams end then, and runs of clients that are cut off go on.
    ending: CancellationToken,
}

impl Gateway {
    fn app(&self) -> &App {
        &self.0.app
    }

    fn sessions(&self) -> &Sessions {
        &self.0.sessions
    }

    fn ending(&self) -> &CancellationToken {
        &self.0.ending
    }

    /// Refuses another run of a user who has many open: they would take the turns of all others.
    async fn check_open_runs(&self, visitor: &Visitor) -> Result<(), error::ApiError> {
        let states = vec![JobState::Pending, JobState::Leased, JobState::Parked];
        let filter = JobFilter { states, limit: MOST_LISTED, ..JobFilter::default() };
        let open = self.app().of_tenant(&visitor.tenant).runs(&filter).await?;
        let user = visitor.user.as_ref().map(clawsmith::UserId::as_str);
        let own = open.iter().filter(|job| job.new.payload["user"].as_str() == user).count();
        if own < MOST_OPEN_RUNS {
            return Ok(());
        }
        let what = format!("{own} of your runs are open, and no more than {MOST_OPEN_RUNS} may be");
        Err(error::ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_runs", what)
            .hint("wait for one to end, or cancel one"))
    }
}

/// Serves on this listener until `stop` is ready, then ends: requests that run are finished, streams end, runs are carried
/// to their end. What takes longer than some seconds is left: the next start takes those runs up.
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
    };
    let sessions = app.sessions(sessions).await?;
    let address =
        listener.local_addr().map_err(|error| Error::failed("there is no address").because(error))?;
    let (door, hosts, ending) = (app.door(), names(address, options.hosts), CancellationToken::new());
    let gateway = Gateway(Arc::new(Inner { app, sessions, door, hosts, ending: ending.clone() }));
    accept(listener, router(gateway.clone()), ending, stop).await;
    // A stream that did not end in time still holds it; its runs are taken up by the next start.
    if let Some(inner) = Arc::into_inner(gateway.0)
        && let Ok(ended) = timeout(LONGEST_END, inner.sessions.end()).await
    {
        ended?;
    }
    Ok(())
}

/// Takes connections until `stop` is ready, and lets those that are open come to an end.
async fn accept(
    listener: TcpListener,
    router: Router,
    ending: CancellationToken,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let (open, room) = (TaskTracker::new(), Arc::new(Semaphore::new(MOST_CONNECTIONS)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(LONGEST_HEAD).max_buf_size(LONGEST_HEADERS);
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = async {
                let place = Arc::clone(&room).acquire_owned().await;
                listener.accept().await.map(|(stream, _)| (stream, place))
            } => accepted,
        };
        let (stream, place) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // No more files can be opened, perhaps: those that are open end some time.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        let connection = http.serve_connection(TokioIo::new(stream), service).with_upgrades();
        let ending = ending.clone();
        open.spawn(async move {
            let _place = place;
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = ending.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended");
            }
        });
    }
    drop(listener);
    ending.cancel();
    open.close();
    if timeout(LONGEST_END, open.wait()).await.is_err() {
        tracing::warn!("requests that still run are cut off; their runs go on at the next start");
    }
}

/// The names that a `Host` header may have.
fn names(address: SocketAddr, more: Vec<String>) -> Vec<String> {
    let own = [address.ip().to_string(), "localhost".to_owned(), "127.0.0.1".to_owned(), "[::1]".to_owned()];
    more.into_iter().chain(own).collect()
}

fn router(gateway: Gateway) -> Router {
    let guarded = Router::new()
        .route("/v1/tools", get(tools::list))
        .route("/v1/tools/invoke", post(tools::invoke))
        .route("/v1/tools/custom", get(custom::list).post(custom::create))
        .route(
            "/v1/tools/custom/{name}",
            get(custom::get).patch(custom::update).put(custom::update).delete(custom::remove),
        )
        .route("/v1/models", get(completions::models))
        .route("/v1/chat/completions", post(completions::create))
        .route("/v1/sessions", get(sessions::list))
        .route("/v1/sessions/{session}", patch(sessions::rename).delete(sessions::remove))
        .route("/v1/sessions/{session}/fork", post(sessions::fork))
        .route("/v1/sessions/{session}/messages", get(sessions::messages))
        .route("/v1/sessions/{session}/events", get(events::follow))
        .route("/v1/runs", get(sessions::runs))
        .route("/v1/runs/{run}", get(sessions::run))
        .route("/v1/runs/{run}/cancel", post(sessions::cancel))
        .route("/v1/agents", get(records::agents))
        .route("/v1/skills", get(skills::list))
        .route("/v1/skills/search", get(skills::search))
        .route("/v1/skills/{name}", get(skills::show).delete(skills::remove))
        .route("/v1/skills/{name}/accept", post(skills::accept))
        .route("/v1/skills/{name}/grants", post(skills::grant).delete(skills::revoke))
        .route("/v1/ledger", get(records::ledger))
        .route("/v1/usage", get(records::usage))
        .route("/v1/memory", get(memory::list))
        .route("/v1/memory/search", get(memory::search))
        .route("/v1/memory/status", get(memory::status))
        .route("/v1/memory/document", get(memory::read).put(memory::write).delete(memory::forget))
        .route("/v1/ws", get(ws::open))
        .route("/v1/approvals", get(approvals::list))
        .route("/v1/approvals/{approval}/answer", post(approvals::answer))
        .route("/v1/mcp/servers", get(mcp::list).post(mcp::add))
        .route("/v1/mcp/servers/{server}", get(mcp::get).delete(mcp::remove))
        .route("/v1/mcp/servers/{server}/test", post(mcp::test))
        .route("/v1/mcp/servers/{server}/pin", post(mcp::pin))
        .route("/v1/mcp/servers/{server}/grants", put(mcp::grant).delete(mcp::revoke))
        .route("/v1/mcp/requests", get(mcp::requests).post(mcp::request))
        .route("/v1/mcp/requests/{request}/review", post(mcp::review))
        .merge(Router::new().route_service("/mcp", mcp::server(&gateway)).route_layer(
            axum::middleware::from_fn_with_state(mcp::McpSessions::default(), mcp::admit_client),
        ))
        .route_layer(axum::middleware::from_fn_with_state(gateway.clone(), guard::admit));
    Router::new()
        .merge(guarded)
        .route("/health", get(health::alive))
        .route("/ready", get(health::ready))
        .fallback(error::no_such_path)
        .method_not_allowed_fallback(error::no_such_method)
        .layer(axum::middleware::from_fn_with_state(gateway.clone(), guard::check_origin))
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .with_state(gateway)
}
