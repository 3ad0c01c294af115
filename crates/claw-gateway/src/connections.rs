//! Accepts connections, with TLS if configured, and serves each until its end.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use prometheus_client::metrics::gauge::Gauge;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::client_address::{OfPeer, Peer};
use crate::slow_reader::SlowReader;

/// The longest a client may take to send the head of a request.
const LONGEST_HEAD: Duration = Duration::from_secs(10);
/// The longest head of a request, in bytes.
const LONGEST_HEADERS: usize = 64 * 1024;
/// The most connections at a time; others wait to be accepted.
const MOST_CONNECTIONS: usize = 4096;

/// The door to the network.
pub(crate) struct Entrance {
    pub(crate) listener: TcpListener,
    pub(crate) tls: Option<TlsAcceptor>,
    /// The only addresses from which connections are accepted; `None` means all.
    pub(crate) peers: Option<Vec<IpAddr>>,
}

impl Entrance {
    /// Takes connections until `stop` is ready, then tells those that are open to end; returns them.
    pub(crate) async fn accept(
        self,
        router: Router,
        ending: CancellationToken,
        connections: Gauge,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> TaskTracker {
        let (open, room) = (TaskTracker::new(), Arc::new(Semaphore::new(MOST_CONNECTIONS)));
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = async {
                    let place = Arc::clone(&room).acquire_owned().await;
                    self.listener.accept().await.map(|(stream, peer)| (stream, peer, place))
                } => accepted,
            };
            let (stream, peer, place) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // No more files can be opened, perhaps: those that are open end some time.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let peer = peer.ip().to_canonical();
            if self.peers.as_ref().is_some_and(|peers| !peers.contains(&peer)) {
                tracing::warn!(%peer, "a connection was refused: it does not come from a configured proxy");
                continue;
            }
            let _ = stream.set_nodelay(true);
            let routes = OfPeer { routes: TowerToHyperService::new(router.clone()), peer: Peer(peer) };
            let (ending, tls) = (ending.clone(), self.tls.clone());
            let connections = connections.clone();
            open.spawn(async move {
                let _place = place;
                connections.inc();
                match tls {
                    None => serve_connection(stream, routes, ending).await,
                    Some(tls) => match timeout(LONGEST_HEAD, tls.accept(stream)).await {
                        Ok(Ok(stream)) => serve_connection(stream, routes, ending).await,
                        Ok(Err(error)) => tracing::debug!(%error, "a connection did not use TLS"),
                        Err(_) => tracing::debug!("a connection did not finish its TLS handshake in time"),
                    },
                }
                connections.dec();
            });
        }
        drop(self.listener);
        ending.cancel();
        open.close();
        open
    }
}

/// Serves one connection until its end.
async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    routes: OfPeer,
    ending: CancellationToken,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(LONGEST_HEAD).max_buf_size(LONGEST_HEADERS);
    let connection = http.serve_connection(TokioIo::new(SlowReader::new(stream)), routes).with_upgrades();
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
}
