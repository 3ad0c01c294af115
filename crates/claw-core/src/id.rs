//! Identifiers as types, so that a user is never passed where an agent belongs.
//!
//! Names that people write are checked where they enter ([`InvalidId`] names the value and the rule). Ids
//! that we make are UUIDv7: they sort by time.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use uuid::Uuid;

/// A text that does not have the form of its id type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{value}` is not a valid {what}; {rule}")]
pub struct InvalidId {
    what: &'static str,
    value: String,
    rule: &'static str,
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $ok:expr, $rule:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "SmolStr", into = "SmolStr")]
        pub struct $name(SmolStr);

        impl $name {
            /// Checks the text and takes it as an id.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidId> {
                let text = text.as_ref();
                let ok: fn(&str) -> bool = $ok;
                if ok(text) {
                    return Ok(Self(SmolStr::new(text)));
                }
                let value = text.chars().take(80).collect();
                Err(InvalidId { what: $what, value, rule: $rule })
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<SmolStr> for $name {
            type Error = InvalidId;
            fn try_from(text: SmolStr) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl From<$name> for SmolStr {
            fn from(id: $name) -> SmolStr {
                id.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "description": $rule })
            }
            fn inline_schema() -> bool {
                true
            }
        }
    };
}

fn is_plain(text: &str, max: usize) -> bool {
    !text.is_empty()
        && text.len() <= max
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'@' | b'+'))
        && !text.starts_with('.')
}

fn is_session_key(text: &str) -> bool {
    text.len() <= 256
        && text.split_once(':').is_some_and(|(kind, rest)| !kind.is_empty() && !rest.is_empty())
        && !text.chars().any(|c| c.is_control() || c.is_whitespace())
}

fn is_server_name(text: &str) -> bool {
    text.len() <= 32
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn is_skill_name(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    text.len() <= 64 && text.split('-').all(is_part)
}

const fn is_tool_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.is_empty() || bytes.len() > 64 || !bytes[0].is_ascii_alphabetic() {
        return false;
    }
    let mut i = 0;
    while i < bytes.len() {
        if !(bytes[i].is_ascii_alphanumeric() || bytes[i] == b'_' || bytes[i] == b'-') {
            return false;
        }
        i += 1;
    }
    true
}

text_id!(
    /// The tenant that owns data. Every row and every call carries one; no query crosses it.
    TenantId, "tenant id", |t| is_plain(t, 64), "use 1 to 64 letters, digits, `_`, `-`, `.`, `@` or `+`"
);
text_id!(
    /// An agent.
    AgentId, "agent id", |t| is_plain(t, 64), "use 1 to 64 letters, digits, `_`, `-`, `.`, `@` or `+`"
);
text_id!(
    /// The user for whom an agent acts.
    UserId, "user id", |t| is_plain(t, 128), "use 1 to 128 letters, digits, `_`, `-`, `.`, `@` or `+`"
);
text_id!(
    /// A machine of an installation.
    NodeId, "node id", |t| is_plain(t, 64), "use 1 to 64 letters, digits, `_`, `-`, `.`, `@` or `+`"
);
text_id!(
    /// The session of a call, such as `cli:me` or `http:key-7`: a kind, a colon, the rest.
    ///
    /// It keys the rate limiter and the sandbox, so it is never empty.
    SessionKey, "session key", is_session_key, "write a kind, a colon and a name without blanks, such as `cli:me`"
);
text_id!(
    /// The name by which a model calls a tool.
    ToolName, "tool name", is_tool_name, "start with a letter, then at most 63 letters, digits, `_` or `-`"
);
text_id!(
    /// Name of a skill, and of the directory that holds it.
    SkillName, "skill name", is_skill_name,
    "use 1 to 64 lower-case letters, digits and single hyphens, with no hyphen at either end"
);
text_id!(
    /// The name of a secret, such as `GITHUB_TOKEN`.
    SecretName, "secret name", |t| is_plain(t, 128), "use 1 to 128 letters, digits, `_`, `-`, `.`, `@` or `+`"
);
text_id!(
    /// The name of a credentialed program, such as `gh`.
    ProgramName, "program name", |t| is_plain(t, 128), "use 1 to 128 letters, digits, `_`, `-`, `.`, `@` or `+`"
);

text_id!(
    /// The name of an MCP server, which is part of the names of its tools.
    ServerName, "server name", is_server_name, "start with a letter, then at most 31 lower-case letters, digits or `-`"
);

impl TenantId {
    /// The tenant of an installation that has only one.
    pub fn main() -> Self {
        Self(SmolStr::new_static("main"))
    }
}

/// The tenant of a deployment that names none.
impl Default for TenantId {
    fn default() -> Self {
        Self::main()
    }
}

impl NodeId {
    /// The machine of an installation that has only one.
    pub fn local() -> Self {
        Self(SmolStr::new_static("local"))
    }
}

impl SessionKey {
    /// The part before the first colon: `cli`, `http`, `mcp`, `agent`, ...
    pub fn kind(&self) -> &str {
        self.0.split(':').next().unwrap_or_default()
    }
}

impl ToolName {
    /// Makes a name from a literal in the source; an invalid one does not compile.
    #[expect(clippy::panic, reason = "evaluated at compile time, where a panic is a compile error")]
    pub const fn literal(name: &'static str) -> Self {
        if !is_tool_name(name) {
            panic!("not a tool name: start with a letter, then at most 63 letters, digits, `_` or `-`");
        }
        Self(SmolStr::new_static(name))
    }
}

impl std::borrow::Borrow<str> for ToolName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Makes a new id, which sorts after all earlier ones of this machine.
            #[expect(clippy::new_without_default, reason = "a default that differs every time would surprise")]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }

            /// Makes the id from its sixteen bytes, most significant first.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// The sixteen bytes, most significant first.
            pub fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, uuid::Error> {
                Uuid::parse_str(text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "format": "uuid" })
            }
            fn inline_schema() -> bool {
                true
            }
        }
    };
}

uuid_id!(
    /// One call of one tool. We make the id; the model's is not used, since some models repeat theirs.
    CallId
);
uuid_id!(
    /// One approval: a question to a person.
    ApprovalId
);
uuid_id!(
    /// One message of a session.
    MessageId
);
uuid_id!(
    /// One piece of work in the queue.
    JobId
);
uuid_id!(
    /// One run of a program: a restarted node has a new one.
    BootId
);
uuid_id!(
    /// One installation: a store, and the data directories that go with it.
    InstallationId
);
uuid_id!(
    /// One stored text or file that a result points to.
    ArtifactId
);
uuid_id!(
    /// One change of a file that can be undone.
    UndoId
);
uuid_id!(
    /// One paid answer of a model.
    UsageId
);
uuid_id!(
    /// One rule that a person created by approving.
    RuleId
);
uuid_id!(
    /// One background process. We make the id; the system reuses its process numbers.
    ProcessId
);
uuid_id!(
    /// One API key; not the key itself.
    KeyId
);
uuid_id!(
    /// One user's request for access to an MCP server.
    AccessRequestId
);
uuid_id!(
    /// One entity of a knowledge graph.
    EntityId
);
uuid_id!(
    /// One relation of a knowledge graph.
    RelationId
);

#[cfg(test)]
mod tests;
