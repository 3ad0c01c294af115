//! Memory: search by words and similarity over the documents of a store, and the indexer that gives passages vectors.
//!
//! Search is read-only and asks a model for one vector at most. Without a model, or if it fails, the search
//! uses words alone; every answer says so.

mod combine_rankings;
mod fact_extractor;
mod graph;
mod indexer;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use claw_core::port::{
    EmbedPurpose, Embedder, MemoryFound, MemoryHost, MemoryMode, MemoryOwner, MemoryPart, MemoryQuery,
    MemoryReader, MemoryText,
};
use claw_core::provenance::{Provenance, UntrustedMemory};
use claw_core::store::{
    Document, DocumentKey, Memories, PassageQuery, Shelf, SimilarPassage, SimilarQuery, StoreError,
};
use claw_core::tool::{ErrorKind, ToolError};

pub use self::fact_extractor::{Extracted, Extractor, ExtractorOptions};
pub use self::graph::StoredGraph;
pub use self::indexer::{Indexed, Indexer};

/// The passages found by words, and by similarity, before they are fused; a multiple for more hits.
const DEPTH: usize = 100;
/// The most of them.
const MOST_DEPTH: usize = 1_000;
/// The passages that are read near a hit, beyond those that could be missing: some of them are hits themselves.
const NEAR: usize = 20;
/// The longest a search waits for the embedding of its query.
const LONGEST_EMBED: Duration = Duration::from_secs(5);
/// The most bytes of a document that one reading returns.
const LONGEST_TEXT: usize = 100_000;

/// The memory of a store.
#[derive(Clone)]
pub struct StoredMemory {
    store: Arc<dyn Memories>,
    embedder: Option<Arc<dyn Embedder>>,
    hides_untrusted: bool,
}

impl StoredMemory {
    /// Creates the memory of this store; without an embedder only words are searched.
    pub fn new(store: Arc<dyn Memories>, embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self { store, embedder, hides_untrusted: false }
    }

    /// The same memory as agents see it under this setting.
    #[must_use]
    pub fn for_agents(self, untrusted: UntrustedMemory) -> Self {
        Self { hides_untrusted: untrusted == UntrustedMemory::Hide, ..self }
    }

    /// The model that makes vectors.
    pub fn embedder(&self) -> Option<&Arc<dyn Embedder>> {
        self.embedder.as_ref()
    }

    /// The indexer of this memory.
    pub fn indexer(&self) -> Indexer {
        Indexer::new(Arc::clone(&self.store), self.embedder.clone())
    }

    /// Returns the nearest passages, or why there are none.
    pub(super) async fn similar(
        &self,
        reader: &MemoryReader,
        text: &str,
        limit: usize,
    ) -> Result<Vec<SimilarPassage>, String> {
        let Some(embedder) = &self.embedder else {
            return Err(
                "searched by words alone: no embedding model is configured (`memory.embeddings`)".to_owned()
            );
        };
        let texts = [text.to_owned()];
        let embedded = embedder.embed(&reader.tenant, &texts, EmbedPurpose::Question);
        let vector = match tokio::time::timeout(LONGEST_EMBED, embedded).await {
            Ok(Ok(vectors)) => vectors.into_iter().next().unwrap_or_default(),
            Ok(Err(error)) => return Err(format!("searched by words alone: {error}")),
            Err(_) => {
                let seconds = LONGEST_EMBED.as_secs();
                return Err(format!(
                    "searched by words alone: the embedding model did not answer within {seconds} s"
                ));
            }
        };
        let MemoryReader { tenant, agent, user } = reader.clone();
        let query = SimilarQuery { tenant, agent, user, model: embedder.model().to_owned(), vector, limit };
        let similar = self.store.similar_passages(&query).await;
        let mut similar = similar.map_err(|error| format!("searched by words alone: {error}"))?;
        similar.retain(|similar| self.shows(&similar.found.provenance));
        Ok(similar)
    }

    /// Whether documents of this origin are shown.
    fn shows(&self, provenance: &Provenance) -> bool {
        !(self.hides_untrusted && provenance.untrusted)
    }

    /// A document of a reader's, with its owner: the user's, else the agent's, else the tenant's.
    async fn document(
        &self,
        reader: &MemoryReader,
        path: &str,
    ) -> Result<Option<(Document, MemoryOwner)>, StoreError> {
        let user = reader.user.clone().map(|user| (Some(reader.agent.clone()), Some(user)));
        for (agent, user) in user.into_iter().chain([(Some(reader.agent.clone()), None), (None, None)]) {
            let key = DocumentKey {
                tenant: reader.tenant.clone(),
                agent,
                user,
                shelf: Shelf::Memory,
                path: path.to_owned(),
            };
            let document = self.store.document(&key).await?;
            if let Some(document) = document.filter(|document| self.shows(&document.provenance)) {
                return Ok(Some((document, owner(&key))));
            }
        }
        Ok(None)
    }
}

