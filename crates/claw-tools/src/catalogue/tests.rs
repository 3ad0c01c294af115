use std::collections::HashMap;

use claw_core::tool::{Effects, Group, Source};

use super::*;

#[test]
fn no_name_or_alias_is_taken_twice() {
    let mut taken = HashMap::new();
    for meta in catalogue() {
        for name in [meta.name.as_str()].into_iter().chain(meta.aliases.iter()) {
            let before = taken.insert(name.to_owned(), meta.name.clone());
            assert_eq!(before, None, "`{name}` belongs to `{}` already", meta.name);
        }
    }
}

#[test]
fn every_tool_says_what_it_is() {
    for meta in catalogue() {
        let name = &meta.name;
        assert!(Group::BUILT_IN.contains(&meta.group), "`{name}` is in no built-in group");
        assert!(!meta.also_in.contains(&meta.group), "`{name}` names its group twice");
        assert!(meta.about.ends_with('.'), "`{name}` has no sentence about it");
        assert_ne!(meta.effects, Effects::ALL, "`{name}` declares no effects");
        assert!(meta.removable.within(meta.effects), "`{name}` could lose what it does not have");
        assert_eq!(meta.source, Source::Core, "`{name}`");
    }
}

#[test]
fn it_is_sorted_and_holds_what_is_built_and_what_is_absent() {
    let all = catalogue();
    assert!(all.is_sorted_by_key(|meta| (meta.group.rank(), meta.name.clone())));
    assert_eq!(all.len(), builtin().count() + absent().len());
}

#[test]
fn every_section_has_a_tool() {
    let all = catalogue();
    for (section, group) in sections().into_iter().zip(&Group::BUILT_IN) {
        assert!(all.iter().any(|meta| meta.groups().any(|g| g == group)), "{section:?} is empty");
    }
}

#[test]
fn the_catalogue_in_full() {
    let mut text = String::new();
    for section in sections() {
        text.push_str(&format!("{}:", section.id));
        for meta in catalogue().iter().filter(|meta| meta.heading() == section) {
            text.push_str(&format!(" {}", meta.name));
        }
        text.push('\n');
    }
    insta::assert_snapshot!(text, @"
    fs: edit glob list_files read_file search write_file
    runtime: credentialed_exec exec process
    web: web_fetch web_search
    memory: memory_get memory_search
    sessions: session_status sessions_history sessions_list sessions_send spawn subagents
    knowledge: knowledge_graph_search skill_search
    automation: cron datetime gateway whatsapp_login
    messaging: create_forum_topic message
    delegation: delegate delegate_search evaluate_loop handoff
    teams: team_message team_tasks
    media_gen: create_audio create_image create_video tts
    media_read: read_audio read_document read_image read_video
    media: image
    skills: publish_skill use_skill
    ui: browser canvas
    nodes: nodes
    agents: agents_list
    ai: openai_compat_call
    workspace: workspace_dir
    tools: result_read tool_search
    ");
}
