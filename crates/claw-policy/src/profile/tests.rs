//! The documents' table of profiles.

use claw_core::tool::Profile;

use super::includes;
use crate::pipeline::sample;

#[track_caller]
fn check(profile: Profile, expected: &str) {
    let tools = sample::tools();
    let names = tools.iter().filter(|meta| includes(profile, meta)).map(|meta| meta.name.as_str());
    assert_eq!(Vec::from_iter(names).join(" "), expected);
}

#[test]
fn full_is_everything() {
    let tools = sample::tools();
    assert!(tools.iter().all(|meta| includes(Profile::Full, meta)));
}

#[test]
fn coding_is_files_commands_sessions_memory_web_knowledge_media_and_skills() {
    check(
        Profile::Coding,
        "browser create_audio create_image create_video credentialed_exec edit exec glob image \
         knowledge_graph_search list_files memory_get memory_search process publish_skill read_audio \
         read_document read_file read_image read_video search session_status sessions_history sessions_list \
         sessions_send skill_search spawn subagents tts use_skill web_fetch web_search write_file",
    );
}

#[test]
fn messaging_is_messages_web_sessions_and_reading_media() {
    check(
        Profile::Messaging,
        "create_forum_topic message read_audio read_document read_image read_video session_status \
         sessions_history sessions_list sessions_send skill_search spawn subagents web_fetch web_search",
    );
}

#[test]
fn minimal_is_session_status() {
    check(Profile::Minimal, "session_status");
}
