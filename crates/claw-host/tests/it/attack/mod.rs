//! Attacks on the confinement of files, each by name, against each set of kernel calls and, if they can
//! express them, against files in memory and in a store.

mod denied;
mod kinds;
mod links;
mod listing;
mod mounts;
mod race;
mod spellings;
mod writes;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use claw_core::NodeId;
use claw_core::port::{Expect, FilePlace, FsBridge, Scope};
use claw_core::store::WorkspaceFiles as _;
use claw_core::tool::{Caller, ErrorKind, ToolError};
use claw_host::SystemClock;
use claw_host::files::{Kernel, LocalFiles, StoreFiles};
use claw_store::SqliteStore;
use claw_testkit::MemoryFiles;
use claw_testkit::fixture::caller;
use tempfile::TempDir;

/// A text that must never be read and never change.
const CANARY: &str = "the canary that must not be seen";

/// The ways to use the kernel that must be equally safe.
const KERNELS: [Kernel; 2] =
    [Kernel { openat2: true, renameat2: true }, Kernel { openat2: false, renameat2: true }];

/// A workspace `ws`, with `outside` and `ws-evil` beside it.
struct Target {
    files: Arc<dyn FsBridge>,
    caller: Caller,
    scope: Scope,
    /// The directory that holds them all.
    around: PathBuf,
    root: PathBuf,
    /// The temporary directory, removed with its content; `None` if the files are in memory.
    _disk: Option<TempDir>,
    memory: Option<Arc<MemoryFiles>>,
    store: Option<Arc<SqliteStore>>,
}

impl Target {
    fn on_disk(kernel: Kernel) -> Self {
        let disk = TempDir::new().unwrap();
        let around = disk.path().to_owned();
        for directory in ["ws/dir/deep", "outside/dir", "ws-evil"] {
            fs::create_dir_all(around.join(directory)).unwrap();
        }
        for path in ["outside/canary", "outside/dir/canary", "ws-evil/canary", "canary"] {
            fs::write(around.join(path), CANARY).unwrap();
        }
        fs::write(around.join("ws/dir/file"), "inside").unwrap();
        let files = Arc::new(LocalFiles::with(kernel));
        Self { _disk: Some(disk), ..Self::new(files, around) }
    }

    fn in_memory() -> Self {
        let memory =
            MemoryFiles::new().with("/around/ws/dir/file", "inside").with("/around/ws/dir/deep/x", "x");
        for path in ["outside/canary", "outside/dir/canary", "ws-evil/canary", "canary"] {
            memory.put(Path::new("/around").join(path), CANARY);
        }
        let memory = Arc::new(memory);
        let files = Arc::clone(&memory) as Arc<dyn FsBridge>;
        Self { memory: Some(memory), ..Self::new(files, "/around".into()) }
    }

    async fn in_a_store() -> Self {
        let store = Arc::new(SqliteStore::memory(NodeId::local()).await.unwrap());
        let files = StoreFiles::new(Arc::clone(&store) as _, Arc::new(SystemClock));
        let target = Self { store: Some(store), ..Self::new(Arc::new(files), "/around".into()) };
        let everything = Scope::workspace("/");
        let place = FilePlace { scope: &everything, ..target.place() };
        for path in ["outside/canary", "outside/dir/canary", "ws-evil/canary", "canary"] {
            let path = target.around.join(path);
            target.files.write(&place, path.to_str().unwrap(), CANARY.as_bytes()).await.unwrap();
        }
        for (path, text) in [("ws/dir/file", "inside"), ("ws/dir/deep/x", "x")] {
            let path = target.around.join(path);
            target.files.write(&place, path.to_str().unwrap(), text.as_bytes()).await.unwrap();
        }
        target
    }

    /// On disk, with each way to use the kernel.
    fn disks() -> impl Iterator<Item = Self> {
        KERNELS.into_iter().map(Self::on_disk)
    }

    /// Everywhere.
    async fn all() -> impl Iterator<Item = Self> {
        Self::disks().chain([Self::in_memory(), Self::in_a_store().await])
    }

    fn new(files: Arc<dyn FsBridge>, around: PathBuf) -> Self {
        let root = around.join("ws");
        let scope = Scope::workspace(&root);
        Self { files, caller: caller(), scope, around, root, _disk: None, memory: None, store: None }
    }

    fn place(&self) -> FilePlace<'_> {
        FilePlace {
            caller: &self.caller,
            directory: &self.root,
            scope: &self.scope,
            expect: Expect::Anything,
        }
    }

    async fn text(&self, path: &str) -> Result<String, ToolError> {
        let (bytes, _) = self.files.read(&self.place(), path).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Tries every operation with a path, and checks that nothing outside was seen or changed.
    async fn attack(&self, path: &str) -> Vec<Option<ErrorKind>> {
        let before = self.outside().await;
        let place = self.place();
        let kind = |error: Option<ToolError>| error.map(|error| error.kind);
        let mut outcomes = vec![match self.files.stat(&place, path).await {
            // Nothing is there: what a caller is told of what is denied.
            Ok(None) => Some(ErrorKind::NotFound),
            stat => kind(stat.err()),
        }];
        let read = self.text(path).await;
        if let Ok(text) = &read {
            assert!(!text.contains(CANARY), "{path} shows what is outside");
        }
        outcomes.push(kind(read.err()));
        outcomes.push(kind(self.files.look(&place, path).await.err()));
        outcomes.push(kind(self.files.remove(&place, path).await.err()));
        outcomes.push(kind(self.files.write(&place, path, b"attacker").await.err()));
        outcomes.push(kind(self.files.mkdirp(&place, path).await.err()));
        let below = format!("{path}/new");
        outcomes.push(kind(self.files.write(&place, &below, b"attacker").await.err()));
        assert_eq!(self.outside().await, before, "{path} changed what is outside");
        outcomes
    }

    /// Tries every operation with a path; all must fail, with one of these kinds.
    async fn refused(&self, path: &str, kinds: &[ErrorKind]) {
        let outcomes = self.attack(path).await;
        let all = outcomes.iter().all(|kind| kind.is_some_and(|kind| kinds.contains(&kind)));
        assert!(all, "`{}` gave {outcomes:?}, not {kinds:?}", path.escape_debug());
    }

    /// Returns all files outside the workspace.
    async fn outside(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut seen = BTreeMap::new();
        if let Some(memory) = &self.memory {
            for path in ["outside/canary", "outside/dir/canary", "ws-evil/canary", "canary", "attacker"] {
                let text = memory.text(self.around.join(path)).unwrap_or_default();
                seen.insert(path.into(), text.into_bytes());
            }
        } else if let Some(store) = &self.store {
            for (path, _) in store.files_below(&self.caller.tenant, "/", usize::MAX).await.unwrap() {
                if !Path::new(&path).starts_with(&self.root) {
                    let (_, bytes) = store.file(&self.caller.tenant, &path).await.unwrap().unwrap();
                    seen.insert(path.into(), bytes);
                }
            }
        } else {
            list(&self.around, &self.root, &mut seen);
        }
        seen
    }
}

fn list(directory: &Path, but: &Path, seen: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path == but {
            continue;
        }
        if path.symlink_metadata().unwrap().is_dir() {
            seen.insert(path.clone(), Vec::new());
            list(&path, but, seen);
        } else {
            seen.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
}

/// Returns whether this process is root. If not, prints that the test is skipped.
fn is_administrator(test: &str) -> bool {
    let yes = rustix::process::geteuid().is_root();
    if !yes {
        eprintln!("SKIPPED: {test} needs to run as root");
    }
    yes
}
