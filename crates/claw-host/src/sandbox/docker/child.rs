//! A command in a container that is not waited for, as a port gives it away.
//!
//! Both directions are counted: no more of an input is sent than the command has taken, and no more of what it prints
//! than was read here. So neither side holds much for the other, and word of the command's end is never held up behind
//! what nobody reads.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use async_trait::async_trait;
use claw_core::port::{Child, Control, Ended, Size};
use claw_core::tool::ToolError;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::super::helper::wire::{Ending, KILL, TERMINATE};
use super::DockerError;
use super::aftermath::Aftermath;
use super::call::{Ear, Heard, Mouth, Voice};
use super::shell::refused;
use super::watch::PATIENCE;
use super::wire::{ERRORS, INPUT, INPUT_END, OUTPUT, SIZE, Told};

/// How much of a stream comes before it is read here.
pub(super) const WINDOW: usize = 256 << 10;
/// What comes at the end, counted or not: all that was left in a pipe.
const LAST: usize = 2 << 20;
/// How much of an input is sent before the command takes it.
const AHEAD: usize = 64 << 10;

/// A conversation about a command that is to start.
pub(super) struct Starting {
    pub(super) ear: Ear,
    pub(super) mouth: Mouth,
    pub(super) apart: bool,
    pub(super) terminal: bool,
    pub(super) aftermath: Aftermath,
}

impl Starting {
    /// Waits until the command runs.
    pub(super) async fn child(self, place: &'static str) -> Result<Child, DockerError> {
        let Self { ear, mouth, apart, terminal, aftermath } = self;
        let (voice, speaking) = Voice::new(ear);
        let (output, printed) = stream(OUTPUT, &voice);
        let (errors, also) = stream(ERRORS, &voice);
        let (credit, killed) = (Arc::new(Credit::new(AHEAD)), CancellationToken::new());
        let (started, starts) = oneshot::channel();
        let listener = Listener {
            mouth,
            streams: [output, errors],
            credit: Arc::clone(&credit),
            started: Some(started),
            killed: killed.clone(),
            aftermath,
        };
        let mut listening = AbortOnDropHandle::new(tokio::spawn(listener.listen()));
        let Ok(pid) = starts.await else {
            let why = (&mut listening).await.map_err(lost)?;
            return Err(why
                .map_or_else(|error| error, |ending| lost(format!("it ended before it began: {ending:?}"))));
        };
        Ok(Child {
            pid,
            place,
            input: Box::new(Feed { voice: voice.clone(), credit, open: !terminal }),
            output: Box::new(printed),
            errors: apart.then(|| Box::new(also) as _),
            control: Box::new(Held { voice, _speaking: speaking, listening, killed, terminal, ended: None }),
        })
    }
}

fn lost(reason: impl ToString) -> DockerError {
    DockerError::Lost(reason.to_string())
}

/// The hold on a command in a container. When it is dropped the other side sees that nobody is there, and ends it.
struct Held {
    voice: Voice,
    _speaking: AbortOnDropHandle<()>,
    listening: AbortOnDropHandle<Result<Ending, DockerError>>,
    killed: CancellationToken,
    terminal: bool,
    /// Once it is known.
    ended: Option<Result<Ended, ToolError>>,
}

#[async_trait]
impl Control for Held {
    async fn ended(&mut self) -> Result<Ended, ToolError> {
        if self.ended.is_none() {
            let ended = (&mut self.listening).await.unwrap_or_else(|error| Err(lost(error)));
            self.ended = Some(ended.map(super::shell::ended).map_err(refused));
        }
        self.ended.clone().unwrap_or_else(|| Err(refused(lost("nobody knows how it ended"))))
    }

    async fn terminate(&mut self) {
        self.voice.say(TERMINATE, &[]);
    }

    async fn kill(&mut self) {
        self.voice.say(KILL, &[]);
        self.killed.cancel();
    }

    fn resize(&self, size: Size) -> Result<(), ToolError> {
        if !self.terminal {
            return Err(
                ToolError::invalid("the command has no terminal").try_instead("start it on one (`pty`)")
            );
        }
        let size = serde_json::to_vec(&size).map_err(|error| refused(lost(error)))?;
        self.voice.say(SIZE, &size);
        Ok(())
    }
}

/// Hears what is said of a command until its end.
struct Listener {
    mouth: Mouth,
    streams: [Pouring; 2],
    credit: Arc<Credit>,
    started: Option<oneshot::Sender<u32>>,
    killed: CancellationToken,
    aftermath: Aftermath,
}

