//! A command in the background: its output, its input and its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use claw_core::port::{
    Awaited, BackgroundCommand, Expected, Printed, ProcessCard, ProcessState, Size, StartedCommand,
};
use claw_core::redact::StreamRedactor;
use claw_core::store::ProcessEnd;
use claw_core::tool::{Digest, ErrorKind, Input, Sight, Target, ToolError};
use regex::Regex;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::decode::Plain;
use super::output_ring::Ring;

/// Time for a command to read its input before the call gives up.
const READING: Duration = Duration::from_secs(10);
/// Largest compiled size of a pattern.
const PATTERN: usize = 1 << 20;

/// An order to the task that watches a command.
pub(super) enum Order {
    Kill,
    Resize(Size, oneshot::Sender<Result<(), ToolError>>),
}

type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// A background command, running or ended.
pub(super) struct Kept {
    pub(super) known: StartedCommand,
    held: Mutex<Held>,
    /// Notifies when the command prints or ends.
    changed: watch::Sender<()>,
    orders: mpsc::UnboundedSender<Order>,
    /// Locked while one caller types. `None` once the input is closed.
    input: Arc<tokio::sync::Mutex<Option<Writer>>>,
}

struct Held {
    ring: Ring,
    plain: Plain,
    /// `None` once the output has ended.
    saying: Option<Box<dyn StreamRedactor>>,
    /// Text typed so far, beyond the input that it was started with.
    typed: String,
    end: Option<ProcessEnd>,
}

impl Kept {
    pub(super) fn new(
        known: StartedCommand,
        saying: Box<dyn StreamRedactor>,
        output_bytes: usize,
        input: Writer,
    ) -> (Self, mpsc::UnboundedReceiver<Order>) {
        let (orders, ordered) = mpsc::unbounded_channel();
        let (ring, plain, typed) = (Ring::new(output_bytes), Plain::default(), String::new());
        let held = Mutex::new(Held { ring, plain, saying: Some(saying), typed, end: None });
        let input = Arc::new(tokio::sync::Mutex::new(Some(input)));
        (Self { known, held, changed: watch::Sender::default(), orders, input }, ordered)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds output: decoded, scrubbed, kept.
    pub(super) fn print(&self, bytes: &[u8]) {
        let mut held = self.held();
        let text = held.plain.add(bytes);
        held.say(&text);
        drop(held);
        self.changed.send_replace(());
    }

    /// Sets the end of the command and of its output.
    pub(super) fn end(&self, end: ProcessEnd) {
        let mut held = self.held();
        let rest = held.plain.end();
        held.say(&rest);
        if let Some(saying) = held.saying.take() {
            held.ring.add(&saying.end());
        }
        held.end = Some(end);
        drop(held);
        self.changed.send_replace(());
    }

    pub(super) fn is_running(&self) -> bool {
        self.held().end.is_none()
    }

    fn identity(&self, held: &Held) -> String {
        format!("{} {}", self.known.id, Digest::of_bytes(held.typed.as_bytes()))
    }

    /// Writes the initial input before anybody can type: it is part of what was judged.
    pub(super) fn begin(&self) -> impl Future<Output = ()> + Send + 'static {
        let text = self.known.script.input.clone().unwrap_or_default();
        let held = Arc::clone(&self.input).try_lock_owned();
        async move {
            let Ok(mut held) = held else { return };
            if let Some(writer) = held.as_mut().filter(|_| !text.is_empty()) {
                // It may end before it has read everything.
                let _ = writer.write_all(text.as_bytes()).await;
                let _ = writer.flush().await;
            }
        }
    }

    fn look_for(&self, pattern: Option<&Regex>, from: Option<u64>) -> (Awaited, bool) {
        let card = self.card();
        let has_ended = card.state != ProcessState::Running;
        let mut held = self.held();
        let cut = held.ring.cut(Some(from.unwrap_or(0)), usize::MAX);
        let text = format!("{}{}", cut.text, held.unfinished());
        let found = pattern.and_then(|pattern| pattern.find(&text));
        let next = match found {
            Some(found) => cut.from.saturating_add(found.end() as u64).min(cut.next),
            None => cut.next,
        };
        let matched = found.map(|found| found.as_str().to_owned());
        let done = has_ended || matched.is_some();
        (Awaited { card, matched, next }, done)
    }
}

#[async_trait]
impl BackgroundCommand for Kept {
    fn started(&self) -> &StartedCommand {
        &self.known
    }

    fn typed(&self) -> String {
        self.held().typed.clone()
    }

