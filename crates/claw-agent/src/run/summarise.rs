//! Summaries of old runs: the model writes them, in parts that fit its context window.
//!
//! A summary covers messages that stay in the store. If none can be made, the history stays as it is.

use claw_core::message::{Part, Turn};
use claw_core::port::{Choice, Piece, Prompt, Question};
use claw_core::store::{Role, RunEvent, SessionEventBody, Summary};
use claw_core::tool::Spec;
use claw_registry::Offer;

use super::Run;
use crate::history::Chunk;
use crate::{RunError, context_window};

/// The parts of a request besides its turns, and the tokens that those may take.
#[derive(Clone, Copy)]
pub(super) struct ModelInput<'a> {
    pub(super) system: &'a Prompt,
    pub(super) tools: &'a [Spec],
    pub(super) budget: usize,
}

const ASK: &str = "Sum up the conversation above for yourself, so that you can go on without it: what the user wants \
and has said about how, what was done and found (with names, paths and figures), what was decided and why, and what \
is left to do. Leave out what no longer matters. Answer with the summary alone.";
/// The most parts that are summarised in one run; older runs are left out.
const PARTS: usize = 8;

impl Run<'_> {
    /// Summarises the earlier runs, in parts that fit the context window. If that fails, the rest stays as it
    /// is.
    pub(super) async fn sum_up(&mut self, offer: &Offer, reading: ModelInput<'_>) -> Result<(), RunError> {
        // Each part is read together with the summary of the parts before.
        let part = reading.budget / 2;
        let left_out = self.history.leave_out(part.saturating_mul(PARTS));
        if left_out > 0 {
            tracing::warn!(run = %self.lease.job, left_out, "the oldest questions and answers are left out");
        }
        while let Some(chunk) = self.history.chunk(part) {
            let Chunk { turns, runs, upto } = chunk;
            self.remember(offer, &turns, reading).await?;
            let Some(text) = self.summary_of(turns, reading).await? else { return Ok(()) };
            let (tenant, session) = (&self.caller.tenant, &self.caller.session);
            let summary = Summary { upto, text: text.clone(), at: self.deployment.clock.now() };
            self.deployment.store.summarise(self.lease, &self.owner(), summary).await?;
            let event = SessionEventBody::Run { run: self.lease.job, state: RunEvent::Summarised { upto } };
            self.deployment.chronicle.tell(tenant, session, event);
            self.history.summarised(runs, text);
        }
        Ok(())
    }

    /// Asks the model for a summary; `None` if it gives none, or the run is stopped.
    async fn summary_of(
        &self,
        mut turns: Vec<Turn>,
        ModelInput { system, tools, budget }: ModelInput<'_>,
    ) -> Result<Option<String>, RunError> {
        context_window::trim(&mut turns, budget);
        context_window::shorten(&mut turns, budget);
        match turns.last_mut() {
            Some(last) if last.role == Role::User => last.parts.push(Part::text(ASK)),
            _ => turns.push(Turn::text(Role::User, ASK)),
        }
        let (system, tools) = (system.clone(), tools.to_vec());
        let question = Question { system, turns, tools, choice: Choice::None, ..Question::default() };
        let unheard = |_: Piece<'_>| {};
        let answer = tokio::select! {
            biased;
            () = self.stopping.now.cancelled() => return Ok(None),
            answer = self.ask(question, &unheard) => answer,
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(run = %self.lease.job, %error, "the history could not be summarised");
                return Ok(None);
            }
        };
        self.pay(&answer).await;
        let text = Turn { role: Role::Assistant, parts: self.scrubbed(answer.parts) }.words();
        // A quarter of the context, at four bytes a token.
        let text = text.trim();
        let text = &text[..text.floor_char_boundary(budget)];
        Ok((!text.is_empty()).then(|| text.to_owned()))
    }
}
