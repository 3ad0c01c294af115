//! Checks settings that name something outside the file: addresses, hosts, agents, secrets, directories. They are used
//! later, by a run or a request; a wrong one is refused here, with its line.

use claw_core::{AgentId, SecretName};
use claw_net::{Origin, Url};

use super::Config;

/// A wrong entry: the key, the entry of a list (empty for a single value), and the message.
type Wrong = (String, String, String);

/// Returns the settings that name nothing usable.
pub(super) fn wrong(config: &Config) -> Vec<Wrong> {
    let mut found = Vec::new();
    if let Some(Err(why)) = config.telemetry.address() {
        found.push(single("telemetry.endpoint", &why));
    }
    if let Some(embeddings) = &config.memory.embeddings
        && let Err(error) = embeddings.check()
    {
        found.push(single(&format!("memory.embeddings.{}", error.key), &error.reason));
    }
    for origin in &config.custom_tools.private_origins {
        if let Err(error) = origin.parse::<Origin>() {
            found.push(entry("custom_tools.private_origins", origin, &error.to_string()));
        }
    }
    for host in config.gateway.hosts.iter().filter(|host| !is_host(host)) {
        let why =
            "it is not a host name; write it without scheme, port and path, such as `agents.example.org`";
        found.push(entry("gateway.hosts", host, why));
    }
    for (alias, agent) in &config.gateway.aliases {
        if let Err(error) = AgentId::new(agent.strip_prefix("agent:").unwrap_or(agent)) {
            found.push(single(&format!("gateway.aliases.{alias}"), &error.to_string()));
        }
    }
    let socket = &config.sandbox.docker.socket;
    if !socket.is_absolute() {
        let why = format!(
            "`{}` is not an absolute path; write the path of the engine's socket, such as `/var/run/docker.sock`",
            socket.display()
        );
        found.push(single("sandbox.docker.socket", &why));
    }
    for name in config.sandbox.direct.iter().filter(|name| !is_file_name(name)) {
        let why = "it is not a directory name; write one name, such as `target`";
        found.push(entry("sandbox.direct", name, why));
    }
    found.extend(wrong_secrets(config));
    found
}

/// Returns the names of sealed secrets that no secret can have.
fn wrong_secrets(config: &Config) -> Vec<Wrong> {
    let models = config.models.providers.iter();
    let models = models.map(|(name, of)| (format!("models.providers.{name}"), &of.key_secret));
    let endpoints = config.endpoints.iter();
    let endpoints = endpoints.map(|(name, of)| (format!("endpoints.{name}"), &of.key_secret));
    let search = config.web.search.providers.iter();
    let search = search.map(|(name, of)| (format!("web.search.providers.{}", name.name()), &of.key_secret));
    let embeddings = config.memory.embeddings.iter();
    let embeddings = embeddings.map(|of| ("memory.embeddings".to_owned(), &of.key_secret));
    let mut found = Vec::new();
    for (key, names) in models.chain(endpoints).chain(search).chain(embeddings) {
        for name in names {
            if let Err(error) = SecretName::new(name) {
                found.push(entry(&format!("{key}.key_secret"), name, &error.to_string()));
            }
        }
    }
    found
}

fn single(key: &str, why: &str) -> Wrong {
    (key.to_owned(), String::new(), format!("`{key}`: {why}"))
}

fn entry(key: &str, entry: &str, why: &str) -> Wrong {
    (key.to_owned(), entry.to_owned(), format!("`{key}` entry `{entry}`: {why}"))
}

/// Whether a text is a host as a `Host` header names it, without its port.
fn is_host(text: &str) -> bool {
    let Ok(url) = Url::parse(&format!("http://{text}/")) else { return false };
    url.host_str().is_some_and(|host| host.eq_ignore_ascii_case(text))
}

fn is_file_name(text: &str) -> bool {
    !text.trim().is_empty() && !matches!(text, "." | "..") && !text.contains(['/', '\0', '*', '?'])
}
