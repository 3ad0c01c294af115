//! A workspace whose context files and memory are documents of the store, and whose other files are elsewhere.
//!
//! The text of a path, resolved from the workspace's root, decides where it leads. On the disk the routed
//! names are hidden from everybody, by any link, so that each document has one source.
//! `docs/decisions/0014-routing.md` says which workspaces are routed.

/// Calls the bridge behind, in a scope without the names that are routed.
macro_rules! behind {
    ($self:ident, $place:ident, |$inner:ident| $call:expr) => {{
        let scope = $self.scope($place);
        let inner = FilePlace { scope: scope.as_ref().unwrap_or($place.scope), ..*$place };
        let $inner = &inner;
        $call.await
    }};
}

mod lookup;
mod tree;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::{
    Access, AgentDirectory, Clock, Confinement, DocumentUse, FilePlace, FsBridge, Generated, Reading, Scope,
    Search, Searched, Stat, UnixMillis, Version, Walk, Walked, Window, WorkspaceGrowth,
};
use claw_core::redact::Redactor;
use claw_core::store::{AgentStore, Documents, Shelf};
use claw_core::tool::{Caller, Digest, ErrorKind, Sight, Target, ToolError};

use self::lookup::{Shelves, Spot};
use crate::AgentResolver;

/// Context files, at the root of a workspace.
const CONTEXT: [&str; 7] =
    ["SOUL.md", "IDENTITY.md", "AGENTS.md", "TOOLS.md", "HEARTBEAT.md", "USER.md", lookup::BOOTSTRAP];
/// Context files that are the agent's own in every workspace. The other names belong to the project in a
/// workspace that is not routed.
const OWN: [&str; 5] = ["SOUL.md", "IDENTITY.md", "HEARTBEAT.md", "USER.md", lookup::BOOTSTRAP];
/// The context file that no prompt of a session shows.
const UNSHOWN: &str = "HEARTBEAT.md";
/// Files that the system writes for agents to read.
const GENERATED: [&str; 2] = ["TEAM.md", "DELEGATION.md"];
/// An agent's memory: a document, its second name, and a directory of documents.
const MEMORY: &str = "MEMORY.md";
const MEMORY_TOO: &str = "memory.md";
const MEMORIES: &str = "memory";
/// The longest name in a path, in bytes, as on a disk.
const LONGEST_NAME: usize = 255;

/// The workspaces in which all names of context files and memory lead to documents. Elsewhere, only names that are the
/// agent's own do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Routing {
    /// Workspaces below this directory, as [`workspace_path`](super::workspace_path) makes them.
    Below(PathBuf),
    /// All workspaces.
    All,
}

/// Files of a disk or elsewhere, with documents of a store in front.
pub struct RoutedFiles {
    files: Arc<dyn FsBridge>,
    shelves: Shelves,
    generated: Option<Arc<dyn Generated>>,
    routing: Routing,
}

/// The source that serves a path.
enum Route {
    Elsewhere,
    Document {
        shelf: Shelf,
        path: String,
    },
    Generated(&'static str),
    /// A directory of memory documents, by its path.
    Memories(String),
}

impl RoutedFiles {
    /// `files`, with the documents of a store in front.
    pub fn new<S: Documents + AgentStore + 'static>(
        files: Arc<dyn FsBridge>,
        store: Arc<S>,
        clock: Arc<dyn Clock>,
        routing: Routing,
    ) -> Self {
        let agents = Arc::new(AgentResolver::default().over(Arc::clone(&store) as _));
        Self::with(files, store, agents, clock, routing)
    }

    /// Like `new`, with a store behind trait objects and the kinds of agents from a directory.
    pub fn with(
        files: Arc<dyn FsBridge>,
        documents: Arc<dyn Documents>,
        agents: Arc<dyn AgentDirectory>,
        clock: Arc<dyn Clock>,
        routing: Routing,
    ) -> Self {
        let shelves = Shelves { documents, agents, clock };
        Self { files, shelves, generated: None, routing }
    }

