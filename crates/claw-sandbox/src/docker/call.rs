//! One exchange with this program inside a container.

use std::pin::Pin;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::exec::{CreateExecOptions, StartExecResults};
use futures_util::{Stream, StreamExt as _};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::super::helper::wire::frame_bytes;
use super::DockerError;
use super::engine::{Engine, is_gone, is_paused};
use super::inside;
use super::this_program::Own;
use super::wire::{self, Order, Pieces, Told};

/// The longest a container may take to accept an order, or to do the next part of a small one.
pub(super) const ANSWER: Duration = Duration::from_secs(15);

type Said = Pin<Box<dyn Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>;

/// The stream to the other side.
pub(super) type Ear = Pin<Box<dyn AsyncWrite + Send>>;

/// A sender of pieces to the other side, in order.
#[derive(Debug, Clone)]
pub(super) struct Voice(UnboundedSender<Vec<u8>>);

impl Voice {
    /// Creates a sender for this stream, which is closed when the returned handle is dropped.
    pub(super) fn new(ear: Ear) -> (Self, AbortOnDropHandle<()>) {
        let (say, said) = unbounded_channel();
        (Self(say), AbortOnDropHandle::new(tokio::spawn(speak(ear, said))))
    }

    pub(super) fn say(&self, kind: u8, bytes: &[u8]) {
        // If nobody passes it on any more, nobody is there to hear it.
        let _ = self.0.send(wire::piece(kind, bytes));
    }

    /// Asks for more of a stream.
    pub(super) fn ask(&self, stream: u8, bytes: usize) {
        let _ = self.0.send(wire::more(stream, bytes));
    }
}

async fn speak(mut ear: Ear, mut said: UnboundedReceiver<Vec<u8>>) {
    while let Some(piece) = said.recv().await {
        if ear.write_all(&piece).await.is_err() || ear.flush().await.is_err() {
            break;
        }
    }
    // Closing would say that nobody is there; that is for whoever holds this task.
    std::future::pending::<()>().await;
}

/// The receiver of pieces from the other side.
pub(super) struct Mouth {
    said: Said,
    pieces: Pieces,
    /// Text outside the pieces: from the engine, or from a loader that does not find a library.
    beside: String,
}

/// A received piece.
#[derive(Debug)]
pub(super) enum Heard {
    /// A message.
    Told(Told),
    /// Bytes of a command's output.
    Output(Vec<u8>),
    /// Bytes of its standard error, if that is separate.
    Errors(Vec<u8>),
}

/// Sends an order. `None` if there is no such container, or it ended before it read the order: nothing was
/// done.
pub(super) async fn order(
    engine: &Engine,
    own: &Own,
    container: &str,
    order: &Order,
) -> Result<Option<(Ear, Mouth)>, DockerError> {
    // The stream of a started command outlasts this timeout.
    let docker = engine.connect_quickly()?;
    let exec = CreateExecOptions {
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        cmd: Some(own.argv(&[inside::KEEP])),
        ..CreateExecOptions::default()
    };
    let exec = match docker.create_exec(container, exec).await {
        Ok(exec) => exec,
        Err(error) if is_paused(&error) => return Err(DockerError::Paused(container.to_owned())),
        Err(error) if is_gone(&error) => return Ok(None),
        Err(error) => return Err(engine.failed("prepare a command", error)),
    };
    let (output, mut input) = match docker.start_exec(&exec.id, None).await {
        Ok(StartExecResults::Attached { output, input }) => (output, input),
        Ok(StartExecResults::Detached) => {
            return Err(DockerError::Lost("the engine did not attach to the command".to_owned()));
        }
        Err(error) if is_paused(&error) => return Err(DockerError::Paused(container.to_owned())),
        Err(error) if is_gone(&error) => return Ok(None),
        Err(error) => return Err(engine.failed("start a command", error)),
    };
    let frame = frame_bytes(order);
    let frame = frame.map_err(|error| DockerError::Start {
        step: "encode the request".into(),
        reason: error.to_string(),
    })?;
    let mut mouth = Mouth { said: output, pieces: Pieces::default(), beside: String::new() };
    let heard = answer(engine, container, async {
        // Where nobody reads it, the other side says why or says nothing.
        let _ = send(&mut input, &frame).await;
        mouth.hear().await
    });
    match heard.await? {
        Ok(Some(Heard::Told(Told::Taken))) => Ok(Some((input, mouth))),
        Ok(Some(other)) => Err(DockerError::Lost(format!("its first answer was unexpected: {other:?}"))),
        Ok(None) if mouth.beside.is_empty() => Ok(None),
        Ok(None) if mouth.beside.contains("not running") => Ok(None),
        Ok(None) => Err(DockerError::Start {
            step: "enter the container".to_owned(),
            reason: mouth.beside.trim().chars().take(2000).collect(),
        }),
        Err(error) => Err(error),
    }
}

/// Sends bytes to the other side.
pub(super) async fn send(ear: &mut Ear, bytes: &[u8]) -> std::io::Result<()> {
    ear.write_all(bytes).await?;
    ear.flush().await
}

/// Waits for a keeper's immediate answer. If none comes, the keeper was stopped by a command, or the
/// container is overloaded: it is removed, so that nothing of it runs on.
pub(super) async fn answer<T>(
    engine: &Engine,
    container: &str,
    said: impl Future<Output = T>,
) -> Result<T, DockerError> {
    match timeout(ANSWER, said).await {
        Ok(said) => Ok(said),
        Err(_) => {
            engine.remove(container).await?;
            Err(DockerError::Silent(ANSWER.as_secs()))
        }
    }
}

impl Mouth {
    /// Receives the next piece; `None` at the end.
    pub(super) async fn hear(&mut self) -> Result<Option<Heard>, DockerError> {
        let lost = |reason: &str| DockerError::Lost(reason.to_owned());
        loop {
            match self.pieces.next().map_err(|_| lost("a message from the container is too long"))? {
                Some((wire::OUTPUT, bytes)) => return Ok(Some(Heard::Output(bytes))),
                Some((wire::ERRORS, bytes)) => return Ok(Some(Heard::Errors(bytes))),
                Some((wire::TOLD, bytes)) => {
                    let told = serde_json::from_slice(&bytes).map_err(|error| lost(&error.to_string()))?;
                    return Ok(Some(Heard::Told(told)));
                }
                Some(_) => return Err(lost("a message from the container has an unknown type")),
                None => {}
            }
            match self.said.next().await {
                None => return Ok(None),
                Some(Ok(LogOutput::StdOut { message })) => self.pieces.add(&message),
                Some(Ok(other)) => self.beside.push_str(&String::from_utf8_lossy(&other.into_bytes())),
                Some(Err(error)) => return Err(lost(&error.to_string())),
            }
        }
    }
}
