//! A list of secret values, and the scrubber compiled from it.
//!
//! A short list is recompiled with every change. Beside a long one, new values are compiled into a short list
//! and take effect at once; both are merged in the background.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, Guard};
use claw_policy::scrub::{Scrubber, Value as SecretValue};

use super::SecretError;

/// The longest list that is compiled while the change waits. Smaller in tests, so that they exceed it.
const SHORT: usize = if cfg!(test) { 4 } else { 64 };

/// A list of values that can change during scrubbing.
#[derive(Default)]
pub(super) struct ValueList {
    scrubber: ArcSwap<Scrubber>,
    values: Mutex<Values>,
}

#[derive(Default)]
struct Values {
    all: BTreeSet<String>,
    /// Values that are not in `long` yet.
    recent: BTreeSet<String>,
    /// All but the recent ones, compiled.
    long: Scrubber,
    /// Changes when a value is removed: a scrubber compiled before would still hide it.
    generation: u64,
    /// The lists are being joined.
    joining: bool,
}

/// The values of a list at the start of a join.
struct Joining {
    values: BTreeSet<String>,
    generation: u64,
}

impl ValueList {
    /// The scrubber of the current values. Takes no lock.
    pub(super) fn scrubber(&self) -> Guard<Arc<Scrubber>> {
        self.scrubber.load()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().all.is_empty()
    }

    /// Adds a value. A scrubber requested after this has returned hides it.
    pub(super) fn add(self: &Arc<Self>, value: &str) -> Result<(), SecretError> {
        secret(value).validate()?;
        self.extend(BTreeSet::from([value.to_owned()]))
    }

    /// Adds the values that can be distinguished from ordinary text; returns how many cannot.
    pub(super) fn add_all(
        self: &Arc<Self>,
        values: impl IntoIterator<Item = String>,
    ) -> Result<usize, SecretError> {
        let (usable, refused) = sort_out(values);
        self.extend(usable)?;
        Ok(refused)
    }

    /// Replaces all values; returns how many cannot be distinguished from ordinary text.
    pub(super) fn set(&self, values: impl IntoIterator<Item = String>) -> Result<usize, SecretError> {
        let (usable, refused) = sort_out(values);
        let mut values = self.lock();
        if values.all != usable {
            self.replace(&mut values, usable)?;
        }
        Ok(refused)
    }

    /// Removes a value.
    pub(super) fn remove(&self, value: &str) -> Result<(), SecretError> {
        let mut values = self.lock();
        let mut rest = values.all.clone();
        if rest.remove(value) { self.replace(&mut values, rest) } else { Ok(()) }
    }

    fn extend(self: &Arc<Self>, mut more: BTreeSet<String>) -> Result<(), SecretError> {
        let mut values = self.lock();
        more.retain(|value| !values.all.contains(value));
        let (known, new) = (values.all.len(), more.len());
        if new == 0 {
            return Ok(());
        }
        if known + new <= SHORT || new >= known {
            let mut all = values.all.clone();
            all.append(&mut more);
            return self.replace(&mut values, all);
        }
        let mut recent = values.recent.clone();
        recent.extend(more.iter().cloned());
        self.scrubber.store(Arc::new(values.long.and(&compile(&recent)?)));
        values.recent = recent;
        values.all.append(&mut more);
        if values.recent.len() > SHORT && !values.joining {
            values.joining = true;
            drop(values);
            self.join_in_background();
        }
        Ok(())
    }

    /// Compiles the whole list while the caller waits.
    fn replace(&self, values: &mut Values, all: BTreeSet<String>) -> Result<(), SecretError> {
        let long = compile(&all)?;
        self.scrubber.store(Arc::new(long.clone()));
        let (generation, joining) = (values.generation + 1, values.joining);
        *values = Values { all, recent: BTreeSet::new(), long, generation, joining };
        Ok(())
    }

    /// Joins both lists in the background, or at once if there is no runtime.
    fn join_in_background(self: &Arc<Self>) {
        let list = Arc::clone(self);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || list.join())),
            Err(_) => list.join(),
        }
    }

    fn join(&self) {
        loop {
            let begun = self.begin_join();
            let long = compile(&begun.values);
            if self.end_join(&begun, long) {
                return;
            }
        }
    }

    fn begin_join(&self) -> Joining {
        let values = self.lock();
        Joining { values: values.all.clone(), generation: values.generation }
    }

    /// Installs the joined list, with values added meanwhile beside it. Returns whether nothing is left to
    /// join.
    fn end_join(&self, begun: &Joining, long: Result<Scrubber, SecretError>) -> bool {
        let mut values = self.lock();
        let is_current = values.generation == begun.generation;
        if is_current && let Ok(long) = long {
            let recent: BTreeSet<String> = values.all.difference(&begun.values).cloned().collect();
            // If compiling fails, nothing changes: the previous lists still hide everything.
            if let Ok(compiled) = compile(&recent) {
                self.scrubber.store(Arc::new(long.and(&compiled)));
                (values.long, values.recent) = (long, recent);
            }
        }
        let over = is_current || values.recent.len() <= SHORT;
        values.joining = !over;
        over
    }

    fn lock(&self) -> MutexGuard<'_, Values> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The values that can be distinguished from ordinary text, and the number of those that cannot.
fn sort_out(values: impl IntoIterator<Item = String>) -> (BTreeSet<String>, usize) {
    let is_usable = |value: &String| secret(value).validate().is_ok();
    let (usable, refused): (BTreeSet<_>, BTreeSet<_>) = values.into_iter().partition(is_usable);
    (usable, refused.len())
}

fn secret(text: &str) -> SecretValue {
    SecretValue::new(text, "value")
}

fn compile(values: &BTreeSet<String>) -> Result<Scrubber, SecretError> {
    if values.is_empty() {
        return Ok(Scrubber::new());
    }
    Scrubber::compile(values.iter().map(|value| secret(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(at: usize) -> String {
        format!("value-{at:04}-of-many")
    }

    /// Changes a long list while it is being joined; returns which of the first values are shown afterwards.
    fn shown_after(change: impl FnOnce(&Arc<ValueList>)) -> Vec<usize> {
        let list = Arc::new(ValueList::default());
        list.add_all((0..2 * SHORT).map(value)).unwrap();
        let begun = list.begin_join();
        change(&list);
        list.end_join(&begun, compile(&begun.values));
        let scrubber = Scrubber::clone(&list.scrubber());
        (0..2 * SHORT + 1).filter(|at| !scrubber.knows(value(*at).as_bytes())).collect()
    }

    #[test]
    fn refuses_to_show_a_value_that_was_added_while_the_list_was_joined() {
        assert_eq!(shown_after(|_| {}), [2 * SHORT]);
        assert!(shown_after(|list| list.add(&value(2 * SHORT)).unwrap()).is_empty());
    }

    #[test]
    fn a_value_that_was_removed_while_the_list_was_joined_is_shown() {
        assert_eq!(shown_after(|list| list.remove(&value(0)).unwrap()), [0, 2 * SHORT]);
        let set = |list: &Arc<ValueList>| {
            list.set((1..=2 * SHORT).map(value)).unwrap();
        };
        assert_eq!(shown_after(set), [0]);
    }
}