    /// Adds files that the system generates.
    #[must_use]
    pub fn generating(mut self, generated: Arc<dyn Generated>) -> Self {
        self.generated = Some(generated);
        self
    }

    fn is_routed(&self, caller: &Caller) -> bool {
        match &self.routing {
            Routing::All => true,
            Routing::Below(base) => caller.workspace.starts_with(base) && caller.workspace != *base,
        }
    }

    /// Decides which source serves a path.
    async fn route(&self, place: &FilePlace<'_>, path: &str, access: Access) -> Result<Route, ToolError> {
        let is_routed = self.is_routed(place.caller);
        // A path out of reach is not judged here: it gets the error of any file.
        let Ok(full) = place.scope.resolve_text(place.directory, path, access) else {
            return Ok(Route::Elsewhere);
        };
        let below = full.strip_prefix(&place.caller.workspace).ok().and_then(Path::to_str);
        let Some(below) = below else { return Ok(Route::Elsewhere) };
        if OWN.contains(&below) || is_routed && CONTEXT.contains(&below) {
            return Ok(Route::Document { shelf: Shelf::Context, path: below.to_owned() });
        }
        let memory = |path: &str| Route::Document { shelf: Shelf::Memory, path: path.to_owned() };
        if below == MEMORY || is_routed && below == MEMORY_TOO {
            return Ok(memory(MEMORY));
        }
        if !is_routed {
            return Ok(Route::Elsewhere);
        }
        if let Some(name) = GENERATED.into_iter().find(|name| *name == below) {
            return Ok(Route::Generated(name));
        }
        if below == MEMORIES {
            return Ok(Route::Memories(below.to_owned()));
        }
        if !below.starts_with("memory/") {
            return Ok(Route::Elsewhere);
        }
        if below.split('/').any(|name| name.len() > LONGEST_NAME) {
            let shown: String = path.chars().take(200).collect();
            return Err(ToolError::invalid(format!("`{shown}` is too long for a path")));
        }
        if !crate::recall::is_readable(below) {
            let shown: String = path.chars().take(200).collect();
            let told = format!(
                "`{}` contains control characters, which the path of a memory document must not",
                shown.escape_debug()
            );
            return Err(ToolError::invalid(told).try_instead("use letters, digits, `-` and `/`"));
        }
        let listed = self.shelves.list(place.caller, Shelf::Memory).await?;
        let above = |other: &String| Path::new(below).starts_with(other) && other != below;
        if listed.keys().any(above) {
            return Err(match access {
                Access::Read => absent(path),
                Access::Write => not_directory(path),
            });
        }
        let inside = |other: &String| Path::new(other).starts_with(below) && other != below;
        Ok(if listed.keys().any(inside) { Route::Memories(below.to_owned()) } else { memory(below) })
    }

    /// The names at the root of the caller's workspace that lead to documents.
    fn names(&self, caller: &Caller) -> impl Iterator<Item = &'static str> {
        let is_routed = self.is_routed(caller);
        let all = CONTEXT.into_iter().chain(GENERATED).chain([MEMORY_TOO, MEMORIES]);
        OWN.into_iter().chain([MEMORY]).chain(all.filter(move |name| is_routed && !OWN.contains(name)))
    }

    /// Returns the scope without the names that lead to documents: on the disk they are hidden from
    /// everybody.
    fn scope(&self, place: &FilePlace<'_>) -> Option<Scope> {
        let mut scope = place.scope.clone();
        let names = self.names(place.caller);
        scope.denied.extend(names.map(|name| place.caller.workspace.join(name)));
        Some(scope)
    }

    async fn generated(&self, caller: &Caller, name: &str) -> Result<Option<(String, Stat)>, ToolError> {
        let Some(generated) = &self.generated else { return Ok(None) };
        let Some(text) = generated.generated(caller, name).await? else { return Ok(None) };
        let version = Version(Digest::of_bytes(text.as_bytes()).to_string().into());
        let modified = self.shelves.clock.now();
        let stat = Stat { directory: false, size: text.len() as u64, modified, version, mode: None };
        Ok(Some((text, stat)))
    }

    /// Returns the text and metadata of a path that is not a file on the disk; `None` if nothing is there.
    async fn text(
        &self,
        place: &FilePlace<'_>,
        path: &str,
        route: &Route,
    ) -> Result<Option<(String, Stat, bool)>, ToolError> {
        match route {
            Route::Document { shelf, path: at } => {
                self.shelves.get(place.caller, &Spot { shelf: *shelf, path: at, shown: path }).await
            }
            Route::Generated(name) => {
                let found = self.generated(place.caller, name).await?;
                Ok(found.map(|(text, stat)| (text, stat, false)))
            }
            Route::Elsewhere | Route::Memories(_) => Ok(None),
        }
    }
}

