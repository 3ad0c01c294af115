//! Starts commands through the helper, and holds on to them while they run.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as Socket;
use std::path::PathBuf;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

use super::helper::{self, wire};
use super::kernel::mounts;
use super::kernel::probe::Found;
use super::{LayerName, Layers, Limits, Network, Reach, SandboxError};

/// A command to be started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program, then its arguments.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    /// The working directory.
    pub directory: PathBuf,
    /// The resource limits.
    pub limits: Limits,
    /// The confinement; `None` runs it on the host.
    pub confinement: Option<Confinement>,
    /// True if its first descriptor is a terminal, which becomes its controlling terminal.
    pub terminal: bool,
}

/// The confinement of a command.
#[derive(Debug, Clone)]
pub struct Confinement {
    /// The paths and the network that it reaches.
    pub reach: Reach,
    /// The layers without which the command is refused; the others are used if they work.
    pub required: Vec<LayerName>,
}

impl Confinement {
    /// Creates a confinement with the layers that every sandbox requires.
    pub fn new(reach: Reach) -> Self {
        Self { reach, required: REQUIRED.to_vec() }
    }
}

/// Layers without which no command runs, unless a person opted out of some.
pub const REQUIRED: [LayerName; 6] = [
    LayerName::Helper,
    LayerName::NoNewPrivileges,
    LayerName::Landlock,
    LayerName::Seccomp,
    LayerName::Mounts,
    LayerName::Processes,
];

/// The end of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ended {
    /// The exit code; `None` if a signal ended it.
    pub exit: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Processes that it left running, and that were ended with it.
    pub stragglers: u32,
    /// The limit that was hit.
    pub stopped: Option<Stopped>,
    /// File systems in memory that were full while it ran, with their sizes in bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub full: Vec<(PathBuf, u64)>,
}

/// A limit by which a command was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stopped {
    /// Memory ran out, and the kernel ended a process.
    Memory,
    /// The disk filled up.
    Disk,
}

/// Starts commands. One per program is enough; the helper is started with the first command.
#[derive(Debug, Default)]
pub struct Launcher {
    /// Each answer comes on a socket of its own, so no command waits for another's start.
    helper: Arc<CurrentHelper>,
    found: OnceCell<Found>,
    idle: Arc<Idle>,
}

/// Starts a helper: its process and its request socket.
type StartHelper = fn() -> io::Result<(Child, Socket)>;

/// The helper that gets the requests of all tenants. No lock is held while one is started or asked: a slow start delays
/// only those that found no live helper.
#[derive(Debug)]
struct CurrentHelper {
    /// `None` before the first command.
    helper: Mutex<Option<Arc<Helper>>>,
    start: StartHelper,
}

impl Default for CurrentHelper {
    fn default() -> Self {
        Self { helper: Mutex::default(), start: helper::start }
    }
}

/// A helper's process and its request socket, which is `None` once nobody can ask it for anything.
#[derive(Debug)]
struct Helper {
    process: Mutex<Child>,
    requests: Option<Socket>,
}

/// The most idle supervisors kept of each sort.
const MOST_IDLE: usize = 4;

/// Supervisors whose command has ended. A supervisor that entered control groups never gets a command for the
/// host.
#[derive(Debug, Default)]
struct Idle(Mutex<[Vec<Socket>; 2]>);

impl Idle {
    /// Takes an idle supervisor that is alive.
    fn take(&self, confined: bool) -> Option<Socket> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let alive = |socket: &Socket| {
            use rustix::net::{RecvFlags, recv};
            let waiting = recv(socket, &mut [0_u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
            waiting.is_err_and(|error| error == rustix::io::Errno::AGAIN)
        };
        let of_its_sort = &mut idle[usize::from(confined)];
        std::iter::from_fn(|| of_its_sort.pop()).find(alive)
    }

    fn give(&self, confined: bool, socket: Socket) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_its_sort = &mut idle[usize::from(confined)];
        if of_its_sort.len() < MOST_IDLE {
            of_its_sort.push(socket);
        }
    }
}

impl Launcher {
    /// A launcher that has not started anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the sandbox layers available here. Probed at the first call and cached.
    pub async fn layers(&self) -> Layers {
        match self.found().await {
            Ok(found) => found.layers(),
            Err(error) => Layers::none(&error.to_string()),
        }
    }

    async fn found(&self) -> Result<&Found, SandboxError> {
        self.found.get_or_try_init(|| self.probe()).await
    }

