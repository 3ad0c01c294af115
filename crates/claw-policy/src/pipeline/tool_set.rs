//! The tools that a policy decides about, indexed by name, alias and group.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use claw_core::tool::Meta;
use smol_str::SmolStr;

use crate::group;

/// All tools of a registry at one moment, and those of the catalogue that this build does not have.
///
/// The latter are never offered; they are here so that a policy that names them is not reported as wrong, and
/// so that `policy explain` can explain them.
#[derive(Debug, Clone, Default)]
pub struct ToolSet {
    /// Present ones first, each part sorted by name.
    metas: Vec<Arc<Meta>>,
    present: usize,
    names: BTreeMap<SmolStr, usize>,
    groups: BTreeMap<SmolStr, Vec<usize>>,
}

impl ToolSet {
    /// Takes the registered tools, and those known but absent from this build. An alias never shadows the
    /// name of a registered tool, and absent tools shadow nothing.
    pub fn new(
        metas: impl IntoIterator<Item = Arc<Meta>>,
        absent: impl IntoIterator<Item = Arc<Meta>>,
    ) -> Self {
        let mut metas = sorted(metas);
        let present = metas.len();
        let mut absent = sorted(absent);
        absent.retain(|meta| !holds(&metas, meta));
        metas.append(&mut absent);
        let mut set = Self { present, ..Self::default() };
        for (place, meta) in metas.iter().enumerate() {
            for name in group::names_of(meta) {
                let members = set.groups.entry(name.into()).or_default();
                if members.last() != Some(&place) {
                    members.push(place);
                }
            }
        }
        let (here, elsewhere) = metas.split_at(present);
        set.index(here, 0);
        set.index(elsewhere, present);
        set.metas = metas;
        set
    }

    /// Indexes the names of these tools, then their aliases, as far as they are still free.
    fn index(&mut self, metas: &[Arc<Meta>], first: usize) {
        for (place, meta) in (first..).zip(metas) {
            self.names.entry(meta.name.as_str().into()).or_insert(place);
        }
        for (place, meta) in (first..).zip(metas) {
            for alias in meta.aliases.iter() {
                self.names.entry(SmolStr::new(alias)).or_insert(place);
            }
        }
    }

    /// Number of tools.
    pub fn len(&self) -> usize {
        self.present
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.present == 0
    }

    /// The tools, sorted by name.
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<Meta>> {
        self.metas[..self.present].iter()
    }

    /// The registered tool of this name or alias.
    pub fn find(&self, name: &str) -> Option<&Arc<Meta>> {
        self.metas[..self.present].get(self.place(name)?)
    }

    /// The tool of this name or alias, if it is known but not in this build.
    pub fn find_absent(&self, name: &str) -> Option<&Arc<Meta>> {
        self.metas.get(self.place(name)?).filter(|_| self.find(name).is_none())
    }

    /// Number of tools, absent ones included.
    pub(crate) fn known(&self) -> usize {
        self.metas.len()
    }

    /// The index of the tool of this name or alias.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// The tool at an index.
    pub(crate) fn meta(&self, place: usize) -> &Arc<Meta> {
        &self.metas[place]
    }

    /// The indices of matching tools.
    pub(crate) fn places(&self, fits: impl Fn(&Meta) -> bool) -> impl Iterator<Item = usize> {
        self.metas.iter().enumerate().filter(move |(_, meta)| fits(meta)).map(|(place, _)| place)
    }

    /// Every name and alias, with the index of its tool.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&str, usize)> {
        self.names.iter().map(|(name, place)| (name.as_str(), *place))
    }

    /// Names and aliases with this prefix.
    pub(crate) fn names_from<'a>(&'a self, head: &'a str) -> impl Iterator<Item = (&'a str, usize)> {
        let range = self.names.range::<str, _>((Bound::Included(head), Bound::Unbounded));
        let names = range.map(|(name, place)| (name.as_str(), *place));
        names.take_while(move |(name, _)| name.starts_with(head))
    }

    /// Every group that has members, with their indices.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (&str, &[usize])> {
        self.groups.iter().map(|(name, members)| (name.as_str(), members.as_slice()))
    }

    /// The indices of the members of a group.
    pub(crate) fn members(&self, group: &str) -> &[usize] {
        self.groups.get(group).map_or(&[], Vec::as_slice)
    }
}

fn sorted(metas: impl IntoIterator<Item = Arc<Meta>>) -> Vec<Arc<Meta>> {
    let mut metas = Vec::from_iter(metas);
    metas.sort_by(|a, b| a.name.cmp(&b.name));
    metas.dedup_by(|a, b| a.name == b.name);
    metas
}

fn holds(sorted: &[Arc<Meta>], meta: &Meta) -> bool {
    sorted.binary_search_by(|other| other.name.cmp(&meta.name)).is_ok()
}
