//! A command in the background: its output, its input and its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use claw_core::ProcessId;
use claw_core::port::{Awaited, Expected, Owner, Printed, ProcessCard, ProcessState, Size, UnixMillis};
use claw_core::store::ProcessEnd;
use claw_core::tool::{Digest, Effects, ErrorKind, Input, Script, Sight, Target, ToolError};
use claw_policy::shell::{Invocation, Rules, Typing, Verdict};
use regex::Regex;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::plain::Plain;
use super::ring::Ring;
use crate::scrub::Saying;

/// Time for a command to read its input before the call gives up.
const READING: Duration = Duration::from_secs(10);
/// Largest compiled size of a pattern.
const PATTERN: usize = 1 << 20;
/// The character that ends a terminal's input.
const END: &str = "\u{4}";

/// An order to the task that watches a command.
pub(crate) enum Order {
    Kill,
    Resize(Size, oneshot::Sender<Result<(), ToolError>>),
}

/// Properties of a command, known when it starts.
pub(crate) struct Known {
    pub(crate) id: ProcessId,
    pub(crate) owner: Owner,
    pub(crate) script: Script,
    /// The programs that its words resolved to, each as word and path.
    pub(crate) programs: Vec<(String, String)>,
    /// Effects that the policy allowed the call that started it.
    pub(crate) effects: Effects,
    /// The command as people and models read it.
    pub(crate) command: String,
    pub(crate) started: UnixMillis,
    pub(crate) place: &'static str,
}

type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// A background command, running or ended.
pub(crate) struct Kept {
    pub(crate) known: Known,
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
    saying: Option<Saying>,
    /// Text typed so far, beyond the input that it was started with.
    typed: String,
    end: Option<ProcessEnd>,
}

impl Kept {
    pub(crate) fn new(
        known: Known,
        (saying, ring): (Saying, usize),
        input: Writer,
    ) -> (Self, mpsc::UnboundedReceiver<Order>) {
        let (orders, ordered) = mpsc::unbounded_channel();
        let (ring, plain, typed) = (Ring::new(ring), Plain::default(), String::new());
        let held = Mutex::new(Held { ring, plain, saying: Some(saying), typed, end: None });
        let input = Arc::new(tokio::sync::Mutex::new(Some(input)));
        (Self { known, held, changed: watch::Sender::default(), orders, input }, ordered)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds output: decoded, scrubbed, kept.
    pub(crate) fn print(&self, bytes: &[u8]) {
        let mut held = self.held();
        let text = held.plain.add(bytes);
        held.say(&text);
        drop(held);
        self.changed.send_replace(());
    }

    /// Sets the end of the command and of its output.
    pub(crate) fn end(&self, end: ProcessEnd) {
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

    pub(crate) fn is_running(&self) -> bool {
        self.held().end.is_none()
    }

    pub(crate) fn card(&self) -> ProcessCard {
        let held = self.held();
        let Known { id, command, started, place, script, .. } = &self.known;
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

    pub(crate) fn read(&self, from: Option<u64>, most: usize) -> Printed {
        let card = self.card();
        let mut held = self.held();
        let cut = held.ring.cut(from, most);
        let unfinished = if cut.next == held.ring.end() { held.unfinished() } else { String::new() };
        let (text, from, next, dropped) = (cut.text, cut.from, cut.next, cut.dropped);
        Printed { card, text, from, next, dropped, unfinished }
    }

    /// The command's state, with all text typed into it.
    pub(crate) fn sight(&self, process: &str) -> Sight {
        let target = Target::Process { process: process.to_owned() };
        let (path, identity) = (Some(self.known.command.clone()), Some(self.identity(&self.held())));
        Sight { target, path, identity, credential: None, writable: false }
    }

    fn identity(&self, held: &Held) -> String {
        format!("{} {}", self.known.id, Digest::of_bytes(held.typed.as_bytes()))
    }

    /// Applies the rules to text that would be typed now.
    pub(crate) fn judge(&self, input: &Input, rules: &Rules) -> Verdict {
        let Known { script, programs, .. } = &self.known;
        let typed = self.held().typed.clone();
        let started = Invocation { text: &script.text, env: &script.env, input: script.input.as_deref() };
        let typing = Typing { started, before: &typed, terminal: script.terminal, programs };
        typing.analyse(&self.typed(input), rules)
    }

    /// The text that is really typed: on a terminal, a control character ends the input.
    fn typed(&self, input: &Input) -> String {
        let end = if input.end && self.known.script.terminal { END } else { "" };
        format!("{}{end}", input.text)
    }

    /// Types text, if the command is still in the state `seen` when the text was judged.
    pub(crate) async fn send(&self, input: &Input, seen: Option<&Sight>) -> Result<(), ToolError> {
        let mut writer = self.input.lock().await;
        let (name, text) = (self.known.id.name(), self.typed(input));
        let gone = || {
            let message = format!("`{name}` reads nothing any more");
            ToolError::failed(message).try_instead("look at how it ended, or start it again")
        };
        if input.keys && !self.known.script.terminal {
            return Err(ToolError::invalid(format!("`{name}` has no terminal, so there are no keys"))
                .try_instead("write text to it, or start it with `pty`"));
        }
        {
            let mut held = self.held();
            if held.end.is_some() {
                return Err(gone());
            }
            let identity = self.identity(&held);
            if seen.and_then(|sight| sight.identity.as_deref()) != Some(identity.as_str()) {
                let message = format!("something else was typed into `{name}` since this was judged");
                return Err(ToolError::new(ErrorKind::Conflict, message)
                    .try_instead("call again to have it judged anew"));
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
                    .try_instead("part of it may have got there; see what it printed"));
            }
        }
        if input.end && !self.known.script.terminal {
            *writer = None;
        }
        Ok(())
    }

    /// Writes the initial input before anybody can type: it is part of what was judged.
    pub(crate) fn begin(&self) -> impl Future<Output = ()> + Send + 'static {
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

    pub(crate) async fn resize(&self, size: Size) -> Result<(), ToolError> {
        let (answer, answered) = oneshot::channel();
        let over = || ToolError::failed(format!("`{}` has ended", self.known.id.name()));
        self.orders.send(Order::Resize(size, answer)).map_err(|_| over())?;
        answered.await.map_err(|_| over())?
    }

    /// Asks the command to end.
    pub(crate) fn kill(&self) {
        // Nobody receives it if the command has ended.
        let _ = self.orders.send(Order::Kill);
    }

    /// Waits until the command has ended.
    pub(crate) async fn ended(&self) {
        let mut changed = self.changed.subscribe();
        while self.is_running() && changed.changed().await.is_ok() {}
    }

    /// Waits for a pattern in the output, or for the end.
    pub(crate) async fn wait(
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

impl Held {
    fn say(&mut self, text: &str) {
        if let Some(saying) = &mut self.saying {
            let shown = saying.push(text);
            self.ring.add(&shown);
        }
    }

    fn unfinished(&self) -> String {
        self.saying.as_ref().map(Saying::unfinished).unwrap_or_default()
    }
}

fn compile(pattern: &str) -> Result<Regex, ToolError> {
    let built = regex::RegexBuilder::new(pattern).multi_line(true).size_limit(PATTERN).build();
    built.map_err(|error| {
        ToolError::invalid(format!("`{pattern}` is not a regular expression: {error}"))
            .try_instead("put a backslash before characters that are meant as they are")
    })
}
