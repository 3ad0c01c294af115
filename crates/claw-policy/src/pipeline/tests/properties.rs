//! Properties of generated policies: 120,000 of them, from fixed seeds.

use std::sync::Arc;

use claw_core::tool::{Effect, Effects, Group, Meta, Profile, Source};
use smol_str::SmolStr;

use super::super::{Policy, Subject, ToolSet};
use super::dice::{Dice, ENTRIES};
use super::model;
use crate::config::PolicyConfig;
use crate::explain::{Change, explain};

use Effect::{Execute, Network, Read, Spend, Write};

const fn core(name: &'static str, group: Group) -> Meta {
    Meta::new(name, group).source(Source::Core)
}

/// Few tools, but of every kind: aliases, two groups, removable effects, none, standing, MCP, custom.
fn tools() -> ToolSet {
    let mut mcp = Meta::new("mcp_git", Group::Mcp(SmolStr::new_static("git")));
    mcp.source = Source::Mcp { server: SmolStr::new_static("git") };
    let metas = [
        core("read_file", Group::Fs).effects(&[Read]).aliases(&["read"]),
        core("edit", Group::Fs).effects(&[Read, Write]).aliases(&["edit_file", "exec"]),
        core("exec", Group::Runtime).effects(&[Read, Write, Execute, Network]).removable(&[Write, Network]),
        core("web_fetch", Group::Web).effects(&[Network]).removable(&[Network]),
        core("tts", Group::MediaGen).effects(&[Network, Spend]).also_in(&[Group::Media]),
        core("datetime", Group::Automation).effects(&[]),
        core("session_status", Group::Sessions).effects(&[Read]),
        core("team_tasks", Group::Teams).effects(&[Read, Write]).profiles(&[Profile::Messaging]),
        core("read_artifact", Group::Tools).effects(&[Read]).standing(),
        Meta::new("deploy", Group::Custom).source(Source::Custom),
        mcp,
    ];
    ToolSet::new(metas.map(Arc::new), [])
}

fn for_each_policy(check: impl Fn(&mut Dice, PolicyConfig, &[String])) {
    for seed in 0..100_000 {
        let mut dice = Dice(seed);
        let (config, request) = (dice.config(), dice.list(5));
        check(&mut dice, config, &request);
    }
}

fn decide(config: &PolicyConfig, tools: &ToolSet, subject: &Subject<'_>) -> Vec<(String, bool, Effects)> {
    let decision = Policy::compile(config).unwrap().decide(tools, subject);
    decision.iter().map(|(meta, v)| (meta.name.to_string(), v.allowed, v.effects)).collect()
}

#[test]
fn the_pipeline_is_the_one_the_documents_draw() {
    let tools = tools();
    for_each_policy(|dice, config, request| {
        let subject = dice.subject(request);
        let mut expected = model::decide(&config, &tools, &subject);
        for (name, allowed, effects) in decide(&config, &tools, &subject) {
            let left = expected.remove(&name);
            assert_eq!(allowed.then_some(effects), left, "{name} {subject:?} {config:#?}");
        }
        assert!(expected.is_empty());
    });
}

/// The steps of an explanation lead to the enforced verdict, and following its advice reverses it.
#[test]
fn explanation_equals_enforcement() {
    let tools = tools();
    for_each_policy(|dice, config, request| {
        let subject = dice.subject(request);
        let policy = Policy::compile(&config).unwrap();
        let meta = tools.meta(dice.roll(tools.len()));
        let enforced = policy.judge(&tools, &subject, meta);
        let explained = explain(&policy, &tools, &subject, meta.name.as_str());
        let shown = explained.verdict.trace.steps().last().is_some_and(|(_, _, present)| present);
        assert_eq!(shown, enforced.allowed, "{explained}");
        assert_eq!(explained.verdict.effects, enforced.effects, "{explained}");

        let follow = |way: &[Change]| {
            let (mut config, mut request) = (config.clone(), request.to_vec());
            way.iter().for_each(|change| apply(change, &mut config, &mut request));
            let request_allow = subject.request_allow.map(|_| request.as_slice());
            let subject = Subject { request_allow, ..subject };
            Policy::compile(&config).unwrap().judge(&tools, &subject, meta)
        };
        assert!(!explained.ways.is_empty(), "{explained}");
        for way in &explained.ways {
            assert_ne!(follow(way).allowed, enforced.allowed, "{explained}\n{way:?}\n{config:#?}");
        }
        if enforced.allowed {
            assert_eq!(follow(&explained.restore).effects, meta.effects, "{explained}\n{config:#?}");
        }
    });
}

