//! Memory documents: searching, reading, writing, moving in and out, and how far they are indexed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use claw_core::port::{
    Clock as _, Embedder, MemoryFound, MemoryHost as _, MemoryOwner, MemoryPart, MemoryQuery, MemoryReader,
    MemoryText,
};
use claw_core::provenance::Provenance;
use claw_core::store::{DocumentCard, DocumentKey, DocumentWrite, MemoryState, Shelf, StoreError};
use claw_core::tool::ToolError;
use claw_host::SystemClock;
use claw_host::recall::{self, Indexed, StoredMemory};
use claw_llm::Keys;
use serde::Serialize;

use super::{App, Error, Setup};

/// The longest document that is imported, in bytes.
const LONGEST_FILE: u64 = 8 * 1024 * 1024;
/// The deepest directory that is imported from.
const DEEPEST: usize = 32;
/// The file of an export that holds the origins of documents.
const ORIGINS: &str = "provenance.json";
/// The file that is a memory document by itself.
const MEMORY: &str = "MEMORY.md";

/// The outcome of one imported file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportedFile {
    /// The path of the document.
    pub path: String,
    /// `added`, `changed`, `unchanged` or `skipped`.
    pub state: &'static str,
    /// Why it was skipped; `None` if it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A memory document in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct MemoryCard {
    /// The owner.
    pub owner: MemoryOwner,
    /// The document.
    #[serde(flatten)]
    pub card: DocumentCard,
}

/// The progress of indexing memory, and its model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct MemoryStatus {
    /// The embedding model; `None` if only words are searched.
    pub model: Option<String>,
    /// The state of the tenant's documents.
    #[serde(flatten)]
    pub state: MemoryState,
}

impl Setup {
    /// Returns the configured embedding model, if any.
    pub fn embedder(&self, keys: Arc<dyn Keys>) -> Result<Option<Arc<dyn Embedder>>, Error> {
        let Some(config) = &self.config().memory.embeddings else { return Ok(None) };
        let file = self.loaded.found.as_ref().and_then(|found| found.path.parent());
        let directory = file.unwrap_or(&self.around.directory);
        let embedder = claw_llm::embedder(config, directory, keys).map_err(|error| {
            Error::invalid(format!("`memory.embeddings.{}` {}", error.key, error.reason))
                .hint("see docs/memory.md")
        })?;
        Ok(Some(embedder))
    }
}

impl App {
    /// The memory of the store.
    pub fn memory(&self) -> Result<StoredMemory, Error> {
        let embedder = match self.embedder.get() {
            Some(embedder) => embedder.clone(),
            None => {
                // A local model is read once.
                let embedder = self.setup.embedder(self.keys(None)?)?;
                self.embedder.get_or_init(|| embedder).clone()
            }
        };
        Ok(StoredMemory::new(Arc::clone(&self.store) as _, embedder))
    }

    /// Returns the passages that best answer a reader's question.
    pub async fn search_memory(
        &self,
        reader: &MemoryReader,
        query: &MemoryQuery,
    ) -> Result<MemoryFound, Error> {
        self.memory()?.search(reader, query).await.map_err(told)
    }

    /// Lines of a document of the reader's.
    pub async fn read_memory(&self, reader: &MemoryReader, part: &MemoryPart) -> Result<MemoryText, Error> {
        let found = self.memory()?.get(reader, part).await.map_err(told)?;
        found.ok_or_else(|| no_document(&part.path))
    }

    /// The documents that a reader can read: the user's, the agent's, the tenant's; by path, then nearest first.
    pub async fn list_memory(&self, reader: &MemoryReader) -> Result<Vec<MemoryCard>, Error> {
        let (tenant, user) = (&reader.tenant, reader.user.as_ref());
        let own = self.store.documents(tenant, Some(&reader.agent), user, Shelf::Memory).await?;
        let shared = self.store.documents(tenant, None, None, Shelf::Memory).await?;
        let cards = own.into_iter().chain(shared);
        let mut cards: Vec<MemoryCard> =
            cards.map(|card| MemoryCard { owner: recall::owner(&card.key), card }).collect();
        cards.sort_by(|one, other| (&one.card.key.path, one.owner).cmp(&(&other.card.key.path, other.owner)));
        Ok(cards)
    }

    /// Writes a document, replacing any other; returns its version. Its words are searchable at once.
    pub async fn write_memory(
        &self,
        reader: &MemoryReader,
        owner: MemoryOwner,
        path: &str,
        text: &str,
    ) -> Result<u64, Error> {
        self.write_memory_of(&memory_key(reader, owner, path)?, text, Provenance::default()).await
    }

