//! The `mcpServers` JSON that other clients keep their servers in.

use std::collections::BTreeMap;

use claw_core::ServerName;
use claw_core::store::{McpEndpoint, McpProgram, McpServer, McpTransport};
use secrecy::SecretString;
use serde::Deserialize;

use super::NewServer;
use crate::app::Error;

#[derive(Deserialize)]
struct File {
    #[serde(alias = "mcpServers", alias = "servers")]
    mcp_servers: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default, rename = "type", alias = "transport")]
    kind: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, SecretString>,
    #[serde(alias = "serverUrl")]
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, SecretString>,
    #[serde(default)]
    disabled: bool,
}

/// Reads the servers of an `mcpServers` file. Names are made lower case, with `-` for invalid characters.
pub(super) fn read_servers(text: &str) -> Result<Vec<NewServer>, Error> {
    let file: File = serde_json::from_str(text).map_err(|error| {
        Error::invalid(format!("the file is not a list of MCP servers: {error}"))
            .hint("write it in the form {\"mcpServers\": {\"NAME\": {\"command\": \"…\", \"args\": []}}}")
    })?;
    file.mcp_servers.into_iter().map(|(name, entry)| server(&name, entry)).collect()
}

fn server(name: &str, entry: Entry) -> Result<NewServer, Error> {
    let plain: String = name
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .take(32)
        .collect();
    let known =
        ServerName::new(&plain).map_err(|error| Error::invalid(format!("server `{name}`: {error}")))?;
    let names = |values: &BTreeMap<String, SecretString>| values.keys().cloned().collect::<Vec<_>>();
    let (transport, values) = match (entry.command, entry.url) {
        (Some(command), None) => {
            let (args, env) = (entry.args, names(&entry.env));
            (McpTransport::Stdio(McpProgram { command, args, env, ..McpProgram::default() }), entry.env)
        }
        (None, Some(url)) => {
            let endpoint = McpEndpoint { url, headers: names(&entry.headers), private: true, oauth: None };
            let transport = match entry.kind.as_deref() {
                Some("sse") => McpTransport::Sse(endpoint),
                _ => McpTransport::Http(endpoint),
            };
            (transport, entry.headers)
        }
        _ => {
            return Err(Error::invalid(format!("server `{name}` must have either a `command` or a `url`")));
        }
    };
    let server = McpServer { enabled: !entry.disabled, ..McpServer::new(known, transport) };
    Ok(NewServer { server, values: values.into_iter().collect() })
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn files_of_other_clients_are_read() {
        let servers = read_servers(
            r#"{"mcpServers": {
                "My GitHub": {"command": "npx", "args": ["-y", "x"], "env": {"TOKEN": "t0ken"}},
                "docs": {"type": "sse", "url": "http://127.0.0.1:1/sse", "headers": {"Authorization": "Bearer b"}},
                "off": {"url": "https://e.example/mcp", "disabled": true}
            }}"#,
        )
        .unwrap();
        let names: Vec<_> = servers.iter().map(|new| new.server.name.as_str()).collect();
        assert_eq!(names, ["my-github", "docs", "off"]);
        assert_eq!(servers[0].values[0].1.expose_secret(), "t0ken");
        assert!(
            matches!(&servers[1].server.transport, McpTransport::Sse(endpoint) if endpoint.headers == ["Authorization"])
        );
        assert!(!servers[2].server.enabled);
    }

    #[test]
    fn a_server_that_is_neither_program_nor_address_is_refused() {
        for text in [
            "{}",
            "[]",
            r#"{"mcpServers": {"x": {}}}"#,
            r#"{"mcpServers": {"x": {"command": "a", "url": "b"}}}"#,
        ] {
            assert!(read_servers(text).is_err(), "{text}");
        }
    }
}