    async fn probe(&self) -> Result<Found, SandboxError> {
        let mut socket = self.ask(wire::PROBE).await?;
        let mut told = Vec::new();
        socket.read_to_end(&mut told).await.map_err(SandboxError::Helper)?;
        wire::receive_frame(told.as_slice()).map_err(SandboxError::Helper)
    }

    /// Starts a command with these standard descriptors, and returns once it runs.
    pub async fn start(&self, launch: &Launch, stdio: [OwnedFd; 3]) -> Result<Running, SandboxError> {
        let frame = wire::frame_bytes(&self.spec(launch).await?);
        let frame = frame.map_err(|error| unusable("encode the command", &error))?;
        let confined = launch.confinement.is_some();
        let mut control = match self.idle.take(confined) {
            Some(idle) => UnixStream::from_std(idle).map_err(SandboxError::Helper)?,
            None => self.ask(wire::RUN).await?,
        };
        let fds: Vec<BorrowedFd<'_>> = stdio.iter().map(|fd| fd.as_fd()).collect();
        wire::send_fds(&control, b'F', &fds).map_err(SandboxError::Helper)?;
        drop(stdio);
        control.write_all(&frame).await.map_err(SandboxError::Helper)?;
        let idle = Arc::clone(&self.idle);
        let mut running = Running { control: Some(control), told: Vec::new(), idle, confined, pid: 0 };
        match running.hear().await.map_err(SandboxError::Helper)? {
            wire::Told::Started { pid } => Ok(Running { pid, ..running }),
            wire::Told::Failed { step, reason } => Err(not_started(step, reason)),
            wire::Told::Ended(_) => Err(SandboxError::Helper(io::ErrorKind::UnexpectedEof.into())),
        }
    }

    async fn spec(&self, launch: &Launch) -> Result<wire::Spec, SandboxError> {
        let found = self.found().await?;
        let confined = match launch.confinement.clone() {
            // Follows paths, which may lead to a disk that is slow to answer.
            Some(confinement) => {
                let found = found.clone();
                let confined = spawn_blocking(move || confined(&found, &confinement)).await;
                Some(confined.map_err(|stopped| SandboxError::Helper(io::Error::other(stopped)))??)
            }
            None => None,
        };
        Ok(wire::Spec {
            argv: launch.argv.clone(),
            env: launch.env.clone(),
            directory: launch.directory.clone(),
            limits: launch.limits.clone(),
            // To enter a group costs more than to start a command; on the host it is not worth it.
            cgroup: found.cgroup.as_ref().ok().filter(|_| confined.is_some()).cloned(),
            confined,
            terminal: launch.terminal,
        })
    }

    /// A socket to a process that the helper split off for this. Asks on a thread that may block: the helper may have to
    /// be started.
    async fn ask(&self, request: u8) -> Result<UnixStream, SandboxError> {
        if !helper::is_let_in() {
            return Err(SandboxError::NoHelper);
        }
        let (ours, theirs) = wire::pair().map_err(SandboxError::Helper)?;
        let helper = Arc::clone(&self.helper);
        let sent = spawn_blocking(move || helper.send(request, theirs.as_fd()));
        sent.await.unwrap_or_else(|stopped| Err(io::Error::other(stopped))).map_err(SandboxError::Helper)?;
        ours.set_nonblocking(true).map_err(SandboxError::Helper)?;
        UnixStream::from_std(ours).map_err(SandboxError::Helper)
    }
}

impl CurrentHelper {
    /// Sends a request with the socket for its answer. If the helper is gone, another is started, once.
    fn send(&self, request: u8, socket: BorrowedFd<'_>) -> io::Result<()> {
        let seen = self.current().clone();
        if let Some(helper) = &seen
            && helper.is_alive()
            && helper.send(request, socket).is_ok()
        {
            return Ok(());
        }
        let (process, requests) = (self.start)()?;
        let started = Helper { process: Mutex::new(process), requests: Some(requests) };
        self.replaced(seen.as_ref(), started).send(request, socket)
    }

    /// Replaces the helper that was `seen` by the one that was started, and returns it. If somebody else replaced it
    /// meanwhile, theirs stays, and the one that was started ends.
    fn replaced(&self, seen: Option<&Arc<Helper>>, started: Helper) -> Arc<Helper> {
        let started = Arc::new(started);
        let mut current = self.current();
        let theirs = current.as_ref().filter(|helper| seen.is_none_or(|seen| !Arc::ptr_eq(helper, seen)));
        if let Some(theirs) = theirs {
            return Arc::clone(theirs);
        }
        *current = Some(Arc::clone(&started));
        started
    }

