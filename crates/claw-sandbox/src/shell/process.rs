//! One running command: its input, its output, its end.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use claw_core::port::Size;
use claw_core::port::{FullPlace, Ran, Stopped as RanStopped};
use claw_core::tool::{ErrorKind, Progress, ToolError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::OutputLimits;
use super::output::{Decoder, Output};
use super::terminal::{self, Terminal};
use crate::{Confinement, Ended, Launch, Launcher, Limits, Running, SandboxError, Stopped};

/// A command to run, with everything that determines its behaviour.
#[derive(Debug, Clone)]
pub struct Command {
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
    /// The standard input.
    pub input: Input,
    /// Says whether its two output streams are merged.
    pub streams: Streams,
}

/// The standard input of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Input {
    /// No input.
    #[default]
    Closed,
    /// These bytes.
    Bytes(Vec<u8>),
    /// A pipe that is written to while it runs.
    Piped,
}

/// The capture of a command's output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Streams {
    /// Both through one pipe, so that their order is kept.
    #[default]
    Together,
    /// Each through a pipe of its own.
    Apart,
    /// Both through a terminal of the command's own, which it also reads from.
    Terminal(Size),
}

/// A command that runs, with its pipes. Dropping it ends it, with all that it started.
#[derive(Debug)]
pub struct Process {
    /// The standard input, if it is piped.
    pub input: Option<Sender>,
    /// The output; both streams if they are merged.
    pub output: Receiver,
    /// The standard error, if it is separate.
    pub errors: Option<Receiver>,
    /// The terminal, if it has one.
    pub terminal: Option<Terminal>,
    running: Running,
    bytes: Vec<u8>,
}

/// Why a command was killed before it ended itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The timeout expired.
    TimedOut,
    /// The caller gave up.
    Cancelled,
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The end of its first process.
    pub ended: Ended,
    /// Why it was killed; `None` if it ended by itself.
    pub reason: Option<Reason>,
    /// The output; both streams if they are merged.
    pub output: String,
    /// The standard error, if it is separate.
    pub errors: String,
    /// The number of bytes left out of both.
    pub dropped: u64,
}

impl Finished {
    /// Converts the result for a tool. A cancelled command is an error.
    pub(crate) fn ran(self, place: &'static str) -> Result<Ran, ToolError> {
        let stopped = match (self.reason, self.ended.stopped) {
            (Some(Reason::Cancelled), _) => {
                return Err(ToolError::new(ErrorKind::Cancelled, "the command was cancelled"));
            }
            (Some(Reason::TimedOut), _) => Some(RanStopped::Time),
            (None, Some(Stopped::Memory)) => Some(RanStopped::Memory),
            (None, Some(Stopped::Disk)) => Some(RanStopped::Disk),
            (None, None) => None,
        };
        Ok(Ran {
            exit: self.ended.exit,
            signal: self.ended.signal,
            output: self.output,
            errors: self.errors,
            dropped: self.dropped,
            stragglers: self.ended.stragglers,
            stopped,
            place,
            changes: None,
            unlayered: None,
            full: self.ended.full.into_iter().map(full_place).collect(),
            missing: None,
        })
    }
}

fn full_place((path, bytes): (PathBuf, u64)) -> FullPlace {
    FullPlace { path: path.display().to_string(), bytes, setting: None }
}

/// The parameters of watching a command to its end.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    pub(super) timeout: Duration,
    /// The time between asking it to end and killing it.
    pub(super) grace: Duration,
    pub(super) cancel: CancellationToken,
    pub(super) progress: Progress,
    pub(super) keep: OutputLimits,
}

/// The longest wait for output after every process has ended. On the host a process may have passed its pipe
/// to a process that is not ours.
const DRAIN: Duration = Duration::from_secs(1);

impl Process {
    /// Starts a command.
    pub async fn start(launcher: &Launcher, command: Command) -> Result<Self, SandboxError> {
        let failed = |error: io::Error| SandboxError::Start {
            step: "make its pipes".to_owned(),
            reason: error.to_string(),
        };
        let pipes = Pipes::new(&command.input, command.streams).await.map_err(failed)?;
        let launch = Launch {
            argv: command.argv,
            env: command.env,
            directory: command.directory,
            limits: command.limits,
            confinement: command.confinement,
            terminal: pipes.terminal.is_some(),
        };
        let running = launcher.start(&launch, pipes.theirs).await?;
        let has_terminal = pipes.terminal.is_some();
        // A terminal is read and written like a pipe, and is none.
        let receiver = |fd: OwnedFd| match has_terminal {
            true => Receiver::from_owned_fd_unchecked(fd).map_err(failed),
            false => Receiver::from_owned_fd(fd).map_err(failed),
        };
        let sender = |fd: OwnedFd| match has_terminal {
            true => Sender::from_owned_fd_unchecked(fd).map_err(failed),
            false => Sender::from_owned_fd(fd).map_err(failed),
        };
        let mut bytes = match command.input {
            Input::Bytes(bytes) => bytes,
            Input::Closed | Input::Piped => Vec::new(),
        };
        if has_terminal {
            // There is no other way to tell a terminal that nothing more comes.
            bytes.push(terminal::END);
        }
        Ok(Self {
            input: pipes.input.map(sender).transpose()?,
            output: receiver(pipes.output)?,
            errors: pipes.errors.map(receiver).transpose()?,
            terminal: pipes.terminal,
            running,
            bytes,
        })
    }

