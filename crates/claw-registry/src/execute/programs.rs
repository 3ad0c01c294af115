//! Programs with credentials: those that a call may use, and the asks that lead to one.

use claw_core::port::{ProgramRun, Registered};
use claw_core::store::StoreError;
use claw_core::tool::{Ask, Need, Plan};
use claw_policy::approval as policy;
use claw_policy::pipeline::Subject;

use super::{Judged, Trip};
use crate::offer::State;
use crate::reply::{Refusal, Step};
use crate::{Executor, Offer};

impl Executor {
    /// The programs that the caller of an offer may use with their credentials, sorted by name; empty if the
    /// caller may not use the tool for them.
    pub async fn programs(&self, offer: &Offer) -> Result<Registered, StoreError> {
        let caller = offer.caller();
        match &offer.0.registry.world().programs {
            Some(host) if self.may_use_programs(offer).await => {
                host.programs(&caller.tenant, &caller.agent).await
            }
            _ => Ok(Registered::default()),
        }
    }

    /// Returns whether the tool for these programs was offered to the caller and is allowed now, with all its
    /// effects.
    async fn may_use_programs(&self, offer: &Offer) -> bool {
        let registry = self.registry_for(offer.caller()).await;
        let subject = Subject::from(offer.caller().as_ref());
        offer.0.tools.iter().filter(|tool| tool.entry.meta.needs.contains(&Need::Programs)).any(|tool| {
            let meta = &tool.entry.meta;
            let verdict = self.policy().judge(&registry.tool_set(), &subject, meta);
            tool.state() != State::Withdrawn
                && registry.named(meta.name.as_str()).is_some_and(|now| now.meta == *meta)
                && verdict.allowed
                && meta.effects.within(verdict.effects)
        })
    }
}

impl Trip<'_> {
    /// The programs that the commands of a plan may lead to, for any tool.
    pub(super) async fn programs(&self, plan: &Plan) -> Result<Registered, Refusal> {
        if !plan.asks.iter().any(|ask| policy::command(ask).is_some()) {
            return Ok(Registered::default());
        }
        self.executor.programs(self.offer).await.map_err(|error| {
            tracing::error!(%error, "the programs with credentials could not be read");
            let reason = "the programs with credentials cannot be read right now, so no command is run";
            Refusal::at(Step::Judge, reason).try_instead("try again later")
        })
    }
}

/// The asks of a plan that lead to a program with credentials.
pub(super) fn logins(judged: &Judged) -> Vec<(Ask, ProgramRun)> {
    let asks = judged.analysis.asks.iter();
    asks.filter_map(|analysed| Some((analysed.ask.clone(), analysed.login()?.clone()))).collect()
}