    fn card(&self) -> ProcessCard {
        let held = self.held();
        let StartedCommand { id, command, started, place, script, .. } = &self.known;
        ProcessCard {
            id: *id,
            command: command.clone(),
            terminal: script.terminal,
            started: *started,
            state: held.end.map_or(ProcessState::Running, ProcessState::Ended),
            printed: held.ring.end(),
            place,
        }
    }

    fn read(&self, from: Option<u64>, most: usize) -> Printed {
        let card = self.card();
        let mut held = self.held();
        let cut = held.ring.cut(from, most);
        let unfinished = if cut.next == held.ring.end() { held.unfinished() } else { String::new() };
        let (text, from, next, dropped) = (cut.text, cut.from, cut.next, cut.dropped);
        Printed { card, text, from, next, dropped, unfinished }
    }

    fn sight(&self, process: &str) -> Sight {
        let target = Target::Process { process: process.to_owned() };
        let (path, identity) = (Some(self.known.command.clone()), Some(self.identity(&self.held())));
        Sight { target, path, identity, credential: None, writable: false }
    }

    async fn send(&self, input: &Input, seen: Option<&Sight>) -> Result<(), ToolError> {
        let mut writer = self.input.lock().await;
        let (name, text) = (self.known.id.name(), self.known.typed(input));
        let gone = || {
            let message = format!("`{name}` no longer reads input");
            ToolError::failed(message).try_instead("check how it ended, or start it again")
        };
        if input.keys && !self.known.script.terminal {
            return Err(ToolError::invalid(format!("`{name}` has no terminal, so it takes no keys"))
                .try_instead("write text to it, or start it with `pty`"));
        }
        {
            let mut held = self.held();
            if held.end.is_some() {
                return Err(gone());
            }
            let identity = self.identity(&held);
            if seen.and_then(|sight| sight.identity.as_deref()) != Some(identity.as_str()) {
                let message = format!("something else was typed into `{name}` since this input was judged");
                return Err(ToolError::new(ErrorKind::Conflict, message)
                    .try_instead("call again, so that it is judged again"));
            }
            // Counts even if writing fails: a part may have arrived.
            held.typed.push_str(&text);
        }
        let to = writer.as_mut().ok_or_else(gone)?;
        let write = async {
            to.write_all(text.as_bytes()).await?;
            to.flush().await
        };
        match tokio::time::timeout(READING, write).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(gone().because(error)),
            Err(_) => {
                let message = format!("`{name}` did not read what was typed within {} s", READING.as_secs());
                return Err(ToolError::new(ErrorKind::TimedOut, message)
                    .try_instead("part of it may have arrived; check the output"));
            }
        }
        if input.end && !self.known.script.terminal {
            *writer = None;
        }
        Ok(())
    }

    async fn resize(&self, size: Size) -> Result<(), ToolError> {
        let (answer, answered) = oneshot::channel();
        let over = || ToolError::failed(format!("`{}` has ended", self.known.id.name()));
        self.orders.send(Order::Resize(size, answer)).map_err(|_| over())?;
        answered.await.map_err(|_| over())?
    }

    fn kill(&self) {
        // Nobody receives it if the command has ended.
        let _ = self.orders.send(Order::Kill);
    }

    async fn ended(&self) {
        let mut changed = self.changed.subscribe();
        while self.is_running() && changed.changed().await.is_ok() {}
    }

    async fn wait(
        &self,
        expected: &Expected,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Result<Awaited, ToolError> {
        let pattern = expected.pattern.as_deref().map(compile).transpose()?;
        let mut changed = self.changed.subscribe();
        let deadline = Instant::now() + limit;
        loop {
            changed.borrow_and_update();
            let (awaited, done) = self.look_for(pattern.as_ref(), expected.from);
            if done {
                return Ok(awaited);
            }
            tokio::select! {
                _ = changed.changed() => {}
                () = tokio::time::sleep_until(deadline) => return Ok(awaited),
                () = cancel.cancelled() => {
                    return Err(ToolError::new(ErrorKind::Cancelled, "the waiting was cancelled"));
                }
            }
        }
    }
}

impl Held {
    fn say(&mut self, text: &str) {
        if let Some(saying) = &mut self.saying {
            let shown = saying.push(text);
            self.ring.add(&shown);
        }
    }

    fn unfinished(&self) -> String {
        self.saying.as_ref().map(|saying| saying.unfinished()).unwrap_or_default()
    }
}

fn compile(pattern: &str) -> Result<Regex, ToolError> {
    let built = regex::RegexBuilder::new(pattern).multi_line(true).size_limit(PATTERN).build();
    built.map_err(|error| {
        ToolError::invalid(format!("`{pattern}` is not a regular expression: {error}"))
            .try_instead("put a backslash before special characters that are meant literally")
    })
}
