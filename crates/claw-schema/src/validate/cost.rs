//! Estimates the work of a check before it begins: a schema of a few lines can require years of it.
//!
//! The unit is a look: one subschema applied to one value. A schema without recursion has an upper bound of
//! looks per value, known from its compilation; arguments that stay below the limit with it are not counted
//! further. All others are walked as the validator would walk them, without computing results.

use std::collections::{HashMap, HashSet};

use crate::dialect::resolve;
use serde_json::Value;

use super::SchemaError;
use super::applied::{Reach, applied, own_looks};
use super::extent::Extent;

/// Most looks of one check.
const MAX_CHECK: u64 = 4_000_000;
/// Looks that may be repeated to explain what is wrong: these produce messages and are not cached.
const MAX_EXPLAIN: u64 = 500_000;
/// Most nested looks: each takes several stack frames.
const MAX_NESTED: usize = 640;
/// References that the validator follows before it caches the result of the first.
const REMEMBERED_AFTER: u64 = 16;

/// The cost of checking with one schema.
#[derive(Debug)]
pub(super) struct Costs {
    /// Most looks at one value; saturated if there is no upper bound.
    per_value: u64,
    /// References that lead back to themselves. The validator caches their results.
    recursive: HashSet<String>,
}

impl Costs {
    /// Follows all subschemas. References out of the schema are errors.
    pub(super) fn of(schema: &Value) -> Result<Self, SchemaError> {
        let mut survey = Survey {
            root: schema,
            nodes: HashMap::new(),
            open: Vec::new(),
            rings: HashSet::new(),
            seen: HashMap::new(),
        };
        let looks = survey.visit(schema, 0)?.looks;
        let is_recursive = |(reference, target): (&str, *const Value)| {
            survey.rings.contains(&target).then(|| reference.to_owned())
        };
        let recursive = survey.seen.into_iter().filter_map(is_recursive).collect();
        Ok(Self { per_value: looks.most(), recursive })
    }

    /// Returns whether these arguments can be checked with bounded work.
    pub(super) fn allows_check(&self, schema: &Value, args: &Value, extent: &Extent) -> bool {
        self.per_value.saturating_mul(extent.weight) <= MAX_CHECK || self.walk(schema, args, MAX_CHECK, true)
    }

    /// Returns whether errors in these arguments can be explained with bounded work.
    pub(super) fn allows_explaining(&self, schema: &Value, args: &Value, extent: &Extent) -> bool {
        self.per_value.saturating_mul(extent.weight) <= MAX_EXPLAIN
            || self.walk(schema, args, MAX_EXPLAIN, false)
    }

    fn walk(&self, schema: &Value, args: &Value, left: u64, remembers: bool) -> bool {
        let mut walk = Walk {
            root: schema,
            recursive: &self.recursive,
            targets: HashMap::new(),
            left,
            followed: 0,
            remembered: remembers.then(HashSet::new),
            following: Vec::new(),
            nested: 0,
        };
        walk.look(schema, args).is_some()
    }
}

/// Looks at the value that a schema applies to, and at one value below it.
#[derive(Debug, Clone, Copy, Default)]
struct Looks {
    here: u64,
    below: u64,
}

impl Looks {
    const NO_CEILING: Self = Self { here: u64::MAX, below: u64::MAX };

    fn most(self) -> u64 {
        self.here.max(self.below)
    }
}

#[derive(Debug, Clone, Copy)]
struct Node {
    /// The index of the earliest schema that it leads back to.
    earliest: usize,
    is_open: bool,
    looks: Looks,
}

/// Visits every schema once and finds cycles, with Tarjan's algorithm.
struct Survey<'a> {
    root: &'a Value,
    nodes: HashMap<*const Value, Node>,
    open: Vec<*const Value>,
    /// Schemas that lead back to themselves.
    rings: HashSet<*const Value>,
    /// The references, and their targets.
    seen: HashMap<&'a str, *const Value>,
}

impl<'a> Survey<'a> {
    fn visit(&mut self, schema: &'a Value, nested: usize) -> Result<Node, SchemaError> {
        let address: *const Value = schema;
        if let Some(known) = self.nodes.get(&address) {
            return Ok(*known);
        }
        if nested > MAX_NESTED {
            return Err(SchemaError::Excessive("convoluted"));
        }
        let found = self.nodes.len();
        let mut node = Node { earliest: found, is_open: true, looks: Looks::NO_CEILING };
        self.nodes.insert(address, node);
        self.open.push(address);
        node.looks = self.parts(schema, &mut node.earliest, nested)?;
        if node.earliest == found {
            node.is_open = false;
            self.close(address);
        }
        self.nodes.insert(address, node);
        Ok(node)
    }

    fn parts(
        &mut self,
        schema: &'a Value,
        earliest: &mut usize,
        nested: usize,
    ) -> Result<Looks, SchemaError> {
        let Value::Object(keywords) = schema else { return Ok(Looks { here: 1, below: 0 }) };
        let mut looks = Looks { here: own_looks(keywords), below: 0 };
        let mut most_of_one = 0;
        for (reach, part) in applied(keywords) {
            match reach {
                Reach::Here | Reach::Reference(_) => {
                    let part = if let Reach::Reference(to) = reach { self.target(to)? } else { part };
                    if std::ptr::eq(part, schema) {
                        self.rings.insert(schema);
                    }
                    let node = self.enter(part, earliest, nested)?;
                    looks.here = looks.here.saturating_add(node.here);
                    looks.below = looks.below.saturating_add(node.below);
                }
                Reach::Properties(named) => {
                    for part in named.values() {
                        most_of_one = self.enter(part, earliest, nested)?.most().max(most_of_one);
                    }
                }
                Reach::Item(_) => most_of_one = self.enter(part, earliest, nested)?.most().max(most_of_one),
                Reach::OtherFields | Reach::Fields | Reach::Names | Reach::Items => {
                    looks.below = looks.below.saturating_add(self.enter(part, earliest, nested)?.most());
                }
            }
        }
        looks.below = looks.below.saturating_add(most_of_one);
        Ok(looks)
    }

