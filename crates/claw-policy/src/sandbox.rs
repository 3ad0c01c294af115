//! Whose commands run in a sandbox.

use claw_core::tool::{Caller, PeerKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose commands run in a sandbox. Where one is needed and does not work, nothing runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Nobody's: commands reach all that the program reaches, its own store and keys too.
    Off,
    /// Everybody's but those of the owner's own conversation at the terminal.
    NonMain,
    /// Everybody's.
    #[default]
    All,
}

impl SandboxMode {
    /// Whether the commands of this caller run in one.
    pub fn holds(self, caller: &Caller) -> bool {
        match self {
            Self::Off => false,
            Self::NonMain => !is_main(caller),
            Self::All => true,
        }
    }

    /// The mode as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::NonMain => "non-main",
            Self::All => "all",
        }
    }
}

/// The owner's own direct conversation: at the terminal, with nobody else in it and no agent between.
fn is_main(caller: &Caller) -> bool {
    let alone = caller.peer_kind == PeerKind::Direct && caller.chat_id.is_none();
    alone && caller.channel == "cli" && caller.session.kind() == "cli" && caller.subagent.depth == 0
}

#[cfg(test)]
mod tests {
    use claw_core::{AgentId, SessionKey};

    use super::*;

    #[test]
    fn only_the_owner_at_the_terminal_is_main() {
        let caller =
            |session: &str| Caller::new(AgentId::new("a").unwrap(), SessionKey::new(session).unwrap(), "/w");
        let mut group = caller("cli:me");
        (group.peer_kind, group.chat_id) = (PeerKind::Group, Some("1".into()));
        let mut inner = caller("cli:me");
        inner.subagent.depth = 1;
        let mut posing = caller("telegram:me");
        posing.channel = "cli".into();
        for (caller, main) in [
            (caller("cli:me"), true),
            (caller("telegram:me"), false),
            (group, false),
            (inner, false),
            (posing, false),
        ] {
            assert_eq!(SandboxMode::NonMain.holds(&caller), !main, "{caller:?}");
            assert!(SandboxMode::All.holds(&caller) && !SandboxMode::Off.holds(&caller));
        }
    }
}
