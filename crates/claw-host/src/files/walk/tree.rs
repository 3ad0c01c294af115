//! The directories of a walk. Any number of them is known by name and identity; few are open at a time.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::super::handle::{Directory, Id};

/// The number of handles kept open.
const KEPT: usize = 128;

/// A directory that was reached.
#[derive(Debug)]
pub(super) struct Node {
    name: OsString,
    above: Option<Arc<Node>>,
    pub(super) id: Id,
    /// The number of steps below the top.
    pub(super) depth: usize,
    handle: Mutex<Option<Directory>>,
}

/// The nodes with open handles, the least recently used first. The top is not among them and stays open.
#[derive(Debug, Default)]
pub(super) struct Handles(Mutex<VecDeque<Weak<Node>>>);

impl Node {
    pub(super) fn top(directory: Directory) -> Arc<Self> {
        let id = directory.id;
        Arc::new(Self {
            name: OsString::new(),
            above: None,
            id,
            depth: 0,
            handle: Mutex::new(Some(directory)),
        })
    }

    /// Adds its path from the top, each name with a slash before it.
    pub(super) fn path(&self, into: &mut Vec<u8>) {
        let mut names = Vec::with_capacity(self.depth);
        let mut at = self;
        while let Some(above) = &at.above {
            names.push(at.name.as_bytes());
            at = above;
        }
        for name in names.iter().rev() {
            into.push(b'/');
            into.extend_from_slice(name);
        }
    }

    fn handle(&self) -> Option<Directory> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, handle: Option<Directory>) {
        *self.handle.lock().unwrap_or_else(PoisonError::into_inner) = handle;
    }
}

impl Handles {
    /// Adds a directory that was opened below another one.
    pub(super) fn add(&self, above: &Arc<Node>, name: &OsStr, directory: &Directory) -> Arc<Node> {
        let node = Arc::new(Node {
            name: name.to_owned(),
            above: Some(Arc::clone(above)),
            id: directory.id,
            depth: above.depth + 1,
            handle: Mutex::new(None),
        });
        self.keep(&node, directory.clone());
        node
    }

    /// Opens a directory that was reached before; `None` if another one is there now.
    pub(super) fn open(&self, node: &Arc<Node>) -> Option<Directory> {
        if let Some(directory) = node.handle() {
            return Some(directory);
        }
        let mut closed = vec![Arc::clone(node)];
        let mut at = node.above.as_ref()?;
        let mut directory = loop {
            match at.handle() {
                Some(directory) => break directory,
                None => closed.push(Arc::clone(at)),
            }
            at = at.above.as_ref()?;
        };
        for node in closed.iter().rev() {
            directory = directory.step(&node.name).ok().filter(|directory| directory.id == node.id)?;
            self.keep(node, directory.clone());
        }
        Some(directory)
    }

    fn keep(&self, node: &Arc<Node>, directory: Directory) {
        node.set(Some(directory));
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.push_back(Arc::downgrade(node));
        let oldest = if open.len() > KEPT { open.pop_front() } else { None };
        drop(open);
        if let Some(node) = oldest.and_then(|node| node.upgrade()) {
            node.set(None);
        }
    }
}

/// Directories can be nested deeply; dropping them iteratively needs no stack.
impl Drop for Node {
    fn drop(&mut self) {
        let mut next = self.above.take();
        while let Some(mut node) = next.and_then(Arc::into_inner) {
            next = node.above.take();
        }
    }
}
