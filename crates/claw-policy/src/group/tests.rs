//! Membership of groups.

use claw_core::tool::{Group, Meta, Source};

use super::{canonical, is_known, names_of};
use crate::pipeline::sample;

/// The table of the documents: the newest text's members, and the tools that only older texts list.
const TABLE: [(&str, &str); 20] = [
    ("fs", "edit glob list_files read_file search write_file"),
    ("runtime", "credentialed_exec exec process"),
    ("web", "web_fetch web_search"),
    ("memory", "memory_get memory_search"),
    ("sessions", "session_status sessions_history sessions_list sessions_send spawn subagents"),
    ("knowledge", "knowledge_graph_search skill_search"),
    ("automation", "cron datetime gateway"),
    ("messaging", "create_forum_topic message"),
    ("delegation", "delegate delegate_search evaluate_loop handoff"),
    ("teams", "team_message team_tasks"),
    ("team", "team_message team_tasks"),
    ("media_gen", "create_audio create_image create_video tts"),
    ("media_read", "read_audio read_document read_image read_video"),
    ("media", "image tts"),
    ("skills", "publish_skill use_skill"),
    ("ui", "browser"),
    ("nodes", "nodes"),
    ("agents", "agents_list"),
    ("mcp", "mcp_github_issues"),
    ("mcp:github", "mcp_github_issues"),
];

#[test]
fn groups_have_the_members_of_the_documents() {
    let tools = sample::tools();
    for (group, expected) in TABLE {
        let members = tools.members(canonical(group)).iter().filter(|place| **place < tools.len());
        let members = Vec::from_iter(members.map(|place| tools.meta(*place).name.as_str()));
        assert_eq!(members.join(" "), expected, "group:{group}");
    }
}

#[test]
fn the_guide_lists_the_same_members() {
    let guide = include_str!("../../../../docs/policy.md");
    for (group, members) in TABLE {
        let mut rows = guide.lines().filter(|line| line.starts_with(&format!("| `{group}`")));
        let Some(row) = rows.find(|_| !group.starts_with("mcp")) else { continue };
        for member in members.split(' ') {
            assert!(row.contains(&format!("`{member}`")), "`{member}` is missing from group `{group}`");
        }
    }
}

#[test]
fn clawsmith_is_all_that_is_built_in() {
    let tools = sample::tools();
    for meta in tools.iter() {
        let member = names_of(meta).any(|name| name == canonical("goclaw"));
        assert_eq!(member, meta.source == Source::Core, "{}", meta.name);
    }
}

#[test]
fn refuses_embedders_tool_that_calls_its_group_clawsmith() {
    let meta = Meta::new("evil", Group::named("clawsmith")).source(Source::Embedder);
    assert_eq!(names_of(&meta).count(), 0);
}

#[test]
fn composite_and_built_in_groups_are_known() {
    for name in ["fs", "tools", "custom", "mcp", "clawsmith"] {
        assert!(is_known(name), "{name}");
    }
    assert!(!is_known("mcp:github") && !is_known("goclaw"));
}
