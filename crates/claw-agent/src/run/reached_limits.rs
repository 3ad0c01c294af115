//! The limits that a run has reached: requests to the model, calls, time, cost, and the budget of its tree.

use claw_core::message::Turn;
use claw_core::store::{Role, UsageFilter};

use super::Run;
use crate::{Budget, RunError};

impl Run<'_> {
    /// Counts the requests to the model in this run, and the calls it requested.
    pub(super) fn counts(&self) -> (u32, u32) {
        let turns = self.history.of_run();
        let asked = turns.iter().filter(|turn| turn.role == Role::Assistant).count();
        let made = turns.iter().flat_map(Turn::calls).count();
        (u32::try_from(asked).unwrap_or(u32::MAX), u32::try_from(made).unwrap_or(u32::MAX))
    }

    /// Returns the limit that is reached, in words.
    pub(super) async fn reached(&self, asked: u32, made: u32) -> Result<Option<String>, RunError> {
        let limits = &self.profile.limits;
        if asked.saturating_add(1) >= limits.iterations {
            return Ok(Some(format!(
                "the limit of {} requests to the model in one run is reached",
                limits.iterations
            )));
        }
        if made >= limits.calls {
            return Ok(Some(format!("the limit of {} calls in one run is reached", limits.calls)));
        }
        if self.time_left().is_zero() {
            return Ok(Some(format!("its time limit of {} seconds is reached", limits.seconds)));
        }
        if let Some(why) = self.beyond_budget().await? {
            return Ok(Some(why));
        }
        let Some(most) = limits.cost_micros else { return Ok(None) };
        let (session, from) = (Some(self.caller.session.clone()), Some(self.accepted));
        let filter = UsageFilter { session, from, ..UsageFilter::default() };
        let cost = self.deployment.store.usage(&self.caller.tenant, &filter).await?.cost;
        let spent = u64::try_from(cost).unwrap_or(0);
        Ok((spent >= most).then(|| format!("it has cost {}; the limit is {}", dollars(spent), dollars(most))))
    }

    /// Returns the part of the tree's budget that is used up, in words.
    async fn beyond_budget(&self) -> Result<Option<String>, RunError> {
        let Budget { tokens, cost_micros, until } = self.order.budget;
        if until.is_some_and(|until| self.deployment.clock.now() >= until) {
            return Ok(Some("its time budget is used up".to_owned()));
        }
        if tokens.is_none() && cost_micros.is_none() {
            return Ok(None);
        }
        let filter = UsageFilter { root: Some(self.root), ..UsageFilter::default() };
        let usage = self.deployment.store.usage(&self.caller.tenant, &filter).await?;
        let (used, spent) = (usage.tokens, u64::try_from(usage.cost).unwrap_or(0));
        let used = used.input + used.cache_read + used.cache_write + used.output;
        Ok(match (tokens, cost_micros) {
            (Some(most), _) if used >= most => Some(format!(
                "it and the runs that share its budget have used {used} tokens; the limit is {most}"
            )),
            (_, Some(most)) if spent >= most => Some(format!(
                "it and the runs that share its budget have cost {}; the limit is {}",
                dollars(spent),
                dollars(most)
            )),
            _ => None,
        })
    }
}

/// A cost in US dollars, from millionths of one.
fn dollars(micros: u64) -> String {
    format!("${}.{:06}", micros / 1_000_000, micros % 1_000_000)
}
