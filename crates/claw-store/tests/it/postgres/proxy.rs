//! A way to the server that can be cut: a socket of its own that passes everything on.

use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

/// The file name of PostgreSQL's socket; the port is part of the name.
const SOCKET: &str = ".s.PGSQL.5432";

/// Passes connections on to the server's socket until it is cut.
pub(crate) struct Proxy {
    directory: TempDir,
    server: Arc<PathBuf>,
    running: Option<AbortHandle>,
    frozen: watch::Sender<bool>,
}

impl Proxy {
    /// Starts forwarding to the server whose socket is in `server`.
    pub(crate) fn start(server: PathBuf) -> Self {
        let directory = tempfile::Builder::new().prefix("claw").tempdir_in("/tmp").unwrap();
        let mut proxy =
            Self { directory, server: Arc::new(server), running: None, frozen: watch::Sender::new(false) };
        proxy.mend();
        proxy
    }

    /// Returns the directory to connect to.
    pub(crate) fn directory(&self) -> &str {
        self.directory.path().to_str().unwrap()
    }

    /// Ends every connection and accepts no more, like a dead server.
    pub(crate) fn cut(&mut self) {
        if let Some(running) = self.running.take() {
            running.abort();
        }
        std::fs::remove_file(self.directory.path().join(SOCKET)).unwrap();
    }

    /// Keeps every connection open and passes nothing on, as a server that is stopped.
    pub(crate) fn freeze(&self) {
        self.frozen.send_replace(true);
    }

    /// The server is back.
    pub(crate) fn mend(&mut self) {
        let listener = UnixListener::bind(self.directory.path().join(SOCKET)).unwrap();
        let server = Arc::clone(&self.server);
        self.running = Some(tokio::spawn(pass_on(listener, server, self.frozen.subscribe())).abort_handle());
    }
}

/// The connections live in the task, so they end with it.
async fn pass_on(listener: UnixListener, server: Arc<PathBuf>, frozen: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    while let Ok((mut client, _)) = listener.accept().await {
        let (server, mut frozen) = (server.join(SOCKET), frozen.clone());
        connections.spawn(async move {
            let mut server = UnixStream::connect(server).await?;
            tokio::select! {
                biased;
                _ = frozen.wait_for(|frozen| *frozen) => {}
                passed = copy_bidirectional(&mut client, &mut server) => return passed,
            }
            // Both ends stay open.
            std::future::pending().await
        });
    }
}
