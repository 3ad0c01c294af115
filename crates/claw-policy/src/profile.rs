//! Profiles: the sets of tools that a policy starts from.

use claw_core::tool::{Group, Meta, Profile};

/// Returns whether a profile includes a tool: by its group, by its name, or because the tool's metadata says
/// so.
pub fn includes(profile: Profile, meta: &Meta) -> bool {
    profile == Profile::Full
        || meta.groups().any(|group| groups(profile).contains(group))
        || names(profile).contains(&meta.name.as_str())
        || meta.profiles.contains(&profile)
}

/// The groups whose tools a profile includes. `full` includes everything and names none.
pub const fn groups(profile: Profile) -> &'static [Group] {
    match profile {
        Profile::Coding => &[
            Group::Fs,
            Group::Runtime,
            Group::Sessions,
            Group::Memory,
            Group::Web,
            Group::Knowledge,
            Group::MediaGen,
            Group::MediaRead,
            Group::Skills,
        ],
        Profile::Messaging => &[Group::Messaging, Group::Web, Group::Sessions, Group::MediaRead],
        Profile::Full | Profile::Minimal => &[],
    }
}

/// The tools that a profile includes by name.
pub const fn names(profile: Profile) -> &'static [&'static str] {
    match profile {
        Profile::Messaging => &["skill_search"],
        Profile::Minimal => &["session_status"],
        Profile::Full | Profile::Coding => &[],
    }
}

#[cfg(test)]
mod tests;
