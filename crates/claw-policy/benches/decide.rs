//! Time of a decision: 500 tools, 100 rules over all lists.
//!
//! Prints `name<TAB>value<TAB>unit`, the best of many runs.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use claw_core::id::ToolName;
use claw_core::tool::{Effect, Group, Meta, Profile, SubagentDepth};
use claw_policy::config::{
    AgentProviderTools, AgentTools, GroupTools, PolicyConfig, ProviderTools, SubagentTools,
};
use claw_policy::pipeline::{Policy, PolicyError, Subject, ToolSet};

const TOOLS: usize = 500;

fn main() -> Result<(), PolicyError> {
    let (tools, config) = (tools(), config());
    let policy = Policy::compile(&config)?;
    let request = rules(90, 8);
    let subject = Subject {
        tenant: None,
        agent: "coder",
        provider: Some("openai"),
        chat_group: Some("chat"),
        subagent: SubagentDepth { depth: 1, leaf: true },
        request_allow: Some(&request),
    };
    let view = policy.view(&tools, &subject);
    report("policy_decide_500_tools_100_rules", 1, || policy.decide(&tools, &subject));
    report("policy_view_500_tools_100_rules", 1, || policy.view(&tools, &subject));
    report("policy_judge_one_of_500", 1000, || view.judge("tool_250"));
    report("policy_compile_100_rules", 1, || Policy::compile(&config));
    Ok(())
}

/// The best time of one call, in microseconds, out of runs of `batch` calls.
fn report<T>(name: &str, batch: u32, mut call: impl FnMut() -> T) {
    let end = Instant::now() + Duration::from_secs(1);
    let mut best = Duration::MAX;
    while Instant::now() < end {
        let start = Instant::now();
        for _ in 0..batch {
            black_box(call());
        }
        best = best.min(start.elapsed() / batch);
    }
    println!("{name}\t{:.3}\tus", best.as_secs_f64() * 1e6);
}

fn tools() -> ToolSet {
    let meta = |i: usize| {
        let name = ToolName::new(format!("tool_{i}")).ok()?;
        let effects = [Effect::ALL[i % 8], Effect::ALL[i % 5]];
        let group = Group::BUILT_IN[i % 20].clone();
        Some(Arc::new(Meta::of(name, group).effects(&effects).removable(&effects[..i % 2])))
    };
    ToolSet::new((0..TOOLS).filter_map(meta), [])
}

/// Names, wildcards, groups and effects, mixed.
fn rules(from: usize, count: usize) -> Vec<String> {
    let rule = |i: usize| match i % 4 {
        0 => format!("tool_{}", i * 37 % TOOLS),
        1 => format!("group:{}", Group::BUILT_IN[i % 20]),
        2 => format!("tool_{}*", i % 10),
        _ => format!("effect:{}", Effect::ALL[i % 8]),
    };
    (from..from + count).map(rule).collect()
}

fn config() -> PolicyConfig {
    let mut config = PolicyConfig::default();
    let tools = &mut config.tools;
    (tools.allow, tools.deny, tools.also_allow) = (Some(rules(0, 12)), rules(12, 8), rules(20, 8));
    let provider = ProviderTools { profile: Some(Profile::Coding), allow: Some(rules(28, 8)) };
    tools.by_provider.insert("openai".into(), provider);
    tools.groups.insert("chat".into(), GroupTools { allow: Some(rules(36, 8)) });
    tools.subagents = SubagentTools { deny: rules(44, 8), leaf_deny: rules(52, 8) };
    let mut agent = AgentTools {
        allow: Some(rules(60, 8)),
        deny: rules(68, 8),
        also_allow: rules(76, 8),
        ..AgentTools::default()
    };
    agent.by_provider.insert("openai".into(), AgentProviderTools { allow: Some(rules(84, 8)) });
    config.agents.insert("coder".into(), agent);
    config
}
