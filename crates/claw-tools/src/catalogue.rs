//! Every tool that is built or planned: those of this build, and those that it lacks.
//!
//! Policies, listings and the reference can name a tool before it is built. The metadata of such a tool is
//! here and moves to the tool's own file once that is written.

use claw_core::tool::{Cost, Effect, Group, Meta, Need, Section, Source};

use crate::builtin;

use Effect::{Admin, Execute, Message, Network, Read, Spawn, Spend, Write};

/// Every tool, by group and then by name.
pub fn catalogue() -> Vec<Meta> {
    let mut all: Vec<Meta> = builtin().map(|tool| &tool.meta).chain(absent()).cloned().collect();
    all.sort_by(|a, b| (a.group.rank(), &a.name).cmp(&(b.group.rank(), &b.name)));
    all
}

/// The tools that this build lacks.
pub fn absent() -> &'static [Meta] {
    ABSENT
}

/// The headings of the catalogue, in the order listings show them.
pub fn sections() -> Vec<Section> {
    Group::BUILT_IN.iter().map(Group::section).collect()
}

const fn core(name: &'static str, group: Group) -> Meta {
    Meta::new(name, group).source(Source::Core)
}

const ABSENT: &[Meta] = &[
    core("spawn", Group::Sessions)
        .effects(&[Spend, Spawn])
        .cost(Cost::Heavy)
        .aliases(&["sessions_spawn", "Agent", "subagent"])
        .about("Start a subagent on a task; it answers when it is done."),
    core("subagents", Group::Sessions)
        .effects(&[Read, Write, Spend, Spawn])
        .about("List, cancel or redirect the subagents of this session."),
    core("cron", Group::Automation)
        .effects(&[Read, Write, Spend, Message, Spawn])
        .about("Schedule, list, change and remove tasks that run at a time."),
    core("gateway", Group::Automation)
        .effects(&[Read, Write, Admin])
        .about("Inspect and administer the gateway of this installation."),
    core("create_forum_topic", Group::Messaging)
        .effects(&[Message])
        .about("Create a topic in a Telegram forum."),
    core("message", Group::Messaging)
        .effects(&[Read, Message])
        .about("Send a message or a file to a chat of a channel."),
    core("whatsapp_login", Group::Automation)
        .effects(&[Write, Network, Admin])
        .about("Link this installation to a WhatsApp account."),
    core("delegate", Group::Delegation)
        .effects(&[Read, Write, Spend, Spawn])
        .cost(Cost::Heavy)
        .about("Give a task to another agent; list, cancel and review what was given."),
    core("delegate_search", Group::Delegation)
        .effects(&[Read])
        .about("Find the agent that fits a task best."),
    core("evaluate_loop", Group::Delegation)
        .effects(&[Spend, Spawn])
        .cost(Cost::Heavy)
        .about("Let one agent write and another judge, round by round, until the work passes."),
    core("handoff", Group::Delegation)
        .effects(&[Write, Spend, Message, Spawn])
        .cost(Cost::Heavy)
        .about("Hand this conversation over to another agent."),
    core("team_message", Group::Teams)
        .effects(&[Read, Write, Spend, Spawn])
        .about("Write to one teammate or to all, and read what they wrote."),
    core("team_tasks", Group::Teams)
        .effects(&[Read, Write, Spend, Message, Spawn])
        .about("Work with the team's task board: create, claim, review and finish tasks."),
    core("create_audio", Group::MediaGen)
        .effects(&[Write, Network, Spend])
        .cost(Cost::Heavy)
        .about("Make music or a sound effect from a description."),
    core("create_image", Group::MediaGen)
        .effects(&[Write, Network, Spend])
        .cost(Cost::Heavy)
        .about("Make a picture from a description."),
    core("create_video", Group::MediaGen)
        .effects(&[Read, Write, Network, Spend])
        .cost(Cost::Heavy)
        .about("Make a video from a description or a picture."),
    core("tts", Group::MediaGen)
        .also_in(&[Group::Media])
        .effects(&[Write, Network, Spend])
        .cost(Cost::Heavy)
        .about("Speak a text; returns an audio file."),
    core("read_audio", Group::MediaRead)
        .effects(&[Read, Network, Spend])
        .cost(Cost::Heavy)
        .needs(&[Need::Files])
        .about("Write down what is said in an audio file."),
    core("read_document", Group::MediaRead)
        .effects(&[Read, Network, Spend])
        .cost(Cost::Heavy)
        .needs(&[Need::Files])
        .about("Extract the text of a PDF or office document, or answer a question about it."),
    core("read_image", Group::MediaRead)
        .effects(&[Read, Network, Spend])
        .cost(Cost::Heavy)
        .needs(&[Need::Files])
        .about("Describe a picture, or answer a question about it."),
    core("read_video", Group::MediaRead)
        .effects(&[Read, Network, Spend])
        .cost(Cost::Heavy)
        .needs(&[Need::Files])
        .about("Describe or transcribe a video, or answer a question about it."),
    core("image", Group::Media)
        .effects(&[Read, Write, Network, Spend])
        .cost(Cost::Heavy)
        .about("Make or change a picture."),
    core("browser", Group::Ui)
        .effects(&[Read, Write, Execute, Network])
        .cost(Cost::Heavy)
        .about("Drive a headless browser: open, read, click, type, take pictures."),
    core("canvas", Group::Ui).effects(&[Read, Write]).about("Draw on the canvas that the user sees."),
    core("nodes", Group::Nodes)
        .effects(&[Read, Write, Execute, Network, Admin])
        .about("List and manage the machines of this installation."),
];

#[cfg(test)]
mod tests;
