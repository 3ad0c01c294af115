//! The order in which changes are judged: those of files between two commands together, a command alone.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use claw_core::store::{NewUndo, Undo};

/// Changes that can be judged together: those of files between two commands, or one command.
pub(super) enum Segment {
    Files(Vec<Vec<Undo>>),
    Command(Box<Undo>),
}

pub(super) fn segments(changes: Vec<Undo>) -> Vec<Segment> {
    let mut segments = Vec::new();
    for change in changes {
        if change.new.command.is_some() {
            segments.push(Segment::Command(Box::new(change)));
            continue;
        }
        if !matches!(segments.last(), Some(Segment::Files(_))) {
            segments.push(Segment::Files(Vec::new()));
        }
        let Some(Segment::Files(files)) = segments.last_mut() else { continue };
        match files.iter_mut().find(|file| file.first().is_some_and(|one| same_file(one, &change))) {
            Some(file) => file.push(change),
            None => files.push(vec![change]),
        }
    }
    segments
}

fn same_file(one: &Undo, other: &Undo) -> bool {
    let key = |undo: &Undo| {
        let new = &undo.new;
        (new.place.clone(), new.sandbox.clone(), new.tenant.clone(), new.agent.clone(), new.user.clone())
    };
    key(one) == key(other)
}

/// Files that newer steps change.
#[derive(Default)]
pub(super) struct Touched {
    /// Those of the machine.
    pub(super) of_machine: HashSet<PathBuf>,
    /// Those of sandboxes, with their keys.
    of_sandboxes: HashSet<(String, PathBuf)>,
}

impl Touched {
    pub(super) fn has(&self, new: &NewUndo) -> bool {
        match &new.sandbox {
            None => self.of_machine.contains(Path::new(&new.place)),
            Some(key) => self.of_sandboxes.contains(&(key.clone(), PathBuf::from(&new.place))),
        }
    }

    pub(super) fn add(&mut self, new: &NewUndo) {
        let place = PathBuf::from(&new.place);
        match &new.sandbox {
            None => drop(self.of_machine.insert(place)),
            Some(key) => drop(self.of_sandboxes.insert((key.clone(), place))),
        }
    }
}
