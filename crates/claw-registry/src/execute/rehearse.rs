//! Rehearsals: steps 1 to 5 of the road, to tell what a call would do and whether it may.

use claw_core::tool::Effects;
use claw_policy::approval::Judgement;
use claw_schema::validate::Checked;
use serde::Serialize;
use serde_json::Value;

use super::{Arguments, Trip};
use crate::output;
use crate::reply::Refusal;
use crate::scrub::CallScrubber;

/// Effects and plan of a call, and the verdict on it.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rehearsal {
    /// The verdict.
    pub verdict: RehearsedVerdict,
    /// The rule that asks or denies, and why; `None` if the call may run.
    pub reason: Option<String>,
    /// Advice, if the call is denied.
    pub advice: Option<String>,
    /// The setting by which a person would allow a denied call; `None` where no setting does.
    pub setting: Option<String>,
    /// Effects of the call.
    pub effects: Effects,
    /// The plan: commands, programs, files, hosts; scrubbed.
    pub plan: Value,
    /// Repairs of the arguments, for the model.
    pub notes: Vec<String>,
}

/// The verdict on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RehearsedVerdict {
    /// It may run.
    Allow,
    /// A person decides.
    Ask,
    /// It may not run.
    Deny,
}

impl Trip<'_> {
    /// Steps 2 to 5, without asking anybody.
    pub(super) async fn rehearse(
        mut self,
        args: Arguments,
        scrubber: &CallScrubber,
    ) -> Result<Rehearsal, Refusal> {
        let (Checked { args, notes }, left) = self.enter(args, scrubber, &mut None).await?;
        let notes = notes.iter().map(|note| output::note(note, scrubber)).collect();
        let (judged, judgement) = self.weigh(&args, left).await?;
        let (verdict, reason, advice, setting) = match judgement {
            Judgement::Allow => (RehearsedVerdict::Allow, None, None, None),
            Judgement::Ask { reason } => (RehearsedVerdict::Ask, Some(reason), None, None),
            Judgement::Deny { reason, advice, setting } => {
                (RehearsedVerdict::Deny, Some(reason), advice, setting)
            }
        };
        let scrubbed = |text: String| scrubber.text(&text);
        let plan = scrubber.json(&serde_json::to_value(&judged.plan).unwrap_or_default());
        let (reason, advice, setting) = (reason.map(scrubbed), advice.map(scrubbed), setting.map(scrubbed));
        Ok(Rehearsal { verdict, reason, advice, setting, effects: judged.effects, plan, notes })
    }
}