    /// Writes a document of this origin, for which a person answers.
    async fn write_memory_of(
        &self,
        key: &DocumentKey,
        text: &str,
        provenance: Provenance,
    ) -> Result<u64, Error> {
        loop {
            let seen = self.store.document(key).await?.map(|document| document.version);
            let write = DocumentWrite { text, seen, at: SystemClock.now(), provenance, keeps_mark: false };
            match self.store.write_document(key, write).await {
                Err(StoreError::Stale { .. }) => {}
                written => return Ok(written?),
            }
        }
    }

    /// Removes a document of this owner.
    pub async fn forget_memory(
        &self,
        reader: &MemoryReader,
        owner: MemoryOwner,
        path: &str,
    ) -> Result<(), Error> {
        let key = memory_key(reader, owner, path)?;
        loop {
            let Some(document) = self.store.document(&key).await? else { return Err(no_document(&key.path)) };
            match self.store.remove_document(&key, document.version, SystemClock.now()).await {
                Err(StoreError::Stale { .. }) => {}
                removed => return Ok(removed?),
            }
        }
    }

    /// Imports the Markdown and text files below a directory, with the origins that an export wrote beside them. A file that
    /// is there with the same text and origin stays as it is.
    pub async fn import_memory(
        &self,
        reader: &MemoryReader,
        owner: MemoryOwner,
        directory: &Path,
    ) -> Result<Vec<ImportedFile>, Error> {
        let from = directory.to_owned();
        let read = move || Ok::<_, Error>((files_below(&from)?, origins_in(&from)?));
        let read = tokio::task::spawn_blocking(read).await;
        let (files, origins) = read.map_err(|error| Error::failed("the import stopped").because(error))??;
        let mut imported = Vec::with_capacity(files.len());
        for (relative, text) in files {
            let path = document_path(&relative);
            let text = match text {
                Ok(text) => text,
                Err(why) => {
                    imported.push(ImportedFile { path, state: "skipped", why: Some(why) });
                    continue;
                }
            };
            let key = match memory_key(reader, owner, &path) {
                Ok(key) => key,
                Err(why) => {
                    imported.push(ImportedFile {
                        path,
                        state: "skipped",
                        why: Some(why.message().to_owned()),
                    });
                    continue;
                }
            };
            let known = self.store.document(&key).await?;
            let origin = origins.get(&key.path).copied();
            let state = match &known {
                Some(known)
                    if known.text == text && origin.is_none_or(|origin| origin == known.provenance) =>
                {
                    "unchanged"
                }
                Some(_) => "changed",
                None => "added",
            };
            if state != "unchanged" {
                self.write_memory_of(&key, &text, origin.unwrap_or_default()).await?;
            }
            imported.push(ImportedFile { path: key.path, state, why: None });
        }
        Ok(imported)
    }

    /// Writes a reader's documents to files below a directory; returns their paths there.
    pub async fn export_memory(
        &self,
        reader: &MemoryReader,
        directory: &Path,
    ) -> Result<Vec<PathBuf>, Error> {
        let mut written = Vec::new();
        let mut origins: BTreeMap<MemoryOwner, Origins> = BTreeMap::new();
        for MemoryCard { owner, card } in self.list_memory(reader).await? {
            let Some(document) = self.store.document(&card.key).await? else { continue };
            let is_plain = |part: std::path::Component<'_>| matches!(part, std::path::Component::Normal(_));
            let relative = Path::new(&card.key.path);
            if !relative.components().all(is_plain) {
                return Err(Error::failed(format!("`{}` cannot be the path of a file", card.key.path)));
            }
            let file = directory.join(owner.name()).join(relative);
            write_new(&file, document.text.as_bytes())?;
            if document.provenance != Provenance::default() {
                origins.entry(owner).or_default().insert(document.key.path, document.provenance);
            }
            written.push(file);
        }
        for (owner, origins) in origins {
            let json = serde_json::to_string_pretty(&origins).map_err(|error| {
                Error::failed("the origins of documents cannot be written").because(error)
            })?;
            write_new(&directory.join(owner.name()).join(ORIGINS), format!("{json}\n").as_bytes())?;
        }
        Ok(written)
    }

    /// Returns the progress of indexing this tenant's memory.
    pub async fn memory_status(&self) -> Result<MemoryStatus, Error> {
        let memory = self.memory()?;
        let model = memory.embedder().map(|embedder| embedder.model().to_owned());
        let state = self.store.memory_state(self.tenant(), model.as_deref()).await?;
        Ok(MemoryStatus { model, state })
    }

    /// Marks every memory document of this tenant to be indexed again, and indexes as much as possible now.
    pub async fn reindex_memory(&self) -> Result<Indexed, Error> {
        self.store.mark_unindexed(self.tenant()).await?;
        self.index_memory().await
    }

    /// Indexes pending documents: words, then vectors.
    pub async fn index_memory(&self) -> Result<Indexed, Error> {
        Ok(self.memory()?.indexer().run().await?)
    }
}

pub(super) fn told(error: ToolError) -> Error {
    Error::failed(error.to_string())
}

