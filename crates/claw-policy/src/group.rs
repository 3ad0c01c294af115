//! Groups as policies name them. Membership is stated by each tool's [`Meta`] and nowhere else, so a `group:`
//! entry always covers the tools that are there.

use std::borrow::Cow;

use claw_core::tool::{Group, Meta, Source};

/// All tools built into Clawsmith.
pub const CLAWSMITH: &str = "clawsmith";
/// The tools of all MCP servers; those of one are `mcp:{server}`.
pub const MCP: &str = "mcp";

/// Older names, which policies may still use.
const ALIASES: [(&str, &str); 2] = [("goclaw", CLAWSMITH), ("team", "teams")];

/// The current name of a group.
pub fn canonical(name: &str) -> &str {
    ALIASES.iter().find(|(old, _)| *old == name).map_or(name, |(_, new)| new)
}

/// The names of all groups that a tool is in, including composite ones.
pub fn names_of(meta: &Meta) -> impl Iterator<Item = Cow<'static, str>> {
    let core = (meta.source == Source::Core).then_some(Cow::Borrowed(CLAWSMITH));
    let mcp = meta.groups().any(|g| matches!(g, Group::Mcp(_))).then_some(Cow::Borrowed(MCP));
    // An embedder's group of the same name does not make its tools ours.
    meta.groups().map(Group::name).filter(|name| name != CLAWSMITH).chain(core).chain(mcp)
}

/// The names that are always valid, whatever tools there are.
pub fn known() -> impl Iterator<Item = Cow<'static, str>> {
    Group::BUILT_IN.iter().chain(&[Group::Custom]).map(Group::name).chain([CLAWSMITH.into(), MCP.into()])
}

/// Returns whether the tools of a group come and go: custom tools, and those of MCP servers.
pub fn comes_and_goes(name: &str) -> bool {
    name == Group::Custom.name()
        || name == MCP
        || name.strip_prefix(MCP).is_some_and(|rest| rest.starts_with(':'))
}

/// Returns whether a group name is always valid.
pub fn is_known(name: &str) -> bool {
    known().any(|known| known == name)
}

#[cfg(test)]
mod tests;