#[test]
fn adding_a_deny_never_adds_a_tool_or_an_effect() {
    let tools = tools();
    for_each_policy(|dice, config, request| {
        let subject = dice.subject(request);
        let mut stricter = config.clone();
        let list = match dice.roll(4) {
            0 => &mut stricter.tools.deny,
            1 => &mut stricter.tools.subagents.deny,
            2 => &mut stricter.tools.subagents.leaf_deny,
            _ => &mut stricter.agents.get_mut("coder").unwrap().deny,
        };
        list.insert(dice.roll(list.len() + 1), dice.pick(&ENTRIES).to_owned());
        let before = decide(&config, &tools, &subject);
        for (old, new) in before.iter().zip(decide(&stricter, &tools, &subject)) {
            assert!(old.1 >= new.1 && new.2.within(old.2), "{old:?} {new:?} {config:#?}");
        }
    });
}

#[test]
fn the_order_within_a_list_decides_nothing() {
    let tools = tools();
    for_each_policy(|dice, config, request| {
        let subject = dice.subject(request);
        let (mut shuffled, mut other_request) = (config.clone(), request.to_vec());
        for list in LISTS {
            if let Some(list) = list_at(list, &mut shuffled, &mut other_request) {
                dice.shuffle(list);
            }
        }
        let request_allow = subject.request_allow.map(|_| other_request.as_slice());
        let other = Subject { request_allow, ..subject };
        assert_eq!(decide(&config, &tools, &subject), decide(&shuffled, &tools, &other));
    });
}

fn apply(change: &Change, config: &mut PolicyConfig, request: &mut Vec<String>) {
    match change {
        Change::Add { entry, list } => list_at(list, config, request).unwrap().push(entry.to_string()),
        Change::Remove { entry, list } => {
            list_at(list, config, request).unwrap().retain(|other| *other != **entry);
        }
        Change::SetProfile { at, profile } if at == "tools.profile" => config.tools.profile = *profile,
        Change::SetProfile { profile, .. } => {
            config.tools.by_provider.get_mut("openai").unwrap().profile = Some(*profile);
        }
        Change::DenyWins => config.tools.deny_wins = true,
    }
}

const LISTS: [&str; 12] = [
    "tools.allow",
    "tools.deny",
    "tools.also_allow",
    "tools.by_provider.openai.allow",
    "tools.groups.chat.allow",
    "tools.subagents.deny",
    "tools.subagents.leaf_deny",
    "agents.coder.allow",
    "agents.coder.deny",
    "agents.coder.also_allow",
    "agents.coder.by_provider.openai.allow",
    "request.allow",
];

fn list_at<'a>(
    at: &str,
    config: &'a mut PolicyConfig,
    request: &'a mut Vec<String>,
) -> Option<&'a mut Vec<String>> {
    let (tools, agent) = (&mut config.tools, config.agents.get_mut("coder")?);
    match at {
        "tools.allow" => tools.allow.as_mut(),
        "tools.deny" => Some(&mut tools.deny),
        "tools.also_allow" => Some(&mut tools.also_allow),
        "tools.by_provider.openai.allow" => tools.by_provider.get_mut("openai")?.allow.as_mut(),
        "tools.groups.chat.allow" => tools.groups.get_mut("chat")?.allow.as_mut(),
        "tools.subagents.deny" => Some(&mut tools.subagents.deny),
        "tools.subagents.leaf_deny" => Some(&mut tools.subagents.leaf_deny),
        "agents.coder.allow" => agent.allow.as_mut(),
        "agents.coder.deny" => Some(&mut agent.deny),
        "agents.coder.also_allow" => Some(&mut agent.also_allow),
        "agents.coder.by_provider.openai.allow" => agent.by_provider.get_mut("openai")?.allow.as_mut(),
        "request.allow" => Some(request),
        _ => None,
    }
}