fn no_document(path: &str) -> Error {
    let shown: String = path.chars().take(200).collect();
    Error::not_found(format!("there is no memory document `{shown}`")).hint("clawsmith memory list")
}

/// Returns the key of an owner's document.
fn memory_key(reader: &MemoryReader, owner: MemoryOwner, path: &str) -> Result<DocumentKey, Error> {
    let path = recall::path(path);
    let is_below = path.strip_prefix("memory/").is_some_and(|below| {
        below.split('/').all(|name| !name.is_empty() && name != "." && name != ".." && name.len() <= 255)
    });
    if path != MEMORY && !(is_below && recall::is_readable(&path)) {
        let shown: String = path.chars().take(200).collect();
        return Err(Error::invalid(format!(
            "`{}` is not the path of a memory document",
            shown.escape_debug()
        ))
        .hint("use `MEMORY.md` or a path below `memory/`, without control characters"));
    }
    let (agent, user) = match owner {
        MemoryOwner::User => match &reader.user {
            Some(user) => (Some(reader.agent.clone()), Some(user.clone())),
            None => {
                return Err(Error::invalid("no user is given, so it is unknown whose memory this is")
                    .hint("name a user, or the agent"));
            }
        },
        MemoryOwner::Agent => (Some(reader.agent.clone()), None),
        MemoryOwner::Tenant => (None, None),
    };
    Ok(DocumentKey { tenant: reader.tenant.clone(), agent, user, shelf: Shelf::Memory, path })
}

/// The path of a document for a file that lies at `relative` in the imported directory.
fn document_path(relative: &str) -> String {
    if relative.eq_ignore_ascii_case(MEMORY) {
        MEMORY.to_owned()
    } else if relative.starts_with("memory/") {
        relative.to_owned()
    } else {
        format!("memory/{relative}")
    }
}

/// Origins of documents, by their paths.
type Origins = BTreeMap<String, Provenance>;

/// The origins that an export wrote to this directory; none where it did not.
fn origins_in(directory: &Path) -> Result<Origins, Error> {
    let file = directory.join(ORIGINS);
    let unread = |why: String| {
        Error::invalid(format!("`{}` cannot be read: {why}", file.display()))
            .hint("correct it, or remove it to import the files as yours")
    };
    match std::fs::metadata(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Origins::new()),
        Err(error) => return Err(unread(error.to_string())),
        Ok(about) if about.len() > LONGEST_FILE => {
            return Err(unread(format!("it has {} bytes; at most {LONGEST_FILE} are allowed", about.len())));
        }
        Ok(_) => {}
    }
    let text = std::fs::read_to_string(&file).map_err(|error| unread(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| unread(error.to_string()))
}

/// Writes a file that is not there; an export never writes over one.
fn write_new(file: &Path, bytes: &[u8]) -> Result<(), Error> {
    let write = || {
        if let Some(above) = file.parent() {
            std::fs::create_dir_all(above)?;
        }
        let mut new = std::fs::OpenOptions::new().write(true).create_new(true).open(file)?;
        std::io::Write::write_all(&mut new, bytes)
    };
    write().map_err(|error| {
        Error::failed(format!("`{}` cannot be written", file.display()))
            .because(error)
            .hint("export to a directory that is empty")
    })
}

type FoundFile = (String, Result<String, String>);

/// Texts of the files below a directory, sorted by path. Links and hidden names are left out.
fn files_below(directory: &Path) -> Result<Vec<FoundFile>, Error> {
    let mut found = Vec::new();
    let mut open = vec![(directory.to_owned(), String::new(), 0)];
    while let Some((at, relative, depth)) = open.pop() {
        let unread = |error| {
            Error::invalid(format!("`{}` cannot be read", at.display()))
                .because(error)
                .hint("name a directory of notes")
        };
        for entry in std::fs::read_dir(&at).map_err(unread)? {
            let entry = entry.map_err(unread)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let kind = entry.file_type().map_err(unread)?;
            if name.starts_with('.') {
                continue;
            }
            let path = if relative.is_empty() { name.clone() } else { format!("{relative}/{name}") };
            if kind.is_dir() && depth < DEEPEST {
                open.push((entry.path(), path, depth + 1));
            } else if kind.is_file() && is_text(&name) {
                found.push((path, text_of(&entry.path())));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_text(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| {
        ["md", "markdown", "txt"].iter().any(|known| extension.eq_ignore_ascii_case(known))
    })
}

fn text_of(file: &Path) -> Result<String, String> {
    let length = std::fs::metadata(file).map_err(|error| error.to_string())?.len();
    if length > LONGEST_FILE {
        return Err(format!("it has {length} bytes; at most {LONGEST_FILE} are allowed"));
    }
    let bytes = std::fs::read(file).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    if text.contains('\0') { Err("it holds a NUL".to_owned()) } else { Ok(text) }
}
