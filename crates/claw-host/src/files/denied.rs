//! What does not exist for a caller: by what it is, not by what it is called.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::handle::Id;

/// How our own unfinished files begin. They exist for nobody.
pub(super) const UNFINISHED: &str = ".clawsmith-tmp-";

/// What is denied, looked up anew for each operation.
///
/// A path that names something stands for that thing, by device and inode: no other spelling, link or mount of
/// it helps. One that names nothing stands for the first name that is missing, in the directory that is there.
#[derive(Debug, Default)]
pub(super) struct Denied {
    there: Vec<Id>,
    missing: Vec<Missing>,
}

/// A denied path that does not exist.
#[derive(Debug)]
struct Missing {
    /// The last directory on the way that is there.
    within: Id,
    /// The name in it that is missing.
    name: OsString,
    /// Whether that name is what is denied, or only leads there.
    last: bool,
}

impl Denied {
    /// Looks up what these paths name; one that is not absolute counts from each of the roots.
    pub(super) fn new<'a>(paths: &[PathBuf], roots: impl Iterator<Item = &'a Path> + Clone) -> Self {
        let mut denied = Self::default();
        for path in paths {
            if path.is_absolute() {
                denied.add(path);
            } else {
                roots.clone().for_each(|root| denied.add(&root.join(path)));
            }
        }
        denied
    }

    fn add(&mut self, path: &Path) {
        let mut missing: Option<OsString> = None;
        let mut last = true;
        for at in path.ancestors() {
            if let Ok(raw) = rustix::fs::stat(at) {
                let id = Id::of(&raw);
                match missing {
                    None => self.there.push(id),
                    Some(name) => self.missing.push(Missing { within: id, name, last }),
                }
                return;
            }
            last = missing.is_none();
            missing = at.file_name().map(OsStr::to_owned).or(missing);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.there.is_empty() && self.missing.is_empty()
    }

    /// Whether this thing is denied; what is below a denied directory has to be found out on the way there.
    pub(super) fn is_denied(&self, id: Id) -> bool {
        self.there.contains(&id)
    }

    /// Whether a thing of this number is denied on some device.
    pub(super) fn may_be(&self, inode: u64) -> bool {
        self.there.iter().any(|id| id.inode == inode)
    }

    /// Whether this name in this directory stands for nothing, whatever there is.
    pub(super) fn is_hidden(&self, within: Id, name: &OsStr) -> bool {
        name.as_encoded_bytes().starts_with(UNFINISHED.as_bytes())
            || self
                .missing
                .iter()
                .any(|missing| missing.last && missing.within == within && missing.name == name)
    }

    /// Whether a directory of this name, now made, leads to a denied path that must be looked up again.
    pub(super) fn leads(&self, within: Id, name: &OsStr) -> bool {
        self.missing.iter().any(|missing| !missing.last && missing.within == within && missing.name == name)
    }
}
