//! Files on this machine, confined to a scope by the kernel.
//!
//! Each operation gets handles of its roots, finds the file beneath them (`resolve.rs`) and works on that
//! handle; no path is checked first and used later. `docs/decisions/0011-confinement.md` says how and why.

mod context_documents;
mod denied;
mod failure;
mod filter;
mod handle;
mod ignored;
mod listing;
mod memory;
mod outside;
mod quota;
mod read;
mod resolve;
mod resolve_by_text;
mod roots;
mod search;
mod seen_files;
mod store;
mod tree_snapshot;
mod undo;
mod unfinished_writes;
mod walk;
mod window;
mod workspace;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use claw_core::port::{
    Confinement, Expect, FilePlace, FsBridge, Reading, Scope, Search, Searched, Stat, Version, Walk, Walked,
    Window, WorkspaceGrowth,
};
use claw_core::redact::Redactor;
use claw_core::tool::{Sight, ToolError};

pub use self::context_documents::{RoutedFiles, Routing};
use self::failure::Failure;
use self::filter::Filter;
pub use self::listing::{Tree, search_tree, walk_tree};
pub use self::memory::MemoryFiles;
use self::quota::Usages;
use self::resolve::{Missing, ResolvedPath};
use self::roots::{Handles, Reach, Recent};
use self::search::Prepared;
pub use self::search::{Collected, Prepared as PreparedSearch, search_prepared, search_text};
pub use self::seen_files::StoredSeen;
pub use self::store::StoreFiles;
pub use self::undo::{Restored, Restoring, Step, StoredUndo, UndoLimits, Verdict};
use self::unfinished_writes::Swept;
pub use self::workspace::workspace_path;

/// The files of this machine. Cheap to clone; clones share their caches.
#[derive(Debug, Clone, Default)]
pub struct LocalFiles(Arc<Bridge>);

/// The kernel calls to use. Without a call, its work is done in several steps: for kernels that lack it and
/// sandboxes that forbid it (both are detected anyway), and for tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel {
    /// Resolving a path beneath a directory.
    pub openat2: bool,
    /// Renaming without replacing, and exchanging. Without it, programs that are not ours can come between a
    /// comparison and a write.
    pub renameat2: bool,
}

impl Default for Kernel {
    fn default() -> Self {
        Self { openat2: true, renameat2: true }
    }
}

#[derive(Debug, Default)]
struct Bridge {
    kernel: Kernel,
    handles: Handles,
    recent: Recent,
    usages: Usages,
    swept: Swept,
}

impl LocalFiles {
    /// The files of this machine.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a bridge that uses these kernel calls.
    pub fn with(kernel: Kernel) -> Self {
        Self(Arc::new(Bridge { kernel, ..Bridge::default() }))
    }

    /// Runs `work` on a thread that may block.
    async fn run<T: Send + 'static>(
        &self,
        place: &FilePlace<'_>,
        path: &str,
        work: impl FnOnce(&Request) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, ToolError> {
        let request = Request {
            bridge: Arc::clone(&self.0),
            directory: place.directory.to_owned(),
            scope: place.scope.clone(),
            path: path.to_owned(),
            expect: match place.expect {
                Expect::Anything => Expectation::Anything,
                Expect::Absent => Expectation::Absent,
                Expect::Version(version) => Expectation::Version(version.clone()),
            },
        };
        let done = tokio::task::spawn_blocking(move || {
            work(&request).map_err(|failure| failure.about(&request.path))
        });
        done.await.unwrap_or_else(|stopped| Err(ToolError::internal(stopped)))
    }
}

/// Tells work on other threads to stop once its caller no longer waits.
struct Stop(Arc<AtomicBool>);

