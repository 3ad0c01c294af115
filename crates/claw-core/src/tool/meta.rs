//! The static description of a tool.

use std::borrow::Cow;
use std::mem;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use super::{Aliases, Effect, Effects, Group, Need, Section};
use crate::id::ToolName;

/// A tool's name, group and greatest effects.
///
/// Built-in tools hold theirs as a constant and set only what differs from the defaults. Tools that are
/// defined at run time own every string, so that none has to be leaked.
///
/// ```
/// use claw_core::tool::{Effect, Group, Meta};
/// const META: Meta = Meta::new("read_file", Group::Fs)
///     .effects(&[Effect::Read])
///     .aliases(&["read", "Read"])
///     .about("Read a text file from the workspace, with line numbers.");
/// assert!(META.effects.has(Effect::Read) && !META.effects.has(Effect::Write));
///
/// let (server, tool) = (String::from("github"), String::from("search"));
/// let mut meta = Meta::of(format!("{server}__{tool}").parse()?, Group::Named(server.into()));
/// meta.about = format!("Search with {tool}.").into();
/// meta.aliases = vec![tool].into();
/// assert!(meta.aliases.contains("search"));
/// # Ok::<(), claw_core::InvalidId>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Meta {
    /// The name by which a model calls it.
    pub name: ToolName,
    /// The label for people; `None` for the name.
    pub label: Option<SmolStr>,
    /// Its description, in a sentence or two. The model reads this.
    pub about: SmolStr,
    /// Its first group.
    pub group: Group,
    /// Further groups.
    pub also_in: Cow<'static, [Group]>,
    /// The heading it is listed under; `None` for the group's.
    pub section: Option<Section>,
    /// The most a call of it may do. If nothing is declared, everything.
    pub effects: Effects,
    /// Effects that a policy can remove while the tool stays, because its sandbox prevents them.
    pub removable: Effects,
    /// The weight of one call in the rate limiter.
    pub cost: Cost,
    /// Other names it answers to. They are resolved, never sent to a model.
    pub aliases: Aliases,
    /// Profiles that include it, besides those that name its group.
    #[serde(rename = "also_in_profiles")]
    pub profiles: Cow<'static, [Profile]>,
    /// The origin of the tool.
    pub source: Source,
    /// The ports it cannot work without.
    pub needs: Cow<'static, [Need]>,
    /// True if it is offered, when it has something to do, whatever profile and allow lists say; deny lists
    /// still apply.
    pub standing: bool,
    /// The timeout of one call, in seconds; `None` for the deployment's default.
    pub timeout_secs: Option<u32>,
    /// The tokens of its definition, counted; `None` if they are only estimated.
    pub tokens: Option<u32>,
}

impl Meta {
    /// Makes a tool of this name in this group. Until effects are declared it has all of them.
    pub const fn new(name: &'static str, group: Group) -> Self {
        Self::of(ToolName::literal(name), group)
    }

    /// Does the same for a name known only at run time.
    pub const fn of(name: ToolName, group: Group) -> Self {
        Self {
            name,
            label: None,
            about: SmolStr::new_static(""),
            group,
            also_in: Cow::Borrowed(&[]),
            section: None,
            effects: Effects::ALL,
            removable: Effects::NONE,
            cost: Cost::Normal,
            aliases: Aliases::none(),
            profiles: Cow::Borrowed(&[]),
            source: Source::Embedder,
            needs: Cow::Borrowed(&[]),
            standing: false,
            timeout_secs: None,
            tokens: None,
        }
    }

    /// Sets the description for the model.
    pub const fn about(mut self, about: &'static str) -> Self {
        mem::forget(mem::replace(&mut self.about, SmolStr::new_static(about)));
        self
    }

    /// Sets the label for people.
    pub const fn label(mut self, label: &'static str) -> Self {
        mem::forget(self.label.replace(SmolStr::new_static(label)));
        self
    }

    /// Sets further groups.
    pub const fn also_in(mut self, groups: &'static [Group]) -> Self {
        mem::forget(mem::replace(&mut self.also_in, Cow::Borrowed(groups)));
        self
    }

    /// Sets the most a call may do; `&[]` for a pure computation.
    pub const fn effects(mut self, effects: &[Effect]) -> Self {
        self.effects = Effects::of(effects);
        self
    }

    /// Sets the effects that can be removed while the tool stays.
    pub const fn removable(mut self, effects: &[Effect]) -> Self {
        self.removable = Effects::of(effects);
        self
    }

    /// Sets the weight of one call in the rate limiter.
    pub const fn cost(mut self, cost: Cost) -> Self {
        self.cost = cost;
        self
    }

    /// Sets other names it answers to.
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Self {
        mem::forget(mem::replace(&mut self.aliases, Aliases::fixed(aliases)));
        self
    }

    /// Sets further profiles that include it.
    pub const fn profiles(mut self, profiles: &'static [Profile]) -> Self {
        mem::forget(mem::replace(&mut self.profiles, Cow::Borrowed(profiles)));
        self
    }

    /// Sets the ports it cannot work without.
    pub const fn needs(mut self, needs: &'static [Need]) -> Self {
        mem::forget(mem::replace(&mut self.needs, Cow::Borrowed(needs)));
        self
    }

    /// Sets the origin of the tool.
    pub const fn source(mut self, source: Source) -> Self {
        mem::forget(mem::replace(&mut self.source, source));
        self
    }

    /// Makes it offered past profile and allow steps; see [`Meta::standing`](#structfield.standing).
    pub const fn standing(mut self) -> Self {
        self.standing = true;
        self
    }

    /// Sets the timeout of one call, in seconds.
    pub const fn timeout_secs(mut self, seconds: u32) -> Self {
        self.timeout_secs = Some(seconds);
        self
    }

    /// Returns the text for people: the label, or the name.
    pub fn title(&self) -> &str {
        self.label.as_deref().unwrap_or(self.name.as_str())
    }

    /// Returns the heading it is listed under.
    pub fn heading(&self) -> Section {
        self.section.clone().unwrap_or_else(|| self.group.section())
    }

    /// Returns all its groups, the main one first.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        std::iter::once(&self.group).chain(self.also_in.iter())
    }
}

/// The weight of one call of a tool in the rate limiter.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Cost {
    /// Answers from memory.
    Light,
    /// Touches files or a process.
    #[default]
    Normal,
    /// Takes long, costs money or starts agents.
    Heavy,
}

impl Cost {
    /// All classes, lightest first.
    pub const ALL: [Self; 3] = [Self::Light, Self::Normal, Self::Heavy];

    /// Returns the name used in configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Normal => "normal",
            Self::Heavy => "heavy",
        }
    }
}

/// A preset collection of tools for a kind of agent.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Everything.
    #[default]
    Full,
    /// Files, commands, sessions, memory, web, knowledge, media and skills.
    Coding,
    /// Messages, web, sessions and reading media.
    Messaging,
    /// `session_status` alone.
    Minimal,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 4] = [Self::Full, Self::Coding, Self::Messaging, Self::Minimal];

    /// Returns the name used in configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Coding => "coding",
            Self::Messaging => "messaging",
            Self::Minimal => "minimal",
        }
    }
}

/// The origin of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Built into Clawsmith.
    Core,
    /// Registered by the program that embeds Clawsmith.
    Embedder,
    /// An MCP server.
    Mcp {
        /// The server's name.
        server: SmolStr,
    },
    /// Defined at run time.
    Custom,
}