impl Listener {
    async fn listen(mut self) -> Result<Ending, DockerError> {
        let mut until = None;
        loop {
            let heard = tokio::select! {
                heard = self.mouth.hear() => heard?,
                () = self.killed.cancelled(), if until.is_none() => {
                    until = Some(Instant::now() + PATIENCE);
                    continue;
                }
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => None,
            };
            match heard {
                Some(Heard::Output(bytes)) => self.streams[0].pour(bytes)?,
                Some(Heard::Errors(bytes)) => self.streams[1].pour(bytes)?,
                Some(Heard::Told(Told::Started { pid })) => {
                    // Where nobody waits for it any more this is about to be stopped.
                    let _ = self.started.take().map(|started| started.send(pid));
                }
                Some(Heard::Told(Told::Fed(bytes))) => self.credit.give(bytes),
                Some(Heard::Told(Told::Deaf)) => self.credit.close(),
                Some(Heard::Told(Told::Ended(ending))) => return Ok(ending),
                Some(Heard::Told(Told::Failed { step, reason })) => {
                    return Err(DockerError::Start { step, reason });
                }
                Some(Heard::Told(Told::Changed(at))) => return Err(DockerError::Changed(at)),
                Some(Heard::Told(_)) => {}
                // Its keeper was ended, or does not answer.
                None => return self.aftermath.see_to().await,
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.credit.close();
    }
}

/// One of a command's streams, from where it is heard to where it is read.
fn stream(kind: u8, voice: &Voice) -> (Pouring, Printed) {
    let (to, from) = unbounded_channel();
    let unread = Arc::new(AtomicUsize::new(0));
    let pouring = Pouring { kind, to, unread: Arc::clone(&unread), voice: voice.clone() };
    (pouring, Printed { kind, from, unread, voice: voice.clone(), piece: Vec::new(), at: 0, read: 0 })
}

struct Pouring {
    kind: u8,
    to: UnboundedSender<Vec<u8>>,
    unread: Arc<AtomicUsize>,
    voice: Voice,
}

impl Pouring {
    fn pour(&self, bytes: Vec<u8>) -> Result<(), DockerError> {
        let count = bytes.len();
        let unread = self.unread.fetch_add(count, Ordering::Relaxed).saturating_add(count);
        if unread > WINDOW + LAST {
            return Err(lost(format!("{unread} bytes were sent that nobody asked for")));
        }
        if self.to.send(bytes).is_err() {
            // Nobody wants to read it; the command goes on.
            self.unread.fetch_sub(count, Ordering::Relaxed);
            self.voice.ask(self.kind, count);
        }
        Ok(())
    }
}

/// What a command prints.
struct Printed {
    kind: u8,
    from: UnboundedReceiver<Vec<u8>>,
    unread: Arc<AtomicUsize>,
    voice: Voice,
    piece: Vec<u8>,
    /// Where the reading is in that piece.
    at: usize,
    /// How much was read and not said to be.
    read: usize,
}

impl AsyncRead for Printed {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.at >= this.piece.len() {
            let Some(piece) = ready!(this.from.poll_recv(cx)) else { return Poll::Ready(Ok(())) };
            (this.piece, this.at) = (piece, 0);
        }
        let rest = &this.piece[this.at..];
        let count = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..count]);
        this.at += count;
        this.read += count;
        this.unread.fetch_sub(count, Ordering::Relaxed);
        if this.read >= WINDOW / 4 {
            this.voice.ask(this.kind, std::mem::take(&mut this.read));
        }
        Poll::Ready(Ok(()))
    }
}

/// How much may be sent to a command that reads.
struct Credit(Mutex<Sending>);

struct Sending {
    /// `None` once it reads nothing any more.
    left: Option<usize>,
    waiting: Option<Waker>,
}

impl Credit {
    const fn new(left: usize) -> Self {
        Self(Mutex::new(Sending { left: Some(left), waiting: None }))
    }

    fn sending(&self) -> MutexGuard<'_, Sending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, left: impl FnOnce(Option<usize>) -> Option<usize>) {
        let mut sending = self.sending();
        sending.left = left(sending.left);
        let waiting = sending.waiting.take();
        drop(sending);
        if let Some(waiting) = waiting {
            waiting.wake();
        }
    }

    fn give(&self, more: usize) {
        self.change(|left| left.map(|left| left.saturating_add(more)));
    }

    fn close(&self) {
        self.change(|_| None);
    }

    /// Takes up to so much of it, as soon as there is some; an error where there never is.
    fn take(&self, cx: &Context<'_>, most: usize) -> Poll<io::Result<usize>> {
        let mut sending = self.sending();
        match sending.left {
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Some(0) => {
                sending.waiting = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(left) => {
                let taken = left.min(most);
                sending.left = Some(left - taken);
                Poll::Ready(Ok(taken))
            }
        }
    }
}

/// What a command reads.
struct Feed {
    voice: Voice,
    credit: Arc<Credit>,
    /// Whether its end is to be said.
    open: bool,
}

impl Feed {
    fn end(&mut self) {
        if std::mem::take(&mut self.open) {
            self.voice.say(INPUT_END, &[]);
        }
    }
}

impl AsyncWrite for Feed {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let count = ready!(self.credit.take(cx, bytes.len()))?;
        self.voice.say(INPUT, &bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().end();
        Poll::Ready(Ok(()))
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.end();
    }
}