impl Stop {
    fn new() -> (Self, Arc<AtomicBool>) {
        let flag = Arc::new(AtomicBool::new(false));
        (Self(Arc::clone(&flag)), flag)
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One file operation: its path, its expectation and the scope it runs in.
struct Request {
    bridge: Arc<Bridge>,
    directory: PathBuf,
    scope: Scope,
    path: String,
    expect: Expectation,
}

/// The state that a write expects to find.
enum Expectation {
    Anything,
    Absent,
    Version(Version),
}

impl Request {
    /// Returns the reachable roots of the scope. With `make`, a missing workspace is created.
    fn reach(&self, make: bool) -> Result<Arc<Reach>, Failure> {
        if let Some(recent) = self.bridge.recent.get(&self.scope) {
            return Ok(recent);
        }
        let reach = Arc::new(Reach::new(&self.bridge.handles, &self.scope, make)?);
        self.bridge.recent.keep(&self.scope, &reach);
        Ok(reach)
    }

    /// Resolves the path.
    fn find(&self, reach: &Reach, missing: Missing<'_>) -> Result<ResolvedPath, Failure> {
        resolve::find(reach, &self.directory, &self.path, self.bridge.kernel.openat2, missing)
    }

    /// Resolves the path without the kernel's help, so that every step is known.
    fn find_stepwise(&self, reach: &Reach) -> Result<ResolvedPath, Failure> {
        resolve::find(reach, &self.directory, &self.path, false, Missing::Leave)
    }
}

#[async_trait]
impl FsBridge for LocalFiles {
    fn confinement(&self) -> Confinement {
        Confinement::Enforced
    }

    async fn stat(&self, place: &FilePlace<'_>, path: &str) -> Result<Option<Stat>, ToolError> {
        self.run(place, path, read::stat).await
    }

    async fn read(&self, place: &FilePlace<'_>, path: &str) -> Result<(Vec<u8>, Stat), ToolError> {
        self.run(place, path, read::read).await
    }

    async fn mkdirp(&self, place: &FilePlace<'_>, path: &str) -> Result<(), ToolError> {
        self.run(place, path, write::mkdirp).await
    }

    async fn write(&self, place: &FilePlace<'_>, path: &str, bytes: &[u8]) -> Result<Stat, ToolError> {
        let bytes = bytes.to_vec();
        self.run(place, path, move |request| write::write(request, &bytes, None)).await
    }

    async fn reserve(&self, place: &FilePlace<'_>, growth: WorkspaceGrowth) -> Result<(), ToolError> {
        self.run(place, "these changes", move |request| write::reserve(request, growth)).await
    }

    async fn restore(
        &self,
        place: &FilePlace<'_>,
        path: &str,
        bytes: &[u8],
        mode: Option<u32>,
    ) -> Result<Stat, ToolError> {
        let bytes = bytes.to_vec();
        self.run(place, path, move |request| write::write(request, &bytes, mode)).await
    }

    async fn remove(&self, place: &FilePlace<'_>, path: &str) -> Result<(), ToolError> {
        self.run(place, path, write::remove).await
    }

    async fn look(&self, place: &FilePlace<'_>, path: &str) -> Result<Sight, ToolError> {
        self.run(place, path, read::look).await
    }

    async fn outside(&self, directory: &Path, path: &str) -> Result<Option<PathBuf>, ToolError> {
        let full = directory.join(path);
        let found = tokio::task::spawn_blocking(move || outside::directory_of(&full));
        found.await.map_err(ToolError::internal)
    }

    async fn window(
        &self,
        place: &FilePlace<'_>,
        path: &str,
        wanted: &Window,
        redactor: &Arc<dyn Redactor>,
    ) -> Result<Reading, ToolError> {
        let (wanted, redactor) = (*wanted, Arc::clone(redactor));
        self.run(place, path, move |request| window::window(request, &wanted, &*redactor)).await
    }

    async fn walk(&self, place: &FilePlace<'_>, wanted: &Walk) -> Result<Walked, ToolError> {
        let filter = Filter::new(wanted)?;
        let (stop, flag) = Stop::new();
        let wanted = wanted.clone();
        let path = wanted.path.clone();
        let walked =
            self.run(place, &path, move |request| walk::walk(request, &wanted, &filter, &flag)).await;
        drop(stop);
        walked
    }

    async fn search(
        &self,
        place: &FilePlace<'_>,
        wanted: &Search,
        redactor: &Arc<dyn Redactor>,
    ) -> Result<Searched, ToolError> {
        let prepared = Prepared::new(wanted)?;
        let (stop, flag) = Stop::new();
        let redactor = Arc::clone(redactor);
        let work = move |request: &Request| search::search(request, &prepared, &redactor, &flag);
        let searched = self.run(place, &wanted.within.path, work).await;
        drop(stop);
        searched
    }
}
