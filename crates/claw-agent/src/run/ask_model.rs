//! Asks the model, and streams its answer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use claw_core::MessageId;
use claw_core::port::{Answer, Ear, ModelError, Owner, Piece, Question};
use claw_core::store::{Store, Voice};
use claw_registry::{CallScrubber, Saying};

use super::Run;
use crate::{RunError, images};

/// The outcome of a request to the model.
pub(super) enum Thought {
    /// The model answered.
    Answered(MessageId, Answer),
    /// The run was stopped; this is the partial answer.
    Cut(MessageId, String),
    /// The run's time was up; this is the partial answer.
    Late(MessageId, String),
}

impl Run<'_> {
    /// Returns the time that the run has left.
    pub(super) fn time_left(&self) -> Duration {
        let spent = self.deployment.clock.now().since(self.began);
        self.profile.limits.time().saturating_sub(spent)
    }

    /// Asks the model. Stopping the run drops the request.
    pub(super) async fn think(&self, question: Question) -> Result<Thought, RunError> {
        let (ear, begun) = (Listening::new(self), self.begin());
        // A last answer may exceed the remaining time by a tenth of the limit.
        let left = self.time_left() + self.profile.limits.time() / 10;
        let mut is_late = false;
        let answer = tokio::select! {
            biased;
            () = self.stopping.now.cancelled() => None,
            () = tokio::time::sleep(left) => {
                is_late = true;
                None
            }
            answer = self.ask(question, &ear) => Some(answer),
        };
        let (id, text) = ear.end();
        match answer {
            Some(Ok(answer)) => Ok(Thought::Answered(id, answer)),
            Some(Err(error)) => {
                self.deployment.store.said(&self.owner(), id.into());
                Err(error.into())
            }
            None => {
                self.trace_answer(begun, None);
                self.stopping
                    .check()
                    .inspect_err(|_| self.deployment.store.said(&self.owner(), id.into()))?;
                Ok(if is_late { Thought::Late(id, text) } else { Thought::Cut(id, text) })
            }
        }
    }
}

impl Run<'_> {
    /// Sends a question to the model, with the images that its turns name.
    pub(super) async fn ask(&self, mut question: Question, ear: &dyn Ear) -> Result<Answer, ModelError> {
        images::load(&*self.deployment.store, &self.caller.tenant, &mut question.turns).await;
        let begun = self.begin();
        let answer = self.model.ask(&question, ear).await;
        self.trace_answer(begun, Some((&question, &answer)));
        answer
    }
}

/// Streams the model's answer, scrubbed, and keeps its text in case it is cut off.
struct Listening {
    store: Arc<dyn Store>,
    owner: Owner,
    scrubber: CallScrubber,
    state: Mutex<State>,
}

struct State {
    id: MessageId,
    words: Saying,
    thoughts: Saying,
    text: String,
}

impl State {
    fn new(scrubber: &CallScrubber) -> Self {
        let (words, thoughts) = (scrubber.saying(), scrubber.saying());
        Self { id: MessageId::new(), words, thoughts, text: String::new() }
    }
}

impl Listening {
    fn new(run: &Run<'_>) -> Self {
        let scrubber = run.deployment.executor.scrubbers().for_tenant(&run.caller.tenant);
        let state = Mutex::new(State::new(&scrubber));
        Self { store: Arc::clone(&run.deployment.store), owner: run.owner(), scrubber, state }
    }

    /// Returns the id and the text of the message.
    fn end(self) -> (MessageId, String) {
        let State { id, words, thoughts, mut text } =
            self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (words, thoughts) = (words.end(), thoughts.end());
        text.push_str(&words);
        for (voice, rest) in [(Voice::Thinking, thoughts), (Voice::Text, words)] {
            if !rest.is_empty() {
                self.store.say(&self.owner, id.into(), voice, &rest);
            }
        }
        (id, text)
    }
}

impl Ear for Listening {
    fn hear(&self, piece: Piece<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (voice, shown) = match piece {
            Piece::Text(text) => {
                let shown = state.words.push(text);
                state.text.push_str(&shown);
                (Voice::Text, shown)
            }
            Piece::Thinking(text) => (Voice::Thinking, state.thoughts.push(text)),
            Piece::Again { reason } => {
                tracing::debug!(reason, "an answer is requested again");
                self.store.said(&self.owner, state.id.into());
                *state = State::new(&self.scrubber);
                return;
            }
            // Arguments are one line, in which a secret may be anywhere: only their length is told.
            Piece::Args(text) => (Voice::Arguments, ".".repeat(text.len())),
            // Calls are reported when they are made.
            Piece::Call { .. } => return,
        };
        if !shown.is_empty() {
            self.store.say(&self.owner, state.id.into(), voice, &shown);
        }
    }
}
