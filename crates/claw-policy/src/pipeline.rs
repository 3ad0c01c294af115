//! Decides which tools a caller gets, and why: profile, allow lists, deny lists, `also_allow`, subagents,
//! request.
//!
//! [`Policy::compile`] checks the configuration, [`Policy::view`] prepares it for one caller, and
//! [`View::judge`] decides on a tool. The decision is computed from the same marks that the trace shows, so
//! an explanation cannot differ from what is enforced. The order of entries in a list only decides which of
//! several matching entries the trace names: the first.

use std::collections::BTreeMap;
use std::sync::Arc;

use claw_core::TenantId;
use claw_core::tool::{Caller, Effects, Meta, PeerKind, Profile, SubagentDepth};
use serde::Serialize;

use crate::config::{AgentTools, PolicyConfig, ProviderTools, TenantTools};
use crate::entry::{BadEntry, List};

mod decide;
#[cfg(test)]
pub(crate) mod sample;
mod step;
mod tool_set;
mod trace;
mod trace_text;

pub use decide::View;
pub use step::{Kind, Step};
pub use tool_set::ToolSet;
pub use trace::{Mark, Reason, Rule, Trace};

/// A compiled policy. It holds no tools: they are passed with each question.
#[derive(Debug, Clone)]
pub struct Policy {
    profile: Profile,
    allow: Option<Arc<List>>,
    deny: Arc<List>,
    also_allow: Arc<List>,
    deny_wins: bool,
    providers: BTreeMap<String, Provider>,
    groups: BTreeMap<String, Option<Arc<List>>>,
    tenant: TenantId,
    agents: BTreeMap<String, Agent>,
    tenants: BTreeMap<TenantId, Tenant>,
    subagent_deny: Arc<List>,
    leaf_deny: Arc<List>,
}

#[derive(Debug, Clone)]
struct Provider {
    profile: Option<Profile>,
    allow: Option<Arc<List>>,
}

#[derive(Debug, Clone)]
struct Agent {
    allow: Option<Arc<List>>,
    deny: Arc<List>,
    also_allow: Arc<List>,
    providers: BTreeMap<String, Option<Arc<List>>>,
}

#[derive(Debug, Clone)]
struct Tenant {
    allow: Option<Arc<List>>,
    deny: Arc<List>,
    agents: BTreeMap<String, Agent>,
}

/// Entries that cannot be parsed. Such a policy is not used: nothing is allowed until it is fixed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct PolicyError(pub Vec<BadEntry>);

fn lines(bad: &[BadEntry]) -> String {
    bad.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// A caller, as far as a policy can tell callers apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Subject<'a> {
    /// The tenant that the agent belongs to; `None` for the deployment's own.
    pub tenant: Option<&'a TenantId>,
    /// The agent.
    pub agent: &'a str,
    /// The provider of its model.
    pub provider: Option<&'a str>,
    /// The chat, if it is a group chat.
    pub chat_group: Option<&'a str>,
    /// Position in a tree of subagents.
    pub subagent: SubagentDepth,
    /// The tools that the message itself allows; `None` for no restriction.
    pub request_allow: Option<&'a [String]>,
}

impl<'a> From<&'a Caller> for Subject<'a> {
    fn from(caller: &'a Caller) -> Self {
        Self {
            tenant: Some(&caller.tenant),
            agent: caller.agent.as_str(),
            provider: caller.provider.as_deref(),
            chat_group: caller.chat_id.as_deref().filter(|_| caller.peer_kind == PeerKind::Group),
            subagent: caller.subagent,
            request_allow: caller.request_allow.as_deref(),
        }
    }
}

