//! The permitted operations of an API key.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One permitted operation of a key. Sorted by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub enum KeyScope {
    /// All operations.
    Admin,
    /// Read agents.
    ReadAgents,
    /// Add, change and remove agents.
    WriteAgents,
    /// Answer approvals.
    AnswerApprovals,
    /// Read approvals.
    ReadApprovals,
    /// Read the ledger.
    ReadLedger,
    /// Search and read memory documents.
    ReadMemory,
    /// Write and remove memory documents.
    WriteMemory,
    /// Read metrics of the deployment.
    ReadMetrics,
    /// Read sessions.
    ReadSessions,
    /// Send messages.
    WriteSessions,
    /// Read the settings of tools.
    ReadSettings,
    /// Change the settings of tools.
    WriteSettings,
    /// Call tools.
    CallTools,
    /// List tools.
    ReadTools,
    /// Act for other users of the tenant.
    ActForUsers,
}

impl schemars::JsonSchema for KeyScope {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "KeyScope".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "enum": Self::ALL.map(Self::name) })
    }
}

/// A word that names no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is not a scope; use some of {}", words())]
pub struct UnknownScope {
    word: String,
}

impl KeyScope {
    /// Every scope, by its name.
    pub const ALL: [Self; 16] = [
        Self::Admin,
        Self::ReadAgents,
        Self::WriteAgents,
        Self::AnswerApprovals,
        Self::ReadApprovals,
        Self::ReadLedger,
        Self::ReadMemory,
        Self::WriteMemory,
        Self::ReadMetrics,
        Self::ReadSessions,
        Self::WriteSessions,
        Self::ReadSettings,
        Self::WriteSettings,
        Self::CallTools,
        Self::ReadTools,
        Self::ActForUsers,
    ];

    /// Returns the scope's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::ReadAgents => "agents:read",
            Self::WriteAgents => "agents:write",
            Self::AnswerApprovals => "approvals:answer",
            Self::ReadApprovals => "approvals:read",
            Self::ReadLedger => "ledger:read",
            Self::ReadMemory => "memory:read",
            Self::WriteMemory => "memory:write",
            Self::ReadMetrics => "metrics:read",
            Self::ReadSessions => "sessions:read",
            Self::WriteSessions => "sessions:write",
            Self::ReadSettings => "settings:read",
            Self::WriteSettings => "settings:write",
            Self::CallTools => "tools:call",
            Self::ReadTools => "tools:read",
            Self::ActForUsers => "users:act",
        }
    }
}

fn words() -> String {
    KeyScope::ALL.map(|scope| format!("`{scope}`")).join(", ")
}

impl fmt::Display for KeyScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for KeyScope {
    type Err = UnknownScope;
    fn from_str(word: &str) -> Result<Self, UnknownScope> {
        let known = Self::ALL.into_iter().find(|scope| scope.name() == word);
        known.ok_or_else(|| UnknownScope { word: word.chars().take(80).collect() })
    }
}

impl TryFrom<String> for KeyScope {
    type Error = UnknownScope;
    fn try_from(word: String) -> Result<Self, UnknownScope> {
        word.parse()
    }
}

impl From<KeyScope> for &'static str {
    fn from(scope: KeyScope) -> Self {
        scope.name()
    }
}

/// The permitted operations of a key, sorted and each once. As text: names separated by a space.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct KeyScopes(BTreeSet<KeyScope>);

impl KeyScopes {
    /// Returns whether the operation is permitted: by its own scope or by `admin`.
    pub fn allow(&self, scope: KeyScope) -> bool {
        self.0.contains(&scope) || self.0.contains(&KeyScope::Admin)
    }

    /// Returns the scopes, by their names.
    pub fn iter(&self) -> impl Iterator<Item = KeyScope> {
        self.0.iter().copied()
    }
}

impl FromIterator<KeyScope> for KeyScopes {
    fn from_iter<I: IntoIterator<Item = KeyScope>>(scopes: I) -> Self {
        Self(scopes.into_iter().collect())
    }
}

impl fmt::Display for KeyScopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, scope) in self.iter().enumerate() {
            write!(f, "{}{scope}", if at == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

impl FromStr for KeyScopes {
    type Err = UnknownScope;
    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        text.split_ascii_whitespace().map(str::parse).collect()
    }
}