#[async_trait]
impl FsBridge for RoutedFiles {
    fn confinement(&self) -> Confinement {
        self.files.confinement()
    }

    fn document(&self, caller: &Caller, path: &Path) -> Option<DocumentUse> {
        let below = path.strip_prefix(&caller.workspace).unwrap_or(path);
        let name = below.iter().next()?.to_str()?;
        let is_file = below.iter().nth(1).is_none();
        if !self.names(caller).any(|routed| routed == name) || (!is_file && name != MEMORIES) {
            return None;
        }
        let is_shown = name == MEMORY || CONTEXT.contains(&name) && name != UNSHOWN;
        Some(if is_shown { DocumentUse::InPrompt } else { DocumentUse::OnRequest })
    }

    fn sandbox(&self, caller: &Caller, path: &Path) -> Option<String> {
        match self.document(caller, path) {
            Some(_) => None,
            None => self.files.sandbox(caller, path),
        }
    }

    async fn stat(&self, place: &FilePlace<'_>, path: &str) -> Result<Option<Stat>, ToolError> {
        let route = match self.route(place, path, Access::Read).await {
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
            route => route?,
        };
        match &route {
            Route::Elsewhere => behind!(self, place, |inner| self.files.stat(inner, path)),
            Route::Memories(_) => Ok(Some(directory())),
            route => Ok(self.text(place, path, route).await?.map(|(_, stat, _)| stat)),
        }
    }

    async fn read(&self, place: &FilePlace<'_>, path: &str) -> Result<(Vec<u8>, Stat), ToolError> {
        match self.route(place, path, Access::Read).await? {
            Route::Elsewhere => behind!(self, place, |inner| self.files.read(inner, path)),
            Route::Memories(_) => Err(is_directory(path)),
            route => {
                let found = self.text(place, path, &route).await?;
                let (text, stat, untrusted) = found.ok_or_else(|| absent(path))?;
                if untrusted {
                    place.caller.trace.read_untrusted();
                }
                Ok((text.into_bytes(), stat))
            }
        }
    }

    async fn mkdirp(&self, place: &FilePlace<'_>, path: &str) -> Result<(), ToolError> {
        match self.route(place, path, Access::Write).await? {
            Route::Elsewhere => behind!(self, place, |inner| self.files.mkdirp(inner, path)),
            // Directories of documents are there with what is in them.
            Route::Memories(_) => Ok(()),
            Route::Document { shelf: Shelf::Memory, path: at } if at != MEMORY => {
                let spot = Spot { shelf: Shelf::Memory, path: &at, shown: path };
                match self.shelves.get(place.caller, &spot).await? {
                    Some(_) => Err(not_directory(path)),
                    None => Ok(()),
                }
            }
            Route::Document { .. } | Route::Generated(_) => Err(not_directory(path)),
        }
    }

    async fn write(&self, place: &FilePlace<'_>, path: &str, bytes: &[u8]) -> Result<Stat, ToolError> {
        match self.route(place, path, Access::Write).await? {
            Route::Elsewhere => behind!(self, place, |inner| self.files.write(inner, path, bytes)),
            Route::Memories(_) => Err(is_directory(path)),
            Route::Generated(_) => Err(generated_only(path)),
            Route::Document { shelf, path: at } => {
                let spot = Spot { shelf, path: &at, shown: path };
                self.shelves.put(place.caller, &spot, text_of(path, bytes)?, place.expect).await
            }
        }
    }

