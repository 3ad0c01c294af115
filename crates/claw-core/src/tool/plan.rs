//! What one call would do, said before it does anything.
//!
//! A plan is pure: it is computed from [`Facts`] and the arguments, so asking a person can take as long as
//! it takes. The policy judges it, a person may answer it, its [`Digest`] binds the answer, and the guarded
//! ports refuse whatever it does not name.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use smol_str::SmolStr;

use super::{Effect, Effects, Meta};

/// What a plan may be computed from.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Facts {
    /// The workspace of the caller.
    pub workspace: PathBuf,
    /// The directory that relative paths start from, inside the workspace.
    pub directory: PathBuf,
    /// The tool's settings.
    pub settings: Arc<Value>,
    /// Whether commands of this caller run in a sandbox.
    pub sandboxed: bool,
}

/// What one call would do: its effects, and what it asks of the world.
///
/// Reads within the scope need no ask; a path that may be outside it is named by [`Ask::Reach`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The effects of this call, never more than the tool's ceiling.
    pub effects: Effects,
    /// What it asks for, in order.
    pub asks: Vec<Ask>,
    /// Access that the owner of the tool gave its commands; `None` for that of the caller's own commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given: Option<Box<Given>>,
}

/// Access that the owner of a tool gave its commands beyond that of the caller's own commands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Given {
    /// The commands reach other machines; nobody is asked about that.
    pub network: bool,
    /// Paths outside of the workspace that they reach, in a sandbox.
    pub paths: Vec<GivenPath>,
    /// Variables with secret values.
    pub variables: SecretVariables,
}

/// A file, or a directory with all below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GivenPath {
    /// The absolute path.
    pub path: PathBuf,
    /// The commands may change it.
    pub write: bool,
}

impl Given {
    /// Whether it is nothing.
    pub fn is_empty(&self) -> bool {
        !self.network && self.paths.is_empty() && self.variables.is_empty()
    }
}

/// Variables whose values are secret: only the shell port reads them. Serialised and printed, they are names.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct SecretVariables(Arc<[(String, String)]>);

impl SecretVariables {
    /// Takes names and values.
    pub fn new(mut variables: Vec<(String, String)>) -> Self {
        variables.sort();
        Self(variables.into())
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values, for the command alone.
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

/// One thing a call asks of the world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// Run a shell script.
    Script(Script),
    /// Run a program directly, with no shell.
    Argv(Argv),
    /// Type something into a command that runs in the background.
    Input(Input),
    /// Create, change or delete this path of the workspace.
    Write {
        /// As the tool will give it to the files port.
        path: String,
    },
    /// Reach this path, which may be outside the workspace: a file tool that reads it, or a command that needs it.
    Reach {
        /// As the tool will give it to the files port; for a command, where it is.
        path: String,
        /// Whether it is changed, too.
        write: bool,
    },
    /// Talk to this server.
    Host {
        /// Which one.
        origin: Origin,
    },
    /// Fetch this address, and the places that it redirects to.
    Fetch {
        /// Its server.
        origin: Origin,
        /// The whole address.
        url: String,
    },
    /// Take a directory of the workspace into the store of skills.
    Publish {
        /// As the tool will give it to the skills port.
        path: String,
    },
    /// Read another session, or say something in it.
    Session {
        /// Its key, as the tool will give it to the port.
        session: String,
        /// Whether something is said there.
        sends: bool,
    },
    /// Do something that cannot be told beforehand, such as an MCP server's tool.
    Opaque,
}

impl Ask {
    /// Effects that the ask implies, for a tool with this ceiling.
    pub const fn effects(&self, ceiling: Effects) -> Effects {
        match self {
            // Its login is to another machine.
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

/// A shell script with everything that decides what it does.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Script {
    /// The text for the shell.
    pub text: String,
    /// The directory it starts in.
    pub directory: String,
    /// Variables added to its environment, sorted by name.
    pub env: Vec<(String, String)>,
    /// What it reads from its standard input; nothing where none is given.
    pub input: Option<String>,
    /// Whether it wants to reach other machines.
    pub network: bool,
    /// Whether its standard error is taken apart from its standard output.
    pub apart: bool,
    /// How long it may run, in seconds; as long as the place allows where none is given.
    pub timeout_secs: Option<u32>,
    /// Whether it runs on a terminal of its own.
    pub terminal: bool,
    /// Whether its changes are shown and then discarded.
    pub dry_run: bool,
}

/// What is typed into a command that runs in the background.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Input {
    /// Which command, as the caller names it.
    pub process: String,
    /// The text, or what the keys send.
    pub text: String,
    /// Whether it is keys, which only a terminal has.
    pub keys: bool,
    /// Whether nothing more will come.
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
    /// Whether it is a registered program, which gets its credentials.
    pub credentials: bool,
}

/// A server: scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// `http` or `https`.
    pub scheme: SmolStr,
    /// A name or a literal address, lower case.
    pub host: SmolStr,
    /// The port, always said.
    pub port: u16,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme, self.host, self.port)
    }
}

