//! Selects the commands that run in a sandbox.

use claw_core::tool::{Caller, PeerKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smol_str::{SmolStr, format_smolstr};

/// Commands that run in a sandbox. If a sandbox is needed and does not work, nothing runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// None: commands can reach everything that the program can, including its store and keys.
    Off,
    /// All but those of the owner's own session at the terminal.
    NonMain,
    /// All.
    #[default]
    All,
}

impl SandboxMode {
    /// Returns whether the commands of this caller run in a sandbox.
    pub fn holds(self, caller: &Caller) -> bool {
        match self {
            Self::Off => false,
            Self::NonMain => !is_main(caller),
            Self::All => true,
        }
    }

    /// The mode as written in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::NonMain => "non-main",
            Self::All => "all",
        }
    }
}

/// Commands that share a sandbox that outlives a command. Commands of different tenants never share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SandboxScope {
    /// Those of one session.
    #[default]
    Session,
    /// Those of one agent.
    Agent,
    /// All of them.
    Shared,
}

impl SandboxScope {
    /// The key of the sandbox that the commands of this caller share.
    pub fn key(self, caller: &Caller) -> SmolStr {
        let tenant = &caller.tenant;
        match self {
            // The same session with another agent is not the same.
            Self::Session => format_smolstr!("{tenant}/session/{}/{}", caller.agent, caller.session),
            Self::Agent => format_smolstr!("{tenant}/agent/{}", caller.agent),
            Self::Shared => format_smolstr!("{tenant}/shared"),
        }
    }
}

/// The sandbox settings of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sandboxing {
    /// The commands that run in a sandbox.
    pub mode: SandboxMode,
    /// The commands that share one.
    pub scope: SandboxScope,
    /// The path of the workspace inside the sandbox, if it differs from the one outside.
    pub workspace: Option<&'static str>,
}

impl Sandboxing {
    /// Sets the sandbox of a caller whose other fields are complete.
    pub fn apply(self, caller: &mut Caller) {
        caller.sandboxed = self.mode.holds(caller);
        caller.sandbox_key = self.scope.key(caller);
        caller.shown_workspace = self.workspace.filter(|_| caller.sandboxed).map(SmolStr::new_static);
    }
}

/// Returns whether this is the owner's own direct session: at the terminal, with nobody else in it and no
/// agent between.
fn is_main(caller: &Caller) -> bool {
    let alone = caller.peer_kind == PeerKind::Direct && caller.chat_id.is_none();
    let session = caller.session.as_str();
    let talks = |rest: &str| rest.split_once(':').is_some_and(|(_, rest)| rest.starts_with("cli:direct:"));
    let at_terminal = caller.session.kind() == "cli" || session.strip_prefix("agent:").is_some_and(talks);
    alone && at_terminal && caller.channel == "cli" && caller.subagent.depth == 0 && caller.hops == 0
}

#[cfg(test)]
mod tests {
    use claw_core::{AgentId, SessionKey};

    use super::*;

    #[test]
    fn a_scope_tells_callers_apart_and_tenants_always() {
        let caller = |tenant: &str, agent: &str, session: &str| {
            let mut caller =
                Caller::new(AgentId::new(agent).unwrap(), SessionKey::new(session).unwrap(), "/w");
            caller.tenant = claw_core::TenantId::new(tenant).unwrap();
            caller
        };
        let one = caller("t", "a", "cli:me");
        for (other, session, agent, shared) in [
            (caller("t", "a", "cli:me"), true, true, true),
            (caller("t", "a", "cli:you"), false, true, true),
            (caller("t", "b", "cli:me"), false, false, true),
            (caller("u", "a", "cli:me"), false, false, false),
        ] {
            let shares = |scope: SandboxScope| scope.key(&one) == scope.key(&other);
            assert_eq!(shares(SandboxScope::Session), session, "{other:?}");
            assert_eq!(shares(SandboxScope::Agent), agent, "{other:?}");
            assert_eq!(shares(SandboxScope::Shared), shared, "{other:?}");
        }
    }

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
        let talking = |session: &str| {
            let mut talking = caller(session);
            talking.channel = "cli".into();
            talking
        };
        let mut sent = talking("agent:a:cli:direct:me:chat-1");
        sent.hops = 1;
        for (caller, main) in [
            (caller("cli:me"), true),
            (talking("agent:a:cli:direct:me:chat-1"), true),
            (talking("agent:a:cli:group:all"), false),
            (talking("agent:a:telegram:direct:me"), false),
            (talking("agent:cli:direct:me"), false),
            (sent, false),
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
