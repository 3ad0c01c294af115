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
mod error;
mod events;
mod guard;
mod health;
mod sessions;
mod tools;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use clawsmith::app::access::Door;
use clawsmith::app::{App, Error, Sessions, SessionsOptions};
use tokio::net::TcpListener;

/// The lane whose runs the gateway's workers take.
pub const LANE: &str = "main";
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

/// What every handler works with.
#[derive(Clone)]
struct Gateway(Arc<Inner>);

struct Inner {
    app: App,
    sessions: Sessions,
    door: Door,
    hosts: Vec<String>,
}

impl Gateway {
    fn app(&self) -> &App {
        &self.0.app
    }

    fn sessions(&self) -> &Sessions {
        &self.0.sessions
    }
}

/// Serves on this listener until `stop` is ready, then ends: requests that run are finished, runs go on to their end or
/// are taken up by the next worker.
pub async fn serve(
    app: App,
    listener: TcpListener,
    options: GatewayOptions,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let sessions = SessionsOptions { lanes: vec![LANE.into()], script: options.script, instead: None };
    let sessions = app.sessions(sessions).await?;
    let address =
        listener.local_addr().map_err(|error| Error::failed("there is no address").because(error))?;
    let (door, hosts) = (app.door(), names(address, options.hosts));
    let gateway = Gateway(Arc::new(Inner { app, sessions, door, hosts }));
    let served = axum::serve(listener, router(gateway.clone()))
        .with_graceful_shutdown(stop)
        .await
        .map_err(|error| Error::failed("the gateway ended").because(error));
    // Streams that are still open hold it; the process ends with them.
    if let Some(inner) = Arc::into_inner(gateway.0) {
        inner.sessions.end().await?;
    }
    served
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
        .route("/v1/models", get(completions::models))
        .route("/v1/chat/completions", post(completions::create))
        .route("/v1/sessions", get(sessions::list))
        .route("/v1/sessions/{session}/messages", get(sessions::messages))
        .route("/v1/sessions/{session}/events", get(events::follow))
        .route("/v1/runs", get(sessions::runs))
        .route("/v1/runs/{run}", get(sessions::run))
        .route("/v1/runs/{run}/cancel", post(sessions::cancel))
        .route("/v1/approvals", get(approvals::list))
        .route("/v1/approvals/{approval}/answer", post(approvals::answer))
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
