//! Guard of files: files within the caller's scope, as views without their secrets; writes only what the plan
//! names.
//!
//! - [`restore_secrets`] applies changes of a view to the text behind it; [`match_placeholders`] tells which secret a placeholder
//!   stands for.
//! - [`seen_files`] remembers what each session has seen, so that no session overwrites text unknown to it.
//! - [`change`] is the only way to write a file: journaled, and only if the file has not changed.

mod change;
mod match_placeholders;
mod restore_secrets;
mod seen_files;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use claw_core::port::{
    Access, Confinement, Expect, FilePlace, Files, FsBridge, Owner, Reading, Search, Searched, Splice, Stat,
    Version, View, Walk, Walked, Window, WriteMode, Written,
};
use claw_core::text::{self, Masked, Text};
use claw_core::tool::{Ask, Caller, Digest, ErrorKind, Target, ToolError};
use claw_core::{CallId, ToolName};

use self::seen_files::Seen;
pub(crate) use self::seen_files::SeenTable;
use super::{Grant, Site};
use crate::Executor;
use crate::scrub::CallScrubber;

/// The longest file that is shown or changed as a whole, in bytes.
const WHOLE_BYTES: u64 = 16 * 1024 * 1024;

/// The call that the port belongs to.
struct Origin {
    executor: Executor,
    caller: Arc<Caller>,
    call: CallId,
    tool: ToolName,
}

pub(super) fn guard(site: &Site<'_>) -> Option<Arc<dyn Files>> {
    let bridge = site.world().bridge.clone()?;
    let (executor, caller) = (site.executor.clone(), Arc::clone(site.caller()));
    Some(Arc::new(GuardedFiles {
        bridge,
        owner: super::owner(&caller),
        origin: Origin { executor, caller, call: site.call, tool: site.meta.name.clone() },
        grant: site.grant(),
        written: Mutex::default(),
        viewed: Mutex::default(),
    }))
}

struct GuardedFiles {
    bridge: Arc<dyn FsBridge>,
    origin: Origin,
    owner: Owner,
    grant: Arc<Grant>,
    /// Versions of files that the call has written itself, and so may find changed.
    written: Mutex<HashMap<PathBuf, Version>>,
    /// Digests of whole files that the call was shown: positions of changes refer to that text.
    viewed: Mutex<HashMap<PathBuf, Digest>>,
}

/// A file as it is, to be changed.
struct Current {
    bytes: Vec<u8>,
    stat: Stat,
}

impl GuardedFiles {
    fn place<'a>(&'a self, expect: Expect<'a>) -> FilePlace<'a> {
        let caller = &self.origin.caller;
        FilePlace { caller, directory: &caller.workspace, scope: &self.grant.scope, expect }
    }

    fn anywhere(&self) -> FilePlace<'_> {
        self.place(Expect::Anything)
    }

    fn scrubber(&self) -> CallScrubber {
        let scrubbers = self.origin.executor.scrubbers();
        scrubbers.for_call(&self.origin.caller.tenant, &self.grant.secrets)
    }

    /// The view of a text of the file at `path`.
    fn mask(&self, path: &str, text: &str) -> Masked {
        text::mask(text, &self.scrubber().for_file(path).for_output())
    }

    fn within(&self, path: &str, access: Access) -> Result<PathBuf, ToolError> {
        self.grant.live()?;
        self.grant.scope.resolve_text(&self.origin.caller.workspace, path, access)
    }

    /// Resolves a path that the plan asked to write.
    fn planned(&self, path: &str) -> Result<PathBuf, ToolError> {
        let target = self.within(path, Access::Write)?;
        let named = self.grant.plan.asks.iter().any(|ask| match ask {
            Ask::Write { path } => self.within(path, Access::Write).is_ok_and(|named| named == target),
            _ => false,
        });
        if named { Ok(target) } else { Err(super::unplanned(format!("writing `{path}`"))) }
    }

    /// Checks that a file is in the state that the call last knew: the one seen when it was judged, or the
    /// one it wrote itself.
    fn unchanged(&self, path: &str, target: &Path, now: Option<&Version>) -> Result<(), ToolError> {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner).get(target).cloned();
        let holds = match written {
            Some(version) => now == Some(&version),
            None => {
                let sight = self.grant.sights.iter().find(|sight| match &sight.target {
                    Target::File { path } => {
                        self.within(path, Access::Write).is_ok_and(|seen| seen == target)
                    }
                    _ => false,
                });
                sight.is_none_or(|sight| sight.identity.as_deref() == now.map(|now| now.0.as_str()))
            }
        };
        if holds { Ok(()) } else { Err(changed(path)) }
    }

    /// The current file at a path; `None` if there is none.
    async fn current(&self, path: &str) -> Result<Option<Current>, ToolError> {
        let Some(stat) = self.bridge.stat(&self.anywhere(), path).await? else { return Ok(None) };
        if stat.directory {
            return Err(ToolError::invalid(format!("`{path}` is a directory")));
        }
        short_enough(path, stat.size)?;
        let (bytes, stat) = self.bridge.read(&self.anywhere(), path).await?;
        short_enough(path, bytes.len() as u64)?;
        Ok(Some(Current { bytes, stat }))
    }

    /// The session's last view of a file; `None` if there is none or it cannot be read.
    async fn seen(&self, target: &Path) -> Option<Seen> {
        if let Some(seen) = self.origin.executor.0.seen.get(&self.owner, target) {
            return Some(seen);
        }
        let kept = self.origin.executor.registry().world().seen.clone()?;
        match kept.seen(&self.owner, target).await {
            // It is not stored whether something was hidden; it may have been.
            Ok(version) => Some(Seen { version: version?, redacted: true, text: None }),
            Err(error) => {
                tracing::warn!(error = error.for_log(), "what was seen of a file cannot be told");
                None
            }
        }
    }

    async fn saw(&self, target: &Path, seen: Seen) {
        let version = seen.version.clone();
        if !self.origin.executor.0.seen.put(&self.owner, target, seen) {
            return;
        }
        if let Some(kept) = self.origin.executor.registry().world().seen.clone()
            && let Err(error) = kept.saw(&self.owner, target, &version).await
        {
            tracing::warn!(error = error.for_log(), "what was seen of a file cannot be kept");
        }
    }

    /// A file's text, and its view.
    fn masked(&self, path: &str, bytes: &[u8]) -> Result<(Text, Masked), ToolError> {
        let text = text::decode(bytes).map_err(|mime| not_text(path, mime))?;
        let masked = self.mask(path, &text.text);
        Ok((text, masked))
    }

    /// Returns whether a path that a bridge found is within the scope. A bridge that resolves paths itself
    /// has checked it already.
    fn came_upon(&self, directory: &str, path: &str) -> bool {
        if self.bridge.confinement() == Confinement::Enforced {
            return true;
        }
        let full = Path::new(directory).join(path);
        let full = full.to_str().map(|full| full.trim_end_matches('/'));
        full.is_some_and(|full| self.within(full, Access::Read).is_ok())
    }
}

