//! The path of the workspace of a tenant, an agent and a user.

use std::path::{Path, PathBuf};

use claw_core::tool::Digest;
use claw_core::{AgentId, TenantId, UserId};

/// The longest encoded name, in bytes.
const LONGEST: usize = 200;

/// Returns the directory below `base` that belongs to this tenant, agent and user, or to all users of the
/// agent. No two share one, not even on file systems that ignore case. It is made with the first write.
pub fn workspace_path(base: &Path, tenant: &TenantId, agent: &AgentId, user: Option<&UserId>) -> PathBuf {
    let whose = match user {
        Some(user) => format!("user-{}", encoded(user.as_str())),
        None => "shared".to_owned(),
    };
    base.join(encoded(tenant.as_str())).join(encoded(agent.as_str())).join(whose)
}

/// Encodes an id: small letters, digits, `-` and `_` stay, every other byte becomes `%` and two digits. A
/// name that gets too long is replaced by its hash, in a form that no encoded name has.
fn encoded(id: &str) -> String {
    let mut name = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            other => name.push_str(&format!("%{other:02x}")),
        }
    }
    if name.len() <= LONGEST {
        return name;
    }
    let hash = Digest::of_bytes(id.as_bytes()).to_string();
    format!("~{}", hash.strip_prefix("sha256:").unwrap_or(&hash))
}

#[cfg(test)]
mod tests;
