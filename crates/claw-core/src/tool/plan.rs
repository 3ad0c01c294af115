//! The plan of one call: its effects and asks, stated before it does anything.
//!
//! A plan is pure: it is computed from [`Facts`] and the arguments, so a person may take any time to approve
//! it. The policy judges it, a person may approve it, its [`Digest`] binds the approval, and the guarded
//! ports refuse everything it does not name.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use smol_str::SmolStr;

use super::{Effect, Effects, Meta};

/// The inputs of a plan besides the arguments.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Facts {
    /// The workspace of the caller.
    pub workspace: PathBuf,
    /// The directory that relative paths start from, inside the workspace.
    pub directory: PathBuf,
    /// The tool's settings.
    pub settings: Arc<Value>,
    /// True if commands of this caller run in a sandbox.
    pub sandboxed: bool,
}

/// The plan of one call: its effects, and what it asks of the world.
///
/// Reads within the scope need no ask; a path that may be outside it is named by [`Ask::Reach`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The effects of this call, never more than the tool's own.
    pub effects: Effects,
    /// The asks, in order.
    pub asks: Vec<Ask>,
    /// Access that the owner of the tool granted its commands; `None` for that of the caller's own commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given: Option<Box<Given>>,
}

/// Access that the owner of a tool granted its commands beyond that of the caller's own commands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Given {
    /// True if the commands may use the network without approval.
    pub network: bool,
    /// Paths outside the workspace that they reach, in a sandbox.
    pub paths: Vec<GivenPath>,
    /// Variables with secret values.
    pub variables: SecretVariables,
}

/// A file, or a directory with everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GivenPath {
    /// The absolute path.
    pub path: PathBuf,
    /// The commands may change it.
    pub write: bool,
}

impl Given {
    /// Returns whether nothing is granted.
    pub fn is_empty(&self) -> bool {
        !self.network && self.paths.is_empty() && self.variables.is_empty()
    }
}

/// Variables with secret values, which only the shell port reads. Serialised and printed, they are names
/// alone.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct SecretVariables(Arc<[(String, String)]>);

impl SecretVariables {
    /// Takes names and values.
    pub fn new(mut variables: Vec<(String, String)>) -> Self {
        variables.sort();
        Self(variables.into())
    }

    /// Returns the names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Returns whether there are no variables.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns names and values, for the command alone.
    pub fn reveal(&self) -> &[(String, String)] {
        &self.0
    }
}

impl fmt::Debug for SecretVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl Serialize for SecretVariables {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.names())
    }
}

/// One ask: something that a call needs of the world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// Run a shell script.
    Script(Script),
    /// Run a program directly, without a shell.
    Argv(Argv),
    /// Send input to a background command.
    Input(Input),
    /// Create, change or delete this path of the workspace.
    Write {
        /// The path as the tool passes it to the files port.
        path: String,
    },
    /// Reach this path, which may be outside the workspace: a file tool that reads it, or a command that needs it.
    Reach {
        /// As the tool will give it to the files port; for a command, where it is.
        path: String,
        /// Whether it is changed, too.
        write: bool,
    },
    /// Connect to this server.
    Host {
        /// The server.
        origin: Origin,
    },
    /// Fetch this address, and the addresses it redirects to.
    Fetch {
        /// Its server.
        origin: Origin,
        /// The whole address.
        url: String,
    },
    /// Publish a directory of the workspace to the store of skills.
    Publish {
        /// The path as the tool passes it to the skills port.
        path: String,
    },
    /// Read another session, or send a message to it.
    Session {
        /// Its key, as the tool passes it to the port.
        session: String,
        /// True to send a message.
        sends: bool,
    },
    /// Do something that cannot be predicted, such as an MCP server's tool.
    Opaque,
}

impl Ask {
    /// Returns the effects that the ask implies, for a tool whose own effects are `ceiling`.
    pub const fn effects(&self, ceiling: Effects) -> Effects {
        match self {
            // It logs in to another machine.
            Self::Argv(argv) if argv.credentials => Effects::of(&[Effect::Execute, Effect::Network]),
            Self::Script(_) | Self::Argv(_) | Self::Input(_) => Effects::of(&[Effect::Execute]),
            Self::Write { .. } | Self::Publish { .. } | Self::Reach { write: true, .. } => {
                Effects::of(&[Effect::Write])
            }
            Self::Reach { write: false, .. } => Effects::of(&[Effect::Read]),
            Self::Host { .. } | Self::Fetch { .. } => Effects::of(&[Effect::Network]),
            Self::Session { sends: true, .. } => Effects::of(&[Effect::Message, Effect::Spawn]),
            Self::Session { sends: false, .. } => Effects::of(&[Effect::Read]),
            Self::Opaque => ceiling,
        }
    }
}