#[async_trait]
impl Files for GuardedFiles {
    async fn stat(&self, path: &str) -> Result<Option<Stat>, ToolError> {
        match self.within(path, Access::Read) {
            Ok(_) => self.bridge.stat(&self.anywhere(), path).await,
            // A denied file does not exist for the caller.
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn read(&self, path: &str, window: Window) -> Result<Reading, ToolError> {
        let target = self.within(path, Access::Read)?;
        let redactor = self.scrubber().for_file(path).into_redactor();
        let reading = self.bridge.window(&self.anywhere(), path, &window, &redactor).await?;
        let seen = match &reading {
            Reading::Binary(binary) => Seen { version: binary.version.clone(), redacted: false, text: None },
            Reading::Text(view) => Seen {
                version: view.version.clone(),
                redacted: !view.redacted.is_empty(),
                text: shows_all(view).then(|| Arc::from(view.text.as_str())),
            },
        };
        self.saw(&target, seen).await;
        Ok(reading)
    }

    async fn view(&self, path: &str) -> Result<View, ToolError> {
        let target = self.within(path, Access::Read)?;
        let current = self.current(path).await?.ok_or_else(|| absent(path))?;
        let (text, masked) = self.masked(path, &current.bytes)?;
        let digest = Digest::of_bytes(masked.text.as_bytes());
        self.viewed.lock().unwrap_or_else(PoisonError::into_inner).insert(target, digest);
        Ok(View {
            redacted: masked.marks.into_iter().map(|mark| mark.seen).collect(),
            first_line: Some(1),
            lines: text::count_shown(&masked.text),
            text: masked.text,
            bytes: 0..current.bytes.len() as u64,
            size: current.bytes.len() as u64,
            cut: false,
            encoding: text.encoding.name(),
            bom: text.bom,
            version: current.stat.version,
        })
    }

    async fn write(&self, path: &str, text: &str, mode: WriteMode) -> Result<Written, ToolError> {
        self.write_text(path, text, mode).await
    }

    async fn splice(&self, path: &str, version: &Version, splices: &[Splice]) -> Result<Written, ToolError> {
        self.splice_text(path, version, splices).await
    }

    async fn walk(&self, walk: &Walk) -> Result<Walked, ToolError> {
        self.within(&walk.path, Access::Read)?;
        let mut walked = self.bridge.walk(&self.anywhere(), walk).await?;
        walked.entries.retain(|entry| {
            let reached = self.came_upon(&walk.path, &entry.path);
            if !reached {
                let directory = entry.kind == claw_core::port::EntryKind::Directory;
                let count = if directory { &mut walked.directories } else { &mut walked.files };
                *count = count.saturating_sub(1);
            }
            reached
        });
        Ok(walked)
    }

    async fn search(&self, search: &Search) -> Result<Searched, ToolError> {
        self.within(&search.within.path, Access::Read)?;
        let redactor = self.scrubber().into_redactor();
        let mut searched = self.bridge.search(&self.anywhere(), search, &redactor).await?;
        searched.files.retain(|hits| {
            let reached = self.came_upon(&search.within.path, &hits.path);
            if !reached {
                searched.hits = searched.hits.saturating_sub(hits.count);
                searched.with_hits = searched.with_hits.saturating_sub(1);
            }
            reached
        });
        Ok(searched)
    }
}

/// Returns whether a window shows the whole file.
fn shows_all(view: &View) -> bool {
    view.bytes.start == 0 && view.bytes.end == view.size && !view.cut || view.size == 0
}

fn short_enough(path: &str, size: u64) -> Result<(), ToolError> {
    if size <= WHOLE_BYTES {
        return Ok(());
    }
    let message = format!(
        "`{path}` has {size} bytes, and files of up to {WHOLE_BYTES} bytes can be changed as a whole"
    );
    Err(ToolError::invalid(message).try_instead("read parts of it, or write to another file"))
}

fn absent(path: &str) -> ToolError {
    ToolError::not_found(format!("`{path}` does not exist"))
}

fn not_text(path: &str, mime: &str) -> ToolError {
    ToolError::invalid(format!("`{path}` is not text but looks like {mime}"))
}

fn changed(path: &str) -> ToolError {
    ToolError::new(ErrorKind::Conflict, format!("`{path}` has changed since this call looked at it"))
        .try_instead("read it again before you change it")
}
