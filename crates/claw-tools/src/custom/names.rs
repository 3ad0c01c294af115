//! Names that custom tools cannot have.

use claw_core::tool::Group;

use crate::builtin;

/// Prefix of the tools of MCP servers.
const MCP: &str = "mcp_";

/// Returns why a name is reserved: a built-in tool, an alias, a group or the tools of MCP servers use it.
/// `None` if it is free.
pub fn taken(name: &str) -> Option<String> {
    let same = |other: &str| other.eq_ignore_ascii_case(name);
    let known = builtin().map(|tool| tool.meta.clone()).chain(crate::absent().iter().cloned());
    for meta in known {
        if same(meta.name.as_str()) {
            return Some(format!("`{}` is the name of a built-in tool", meta.name));
        }
        if let Some(alias) = meta.aliases.iter().find(|alias| same(alias)) {
            return Some(format!("`{alias}` is another name of the built-in tool `{}`", meta.name));
        }
    }
    let groups = Group::BUILT_IN.into_iter().chain([Group::Custom]).map(|group| group.name().into_owned());
    if let Some(group) = groups.chain(["mcp".to_owned(), "all".to_owned()]).find(|group| same(group)) {
        return Some(format!("`{group}` is the name of a group of tools"));
    }
    name.get(..MCP.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(MCP))
        .then(|| format!("names that begin with `{MCP}` belong to the tools of MCP servers"))
}
