//! Changes of a command that has ended, until they are applied or discarded.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use claw_core::UndoId;
use claw_core::port::{ChangeConflict, FileChange, HostRan, PendingChanges, Ran, RunContext};
use claw_core::tool::{ErrorKind, Sight, Target, ToolError};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use crate::{Discarded, Reach, WorkspaceLayer};
use claw_host::transaction::{Conflict, JudgedProgram, Transaction, Transactions};

/// A command's transaction. Dropping it discards the changes.
pub(super) struct Pending {
    id: UndoId,
    mount: WorkspaceLayer,
    list: Vec<FileChange>,
    refused: Vec<PathBuf>,
    kept_bytes: u64,
    /// The command could change directories that are not part of the layer.
    writes_directly: bool,
    transaction: Arc<Mutex<Transaction>>,
}

impl Drop for Pending {
    /// Discards the changes on a thread that may block.
    fn drop(&mut self) {
        let transaction = Arc::clone(&self.transaction);
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn_blocking(move || drop(transaction));
        }
    }
}

impl Pending {
    /// Makes a layer over the workspace of this context.
    pub(super) async fn create(
        transactions: &Transactions,
        context: &RunContext,
        hidden: &[PathBuf],
        direct: Vec<PathBuf>,
    ) -> io::Result<Self> {
        let (transactions, workspace) = (transactions.clone(), context.workspace.clone());
        let mut hidden: Vec<PathBuf> = hidden.iter().chain(&context.hidden).cloned().collect();
        let created = blocking(move || {
            // A path that leads through a link is hidden where it leads to.
            let real: Vec<PathBuf> = hidden.iter().filter_map(|path| real(path)).collect();
            hidden.extend(real);
            hidden.sort_unstable();
            hidden.dedup();
            let holds_hidden = |path: &PathBuf| hidden.iter().any(|hidden| hidden.starts_with(path));
            let direct: Vec<PathBuf> = direct.into_iter().filter(|path| !holds_hidden(path)).collect();
            Ok((transactions.create(&workspace, &hidden)?, direct))
        });
        let (transaction, direct) = created.await?;
        let grants = context.granted.iter().chain(&context.paths);
        let writes_directly = !direct.is_empty() || grants.into_iter().any(|grant| grant.write);
        Ok(Self {
            id: transaction.id(),
            mount: WorkspaceLayer {
                upper: transaction.upper(),
                work: transaction.work(),
                direct,
                read_only: false,
                temporary: None,
                home: None,
            },
            list: Vec::new(),
            refused: Vec::new(),
            kept_bytes: 0,
            writes_directly,
            transaction: Arc::new(Mutex::new(transaction)),
        })
    }

    /// Puts the programs of the workspace that were judged into the layer, so that nobody can replace them between
    /// the last look and the command. Those in directories that are written directly cannot be held so.
    pub(super) async fn pin(&self, context: &RunContext) -> Result<(), ToolError> {
        let is_direct = |path: &Path| self.mount.direct.iter().any(|direct| path.starts_with(direct));
        let judged = |sight: &Sight| {
            let Target::Program { name, directory } = &sight.target else { return None };
            let path = PathBuf::from(sight.path.as_ref()?);
            let named = match name.contains('/') {
                true => context.workspace.join(directory).join(name),
                false => path.clone(),
            };
            let is_inside = |path: &Path| path.starts_with(&context.workspace);
            let is_held = (is_inside(&path) || is_inside(&named)) && !is_direct(&path) && !is_direct(&named);
            is_held.then(|| JudgedProgram { named, path, identity: sight.identity.clone() })
        };
        let programs: Vec<JudgedProgram> = context.sights.iter().filter_map(judged).collect();
        if programs.is_empty() {
            return Ok(());
        }
        let pinned = self.with(move |transaction| transaction.pin(&programs)).await;
        pinned.map_err(|error| {
            ToolError::new(
                ErrorKind::Conflict,
                "a program of the workspace changed since the call was judged",
            )
            .try_instead("call again, so that it is judged again")
            .because(error)
        })
    }

