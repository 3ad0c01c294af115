//! The entries that are returned, out of any number found.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use claw_core::port::{Entry, Order};

/// The first entries in an order, at most so many.
#[derive(Debug)]
pub(in super::super) struct Kept {
    order: Order,
    most: usize,
    /// The last of them on top.
    heap: BinaryHeap<Ranked>,
}

#[derive(Debug)]
struct Ranked {
    entry: Entry,
    order: Order,
}

impl Kept {
    pub(in super::super) fn new(order: Order, most: usize) -> Self {
        Self { order, most, heap: BinaryHeap::new() }
    }

    /// Returns whether an entry of this path could still be kept, as far as its path tells.
    pub(super) fn may_take(&self, path: &str) -> bool {
        match self.heap.peek() {
            _ if self.most == 0 => false,
            Some(last) if self.heap.len() >= self.most && self.order == Order::Path => {
                by_path(path, &last.entry.path) == Ordering::Less
            }
            _ => true,
        }
    }

    pub(in super::super) fn take(&mut self, entry: Entry) {
        let ranked = Ranked { entry, order: self.order };
        if self.heap.len() < self.most {
            self.heap.push(ranked);
        } else if let Some(mut last) = self.heap.peek_mut()
            && ranked < *last
        {
            *last = ranked;
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        other.heap.into_iter().for_each(|ranked| self.take(ranked.entry));
    }

    pub(in super::super) fn into_sorted(self) -> Vec<Entry> {
        self.heap.into_sorted_vec().into_iter().map(|ranked| ranked.entry).collect()
    }
}

/// Orders paths name by name: the content of a directory follows it.
pub(in super::super) fn by_path(one: &str, other: &str) -> Ordering {
    one.split('/').cmp(other.split('/'))
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_path = || by_path(&self.entry.path, &other.entry.path);
        match self.order {
            Order::Path => by_path(),
            Order::Newest => other.entry.modified.cmp(&self.entry.modified).then_with(by_path),
        }
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ranked {}