/// A shell script with everything that determines its effects.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Script {
    /// The text for the shell.
    pub text: String,
    /// The directory it starts in.
    pub directory: String,
    /// Variables added to its environment, sorted by name.
    pub env: Vec<(String, String)>,
    /// Its standard input; `None` for none.
    pub input: Option<String>,
    /// True if it needs the network.
    pub network: bool,
    /// True to capture standard error separately from standard output.
    pub apart: bool,
    /// The timeout, in seconds; `None` for the host's limit.
    pub timeout_secs: Option<u32>,
    /// True to run it on a terminal of its own.
    pub terminal: bool,
    /// True to show its changes and then discard them.
    pub dry_run: bool,
}

/// Input for a background command.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Input {
    /// The command, as the caller names it.
    pub process: String,
    /// The text, or the bytes that the keys send.
    pub text: String,
    /// True for keys, which only a terminal has.
    pub keys: bool,
    /// True if this is the end of the input.
    pub end: bool,
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Argv {
    /// The program, then its arguments.
    pub argv: Vec<String>,
    /// The directory it starts in.
    pub directory: String,
    /// Variables added to its environment, sorted by name.
    pub env: Vec<(String, String)>,
    /// True for a registered program, which gets its credentials.
    pub credentials: bool,
}

/// A server: scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// `http` or `https`.
    pub scheme: SmolStr,
    /// A name or a literal address, lower case.
    pub host: SmolStr,
    /// The port, always explicit.
    pub port: u16,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme, self.host, self.port)
    }
}

impl Plan {
    /// Returns the plan of a tool that states nothing about a call: all of its effects, and no ask that a
    /// port would grant. A tool that writes, runs or connects has to name its asks.
    pub const fn of(meta: &Meta) -> Self {
        Self { effects: meta.effects, asks: Vec::new(), given: None }
    }

    /// Returns the plan of a call that only reads.
    pub const fn read() -> Self {
        Self { effects: Effects::of(&[Effect::Read]), asks: Vec::new(), given: None }
    }

    /// Reads this path, which may be outside the workspace.
    pub fn reading(path: impl Into<String>) -> Self {
        Self::read().asking(Ask::Reach { path: path.into(), write: false })
    }

    /// Returns the plan of a tool whose actions cannot be predicted.
    pub fn opaque(effects: Effects) -> Self {
        Self { effects, asks: vec![Ask::Opaque], given: None }
    }

    /// Returns the plan to run this script.
    pub fn script(script: Script) -> Self {
        Self { effects: Effects::of(&[Effect::Execute]), asks: vec![Ask::Script(script)], given: None }
    }

    /// Returns the plan to run this program.
    pub fn argv(argv: Argv) -> Self {
        Self { effects: Effects::of(&[Effect::Execute]), asks: vec![Ask::Argv(argv)], given: None }
    }

    /// Returns the plan to change this path.
    pub fn write(path: impl Into<String>) -> Self {
        Self {
            effects: Effects::of(&[Effect::Read, Effect::Write]),
            asks: vec![Ask::Write { path: path.into() }],
            given: None,
        }
    }

    /// Returns the effects of this call, including those that its asks imply: a plan cannot hide an effect of
    /// its asks. An opaque plan has all effects of its tool.
    pub fn all_effects(&self, ceiling: Effects) -> Effects {
        self.asks.iter().fold(self.effects, |effects, ask| effects.and(ask.effects(ceiling)))
    }

    /// Adds an effect.
    #[must_use]
    pub const fn with(mut self, effect: Effect) -> Self {
        self.effects = self.effects.and(Effects::of(&[effect]));
        self
    }

    /// Grants the commands access; none if `given` is empty.
    #[must_use]
    pub fn giving(mut self, given: Given) -> Self {
        self.given = (!given.is_empty()).then(|| Box::new(given));
        self
    }

    /// Adds an ask.
    #[must_use]
    pub fn asking(mut self, ask: Ask) -> Self {
        self.asks.push(ask);
        self
    }
}