    fn enter(&mut self, part: &'a Value, earliest: &mut usize, nested: usize) -> Result<Looks, SchemaError> {
        let node = self.visit(part, nested + 1)?;
        if node.is_open {
            *earliest = (*earliest).min(node.earliest);
        }
        Ok(node.looks)
    }

    fn target(&mut self, reference: &'a str) -> Result<&'a Value, SchemaError> {
        let target =
            resolve(self.root, reference).ok_or_else(|| SchemaError::Reference(reference.to_owned()))?;
        self.seen.insert(reference, target);
        Ok(target)
    }

    /// Closes a component: all schemas still open since `first` form a cycle, unless there is only one.
    fn close(&mut self, first: *const Value) {
        let start = self.open.iter().rposition(|open| *open == first).unwrap_or_default();
        let ring = self.open.split_off(start);
        for address in &ring {
            if let Some(node) = self.nodes.get_mut(address) {
                node.is_open = false;
            }
        }
        if ring.len() > 1 {
            self.rings.extend(ring);
        }
    }
}

/// Walks like the validator, counts looks and stops at the limit.
struct Walk<'a> {
    root: &'a Value,
    recursive: &'a HashSet<String>,
    /// The followed references, their targets and whether they lead back to themselves.
    targets: HashMap<&'a str, (&'a Value, bool)>,
    left: u64,
    followed: u64,
    /// References with the list or object they were followed for, as the validator caches them.
    remembered: Option<HashSet<(&'a str, *const Value)>>,
    /// References that are being followed.
    following: Vec<(&'a str, *const Value)>,
    nested: usize,
}

impl<'a> Walk<'a> {
    /// `None` if it would take too long.
    fn look(&mut self, schema: &'a Value, value: &Value) -> Option<()> {
        let Value::Object(keywords) = schema else { return self.spend(1) };
        // A message contains the references that led to it.
        let references = if self.remembered.is_none() { self.following.len() } else { 0 };
        let looks = own_looks(keywords).saturating_mul(Extent::weight_of(value));
        self.spend(looks.saturating_mul(u64::try_from(1 + references).unwrap_or(u64::MAX)))?;
        self.nested += 1;
        if self.nested > MAX_NESTED {
            return None;
        }
        for (reach, part) in applied(keywords) {
            match (reach, value) {
                (Reach::Here, _) => self.look(part, value)?,
                (Reach::Reference(reference), _) => self.follow(reference, value)?,
                (Reach::Properties(named), Value::Object(fields)) => {
                    let mut known = fields.iter().filter_map(|(name, field)| Some((named.get(name)?, field)));
                    known.try_for_each(|(part, field)| self.look(part, field))?;
                }
                (Reach::OtherFields, Value::Object(fields)) => {
                    let named = keywords.get("properties").and_then(Value::as_object);
                    let is_other = |name: &str| named.is_none_or(|named| !named.contains_key(name));
                    let mut others = fields.iter().filter(|(name, _)| is_other(name));
                    others.try_for_each(|(_, field)| self.look(part, field))?;
                }
                (Reach::Fields, Value::Object(fields)) => {
                    fields.values().try_for_each(|field| self.look(part, field))?;
                }
                (Reach::Names, Value::Object(fields)) => {
                    fields.keys().try_for_each(|name| self.look(part, &Value::String(name.clone())))?;
                }
                (Reach::Item(index), Value::Array(items)) => {
                    items.get(index).map_or(Some(()), |item| self.look(part, item))?;
                }
                (Reach::Items, Value::Array(items)) => {
                    items.iter().try_for_each(|item| self.look(part, item))?;
                }
                _ => {}
            }
        }
        self.nested -= 1;
        Some(())
    }

    fn follow(&mut self, reference: &'a str, value: &Value) -> Option<()> {
        let (target, is_recursive) = match self.targets.get(reference) {
            Some(known) => *known,
            None => {
                let found = (resolve(self.root, reference)?, self.recursive.contains(reference));
                self.targets.insert(reference, found);
                found
            }
        };
        if !is_recursive {
            return self.look(target, value);
        }
        let key: (&str, *const Value) = (reference, value);
        if self.following.contains(&key) || self.remembered.as_ref().is_some_and(|known| known.contains(&key))
        {
            return self.spend(1);
        }
        let before = self.followed;
        self.followed += 1;
        self.following.push(key);
        self.look(target, value)?;
        self.following.pop();
        if let Some(known) = &mut self.remembered
            && self.followed - before >= REMEMBERED_AFTER
            && (value.is_array() || value.is_object())
        {
            known.insert(key);
        }
        Some(())
    }

    fn spend(&mut self, looks: u64) -> Option<()> {
        self.left = self.left.checked_sub(looks)?;
        Some(())
    }
}