    /// Splits it into its streams, its terminal and the control of the command.
    pub(super) fn into_parts(self) -> Parts {
        let Self { input, output, errors, terminal, running, .. } = self;
        Parts { input, output, errors, terminal, running }
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Waits for its end. Can be dropped and called again.
    pub async fn ended(&mut self) -> Result<Ended, SandboxError> {
        self.running.ended().await
    }

    /// Asks all of its processes to end.
    pub async fn terminate(&mut self) {
        self.running.terminate().await;
    }

    /// Ends all of its processes.
    pub async fn kill(&mut self) {
        self.running.kill().await;
    }

    /// Feeds the command, takes its output, and ends it at its timeout or when the caller gives up: first by
    /// asking.
    pub(super) async fn see_through(self, watch: &Watch) -> Result<Finished, SandboxError> {
        let Self { input, output, errors, mut running, bytes, terminal } = self;
        let feed = tokio::spawn(feed(input, bytes));
        let out = tokio::spawn(take(output, watch.progress.clone(), watch.keep));
        let err = errors.map(|errors| tokio::spawn(take(errors, watch.progress.clone(), watch.keep)));
        let (ended, reason) = end(&mut running, watch).await?;
        feed.abort();
        drop(terminal);
        let deadline = Instant::now() + DRAIN;
        let (output, left_out) = settle(out, deadline).await;
        let (errors, also) = match err {
            Some(err) => settle(err, deadline).await,
            None => Default::default(),
        };
        Ok(Finished { ended, reason, output, errors, dropped: left_out.saturating_add(also) })
    }
}

async fn end(running: &mut Running, watch: &Watch) -> Result<(Ended, Option<Reason>), SandboxError> {
    let reason = tokio::select! {
        ended = running.ended() => return Ok((ended?, None)),
        () = tokio::time::sleep(watch.timeout) => Reason::TimedOut,
        () = watch.cancel.cancelled() => Reason::Cancelled,
    };
    running.terminate().await;
    if let Ok(ended) = tokio::time::timeout(watch.grace, running.ended()).await {
        return Ok((ended?, Some(reason)));
    }
    running.kill().await;
    Ok((running.ended().await?, Some(reason)))
}

async fn feed(input: Option<Sender>, bytes: Vec<u8>) {
    if let Some(mut input) = input {
        // A command may end before it has read everything.
        let _ = input.write_all(&bytes).await;
    }
}

/// A reader task that can be stopped and returns what it has read.
type Taking = tokio::task::JoinHandle<(String, u64)>;

async fn take(mut from: Receiver, progress: Progress, keep: OutputLimits) -> (String, u64) {
    let (mut output, mut decoder, mut buffer) = (Output::new(keep), Decoder::default(), vec![0; 16 << 10]);
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        output.add(&buffer[..count]);
        if !progress.is_silent() {
            let text = decoder.add(&buffer[..count]);
            if !text.is_empty() {
                progress.tell(&text);
            }
        }
    }
    let rest = decoder.finish();
    if !rest.is_empty() {
        progress.tell(&rest);
    }
    output.finish()
}

async fn settle(mut taking: Taking, deadline: Instant) -> (String, u64) {
    match tokio::time::timeout_at(deadline, &mut taking).await {
        Ok(taken) => taken.unwrap_or_default(),
        Err(_) => {
            taking.abort();
            ("[the output is incomplete: another process still holds the pipe]".to_owned(), 0)
        }
    }
}

/// A command that runs, in parts.
pub(super) struct Parts {
    pub(super) input: Option<Sender>,
    pub(super) output: Receiver,
    pub(super) errors: Option<Receiver>,
    pub(super) terminal: Option<Terminal>,
    pub(super) running: Running,
}

struct Pipes {
    theirs: [OwnedFd; 3],
    input: Option<OwnedFd>,
    output: OwnedFd,
    errors: Option<OwnedFd>,
    terminal: Option<Terminal>,
}

impl Pipes {
    async fn new(input: &Input, streams: Streams) -> io::Result<Self> {
        if let Streams::Terminal(size) = streams {
            let (terminal, theirs) = Terminal::open(size)?;
            let (input, output) = (Some(terminal.end()?), terminal.end()?);
            return Ok(Self { theirs, input, output, errors: None, terminal: Some(terminal) });
        }
        let (stdin, input) = match input {
            Input::Closed => (null().await?, None),
            Input::Bytes(_) | Input::Piped => pipe().map(|(read, write)| (read, Some(write)))?,
        };
        let (output, stdout) = pipe()?;
        let (errors, stderr) = match streams {
            Streams::Apart => pipe().map(|(read, write)| (Some(read), write))?,
            Streams::Together | Streams::Terminal(_) => (None, stdout.try_clone()?),
        };
        Ok(Self { theirs: [stdin, stdout, stderr], input, output, errors, terminal: None })
    }
}

/// A descriptor that reads nothing. The device is opened once, on a thread that may block.
async fn null() -> io::Result<OwnedFd> {
    static NULL: OnceCell<File> = OnceCell::const_new();
    let open = || async { spawn_blocking(|| File::open("/dev/null")).await.map_err(io::Error::other)? };
    Ok(NULL.get_or_try_init(open).await?.try_clone()?.into())
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}
