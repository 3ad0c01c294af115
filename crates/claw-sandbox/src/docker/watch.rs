//! Seeing a command in a container to its end.

use std::time::Duration;

use claw_core::tool::Progress;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::super::helper::wire::{Ending, KILL, TERMINATE};
use super::DockerError;
use super::aftermath::KeeperEnd;
use super::call::{Ear, Heard, Mouth, Voice};
use super::wire::{INPUT, INPUT_END, Told};
use crate::shell::{Decoder, END, Output, OutputLimits, Reason};

/// The longest a container may take to report the end of a killed command.
pub(super) const PATIENCE: Duration = Duration::from_secs(8);
/// The bytes of an input sent at once.
const PIECE: usize = 64 << 10;

/// The parameters of watching a command to its end.
pub(super) struct Watch {
    pub(super) timeout: Duration,
    pub(super) grace: Duration,
    pub(super) cancel: CancellationToken,
    pub(super) progress: Progress,
    pub(super) keep: OutputLimits,
    pub(super) input: Option<Vec<u8>>,
    /// True if it runs on a terminal.
    pub(super) terminal: bool,
}

/// The result of watching a command.
pub(super) struct Watched {
    /// The end of the command, or the fate of its keeper.
    pub(super) ending: Result<Ending, KeeperEnd>,
    pub(super) reason: Option<Reason>,
    pub(super) output: Taken,
    pub(super) errors: Taken,
}

/// The captured output, and the number of bytes left out.
pub(super) type Taken = (String, u64);

/// The progress of ending a command.
enum Stage {
    Runs,
    Asked,
    Killed,
}

/// Feeds the command, takes its output, and ends it at its timeout or when the caller gives up: first by
/// asking. If this future is dropped, the other side sees that nobody is there, and kills the command.
pub(super) async fn watch(ear: Ear, mut mouth: Mouth, watch: &Watch) -> Result<Watched, DockerError> {
    let (voice, _speaking) = Voice::new(ear);
    for piece in watch.input.iter().flat_map(|input| input.chunks(PIECE)) {
        voice.say(INPUT, piece);
    }
    match watch.terminal {
        // There is no other way to tell a terminal that nothing more comes.
        true => voice.say(INPUT, &[END]),
        false => voice.say(INPUT_END, &[]),
    }
    let mut streams = [Taking::new(watch), Taking::new(watch)];
    let (mut stage, mut reason) = (Stage::Runs, None);
    let mut until = Instant::now() + watch.timeout;
    let ending = loop {
        let asked = matches!(stage, Stage::Runs);
        tokio::select! {
            heard = mouth.hear() => match heard? {
                Some(Heard::Output(bytes)) => streams[0].add(&bytes),
                Some(Heard::Errors(bytes)) => streams[1].add(&bytes),
                Some(Heard::Told(Told::Ended(ending))) => break Ok(ending),
                Some(Heard::Told(Told::Failed { step, reason })) => return Err(DockerError::Start { step, reason }),
                Some(Heard::Told(Told::Changed(at))) => return Err(DockerError::Changed(at)),
                Some(Heard::Told(_)) => {}
                None => break Err(KeeperEnd::Gone),
            },
            () = watch.cancel.cancelled(), if asked => {
                reason = Some(Reason::Cancelled);
                voice.say(TERMINATE, &[]);
                (stage, until) = (Stage::Asked, Instant::now() + watch.grace);
            }
            () = sleep_until(until) => match stage {
                Stage::Runs => {
                    reason = Some(Reason::TimedOut);
                    voice.say(TERMINATE, &[]);
                    (stage, until) = (Stage::Asked, Instant::now() + watch.grace);
                }
                Stage::Asked => {
                    voice.say(KILL, &[]);
                    (stage, until) = (Stage::Killed, Instant::now() + PATIENCE);
                }
                Stage::Killed => break Err(KeeperEnd::Silent),
            },
        }
    };
    let [output, errors] = streams.map(Taking::finish);
    Ok(Watched { ending, reason, output, errors })
}

struct Taking {
    output: Output,
    decoder: Decoder,
    progress: Progress,
}

impl Taking {
    fn new(watch: &Watch) -> Self {
        let (output, decoder) = (Output::new(watch.keep), Decoder::default());
        Self { output, decoder, progress: watch.progress.clone() }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.output.add(bytes);
        if !self.progress.is_silent() {
            let text = self.decoder.add(bytes);
            if !text.is_empty() {
                self.progress.tell(&text);
            }
        }
    }

    fn finish(self) -> Taken {
        let rest = self.decoder.finish();
        if !rest.is_empty() {
            self.progress.tell(&rest);
        }
        self.output.finish()
    }
}
