//! Generates policies and callers from a seed.

use claw_core::tool::{Profile, SubagentDepth};

use crate::config::{AgentProviderTools, AgentTools, GroupTools, PolicyConfig, ProviderTools, SubagentTools};
use crate::pipeline::Subject;

/// The entries of generated lists.
pub(super) const ENTRIES: [&str; 30] = [
    "read_file",
    "edit",
    "exec",
    "web_fetch",
    "tts",
    "datetime",
    "session_status",
    "team_tasks",
    "deploy",
    "read_artifact",
    "mcp_git",
    "edit_file",
    "read",
    "nothing",
    "re*",
    "*e*",
    "*_*",
    "*",
    "group:fs",
    "group:team",
    "group:media",
    "group:goclaw",
    "group:mcp",
    "group:mcp:git",
    "group:t*",
    "group:none",
    "effect:read",
    "effect:write",
    "effect:network",
    "effect:execute",
];

/// A small deterministic generator (splitmix64): a hundred thousand policies take seconds, unoptimised.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }

    pub(super) fn pick<T: Copy>(&mut self, options: &[T]) -> T {
        options[self.roll(options.len())]
    }

    pub(super) fn list(&mut self, longest: usize) -> Vec<String> {
        (0..self.roll(longest + 1)).map(|_| self.pick(&ENTRIES).to_owned()).collect()
    }

    pub(super) fn config(&mut self) -> PolicyConfig {
        let mut config = PolicyConfig::default();
        let tools = &mut config.tools;
        tools.profile = if self.one_in(2) { Profile::Full } else { self.pick(&Profile::ALL) };
        (tools.allow, tools.deny, tools.also_allow) = (self.allow(), self.list(3), self.list(2));
        tools.deny_wins = self.one_in(2);
        let profile = self.one_in(2).then(|| self.pick(&Profile::ALL));
        tools.by_provider.insert("openai".into(), ProviderTools { profile, allow: self.allow() });
        tools.groups.insert("chat".into(), GroupTools { allow: self.allow() });
        tools.subagents = SubagentTools { deny: self.list(2), leaf_deny: self.list(2) };
        let (allow, deny, also_allow) = (self.allow(), self.list(3), self.list(2));
        let mut agent = AgentTools { allow, deny, also_allow, ..AgentTools::default() };
        agent.by_provider.insert("openai".into(), AgentProviderTools { allow: self.allow() });
        config.agents.insert("coder".into(), agent);
        config
    }

    pub(super) fn subject<'a>(&mut self, request: &'a [String]) -> Subject<'a> {
        Subject {
            tenant: None,
            agent: self.pick(&["coder", "coder", "other"]),
            provider: self.pick(&[None, Some("openai")]),
            chat_group: self.pick(&[None, Some("chat")]),
            subagent: SubagentDepth { depth: self.pick(&[0, 0, 1]), leaf: self.one_in(2) },
            request_allow: self.one_in(4).then_some(request),
        }
    }

    pub(super) fn shuffle(&mut self, list: &mut [String]) {
        for i in (1..list.len()).rev() {
            list.swap(i, self.roll(i + 1));
        }
    }

    fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }

    fn allow(&mut self) -> Option<Vec<String>> {
        self.one_in(2).then(|| self.list(6))
    }
}
