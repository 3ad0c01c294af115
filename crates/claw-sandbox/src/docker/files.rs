//! The files of a container's own workspace, used if the machine's is not shown to commands.
//!
//! Each operation is an order to this program inside, which confines it as it would on the machine. Searches
//! read the files from there and search here, since only this side knows the secrets.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use claw_core::port::{
    Confinement, Expect, FilePlace, FsBridge, Hits, Root, RunContext, Scope, Search, Searched, Stat, Walk,
    Walked,
};
use claw_core::redact::Redactor;
use claw_core::tool::{Caller, Sight, Target, ToolError};
use tokio::time::timeout;

use super::call::{ANSWER, Heard, send};
use super::mounts::WORKSPACE;
use super::shell::{Exchange, refused};
use super::wire::{self, Act, Expected, Filed, Filing, INPUT, INPUT_END, Order, Told};
use super::{DockerError, DockerShell};
use claw_host::files::{Collected, PreparedSearch, search_prepared};

/// The most files a search reads, and the most bytes of them.
const MOST_FILES: usize = 20_000;
const MOST_BYTES: usize = 256 << 20;
/// The bytes of a file sent at once.
const PIECE: usize = 256 << 10;
/// The longest a walk over many files may take until its next piece of an answer.
const WALKING: Duration = Duration::from_secs(60);

/// The files of containers: each caller's are in the container that its commands run in. Callers without a
/// sandbox get those of `machine`.
pub struct DockerFiles {
    shell: Arc<DockerShell>,
    machine: Arc<dyn FsBridge>,
}

/// The answer to an operation.
struct Done {
    filed: Filed,
    bytes: Vec<u8>,
    fetched: Vec<(String, Option<Vec<u8>>)>,
}

impl DockerFiles {
    /// The files of the containers of this shell.
    pub fn new(shell: Arc<DockerShell>, machine: Arc<dyn FsBridge>) -> Self {
        Self { shell, machine }
    }

    async fn act(
        &self,
        place: &FilePlace<'_>,
        path: &str,
        act: Act,
        bytes: &[u8],
    ) -> Result<Done, ToolError> {
        let caller = place.caller;
        let filing = Filing {
            path: as_inside(caller, path),
            directory: inside(caller, place.directory),
            scope: scope(caller, place.scope),
            expect: match place.expect {
                Expect::Anything => Expected::Anything,
                Expect::Absent => Expected::Absent,
                Expect::Version(version) => Expected::Version(version.clone()),
            },
            act,
        };
        let writes = matches!(filing.act, Act::Write { .. });
        let done = self.order(caller, filing, writes.then_some(bytes)).await;
        let done = done.map_err(|error| refused(of_files(error)))?;
        match done.filed {
            Filed::Failed { kind, message, advice, details } => Err(ToolError {
                kind,
                message,
                advice,
                setting: None,
                cause: None,
                details: details.map(Box::new),
            }),
            filed => Ok(Done { filed, ..done }),
        }
    }

    async fn order(
        &self,
        caller: &Caller,
        filing: Filing,
        bytes: Option<&[u8]>,
    ) -> Result<Done, DockerError> {
        let patience = match filing.act {
            Act::Walk(_) | Act::Fetch(_) => WALKING,
            _ => ANSWER,
        };
        let order = Order::File(Box::new(filing));
        let Exchange { mut ear, mut mouth, container } =
            self.shell.exchange(&context(caller), &order).await?;
        let lost = |reason: &str| DockerError::Lost(reason.to_owned());
        if let Some(bytes) = bytes {
            let pieces = bytes.chunks(PIECE).map(|piece| wire::piece(INPUT, piece));
            for piece in pieces.chain([wire::piece(INPUT_END, &[])]) {
                let sent = timeout(ANSWER, send(&mut ear, &piece)).await;
                let Ok(sent) = sent else { return Err(self.silent(&container, ANSWER).await) };
                sent.map_err(|error| lost(&error.to_string()))?;
            }
        }
        let mut done = Done { filed: Filed::Done, bytes: Vec::new(), fetched: Vec::new() };
        let mut total = 0_usize;
        loop {
            let heard = timeout(patience, mouth.hear()).await;
            let Ok(heard) = heard else { return Err(self.silent(&container, patience).await) };
            match heard? {
                Some(Heard::Output(bytes)) => {
                    total = total.saturating_add(bytes.len());
                    match done.fetched.last_mut() {
                        // Beyond that it is not searched, and counted as such.
                        Some((_, kept)) if total > MOST_BYTES => *kept = None,
                        Some((_, kept)) => drop(kept.as_mut().map(|kept| kept.extend(bytes))),
                        None => done.bytes.extend(bytes),
                    }
                }
                Some(Heard::Told(Told::Fetched { path, readable })) => {
                    done.fetched.push((path, readable.then(Vec::new)));
                }
                Some(Heard::Told(Told::Filed(filed))) => return Ok(Done { filed, ..done }),
                Some(other) => return Err(lost(&format!("it sent an unexpected message: {other:?}"))),
                None => return Err(lost("it ended without an answer")),
            }
        }
    }

