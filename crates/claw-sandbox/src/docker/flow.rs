//! The flow-controlled streams between a command in a container and its owner.
//!
//! No more input is sent than the command has read, and no more output comes than was read here. So neither
//! side buffers much for the other.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::DockerError;
use super::call::Voice;
use super::wire::{INPUT, INPUT_END};

/// The bytes of a stream sent before they are read here.
pub(super) const WINDOW: usize = 256 << 10;
/// The most bytes that come at the end regardless of the window: the rest of a pipe.
const LAST: usize = 2 << 20;
/// The bytes of an input sent before the command reads them.
const AHEAD: usize = 64 << 10;

/// Creates the two ends of one output stream of a command: where it is received and where it is read.
pub(super) fn stream(kind: u8, voice: &Voice) -> (Pouring, Printed) {
    let flow = Flow { bytes: VecDeque::new(), poured: true, wanted: true, waiting: None };
    let flow = Arc::new(Mutex::new(flow));
    let pouring = Pouring { kind, flow: Arc::clone(&flow), voice: voice.clone() };
    (pouring, Printed { kind, flow, voice: voice.clone(), read: 0 })
}

struct Flow {
    /// The bytes received and not yet read.
    bytes: VecDeque<u8>,
    /// True while more may come.
    poured: bool,
    /// True while a reader exists.
    wanted: bool,
    waiting: Option<Waker>,
}

fn locked(flow: &Mutex<Flow>) -> MutexGuard<'_, Flow> {
    flow.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wake(waiting: Option<Waker>) {
    if let Some(waiting) = waiting {
        waiting.wake();
    }
}

/// The receiving end of a stream.
pub(super) struct Pouring {
    kind: u8,
    flow: Arc<Mutex<Flow>>,
    voice: Voice,
}

impl Pouring {
    /// Takes received bytes; refuses more than was asked for.
    pub(super) fn pour(&self, bytes: &[u8]) -> Result<(), DockerError> {
        let mut flow = locked(&self.flow);
        if !flow.wanted {
            // Nobody reads it; the command goes on.
            self.voice.ask(self.kind, bytes.len());
            return Ok(());
        }
        let unread = flow.bytes.len().saturating_add(bytes.len());
        if unread > WINDOW + LAST {
            return Err(DockerError::Lost(format!("{unread} bytes were sent without being requested")));
        }
        flow.bytes.extend(bytes);
        let waiting = flow.waiting.take();
        drop(flow);
        wake(waiting);
        Ok(())
    }
}

impl Drop for Pouring {
    fn drop(&mut self) {
        let mut flow = locked(&self.flow);
        flow.poured = false;
        let waiting = flow.waiting.take();
        drop(flow);
        wake(waiting);
    }
}

/// The reading end of a command's output.
pub(super) struct Printed {
    kind: u8,
    flow: Arc<Mutex<Flow>>,
    voice: Voice,
    /// The bytes read here that the other side was not told of yet.
    read: usize,
}

impl AsyncRead for Printed {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let mut flow = locked(&this.flow);
        if flow.bytes.is_empty() && flow.poured {
            flow.waiting = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let (front, _) = flow.bytes.as_slices();
        let count = front.len().min(buffer.remaining());
        buffer.put_slice(&front[..count]);
        flow.bytes.drain(..count);
        drop(flow);
        this.read += count;
        if this.read >= WINDOW / 4 {
            this.voice.ask(this.kind, std::mem::take(&mut this.read));
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for Printed {
    fn drop(&mut self) {
        let mut flow = locked(&self.flow);
        flow.wanted = false;
        let unread = std::mem::take(&mut flow.bytes).len();
        drop(flow);
        self.voice.ask(self.kind, unread.saturating_add(self.read));
    }
}

/// The bytes that may still be sent to a command's input.
pub(super) struct Credit(Mutex<Sending>);

struct Sending {
    /// `None` once it reads nothing any more.
    left: Option<usize>,
    waiting: Option<Waker>,
}

impl Default for Credit {
    fn default() -> Self {
        Self(Mutex::new(Sending { left: Some(AHEAD), waiting: None }))
    }
}

impl Credit {
    fn sending(&self) -> MutexGuard<'_, Sending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, left: impl FnOnce(Option<usize>) -> Option<usize>) {
        let mut sending = self.sending();
        sending.left = left(sending.left);
        let waiting = sending.waiting.take();
        drop(sending);
        wake(waiting);
    }

    /// The command took so much.
    pub(super) fn give(&self, more: usize) {
        self.change(|left| left.map(|left| left.saturating_add(more)));
    }

    /// Closes the input: the command reads no more.
    pub(super) fn close(&self) {
        self.change(|_| None);
    }

    /// Takes up to so much credit, as soon as there is some; an error if the input is closed.
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

/// The writing end of a command's input.
pub(super) struct Feed {
    voice: Voice,
    credit: Arc<Credit>,
    /// True while the end of the input is still to be sent.
    open: bool,
}

impl Feed {
    pub(super) const fn new(voice: Voice, credit: Arc<Credit>, open: bool) -> Self {
        Self { voice, credit, open }
    }

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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::docker::wire::OUTPUT;

    /// Returns a sender to nowhere.
    fn voice() -> Voice {
        Voice::new(Box::pin(tokio::io::sink())).0
    }

    #[tokio::test]
    async fn refuses_more_than_was_asked_for() {
        let (pouring, mut printed) = stream(OUTPUT, &voice());
        let piece = vec![7; WINDOW];
        let taken = (0..100).take_while(|_| pouring.pour(&piece).is_ok()).count();
        assert_eq!(taken, (WINDOW + LAST) / WINDOW);
        drop(pouring);
        let mut all = Vec::new();
        printed.read_to_end(&mut all).await.unwrap();
        assert_eq!(all.len(), taken * WINDOW, "what was taken is read all the same");
    }

    #[tokio::test]
    async fn what_nobody_wants_is_not_kept() {
        let (pouring, printed) = stream(OUTPUT, &voice());
        drop(printed);
        for _ in 0..100 {
            pouring.pour(&vec![7; WINDOW]).unwrap();
        }
        assert_eq!(locked(&pouring.flow).bytes.len(), 0);
    }

    #[tokio::test]
    async fn who_waits_to_write_hears_that_nobody_reads() {
        let credit = Arc::new(Credit::default());
        let mut feed = Feed::new(voice(), Arc::clone(&credit), true);
        let writing = tokio::spawn(async move { feed.write_all(&vec![0; 2 * AHEAD]).await });
        while credit.sending().waiting.is_none() {
            tokio::task::yield_now().await;
        }
        credit.give(1);
        while credit.sending().waiting.is_none() {
            tokio::task::yield_now().await;
        }
        credit.close();
        assert_eq!(writing.await.unwrap().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