    pub(super) fn mount(&self) -> WorkspaceLayer {
        self.mount.clone()
    }

    /// The layer of a command whose changes are all discarded: what it writes to the session's `/tmp` and to its home, too.
    pub(super) async fn discarding(&self, reach: &Reach) -> io::Result<WorkspaceLayer> {
        let (temporary, home) = (reach.temporary.clone(), reach.home.as_ref().map(|home| home.path.clone()));
        let made = self.with(move |transaction| {
            let over = |name: &str, path: Option<PathBuf>| {
                let made = path.map(|path| transaction.beside(name, &path)).transpose()?;
                Ok::<_, io::Error>(made.map(|(upper, work)| Discarded { upper, work }))
            };
            Ok((over("tmp", temporary)?, over("home", home)?))
        });
        let (temporary, home) = made.await?;
        Ok(WorkspaceLayer { temporary, home, ..self.mount() })
    }

    /// Reads the command's changes, for display.
    pub(super) async fn changes(&self) -> io::Result<Vec<FileChange>> {
        self.with(|transaction| {
            transaction.read()?;
            Ok(transaction.changes().to_vec())
        })
        .await
    }

    /// Reads the command's changes and returns them with its result.
    pub(super) async fn finished(mut self, ran: Ran) -> Result<HostRan, ToolError> {
        let read = self.with(|transaction| {
            transaction.read()?;
            let list = transaction.changes().to_vec();
            Ok((list, transaction.refused().to_vec(), transaction.kept_bytes()))
        });
        let exit = ran.exit.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
        let (list, refused, kept_bytes) = read.await.map_err(|error| {
            ToolError::failed(format!(
                "the command ended with {exit}, but its changes cannot be read, so none was applied: {error}"
            ))
        })?;
        (self.list, self.refused, self.kept_bytes) = (list, refused, kept_bytes);
        Ok(HostRan { ran, pending: Some(Box::new(self)) })
    }

    /// Works with the transaction on a thread that may block.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let transaction = Arc::clone(&self.transaction);
        blocking(move || work(&mut lock(&transaction))).await
    }
}

/// Resolves the links in the directories on the way to a path; `None` if there are none.
fn real(path: &Path) -> Option<PathBuf> {
    let real = path.parent()?.canonicalize().ok()?.join(path.file_name()?);
    (real != path).then_some(real)
}

fn lock(transaction: &Mutex<Transaction>) -> MutexGuard<'_, Transaction> {
    transaction.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl PendingChanges for Pending {
    fn id(&self) -> UndoId {
        self.id
    }

    fn list(&self) -> &[FileChange] {
        &self.list
    }

    fn refused(&self) -> &[PathBuf] {
        &self.refused
    }

    fn is_complete(&self) -> bool {
        !self.writes_directly
    }

    fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    async fn contents(&self, path: &Path, most: u64) -> [Option<Vec<u8>>; 2] {
        let path = path.to_owned();
        self.with(move |transaction| Ok(transaction.contents(&path, most))).await.unwrap_or_default()
    }

    fn is_applied(&self) -> bool {
        lock(&self.transaction).is_kept()
    }

    async fn exists(&self, path: &Path) -> bool {
        let path = path.to_owned();
        self.with(move |transaction| transaction.exists(&path)).await.unwrap_or(true)
    }

    async fn apply(&mut self, held: &[PathBuf]) -> Result<Vec<ChangeConflict>, ToolError> {
        let held = held.to_vec();
        let conflicts = self.with(move |transaction| transaction.apply(&held)).await.map_err(|error| {
            ToolError::failed(format!("the command's changes cannot be applied, so none was: {error}"))
                .try_instead("free the path or fix its permissions, then run the command again")
        })?;
        let told = |Conflict { path, kept }| ChangeConflict { path, kept };
        Ok(conflicts.into_iter().map(told).collect())
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    spawn_blocking(work).await.unwrap_or_else(|stopped| Err(io::Error::other(stopped)))
}
