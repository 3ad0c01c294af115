//! The effects of a call on the world, as a small set.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One kind of effect of a call.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Effect {
    /// Reads files, memory or other stored state.
    Read,
    /// Changes files, memory or other stored state.
    Write,
    /// Runs programs.
    Execute,
    /// Talks to other machines.
    Network,
    /// Costs money.
    Spend,
    /// Sends something to a person.
    Message,
    /// Starts other agents.
    Spawn,
    /// Changes the installation itself.
    Admin,
}

impl Effect {
    /// All effects, in order.
    pub const ALL: [Self; 8] = [
        Self::Read,
        Self::Write,
        Self::Execute,
        Self::Network,
        Self::Spend,
        Self::Message,
        Self::Spawn,
        Self::Admin,
    ];

    /// Returns the name used in policies: `read`, `write`, ...
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Execute => "execute",
            Self::Network => "network",
            Self::Spend => "spend",
            Self::Message => "message",
            Self::Spawn => "spawn",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that names no effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an effect; use read, write, execute, network, spend, message, spawn or admin")]
pub struct UnknownEffect(pub String);

impl FromStr for Effect {
    type Err = UnknownEffect;
    fn from_str(text: &str) -> Result<Self, UnknownEffect> {
        Self::ALL.into_iter().find(|e| e.name() == text).ok_or_else(|| UnknownEffect(text.to_owned()))
    }
}

/// A set of effects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Effects(u8);

impl schemars::JsonSchema for Effects {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Effects".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "array", "items": generator.subschema_for::<Effect>(), "uniqueItems": true })
    }

    fn inline_schema() -> bool {
        true
    }
}

impl Effects {
    /// No effect: a pure computation.
    pub const NONE: Self = Self(0);
    /// Every effect, assumed of a tool that declares none.
    pub const ALL: Self = Self(u8::MAX);

    /// Returns the set of the listed effects.
    pub const fn of(list: &[Effect]) -> Self {
        let mut bits = 0;
        let mut i = 0;
        while i < list.len() {
            bits |= 1 << list[i] as u8;
            i += 1;
        }
        Self(bits)
    }

    /// Returns the set as bits.
    pub(super) const fn bits(self) -> u8 {
        self.0
    }

    /// Returns whether `effect` is in the set.
    pub const fn has(self, effect: Effect) -> bool {
        self.0 & (1 << effect as u8) != 0
    }

    /// Returns whether every effect of this set is in `other`.
    pub const fn within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Returns the union of both sets.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns this set without `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the intersection of both sets.
    pub const fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether a call with these effects changes nothing, so that several may run at once.
    pub const fn read_only(self) -> bool {
        self.within(Self::of(&[Effect::Read]))
    }

    /// Returns the effects in order.
    pub fn iter(self) -> impl Iterator<Item = Effect> {
        Effect::ALL.into_iter().filter(move |e| self.has(*e))
    }
}

impl FromIterator<Effect> for Effects {
    fn from_iter<I: IntoIterator<Item = Effect>>(effects: I) -> Self {
        effects.into_iter().fold(Self::NONE, |set, e| set.and(Self::of(&[e])))
    }
}

impl fmt::Display for Effects {
    /// Writes `read, write`, or `none`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        for (i, effect) in self.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{effect}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Effects({self})")
    }
}

impl Serialize for Effects {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Effects {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<Effect>::deserialize(deserializer)?.into_iter().collect())
    }
}
