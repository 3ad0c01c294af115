//! A way to the server that can be cut, frozen and lost: a socket of its own that passes everything on.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

/// The file name of PostgreSQL's socket; the port is part of the name.
const SOCKET: &str = ".s.PGSQL.5432";
/// A number of bytes that no test sends.
const ALL: u64 = u64::MAX;

/// Passes connections on to the server's socket until it is cut.
pub(crate) struct Proxy {
    directory: TempDir,
    server: Arc<PathBuf>,
    running: Option<AbortHandle>,
    gate: Arc<Mutex<Gate>>,
}

/// The number of bytes that connections may still pass, in both directions together.
type Gate = Arc<watch::Sender<u64>>;

impl Proxy {
    /// Starts forwarding to the server whose socket is in `server`.
    pub(crate) fn start(server: PathBuf) -> Self {
        let directory = tempfile::Builder::new().prefix("claw").tempdir_in("/tmp").unwrap();
        let gate = Arc::new(Mutex::new(open_gate()));
        let mut proxy = Self { directory, server: Arc::new(server), running: None, gate };
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
        self.freeze_after(0);
    }

    /// Passes this many bytes on and is frozen then.
    pub(crate) fn freeze_after(&self, bytes: u64) {
        self.gate.lock().unwrap().send_replace(bytes);
    }

    /// Passes everything on again, beginning with the bytes that wait.
    pub(crate) fn thaw(&self) {
        self.freeze_after(ALL);
    }

    /// Returns the number of bytes that were passed on since the start or the last [`thaw`](Self::thaw).
    pub(crate) fn passed(&self) -> u64 {
        ALL - *self.gate.lock().unwrap().borrow()
    }

    /// Freezes the present connections for good, as a network that has forgotten them. New ones are passed on.
    pub(crate) fn forget_connections(&self) {
        let forgotten = std::mem::replace(&mut *self.gate.lock().unwrap(), open_gate());
        forgotten.send_replace(0);
    }

    /// The server is back.
    pub(crate) fn mend(&mut self) {
        let listener = UnixListener::bind(self.directory.path().join(SOCKET)).unwrap();
        let accepting = accept(listener, Arc::clone(&self.server), Arc::clone(&self.gate));
        self.running = Some(tokio::spawn(accepting).abort_handle());
    }
}

fn open_gate() -> Gate {
    Arc::new(watch::Sender::new(ALL))
}

/// The connections live in the task, so they end with it.
async fn accept(listener: UnixListener, server: Arc<PathBuf>, gate: Arc<Mutex<Gate>>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let (server, gate) = (server.join(SOCKET), Arc::clone(&gate.lock().unwrap()));
        connections.spawn(async move {
            let server = UnixStream::connect(server).await?;
            let ((from_client, to_client), (from_server, to_server)) =
                (client.into_split(), server.into_split());
            tokio::try_join!(pass_on(from_client, to_server, &gate), pass_on(from_server, to_client, &gate))
        });
    }
}

async fn pass_on(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, gate: &Gate) -> io::Result<()> {
    let mut bytes = vec![0; 8192];
    loop {
        let mut rest = match from.read(&mut bytes).await? {
            0 => return to.shutdown().await,
            read => &bytes[..read],
        };
        while !rest.is_empty() {
            let (now, later) = rest.split_at(admitted(gate, rest.len()).await);
            to.write_all(now).await?;
            rest = later;
        }
    }
}

/// Waits until the gate is open; returns how many of these bytes may pass.
async fn admitted(gate: &Gate, bytes: usize) -> usize {
    loop {
        let mut now = 0;
        gate.send_if_modified(|left| {
            now = (*left).min(bytes as u64);
            *left -= now;
            now > 0
        });
        if now > 0 {
            return now as usize;
        }
        let mut opened = gate.subscribe();
        opened.wait_for(|left| *left > 0).await.unwrap();
    }
}