    fn current(&self) -> MutexGuard<'_, Option<Arc<Helper>>> {
        self.helper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Helper {
    fn is_alive(&self) -> bool {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(process.try_wait(), Ok(None))
    }

    fn send(&self, request: u8, socket: BorrowedFd<'_>) -> io::Result<()> {
        let Some(requests) = &self.requests else { return Err(io::ErrorKind::NotConnected.into()) };
        wire::send_fds(requests, request, &[socket])
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // It ends when nobody can ask it for anything.
        self.requests = None;
        let _ = self.process.get_mut().unwrap_or_else(PoisonError::into_inner).wait();
    }
}

fn confined(found: &Found, confinement: &Confinement) -> Result<wire::Confined, SandboxError> {
    let layers = found.layers();
    let missing = confinement.required.iter().find_map(|layer| Some((*layer, layers.missing(*layer)?)));
    if let Some((layer, reason)) = missing {
        return Err(SandboxError::Missing { layer, reason: reason.to_owned() });
    }
    let reach = confinement.reach.resolved()?;
    let refuse = |layer: LayerName, why: &str| {
        let reason = layers.missing(layer).map(|reason| format!("{why}: {reason}"));
        reason.map_or(Ok(()), |reason| Err(SandboxError::Missing { layer, reason }))
    };
    if !reach.hidden.is_empty() {
        refuse(LayerName::Mounts, "a path inside the workspace must be hidden")?;
    }
    match reach.network {
        // Without a network of its own the filter alone keeps it off; without either nothing does.
        Network::None if found.seccomp.is_err() => {
            refuse(LayerName::Network, "no other layer isolates the network")?;
        }
        Network::Loopback => {
            refuse(LayerName::Network, "without it the command would share this machine's loopback")?;
        }
        _ => {}
    }
    Ok(wire::Confined {
        namespaces: found.namespaces(reach.network != Network::Host),
        own_proc: found.own_proc.is_ok(),
        landlock: found.landlock.as_ref().ok().copied(),
        seccomp: found.seccomp.is_ok(),
        shares_files: found.mounts.is_err(),
        shares_processes: found.processes.is_err(),
        reach,
    })
}

fn not_started(step: String, reason: String) -> SandboxError {
    match step == mounts::LAYER {
        true => SandboxError::NoLayer(reason),
        false => SandboxError::Start { step, reason },
    }
}

fn unusable(step: &str, error: &io::Error) -> SandboxError {
    SandboxError::Start { step: step.to_owned(), reason: error.to_string() }
}

/// A command that runs. Dropping this ends it, with all that it started.
#[derive(Debug)]
pub struct Running {
    /// `None` once it has ended.
    control: Option<UnixStream>,
    told: Vec<u8>,
    idle: Arc<Idle>,
    confined: bool,
    pid: u32,
}

impl Running {
    /// Returns the process id of its first process, as seen from here.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for its end. Can be dropped and called again.
    pub async fn ended(&mut self) -> Result<Ended, SandboxError> {
        loop {
            match self.hear().await.map_err(SandboxError::Helper)? {
                wire::Told::Ended(ending) => {
                    if let Some(Ok(socket)) = self.control.take().map(UnixStream::into_std) {
                        self.idle.give(self.confined, socket);
                    }
                    let wire::Ending { exit, signal, stragglers, disk, memory, full } = ending;
                    let stopped = match (disk, memory) {
                        (true, _) => Some(Stopped::Disk),
                        (false, true) => Some(Stopped::Memory),
                        (false, false) => None,
                    };
                    return Ok(Ended { exit, signal, stragglers, stopped, full });
                }
                wire::Told::Failed { step, reason } => return Err(SandboxError::Start { step, reason }),
                wire::Told::Started { .. } => {}
            }
        }
    }

    /// Asks all of its processes to end.
    pub async fn terminate(&mut self) {
        self.say(wire::TERMINATE).await;
    }

    /// Ends all of its processes.
    pub async fn kill(&mut self) {
        self.say(wire::KILL).await;
    }

    async fn say(&mut self, byte: u8) {
        // If nobody is there to hear it, it has ended.
        if let Some(control) = &mut self.control {
            let _ = control.write_all(&[byte]).await;
        }
    }

    async fn hear(&mut self) -> io::Result<wire::Told> {
        loop {
            if let Some((length, rest)) = self.told.split_first_chunk::<4>() {
                let length = wire::frame_length(*length)?;
                if rest.len() >= length {
                    let frame = wire::receive_frame(self.told.as_slice());
                    self.told.drain(..4 + length);
                    return frame;
                }
            }
            let Some(control) = &mut self.control else { return Err(io::ErrorKind::UnexpectedEof.into()) };
            if control.read_buf(&mut self.told).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

#[cfg(test)]
mod tests;