impl Policy {
    /// Compiles a configuration. All invalid entries are reported at once.
    pub fn compile(config: &PolicyConfig) -> Result<Self, PolicyError> {
        let mut reader = Reader::default();
        let tools = &config.tools;
        let policy = Self {
            profile: tools.profile,
            allow: reader.optional("tools.allow", tools.allow.as_deref()),
            deny: reader.list("tools.deny", &tools.deny),
            also_allow: reader.list("tools.also_allow", &tools.also_allow),
            deny_wins: tools.deny_wins,
            providers: each(&tools.by_provider, |name, tools| reader.provider(name, tools)),
            groups: each(&tools.groups, |chat, tools| {
                reader.optional(&format!("tools.groups.{chat}.allow"), tools.allow.as_deref())
            }),
            tenant: config.tenant.clone(),
            agents: each(&config.agents, |name, tools| reader.agent(&format!("agents.{name}"), tools)),
            tenants: config
                .tenants
                .iter()
                .map(|(id, tools)| (id.clone(), reader.tenant(id, tools)))
                .collect(),
            subagent_deny: reader.list("tools.subagents.deny", &tools.subagents.deny),
            leaf_deny: reader.list("tools.subagents.leaf_deny", &tools.subagents.leaf_deny),
        };
        if reader.bad.is_empty() { Ok(policy) } else { Err(PolicyError(reader.bad)) }
    }

    /// Returns whether `also_allow` cannot bring back tools that a deny list names.
    pub fn deny_wins(&self) -> bool {
        self.deny_wins
    }

    /// The policy for one caller, ready to judge many tools.
    pub fn view<'t>(&self, tools: &'t ToolSet, subject: &Subject<'_>) -> View<'t> {
        View::new(tools, self.rules(subject), self.deny_wins)
    }

    /// Decides on every tool, sorted by name.
    pub fn decide(&self, tools: &ToolSet, subject: &Subject<'_>) -> Decision {
        self.view(tools, subject).decide()
    }

    /// Decides on one tool. One that is not in the set is refused.
    pub fn judge(&self, tools: &ToolSet, subject: &Subject<'_>, meta: &Meta) -> Verdict {
        let known = tools.find(meta.name.as_str()).is_some_and(|tool| tool.name == meta.name);
        let view = self.view(tools, subject);
        if known { view.judge(meta.name.as_str()) } else { view.refuse() }
    }

    /// The rule of each step, in the order of [`Step::ALL`].
    fn rules(&self, subject: &Subject<'_>) -> [Rule; Step::COUNT] {
        let provider = subject.provider.and_then(|name| self.providers.get_key_value(name));
        let provider_profile = provider.and_then(|(name, p)| Some((name, p.profile?)));
        let tenant = subject.tenant.unwrap_or(&self.tenant);
        let agent = self.agents.get(subject.agent).filter(|_| *tenant == self.tenant);
        let tenant = self.tenants.get(tenant);
        let stored = tenant.and_then(|tenant| tenant.agents.get(subject.agent));
        let of_provider = |agent: Option<&'_ Agent>| {
            let list =
                agent.zip(subject.provider).and_then(|(agent, name)| agent.providers.get(name)?.as_ref());
            list.cloned()
        };
        let (agent_provider, stored_provider) = (of_provider(agent), of_provider(stored));
        let chat = subject.chat_group.and_then(|chat| self.groups.get(chat)?.as_ref());
        let subagent = subject.subagent.depth > 0;
        let request = subject.request_allow.map(|entries| Arc::new(List::of_request(entries)));
        [
            match provider_profile {
                None => Rule::Profile { at: "tools.profile".into(), profile: self.profile },
                Some(_) => Rule::Replaced(self.profile),
            },
            provider_profile.map_or(Rule::Unset, |(name, profile)| Rule::Profile {
                at: format!("tools.by_provider.{name}.profile").into(),
                profile,
            }),
            Rule::allow(self.allow.as_ref()),
            Rule::allow(provider.and_then(|(_, p)| p.allow.as_ref())),
            Rule::allow(agent.and_then(|a| a.allow.as_ref())),
            Rule::allow(agent_provider.as_ref()),
            Rule::allow(chat),
            Rule::unless_empty(Some(&self.deny)),
            Rule::unless_empty(agent.map(|a| &a.deny)),
            Rule::unless_empty(Some(&self.also_allow)),
            Rule::unless_empty(agent.map(|a| &a.also_allow)),
            Rule::allow(stored.and_then(|a| a.allow.as_ref())),
            Rule::allow(stored_provider.as_ref()),
            Rule::unless_empty(stored.map(|a| &a.deny)),
            Rule::allow(tenant.and_then(|t| t.allow.as_ref())),
            Rule::unless_empty(tenant.map(|t| &t.deny)),
            Rule::unless_empty(subagent.then_some(&self.subagent_deny)),
            Rule::unless_empty((subagent && subject.subagent.leaf).then_some(&self.leaf_deny)),
            Rule::allow(request.as_ref()),
        ]
    }
}

