//! The aliases of a tool.

use serde::{Serialize, Serializer};
use smol_str::SmolStr;

/// A list of aliases: constants for built-in tools, owned strings for tools that are defined at run time.
#[derive(Debug, Clone)]
pub struct Aliases(Names);

#[derive(Debug, Clone)]
enum Names {
    Fixed(&'static [&'static str]),
    Owned(Box<[SmolStr]>),
}

impl Aliases {
    /// An empty list.
    pub const fn none() -> Self {
        Self::fixed(&[])
    }

    /// Makes a list of constants.
    pub const fn fixed(aliases: &'static [&'static str]) -> Self {
        Self(Names::Fixed(aliases))
    }

    /// Returns the aliases in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let (fixed, owned): (&[&str], &[SmolStr]) = match &self.0 {
            Names::Fixed(fixed) => (fixed, &[]),
            Names::Owned(owned) => (&[], owned),
        };
        fixed.iter().copied().chain(owned.iter().map(SmolStr::as_str))
    }

    /// Returns whether `name` is an alias.
    pub fn contains(&self, name: &str) -> bool {
        self.iter().any(|alias| alias == name)
    }

    /// Returns whether there are no aliases.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

impl<S: Into<SmolStr>> From<Vec<S>> for Aliases {
    fn from(aliases: Vec<S>) -> Self {
        Self(Names::Owned(aliases.into_iter().map(Into::into).collect()))
    }
}

/// Compares the aliases, whether constant or owned.
impl PartialEq for Aliases {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Aliases {}

impl Serialize for Aliases {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_are_the_same_however_they_are_held() {
        let fixed = Aliases::fixed(&["read", "Read"]);
        let owned = Aliases::from(vec![String::from("read"), String::from("Read")]);
        assert_eq!(fixed, owned);
        assert_eq!(serde_json::to_string(&fixed).unwrap(), serde_json::to_string(&owned).unwrap());
        assert!(owned.contains("Read") && !owned.contains("read2"));
        assert_ne!(owned, Aliases::none());
        assert!(Aliases::from(Vec::<SmolStr>::new()).is_empty() && !owned.is_empty());
    }
}