/// An object in the world that a plan refers to, and that a port can look at before the call runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "target", rename_all = "snake_case")]
pub enum Target {
    /// A program, by the name the command uses and the directory it is used from.
    Program {
        /// The word in command position.
        name: String,
        /// The directory it would run in.
        directory: String,
    },
    /// A file of the workspace.
    File {
        /// The path, as the plan names it.
        path: String,
    },
    /// A directory outside the caller's scope.
    Outside {
        /// Its real path.
        path: String,
    },
    /// A server that a session may have fetched pages from.
    Host {
        /// A name or a literal address.
        host: String,
    },
    /// A directory of the workspace that holds a skill.
    Skill {
        /// The path, as the plan names it.
        path: String,
    },
    /// Another session, with its workspace.
    Session {
        /// Its key.
        session: String,
    },
    /// The sandbox in which commands run.
    Sandbox,
    /// A background command, with all input sent to it so far.
    Process {
        /// The command, as the plan names it.
        process: String,
    },
}

/// The state of a target when a port looked at it. Compared again when the call runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sight {
    /// The target.
    pub target: Target,
    /// Its real path; `None` if it has none.
    pub path: Option<String>,
    /// Its identity: device and inode, a content hash, the name of a sandbox.
    pub identity: Option<String>,
    /// The registered credential that would be used.
    pub credential: Option<SmolStr>,
    /// True if commands of the agent can change it, or change where its name leads: it may be another object
    /// a moment later.
    /// Of a sandbox: no mounts hold its commands, so they can change files outside the workspace.
    pub writable: bool,
}

impl Sight {
    /// Identity of a directory outside the scope: which one it is, its path says.
    pub const DIRECTORY: &str = "directory";

    /// A directory outside the scope, by its real path.
    pub fn outside(path: String) -> Self {
        let (target, identity) = (Target::Outside { path: path.clone() }, Some(Self::DIRECTORY.to_owned()));
        Self { target, path: Some(path), identity, credential: None, writable: false }
    }
}

/// Everything that determines a call's effects and its caller: an approval binds its digest.
#[derive(Debug, Clone, Copy)]
pub struct Identity<'a> {
    /// The tool's definition: its metadata and its schema.
    pub definition: Digest,
    /// The caller, and the directories, settings and sandbox of the call.
    pub place: Digest,
    /// The effects that the policy left of the tool's own.
    pub left: Effects,
    /// The arguments.
    pub args: &'a Value,
    /// The plan.
    pub plan: &'a Plan,
    /// The sights of the plan's targets.
    pub sights: &'a [Sight],
}

impl Identity<'_> {
    /// Returns the digest of all parts.
    pub fn digest(&self) -> Digest {
        let Self { definition, place, left, args, plan, sights } = self;
        let Plan { effects, asks, given } = plan;
        let mut parts = Vec::with_capacity(TYPICAL);
        parts.extend_from_slice(definition.as_bytes());
        parts.extend_from_slice(place.as_bytes());
        parts.extend([left.bits(), effects.bits()]);
        // The first parts have fixed lengths, and JSON without spaces holds no line break: no two identities have the
        // same bytes.
        write_json(&mut parts, args);
        parts.push(b'\n');
        write_json(&mut parts, asks);
        parts.push(b'\n');
        write_json(&mut parts, given);
        parts.push(b'\n');
        write_json(&mut parts, sights);
        Digest::of_bytes(&parts)
    }
}

/// The bytes of most values whose digests are computed.
const TYPICAL: usize = 1024;

/// Appends a value as JSON. Strings, maps with string keys and sequences always serialise. If a value does not, it is
/// marked by a byte that no JSON text holds, so that its digest equals that of no serialisable value.
fn write_json(text: &mut Vec<u8>, value: &impl Serialize) {
    if serde_json::to_writer(&mut *text, value).is_err() {
        text.push(0xff);
    }
}

/// A SHA-256: of a call's [`Identity`], of a definition, of a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl schemars::JsonSchema for Digest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^sha256:[0-9a-f]{64}$" })
    }

    fn inline_schema() -> bool {
        true
    }
}

impl Digest {
    /// Returns the digest of a value as JSON. Fields are in the order of their type and map keys sorted, so
    /// that equal values have equal digests and no two different ones the same text.
    pub fn of(value: &impl Serialize) -> Self {
        let mut text = Vec::with_capacity(TYPICAL);
        write_json(&mut text, value);
        Self::of_bytes(&text)
    }

    /// Returns the digest of bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Takes a digest that was computed piece by piece.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the raw bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut hex = [0; 64];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        f.write_str("sha256:")?;
        f.write_str(str::from_utf8(&hex).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = SmolStr::deserialize(deserializer)?;
        parse_digest(&text)
            .ok_or_else(|| serde::de::Error::custom(format!("`{text}` is not a sha256 digest")))
    }
}

fn parse_digest(text: &str) -> Option<Digest> {
    let hex = text.strip_prefix("sha256:")?;
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(Digest(bytes))
}

#[cfg(test)]
mod tests;
