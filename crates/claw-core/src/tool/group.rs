//! Groups, by which policies name many tools at once, and sections, by which listings show them.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};
use smol_str::SmolStr;

/// A named set of tools. Each tool's [`Meta`](super::Meta) declares its groups.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names say it; `Section` has the words")]
pub enum Group {
    Fs,
    Runtime,
    Web,
    Memory,
    Sessions,
    Knowledge,
    Automation,
    Messaging,
    Delegation,
    Teams,
    MediaGen,
    MediaRead,
    Media,
    Skills,
    Ui,
    Nodes,
    Agents,
    Ai,
    Workspace,
    /// Tools about tools: search, reading a stored result.
    Tools,
    /// The tools of one MCP server; all of them together are `mcp`.
    Mcp(SmolStr),
    /// Tools defined at run time.
    Custom,
    /// A group that an embedder defines.
    Named(SmolStr),
}

impl Group {
    /// The groups of the built-in tools, in the order of listings.
    pub const BUILT_IN: [Self; 20] = [
        Self::Fs,
        Self::Runtime,
        Self::Web,
        Self::Memory,
        Self::Sessions,
        Self::Knowledge,
        Self::Automation,
        Self::Messaging,
        Self::Delegation,
        Self::Teams,
        Self::MediaGen,
        Self::MediaRead,
        Self::Media,
        Self::Skills,
        Self::Ui,
        Self::Nodes,
        Self::Agents,
        Self::Ai,
        Self::Workspace,
        Self::Tools,
    ];

    /// Makes a group of an embedder whose name is a constant.
    pub const fn named(name: &'static str) -> Self {
        Self::Named(SmolStr::new_static(name))
    }

    /// Returns the name after `group:` in a policy, such as `fs` or `mcp:github`.
    pub fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Fs => "fs",
            Self::Runtime => "runtime",
            Self::Web => "web",
            Self::Memory => "memory",
            Self::Sessions => "sessions",
            Self::Knowledge => "knowledge",
            Self::Automation => "automation",
            Self::Messaging => "messaging",
            Self::Delegation => "delegation",
            Self::Teams => "teams",
            Self::MediaGen => "media_gen",
            Self::MediaRead => "media_read",
            Self::Media => "media",
            Self::Skills => "skills",
            Self::Ui => "ui",
            Self::Nodes => "nodes",
            Self::Agents => "agents",
            Self::Ai => "ai",
            Self::Workspace => "workspace",
            Self::Tools => "tools",
            Self::Mcp(server) => return Cow::Owned(format!("mcp:{server}")),
            Self::Custom => "custom",
            Self::Named(name) => return Cow::Owned(name.to_string()),
        })
    }

    /// Returns the heading under which listings show the group's tools.
    pub fn section(&self) -> Section {
        let label = match self {
            Self::Fs => "Files",
            Self::Runtime => "Runtime",
            Self::Web => "Web",
            Self::Memory => "Memory",
            Self::Sessions => "Sessions",
            Self::Knowledge => "Knowledge & search",
            Self::Automation => "Automation",
            Self::Messaging => "Messaging",
            Self::Delegation => "Delegation",
            Self::Teams => "Teams",
            Self::MediaGen => "Media generation",
            Self::MediaRead => "Media reading",
            Self::Media => "Media",
            Self::Skills => "Skills & content",
            Self::Ui => "UI",
            Self::Nodes => "Nodes",
            Self::Agents => "Agents",
            Self::Ai => "AI & LLM",
            Self::Workspace => "Workspace & administration",
            Self::Tools => "Tools about tools",
            Self::Mcp(server) => return Section { id: self.name(), label: format!("MCP: {server}").into() },
            Self::Custom => "Custom tools",
            Self::Named(name) => return Section { id: self.name(), label: name.to_string().into() },
        };
        Section { id: self.name(), label: label.into() }
    }

    /// Returns the group's position in a listing; groups of embedders and MCP servers come last.
    pub fn rank(&self) -> usize {
        Self::BUILT_IN.iter().position(|g| g == self).unwrap_or(Self::BUILT_IN.len())
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl Serialize for Group {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A heading in a listing of tools.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Section {
    /// Stable identifier.
    pub id: Cow<'static, str>,
    /// The text for people.
    pub label: Cow<'static, str>,
}