    /// Removes a container that was silent for so long: what it still had to do is not done later, unseen.
    async fn silent(&self, container: &str, patience: Duration) -> DockerError {
        match self.shell.engine.remove(container).await {
            Ok(()) => DockerError::SilentFiles(patience.as_secs()),
            Err(error) => error,
        }
    }

    async fn stat_of(
        &self,
        place: &FilePlace<'_>,
        path: &str,
        act: Act,
        bytes: &[u8],
    ) -> Result<Stat, ToolError> {
        match self.act(place, path, act, bytes).await?.filed {
            Filed::Stat(Some(stat)) => Ok(stat),
            other => Err(unexpected(&other)),
        }
    }
}

#[async_trait]
impl FsBridge for DockerFiles {
    fn confinement(&self) -> Confinement {
        Confinement::Enforced
    }

    fn sandbox(&self, caller: &Caller, _path: &Path) -> Option<String> {
        caller.sandboxed.then(|| caller.sandbox_key.to_string())
    }

    async fn stat(&self, place: &FilePlace<'_>, path: &str) -> Result<Option<Stat>, ToolError> {
        if !place.caller.sandboxed {
            return self.machine.stat(place, path).await;
        }
        match self.act(place, path, Act::Stat, &[]).await?.filed {
            Filed::Stat(stat) => Ok(stat),
            other => Err(unexpected(&other)),
        }
    }

    async fn read(&self, place: &FilePlace<'_>, path: &str) -> Result<(Vec<u8>, Stat), ToolError> {
        if !place.caller.sandboxed {
            return self.machine.read(place, path).await;
        }
        let done = self.act(place, path, Act::Read, &[]).await?;
        match done.filed {
            Filed::Stat(Some(stat)) => Ok((done.bytes, stat)),
            other => Err(unexpected(&other)),
        }
    }

    async fn mkdirp(&self, place: &FilePlace<'_>, path: &str) -> Result<(), ToolError> {
        match place.caller.sandboxed {
            true => self.act(place, path, Act::Mkdirp, &[]).await.map(drop),
            false => self.machine.mkdirp(place, path).await,
        }
    }

    async fn write(&self, place: &FilePlace<'_>, path: &str, bytes: &[u8]) -> Result<Stat, ToolError> {
        match place.caller.sandboxed {
            true => self.stat_of(place, path, Act::Write { mode: None }, bytes).await,
            false => self.machine.write(place, path, bytes).await,
        }
    }

    async fn remove(&self, place: &FilePlace<'_>, path: &str) -> Result<(), ToolError> {
        match place.caller.sandboxed {
            true => self.act(place, path, Act::Remove, &[]).await.map(drop),
            false => self.machine.remove(place, path).await,
        }
    }

    async fn restore(
        &self,
        place: &FilePlace<'_>,
        path: &str,
        bytes: &[u8],
        mode: Option<u32>,
    ) -> Result<Stat, ToolError> {
        match place.caller.sandboxed {
            true => self.stat_of(place, path, Act::Write { mode }, bytes).await,
            false => self.machine.restore(place, path, bytes, mode).await,
        }
    }