#[async_trait]
impl MemoryHost for StoredMemory {
    async fn search(&self, reader: &MemoryReader, query: &MemoryQuery) -> Result<MemoryFound, ToolError> {
        // Documents of a copied store wait for their words; there are none otherwise.
        self.indexer().index_words().await.map_err(down)?;
        let mut depth = DEPTH.max(query.limit.saturating_mul(4)).min(MOST_DEPTH);
        if self.hides_untrusted {
            // Hidden passages must not use up the places of others.
            depth = MOST_DEPTH;
        }
        let MemoryReader { tenant, agent, user } = reader.clone();
        let asked = PassageQuery { tenant, agent, user, text: query.text.clone(), limit: depth };
        // At the same time: one waits for the database, the other for the model first.
        let (by_words, similar) =
            tokio::join!(self.store.search_passages(&asked), self.similar(reader, &query.text, depth));
        let mut by_words = by_words.map_err(down)?;
        by_words.retain(|found| self.shows(&found.provenance));
        let (similar, note) = match similar {
            Ok(similar) => (similar, None),
            Err(note) => (Vec::new(), Some(note)),
        };
        let mode = if note.is_some() { MemoryMode::Words } else { MemoryMode::Hybrid };
        let fused = combine_rankings::Fused::new(by_words, similar, query.limit);
        let mut near = match fused.missing() {
            0 => Vec::new(),
            missing => {
                let (places, most) = (fused.places(), missing.saturating_add(NEAR));
                self.store.passages_near(&places, most).await.map_err(down)?
            }
        };
        for near in &mut near {
            near.retain(|found| self.shows(&found.provenance));
        }
        Ok(MemoryFound { hits: fused.hits(mode, near), mode, note })
    }

    async fn get(&self, reader: &MemoryReader, part: &MemoryPart) -> Result<Option<MemoryText>, ToolError> {
        let Some((document, owner)) = self.document(reader, &path(&part.path)).await.map_err(down)? else {
            return Ok(None);
        };
        let total = document.text.lines().count() as u64;
        let skip = usize::try_from(part.from.saturating_sub(1)).unwrap_or(usize::MAX);
        let most = usize::try_from(part.lines).unwrap_or(usize::MAX);
        let mut bytes = 0;
        let lines = document.text.lines().skip(skip).take(most).take_while(|line| {
            bytes += line.len() + 1;
            // A line that is longer by itself is cut below.
            bytes <= LONGEST_TEXT || bytes == line.len() + 1
        });
        let lines: Vec<&str> = lines.collect();
        let mut text = lines.join("\n");
        text.truncate(text.floor_char_boundary(LONGEST_TEXT));
        Ok(Some(MemoryText {
            path: document.key.path,
            owner,
            version: document.version,
            at: document.at,
            provenance: document.provenance,
            total,
            start_line: part.from.max(1),
            end_line: part.from.max(1) + lines.len() as u64 - u64::from(!lines.is_empty() || part.from > 1),
            text,
        }))
    }

    async fn paths(&self, reader: &MemoryReader) -> Result<Vec<String>, ToolError> {
        let (tenant, user) = (&reader.tenant, reader.user.as_ref());
        let own =
            self.store.documents(tenant, Some(&reader.agent), user, Shelf::Memory).await.map_err(down)?;
        let shared = self.store.documents(tenant, None, None, Shelf::Memory).await.map_err(down)?;
        let shown = own.into_iter().chain(shared).filter(|card| self.shows(&card.provenance));
        let paths: BTreeSet<String> = shown.map(|card| card.key.path).collect();
        Ok(paths.into_iter().collect())
    }
}

/// The owner of a document.
pub fn owner(key: &DocumentKey) -> MemoryOwner {
    match (&key.agent, &key.user) {
        (Some(_), Some(_)) => MemoryOwner::User,
        (Some(_), None) => MemoryOwner::Agent,
        (None, _) => MemoryOwner::Tenant,
    }
}

/// Normalizes the path of a document as people and models write it.
pub fn path(written: &str) -> String {
    let path = written.trim().trim_start_matches("./").trim_start_matches('/');
    if path == "memory.md" { "MEMORY.md".to_owned() } else { path.to_owned() }
}

/// Returns whether a path can be shown as it is: it holds no control characters, line breaks or direction
/// marks, with which a name could pass for a line of a list.
pub fn is_readable(path: &str) -> bool {
    let is_mark = |c: char| matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    !path.chars().any(|c| c.is_control() || is_mark(c))
}

fn down(error: StoreError) -> ToolError {
    ToolError::new(ErrorKind::Unavailable, "the memory cannot be reached right now")
        .try_instead("try again later")
        .because(error)
}

impl std::fmt::Debug for StoredMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let model = self.embedder.as_ref().map(|embedder| embedder.model());
        f.debug_struct("StoredMemory").field("model", &model).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
