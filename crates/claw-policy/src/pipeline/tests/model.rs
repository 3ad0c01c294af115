//! A second, plain implementation of the pipeline, as the documents describe it: sets of names, one list
//! after another.

use std::collections::{BTreeMap, BTreeSet};

use claw_core::tool::{Effects, Meta, Source};

use super::super::{Subject, ToolSet};
use crate::config::PolicyConfig;
use crate::profile;

/// The tools a caller gets, with the effects left to each.
pub(super) fn decide(
    config: &PolicyConfig,
    tools: &ToolSet,
    subject: &Subject<'_>,
) -> BTreeMap<String, Effects> {
    let policy = &config.tools;
    let agent = config.agents.get(subject.agent);
    let provider = subject.provider.and_then(|name| policy.by_provider.get(name));
    let profile = provider.and_then(|p| p.profile).unwrap_or(policy.profile);
    let allow_lists = [
        policy.allow.as_ref(),
        provider.and_then(|p| p.allow.as_ref()),
        agent.and_then(|a| a.allow.as_ref()),
        agent.and_then(|a| a.by_provider.get(subject.provider?)?.allow.as_ref()),
        subject.chat_group.and_then(|chat| policy.groups.get(chat)?.allow.as_ref()),
    ];
    let deny = Vec::from_iter(policy.deny.iter().chain(agent.iter().flat_map(|a| &a.deny)).cloned());
    let also = [Some(&policy.also_allow), agent.map(|a| &a.also_allow)];
    let mut late_deny = Vec::new();
    if subject.subagent.depth > 0 {
        late_deny.extend(policy.subagents.deny.iter().cloned());
        if subject.subagent.leaf {
            late_deny.extend(policy.subagents.leaf_deny.iter().cloned());
        }
    }

    let standing = names(tools, |meta| meta.standing);
    let mut set = &names(tools, |meta| profile::includes(profile, meta)) | &standing;
    for list in allow_lists.into_iter().flatten() {
        set = &set & &(&allowed(tools, list) | &standing);
    }
    let early = denied(tools, &deny);
    set = &set - &early;
    for list in also.into_iter().flatten() {
        let added = allowed(tools, list);
        set = &set | &if policy.deny_wins { &added - &early } else { added };
    }
    set = &set - &denied(tools, &late_deny);
    if let Some(list) = subject.request_allow {
        set = &set & &(&allowed(tools, list) | &standing);
    }

    let lost = effects(&deny).and(effects(&late_deny));
    let left = |meta: &Meta| meta.effects.without(lost.common(meta.removable));
    let kept = tools.iter().filter(|meta| set.contains(meta.name.as_str()));
    kept.map(|meta| (meta.name.to_string(), left(meta))).collect()
}

fn names(tools: &ToolSet, fits: impl Fn(&Meta) -> bool) -> BTreeSet<String> {
    tools.iter().filter(|meta| fits(meta)).map(|meta| meta.name.to_string()).collect()
}

fn allowed(tools: &ToolSet, list: &[String]) -> BTreeSet<String> {
    let effects = effects(list);
    let by_effect = list.iter().any(|entry| entry.starts_with("effect:"));
    names(tools, |meta| {
        list.iter().any(|entry| names_it(tools, entry, meta)) || by_effect && meta.effects.within(effects)
    })
}

fn denied(tools: &ToolSet, list: &[String]) -> BTreeSet<String> {
    let lost = effects(list);
    names(tools, |meta| {
        let fatal = meta.effects.common(lost).without(meta.removable);
        list.iter().any(|entry| names_it(tools, entry, meta)) || !fatal.is_empty()
    })
}

fn effects(list: &[String]) -> Effects {
    list.iter().filter_map(|entry| entry.strip_prefix("effect:")?.parse().ok()).collect()
}

fn names_it(tools: &ToolSet, entry: &str, meta: &Meta) -> bool {
    if let Some(group) = entry.strip_prefix("group:") {
        let group = match group {
            "team" => "teams",
            "goclaw" => "clawsmith",
            group => group,
        };
        return group == "clawsmith" && meta.source == Source::Core
            || group == "mcp" && matches!(meta.source, Source::Mcp { .. })
            || meta.groups().any(|g| fits(group, &g.name()));
    }
    let registered = |name: &str| tools.iter().any(|other| other.name.as_str() == name);
    let mut aliases = meta.aliases.iter().filter(|alias| !registered(alias));
    fits(entry, meta.name.as_str()) || aliases.any(|alias| fits(entry, alias))
}

/// Returns whether a name matches, character by character.
fn fits(pattern: &str, name: &str) -> bool {
    match (pattern.chars().next(), name.chars().next()) {
        (None, None) => true,
        (Some('*'), None) => fits(&pattern[1..], name),
        (Some('*'), Some(c)) => fits(&pattern[1..], name) || fits(pattern, &name[c.len_utf8()..]),
        (Some(p), Some(c)) if p == c => fits(&pattern[p.len_utf8()..], &name[c.len_utf8()..]),
        _ => false,
    }
}
