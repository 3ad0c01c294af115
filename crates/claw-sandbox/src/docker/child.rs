//! A command in a container that runs on its own, as the port returns it.
//!
//! The streams are flow-controlled (`flow`), so the message of the command's end is never queued behind
//! output that nobody reads.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::{Child, Control, Ended, Size};
use claw_core::tool::ToolError;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::super::helper::wire::{Ending, KILL, TERMINATE};
use super::DockerError;
use super::aftermath::{Aftermath, KeeperEnd};
use super::call::{Ear, Heard, Mouth, Voice};
use super::flow::{self, Credit, Feed, Pouring};
use super::shell::refused;
use super::watch::PATIENCE;
use super::wire::{ERRORS, OUTPUT, SIZE, Told};

/// The exchange about a command that is being started.
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
        let (output, printed) = flow::stream(OUTPUT, &voice);
        let (errors, also) = flow::stream(ERRORS, &voice);
        let (credit, killed) = (Arc::new(Credit::default()), CancellationToken::new());
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
            return Err(why.map_or_else(
                |error| error,
                |ending| lost(format!("it ended before the command started: {ending:?}")),
            ));
        };
        Ok(Child {
            pid,
            place,
            input: Box::new(Feed::new(voice.clone(), credit, !terminal)),
            output: Box::new(printed),
            errors: apart.then(|| Box::new(also) as _),
            control: Box::new(Held { voice, _speaking: speaking, listening, killed, terminal, ended: None }),
        })
    }
}

fn lost(reason: impl ToString) -> DockerError {
    DockerError::Lost(reason.to_string())
}

/// The control of a command in a container. When it is dropped, the other side sees that its owner is gone,
/// and kills the command.
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
        self.ended.clone().unwrap_or_else(|| Err(refused(lost("its exit status is unknown"))))
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
            return Err(ToolError::invalid("the command has no terminal").try_instead("start it with `pty`"));
        }
        let size = serde_json::to_vec(&size).map_err(|error| refused(lost(error)))?;
        self.voice.say(SIZE, &size);
        Ok(())
    }
}

/// Receives a command's messages until its end.
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
            let mut keeper = KeeperEnd::Gone;
            let heard = tokio::select! {
                heard = self.mouth.hear() => heard?,
                () = self.killed.cancelled(), if until.is_none() => {
                    until = Some(Instant::now() + PATIENCE);
                    continue;
                }
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {
                    keeper = KeeperEnd::Silent;
                    None
                }
            };
            match heard {
                Some(Heard::Output(bytes)) => self.streams[0].pour(&bytes)?,
                Some(Heard::Errors(bytes)) => self.streams[1].pour(&bytes)?,
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
                None => return self.aftermath.see_to(keeper).await,
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.credit.close();
    }
}