impl Plan {
    /// The plan of a tool that says nothing about a call: all of its ceiling, and no ask that a port would
    /// grant. A tool that writes, runs or connects has to name what.
    pub const fn of(meta: &Meta) -> Self {
        Self { effects: meta.effects, asks: Vec::new(), given: None }
    }

    /// A call that does nothing beyond reading.
    pub const fn read() -> Self {
        Self { effects: Effects::of(&[Effect::Read]), asks: Vec::new(), given: None }
    }

    /// Reads this path, which may be outside the workspace.
    pub fn reading(path: impl Into<String>) -> Self {
        Self::read().asking(Ask::Reach { path: path.into(), write: false })
    }

    /// The plan of a tool whose doing cannot be told beforehand.
    pub fn opaque(effects: Effects) -> Self {
        Self { effects, asks: vec![Ask::Opaque], given: None }
    }

    /// Runs this script.
    pub fn script(script: Script) -> Self {
        Self { effects: Effects::of(&[Effect::Execute]), asks: vec![Ask::Script(script)], given: None }
    }

    /// Runs this program.
    pub fn argv(argv: Argv) -> Self {
        Self { effects: Effects::of(&[Effect::Execute]), asks: vec![Ask::Argv(argv)], given: None }
    }

    /// Changes this path.
    pub fn write(path: impl Into<String>) -> Self {
        Self {
            effects: Effects::of(&[Effect::Read, Effect::Write]),
            asks: vec![Ask::Write { path: path.into() }],
            given: None,
        }
    }

    /// The effects of this call, those that its asks imply included: a plan cannot ask for what it does not
    /// own up to. One that is opaque may do all that its tool may.
    pub fn all_effects(&self, ceiling: Effects) -> Effects {
        self.asks.iter().fold(self.effects, |effects, ask| effects.and(ask.effects(ceiling)))
    }

    /// Adds an effect.
    #[must_use]
    pub const fn with(mut self, effect: Effect) -> Self {
        self.effects = self.effects.and(Effects::of(&[effect]));
        self
    }

    /// Gives the commands access; nothing where `given` is empty.
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

/// Something in the world that a plan leads to and a port can look at before the call runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "target", rename_all = "snake_case")]
pub enum Target {
    /// A program, by the name the command uses and the directory it is used from.
    Program {
        /// The word in command position.
        name: String,
        /// Where it would run.
        directory: String,
    },
    /// A file of the workspace.
    File {
        /// As the plan names it.
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
        /// As the plan names it.
        path: String,
    },
    /// Another session, with the workspace that it works in.
    Session {
        /// Its key.
        session: String,
    },
    /// The place where commands run.
    Sandbox,
    /// A command that runs in the background, with all that was typed into it so far.
    Process {
        /// As the plan names it.
        process: String,
    },
}

/// What a port saw when it looked at a target. Compared again when the call runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sight {
    /// What was looked at.
    pub target: Target,
    /// Where it really is, where that makes sense.
    pub path: Option<String>,
    /// Which thing it is: device and inode, a content hash, the name of a sandbox.
    pub identity: Option<String>,
    /// The registered credential that would be used.
    pub credential: Option<SmolStr>,
    /// Commands of the agent can change it, or change where its name leads: it may be another thing a moment later.
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

/// Everything that decides what a call would do, and for whom: what an approval binds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Identity<'a> {
    /// The tool's definition: its metadata and its schema.
    pub definition: Digest,
    /// Who calls, and the directories, settings and sandbox it would run with.
    pub place: Digest,
    /// What the policy left of its ceiling.
    pub left: Effects,
    /// The arguments.
    pub args: &'a Value,
    /// What it would do.
    pub plan: &'a Plan,
    /// What the ports saw.
    pub sights: &'a [Sight],
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
    /// The digest of a value as JSON. Fields come in the order of their type and map keys sorted, so that
    /// equal values have equal digests and no two different ones the same text.
    pub fn of(value: &impl Serialize) -> Self {
        let mut hash = HashWriter(Sha256::new());
        // Strings, maps with string keys and sequences always serialise. Were a value not to, it is marked by
        // a byte that no JSON text holds, and its digest is that of no value that does.
        if serde_json::to_writer(&mut hash, value).is_err() {
            hash.0.update([0xff]);
        }
        Self(hash.0.finalize().into())
    }

    /// The digest of bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// A digest that was computed piece by piece.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The raw bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

struct HashWriter(Sha256);

impl std::io::Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
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
