//! Decides how the turns of a session fit the model's context window: old results are trimmed, old runs summarised
//! or left out.
//!
//! If no summary can be made, the oldest runs are left out and the run goes on with what fits.

use claw_core::message::Turn;
use claw_core::port::Prompt;
use claw_core::tool::Spec;
use claw_registry::Offer;
use claw_schema::dialect::{Dialect, estimate_tokens};

use super::Run;
use super::summarise::ModelInput;
use crate::{RunError, context_window};

impl Run<'_> {
    /// Returns the turns, cut so that they fit the model's context window.
    pub(super) async fn fitting(
        &mut self,
        offer: &Offer,
        system: &Prompt,
        tools: &[Spec],
    ) -> Result<Vec<Turn>, RunError> {
        let budget = self.budget(system, tools);
        let mut turns = self.history.turns();
        if context_window::tokens(&turns) <= budget {
            return Ok(turns);
        }
        if self.history.coverable() > budget / 3 {
            self.sum_up(offer, ModelInput { system, tools, budget }).await?;
            turns = self.history.turns();
        }
        context_window::trim(&mut turns, budget);
        if context_window::tokens(&turns) > budget {
            turns = self.history.turns_within(budget);
            context_window::trim(&mut turns, budget);
        }
        if self.squeezed > 0 {
            context_window::shorten(&mut turns, budget);
        }
        Ok(turns)
    }

    /// Returns the tokens that the context window has left for turns.
    fn budget(&self, system: &Prompt, tools: &[Spec]) -> usize {
        let card = self.model.card();
        let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let context = size(card.context);
        let answer = size(self.profile.limits.output_tokens.unwrap_or(card.output)).min(context / 4);
        let told = (system.stable.len() + system.changing.len()).div_ceil(4);
        let tools: usize = tools.iter().map(|spec| estimate_tokens(&Dialect::Default.tool(spec))).sum();
        // Token counts are estimates: a tenth stays free.
        let left = context.saturating_sub(answer + told + tools) / 10 * 9;
        left.max(context / 8) >> self.squeezed
    }
}
