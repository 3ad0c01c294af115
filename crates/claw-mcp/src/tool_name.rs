//! Names of bridged tools: `mcp_{server}_{tool}`, in characters and a length that every provider accepts.

use claw_core::store::McpServer;
use claw_core::tool::Digest;
use claw_core::{InvalidId, ToolName};

/// The longest name that every provider accepts.
const LONGEST: usize = 64;
/// The hexadecimal digits of the hash that distinguishes shortened names.
const HASH: usize = 8;

/// The names of our own tools for MCP servers, which no tool of a server takes.
pub const OWN_TOOLS: [&str; 2] = ["mcp_resource_read", "mcp_prompt_get"];

/// Returns the name by which models call a server's tool. The same tool always has the same name: an invalid
/// or long one gets a hash of the original.
pub fn tool_name(server: &McpServer, tool: &str) -> Result<ToolName, InvalidId> {
    let whole = format!("{}{tool}", tool_prefix(server));
    let plain: String = whole.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    if plain == whole && plain.len() <= LONGEST && !OWN_TOOLS.contains(&whole.as_str()) {
        return ToolName::new(plain);
    }
    let hash = Digest::of(&(server.name.as_str(), tool)).to_string();
    let hash: String = hash.chars().skip("sha256:".len()).take(HASH).collect();
    let kept: String = plain.chars().take(LONGEST - HASH - 1).collect();
    ToolName::new(format!("{kept}_{hash}"))
}

/// Returns the beginning of the names of a server's tools.
pub fn tool_prefix(server: &McpServer) -> String {
    server.prefix.clone().unwrap_or_else(|| format!("mcp_{}_", server.name))
}

const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

#[cfg(test)]
mod tests {
    use claw_core::ServerName;
    use claw_core::store::{McpProgram, McpTransport};

    use super::*;

    fn server(name: &str) -> McpServer {
        McpServer::new(ServerName::new(name).unwrap(), McpTransport::Stdio(McpProgram::default()))
    }

    #[test]
    fn names_are_kept_where_they_can_be() {
        assert_eq!(tool_name(&server("github"), "search-code").unwrap().as_str(), "mcp_github_search-code");
        let own = McpServer { prefix: Some("gh_".into()), ..server("github") };
        assert_eq!(tool_name(&own, "search").unwrap().as_str(), "gh_search");
    }

    #[test]
    fn a_server_called_resource_does_not_take_the_name_of_our_tool() {
        let name = tool_name(&server("resource"), "read").unwrap();
        assert!(name.as_str().starts_with("mcp_resource_read_"), "{name}");
        let own = McpServer { prefix: Some("mcp_".into()), ..server("github") };
        assert!(!OWN_TOOLS.contains(&tool_name(&own, "prompt_get").unwrap().as_str()));
    }

    #[test]
    fn names_that_cannot_be_kept_stay_apart() {
        let github = server("github");
        let names = ["a.b", "a/b", "a b", "a_b", "ä", "", &"x".repeat(200), &"x".repeat(201)];
        let made: std::collections::BTreeSet<_> =
            names.iter().map(|tool| tool_name(&github, tool).unwrap().to_string()).collect();
        assert_eq!(made.len(), names.len());
        assert!(made.iter().all(|name| name.len() <= LONGEST));
        assert_eq!(tool_name(&github, "a.b").unwrap(), tool_name(&github, "a.b").unwrap());
    }
}
