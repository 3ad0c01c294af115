//! Programs with credentials: which of them a call may use, and which of its asks lead to one.

use claw_core::port::{ProgramRun, Registered};
use claw_core::tool::{Ask, Need, Plan};
use claw_policy::approval as policy;
use claw_policy::pipeline::Subject;

use super::{Judged, Trip};
use crate::offer::State;
use crate::reply::{Refusal, Step};

impl Trip<'_> {
    /// The programs that the commands of a plan may lead to. Who may not use the tool for them has none, whatever
    /// other tool the command comes by.
    pub(super) async fn programs(&self, plan: &Plan) -> Result<Registered, Refusal> {
        let none = || Ok(Registered::default());
        let Some(host) = &self.offer.0.registry.world().programs else { return none() };
        if !plan.asks.iter().any(|ask| policy::command(ask).is_some()) || !self.may_use_programs() {
            return none();
        }
        let caller = self.offer.caller();
        host.programs(&caller.tenant, &caller.agent).await.map_err(|error| {
            tracing::error!(%error, "the programs with credentials could not be read");
            let reason = "the programs with credentials cannot be read right now, so no command is run";
            Refusal::at(Step::Judge, reason).try_instead("try again later")
        })
    }

    /// Whether the tool for them was offered to the caller and is allowed now, with all that it does.
    fn may_use_programs(&self) -> bool {
        let registry = self.executor.registry_for(self.offer.caller());
        let subject = Subject::from(self.offer.caller().as_ref());
        self.offer.0.tools.iter().filter(|tool| tool.entry.meta.needs.contains(&Need::Programs)).any(|tool| {
            let meta = &tool.entry.meta;
            let verdict = self.executor.policy().judge(&registry.tool_set(), &subject, meta);
            tool.state() != State::Withdrawn
                && registry.named(meta.name.as_str()).is_some()
                && verdict.allowed
                && meta.effects.within(verdict.effects)
        })
    }
}

/// The asks of a plan that lead to a program with credentials.
pub(super) fn logins(judged: &Judged) -> Vec<(Ask, ProgramRun)> {
    let commands = judged.plan.asks.iter().filter(|ask| policy::command(ask).is_some());
    let each = commands.zip(&judged.commands.routes);
    each.filter_map(|(ask, route)| Some((ask.clone(), route.program()?.clone()))).collect()
}