/// A policy's verdict on one tool, and its reasons.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    /// The caller gets the tool.
    pub allowed: bool,
    /// Effects that a call may have; none if the tool is not allowed.
    pub effects: Effects,
    /// The steps that led to the verdict. Its `Display` gives the deciding step in words.
    pub trace: Trace,
}

/// The verdicts on all tools, sorted by name.
#[derive(Debug, Clone)]
pub struct Decision(Vec<(Arc<Meta>, Verdict)>);

impl Decision {
    /// Every tool with its verdict.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Arc<Meta>, &Verdict)> {
        self.0.iter().map(|(meta, verdict)| (meta, verdict))
    }

    /// The tools that the caller gets.
    pub fn allowed(&self) -> impl Iterator<Item = (&Arc<Meta>, &Verdict)> {
        self.iter().filter(|(_, verdict)| verdict.allowed)
    }

    /// The names of the tools that the caller gets.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.allowed().map(|(meta, _)| meta.name.as_str())
    }

    /// The verdict on the tool of this name.
    pub fn get(&self, name: &str) -> Option<&Verdict> {
        let place = self.0.binary_search_by(|(meta, _)| meta.name.as_str().cmp(name)).ok()?;
        self.0.get(place).map(|(_, verdict)| verdict)
    }
}

/// Parses lists and collects invalid entries.
#[derive(Default)]
struct Reader {
    bad: Vec<BadEntry>,
}

impl Reader {
    fn list(&mut self, at: &str, entries: &[String]) -> Arc<List> {
        Arc::new(List::parse(at, entries, &mut self.bad))
    }

    fn optional(&mut self, at: &str, entries: Option<&[String]>) -> Option<Arc<List>> {
        entries.map(|entries| self.list(at, entries))
    }

    fn provider(&mut self, name: &str, tools: &ProviderTools) -> Provider {
        let at = format!("tools.by_provider.{name}.allow");
        Provider { profile: tools.profile, allow: self.optional(&at, tools.allow.as_deref()) }
    }

    /// Parses the rules of an agent, at the key `at`.
    fn agent(&mut self, at: &str, tools: &AgentTools) -> Agent {
        Agent {
            allow: self.optional(&format!("{at}.allow"), tools.allow.as_deref()),
            deny: self.list(&format!("{at}.deny"), &tools.deny),
            also_allow: self.list(&format!("{at}.also_allow"), &tools.also_allow),
            providers: each(&tools.by_provider, |provider, tools| {
                let at = format!("{at}.by_provider.{provider}.allow");
                self.optional(&at, tools.allow.as_deref())
            }),
        }
    }

    fn tenant(&mut self, id: &TenantId, tools: &TenantTools) -> Tenant {
        Tenant {
            allow: self.optional(&format!("tenants.{id}.allow"), tools.allow.as_deref()),
            deny: self.list(&format!("tenants.{id}.deny"), &tools.deny),
            agents: each(&tools.agents, |name, tools| {
                self.agent(&format!("tenants.{id}.agents.{name}"), tools)
            }),
        }
    }
}

fn each<T, U>(map: &BTreeMap<String, T>, mut read: impl FnMut(&str, &T) -> U) -> BTreeMap<String, U> {
    map.iter().map(|(name, value)| (name.clone(), read(name, value))).collect()
}

#[cfg(test)]
mod tests;
