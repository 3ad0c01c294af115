//! Modes of a chat: how much is done without asking. A mode only narrows what the policy allows.

use std::fmt;
use std::str::FromStr;
use std::sync::PoisonError;

use claw_agent::Order;
use claw_core::did_you_mean::nearest;
use claw_core::store::JobFilter;
use claw_core::tool::{Caller, Effect};
use claw_policy::approval::{EffectRule, Narrowing};
use serde::{Deserialize as _, Serialize};

use super::{App, Error, Sessions};

/// The number of a session's last jobs among which its last run is.
const LOOKED_AT: usize = 8;

/// The degree to which an agent acts without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Reads, and changes nothing.
    Plan,
    /// Asks before each write, with the diff shown first, and before each command that may change something.
    Ask,
    /// Edits files without asking; asks before commands.
    Edits,
    /// Follows the configuration.
    #[default]
    Configured,
}

impl Mode {
    /// All modes, the narrowest first.
    pub const ALL: [Self; 4] = [Self::Plan, Self::Ask, Self::Edits, Self::Configured];

    /// Returns the mode's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::Edits => "edits",
            Self::Configured => "configured",
        }
    }

    /// Describes the mode, for display.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Plan => "read only: nothing is changed",
            Self::Ask => "asks before each write, with its diff",
            Self::Edits => "edits files without asking; asks before commands",
            Self::Configured => "as the configuration says",
        }
    }

    /// Returns the effects that it narrows; `None` if it narrows none.
    pub(super) fn narrowing(self) -> Option<Narrowing> {
        use Effect::{Admin, Execute, Message, Spawn, Write};
        let (rule, effects): (EffectRule, &[Effect]) = match self {
            Self::Plan => (EffectRule::Deny, &[Write, Message, Spawn, Admin]),
            Self::Ask => (EffectRule::Ask, &[Write, Message, Spawn, Admin]),
            Self::Edits => (EffectRule::Ask, &[Execute, Message, Spawn, Admin]),
            Self::Configured => return None,
        };
        Some(Narrowing {
            mode: self.name().into(),
            effects: effects.iter().map(|effect| (*effect, rule)).collect(),
        })
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name);
        let known = Self::ALL.into_iter().find(|mode| mode.name() == word);
        known.ok_or_else(|| match nearest(word, names) {
            Some(near) => format!("there is no mode `{word}`; did you mean `{near}`?"),
            None => format!("there is no mode `{word}`; the modes are {}", names.join(", ")),
        })
    }
}

impl Sessions {
    /// Narrows all calls of this process from now on. A message that is sent from now on is answered in this mode by
    /// whichever process: the run stores it, and a wider mode later does not widen it.
    pub fn set_mode(&self, mode: Mode) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
        let executor = &self.deployment().executor;
        let mut approvals = executor.approvals().as_ref().clone();
        approvals.narrowing = mode.narrowing().into_iter().collect();
        executor.set_approvals(approvals);
    }
}

impl App {
    /// The mode of the last run of the caller's session: a session that resumes is not widened by that.
    pub async fn mode_of_last_run(&self, caller: &Caller) -> Result<Mode, Error> {
        let filter =
            JobFilter { session: Some(caller.session.clone()), limit: LOOKED_AT, ..JobFilter::default() };
        let runs = self.store.jobs(&caller.tenant, &filter).await?;
        let order = runs.iter().find_map(|run| Order::deserialize(&run.new.payload).ok());
        match order.and_then(|order| order.narrowing) {
            Some(narrowing) => parse(&narrowing.mode),
            None => Ok(Mode::Configured),
        }
    }
}

/// Reads a mode that a person named.
pub fn parse(word: &str) -> Result<Mode, Error> {
    word.parse().map_err(|why: String| Error::invalid(why))
}