    async fn reserve(&self, place: &FilePlace<'_>, growth: WorkspaceGrowth) -> Result<(), ToolError> {
        self.files.reserve(place, growth).await
    }

    async fn restore(
        &self,
        place: &FilePlace<'_>,
        path: &str,
        bytes: &[u8],
        mode: Option<u32>,
    ) -> Result<Stat, ToolError> {
        match self.route(place, path, Access::Write).await? {
            Route::Elsewhere => behind!(self, place, |inner| self.files.restore(inner, path, bytes, mode)),
            _ => self.write(place, path, bytes).await,
        }
    }

    async fn remove(&self, place: &FilePlace<'_>, path: &str) -> Result<(), ToolError> {
        match self.route(place, path, Access::Write).await? {
            Route::Elsewhere => behind!(self, place, |inner| self.files.remove(inner, path)),
            Route::Memories(_) => Err(is_directory(path)),
            Route::Generated(_) => Err(generated_only(path)),
            Route::Document { shelf, path: at } => {
                let spot = Spot { shelf, path: &at, shown: path };
                self.shelves.remove(place.caller, &spot, place.expect).await
            }
        }
    }

    async fn outside(&self, directory: &Path, path: &str) -> Result<Option<PathBuf>, ToolError> {
        self.files.outside(directory, path).await
    }

    async fn look(&self, place: &FilePlace<'_>, path: &str) -> Result<Sight, ToolError> {
        let route = self.route(place, path, Access::Read).await?;
        let stat = match &route {
            Route::Elsewhere => return behind!(self, place, |inner| self.files.look(inner, path)),
            Route::Memories(_) => Some(directory()),
            route => self.text(place, path, route).await?.map(|(_, stat, _)| stat),
        };
        let full = place.scope.resolve_text(place.directory, path, Access::Read)?;
        Ok(Sight {
            target: Target::File { path: path.to_owned() },
            path: Some(full.display().to_string()),
            identity: stat.map(|stat| stat.version.0.to_string()),
            credential: None,
            writable: false,
        })
    }

    async fn window(
        &self,
        place: &FilePlace<'_>,
        path: &str,
        window: &Window,
        redactor: &Arc<dyn Redactor>,
    ) -> Result<Reading, ToolError> {
        match self.route(place, path, Access::Read).await? {
            Route::Elsewhere => {
                behind!(self, place, |inner| self.files.window(inner, path, window, redactor))
            }
            _ => {
                let (bytes, stat) = self.read(place, path).await?;
                Ok(claw_core::text::window(bytes, stat.version, window, &**redactor))
            }
        }
    }

    async fn walk(&self, place: &FilePlace<'_>, walk: &Walk) -> Result<Walked, ToolError> {
        self.walk_both(place, walk).await
    }

    async fn search(
        &self,
        place: &FilePlace<'_>,
        search: &Search,
        redactor: &Arc<dyn Redactor>,
    ) -> Result<Searched, ToolError> {
        self.search_both(place, search, redactor).await
    }
}

/// Returns a document's text. Bytes that are not text are refused.
fn text_of<'a>(path: &str, bytes: &'a [u8]) -> Result<&'a str, ToolError> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| {
        ToolError::invalid(format!("`{path}` is a document in the store, which can hold only UTF-8 text"))
            .try_instead("write it to an ordinary file")
    })
}

fn directory() -> Stat {
    let version = Version("directory".into());
    Stat { directory: true, size: 0, modified: UnixMillis(0), version, mode: None }
}

fn absent(path: &str) -> ToolError {
    ToolError::not_found(format!("`{path}` does not exist"))
}

fn is_directory(path: &str) -> ToolError {
    ToolError::invalid(format!("`{path}` is a directory"))
}

fn not_directory(path: &str) -> ToolError {
    ToolError::invalid(format!("`{path}` leads through a file that is not a directory"))
}

fn generated_only(path: &str) -> ToolError {
    let message = format!("`{path}` is written by Clawsmith itself and is read-only");
    ToolError::new(ErrorKind::Forbidden, message).try_instead("write to a file of another name")
}