    async fn look(&self, place: &FilePlace<'_>, path: &str) -> Result<Sight, ToolError> {
        if !place.caller.sandboxed {
            return self.machine.look(place, path).await;
        }
        match self.act(place, path, Act::Look, &[]).await?.filed {
            Filed::Looked { path: at, identity } => {
                let target = Target::File { path: path.to_owned() };
                Ok(Sight { target, path: at, identity, credential: None, writable: false })
            }
            other => Err(unexpected(&other)),
        }
    }

    async fn walk(&self, place: &FilePlace<'_>, walk: &Walk) -> Result<Walked, ToolError> {
        if !place.caller.sandboxed {
            return self.machine.walk(place, walk).await;
        }
        let wanted = Walk { path: as_inside(place.caller, &walk.path), ..walk.clone() };
        match self.act(place, &walk.path, Act::Walk(wanted), &[]).await?.filed {
            Filed::Walked(walked) => Ok(walked),
            other => Err(unexpected(&other)),
        }
    }

    async fn search(
        &self,
        place: &FilePlace<'_>,
        search: &Search,
        redactor: &Arc<dyn Redactor>,
    ) -> Result<Searched, ToolError> {
        if !place.caller.sandboxed {
            return self.machine.search(place, search, redactor).await;
        }
        let prepared = PreparedSearch::new(search)?;
        let within = Walk {
            path: as_inside(place.caller, &search.within.path),
            directories: false,
            order: claw_core::port::Order::Path,
            limit: MOST_FILES,
            ..search.within.clone()
        };
        let done = self.act(place, &search.within.path, Act::Fetch(within), &[]).await?;
        let Filed::Walked(walked) = done.filed else { return Err(unexpected(&done.filed)) };
        let mut searched = Searched { stopped: walked.stopped, ..Searched::default() };
        searched.stopped |= walked.files > MOST_FILES as u64;
        let mut collected = Collected::new(search.limit);
        for (path, bytes) in done.fetched {
            let named = if path.is_empty() { search.within.path.clone() } else { path.clone() };
            match bytes.map(|bytes| search_prepared(&named, &bytes, &prepared, &**redactor)) {
                None => searched.failed += 1,
                Some(None) => searched.binary += 1,
                Some(Some(hits)) => {
                    searched.searched += 1;
                    if hits.count > 0 {
                        collected.add(Hits { path, ..hits });
                    }
                }
            }
        }
        collected.give(&mut searched);
        Ok(searched)
    }
}

/// Returns the context of the container that commands without a network share.
fn context(caller: &Caller) -> RunContext {
    RunContext::new(&caller.workspace, caller.sandbox_key.clone())
}

/// Returns the path inside the container for a path of the workspace.
fn inside(caller: &Caller, path: &Path) -> PathBuf {
    match path.strip_prefix(&caller.workspace) {
        Ok(rest) if rest.as_os_str().is_empty() => PathBuf::from(WORKSPACE),
        Ok(rest) => Path::new(WORKSPACE).join(rest),
        Err(_) => path.to_owned(),
    }
}

/// Converts an absolute path to that inside the container; a relative one stays as it is.
fn as_inside(caller: &Caller, path: &str) -> String {
    match Path::new(path).is_absolute() {
        true => inside(caller, Path::new(path)).display().to_string(),
        false => path.to_owned(),
    }
}

/// Returns the part of a scope that exists inside: the workspace, and nothing of the machine.
fn scope(caller: &Caller, scope: &Scope) -> Scope {
    let there = |path: &PathBuf| path.starts_with(WORKSPACE);
    let moved = |paths: &[PathBuf]| paths.iter().map(|path| inside(caller, path)).filter(there).collect();
    let roots = scope.roots.iter().map(|root| Root { path: inside(caller, &root.path), access: root.access });
    Scope {
        roots: roots.filter(|root| there(&root.path)).collect(),
        denied: moved(&scope.denied),
        configuration: moved(&scope.configuration),
        covered: Vec::new(),
        quota: scope.quota,
    }
}

/// The same error, where no command ran.
fn of_files(error: DockerError) -> DockerError {
    match error {
        DockerError::Lost(reason) => DockerError::LostFiles(reason),
        error => error,
    }
}

fn unexpected(filed: &Filed) -> ToolError {
    ToolError::internal(std::io::Error::other(format!("the container answered {filed:?}")))
}
