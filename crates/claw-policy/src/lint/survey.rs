//! Finds the tools for which each list of a policy makes a difference, over all callers that the policy can
//! tell apart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use claw_core::tool::SubagentDepth;
use smol_str::SmolStr;

use crate::config::{ANY_AGENT, PolicyConfig};
use crate::entry::List;
use crate::pipeline::{Kind, Mark, Policy, Step, Subject, ToolSet, Trace, View};

/// A list, and the tools for which it makes a difference to some caller.
pub(super) struct Surveyed {
    pub(super) list: Arc<List>,
    pub(super) kind: Kind,
    /// Tools for which it makes a difference.
    pub(super) live: BTreeSet<usize>,
    /// Tools named by it for which it made no difference to some caller, and why.
    pub(super) idle: BTreeMap<usize, String>,
    /// Tools that it brings back, and what denies them.
    pub(super) revived: BTreeMap<usize, String>,
}

/// All lists, in the order of their steps.
pub(super) type Lists = BTreeMap<(Step, SmolStr), Surveyed>;

/// Decides for every caller and records which lists mattered.
pub(super) fn survey(config: &PolicyConfig, policy: &Policy, tools: &ToolSet) -> Lists {
    let mut lists = Lists::new();
    for subject in subjects(config) {
        let view = policy.view(tools, &subject);
        add(&mut lists, &view);
        for place in 0..tools.len() {
            note(&mut lists, place, &view.at(place).trace);
        }
    }
    lists
}

/// Returns all lists of a policy, without what they decide.
pub(super) fn lists(config: &PolicyConfig, policy: &Policy, tools: &ToolSet) -> Lists {
    let mut lists = Lists::new();
    for subject in subjects(config) {
        add(&mut lists, &policy.view(tools, &subject));
    }
    lists
}

/// Adds the lists that apply to one caller.
fn add(lists: &mut Lists, view: &View<'_>) {
    for (step, list) in view.lists() {
        lists.entry((step, list.at().into())).or_insert_with(|| Surveyed::new(step, list));
    }
}

/// Every caller that the policy can tell apart. Each is a leaf subagent: the lists for subagents come after
/// all other lists of the configuration, so a leaf meets them all.
fn subjects(config: &PolicyConfig) -> Vec<Subject<'_>> {
    let providers = Vec::from_iter(config.provider_names().into_iter().map(Some).chain([None]));
    let chats = Vec::from_iter(config.chat_names().into_iter().map(Some).chain([None]));
    let subagent = SubagentDepth { depth: 1, leaf: true };
    let mut subjects = Vec::new();
    for agent in config.agent_names() {
        for provider in &providers {
            for chat in &chats {
                let (provider, chat_group) = (*provider, *chat);
                subjects.push(Subject {
                    tenant: None,
                    agent,
                    provider,
                    chat_group,
                    subagent,
                    request_allow: None,
                });
            }
        }
    }
    for (tenant, rules) in &config.tenants {
        for agent in rules.agents.keys().map(String::as_str).chain([ANY_AGENT]) {
            let own = rules.agents.get(agent).into_iter().flat_map(|agent| agent.by_provider.keys());
            for provider in own.map(|provider| Some(provider.as_str())).chain([None]) {
                let (tenant, chat_group, request_allow) = (Some(tenant), None, None);
                subjects.push(Subject { tenant, agent, provider, chat_group, subagent, request_allow });
            }
        }
    }
    subjects
}

fn note(lists: &mut Lists, place: usize, trace: &Trace) {
    let mut before = true;
    let mut removed_by = None;
    for (step, mark, after) in trace.steps() {
        let at = trace.rule(step).at().unwrap_or_default();
        if let Some(surveyed) = lists.get_mut(&(step, at.into())) {
            let moment = Moment { trace, mark, before, removed_by };
            surveyed.note(place, &moment);
        }
        if before && !after {
            removed_by = Some(step);
        }
        before = after;
    }
}

/// A step of a decision.
struct Moment<'a> {
    trace: &'a Trace,
    mark: Mark,
    /// The tool was present before the step.
    before: bool,
    /// The step that removed it, if it was not.
    removed_by: Option<Step>,
}

impl Surveyed {
    fn new(step: Step, list: &Arc<List>) -> Self {
        let (live, idle, revived) = Default::default();
        Self { list: Arc::clone(list), kind: step.kind(), live, idle, revived }
    }

    fn note(&mut self, place: usize, moment: &Moment<'_>) {
        if moment.is_live() {
            self.live.insert(place);
        } else {
            self.idle.entry(place).or_insert_with(|| moment.why_idle());
        }
        if let (Mark::Adds(_), false, Some(step)) = (moment.mark, moment.before, moment.denied_by()) {
            self.revived.entry(place).or_insert_with(|| moment.trace.words(step).to_string());
        }
    }
}

impl Moment<'_> {
    fn is_live(&self) -> bool {
        match self.mark {
            Mark::Keeps(_) => self.before,
            Mark::Denies(_) => self.before || self.is_barred(),
            Mark::Narrows(_) => true,
            Mark::Adds(_) => !self.before,
            _ => false,
        }
    }

    fn is_barred(&self) -> bool {
        self.trace.steps().any(|(_, mark, _)| matches!(mark, Mark::Barred(_)))
    }

    fn denied_by(&self) -> Option<Step> {
        let denies = |step: &Step| matches!(self.trace.mark(*step), Mark::Denies(_));
        [Step::GlobalDeny, Step::AgentDeny].into_iter().find(denies)
    }

    fn why_idle(&self) -> String {
        match (self.mark, self.removed_by, self.denied_by()) {
            (Mark::Exempt, ..) => "a standing tool needs no list to allow it".to_owned(),
            (Mark::Adds(_), ..) => "the tool is available without it".to_owned(),
            (Mark::Barred(_), _, Some(step)) => {
                format!("{}, and `tools.deny_wins` is set", self.trace.words(step))
            }
            (_, Some(step), _) => self.trace.words(step).to_string(),
            (_, None, _) => "no decision depends on it".to_owned(),
        }
    }
}
