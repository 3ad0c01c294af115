//! Files of your own: a handbook that is part of the program, which tools read and cannot change.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use clawsmith::port::{Access, FilePlace, FsBridge, Stat, Version};
use clawsmith::{
    AgentId, Caller, Digest, ErrorKind, Request, SessionKey, Sight, SystemClock, Target, ToolError, Toolbox,
    UnixMillis, World,
};
use serde_json::json;

/// Pages by their absolute paths. The guard confines callers to their workspace by the text of a path.
struct Handbook(BTreeMap<String, &'static str>);

impl Handbook {
    /// The page at a path of the caller's workspace; `None` if there is none.
    fn page(&self, place: &FilePlace<'_>, path: &str) -> Result<(String, Option<&'static str>), ToolError> {
        let full = place.scope.resolve_text(place.directory, path, Access::Read)?.display().to_string();
        let page = self.0.get(&full).copied();
        Ok((full, page))
    }
}

fn stat_of(page: &str) -> Stat {
    Stat {
        directory: false,
        size: page.len() as u64,
        modified: UnixMillis::default(),
        version: Version(Digest::of_bytes(page.as_bytes()).to_string().into()),
        mode: None,
    }
}

fn unchangeable(path: &str) -> ToolError {
    ToolError::new(ErrorKind::Forbidden, format!("`{path}` is part of the handbook, which cannot be changed"))
}

#[async_trait]
impl FsBridge for Handbook {
    async fn stat(&self, place: &FilePlace<'_>, path: &str) -> Result<Option<Stat>, ToolError> {
        Ok(self.page(place, path)?.1.map(stat_of))
    }

    async fn read(&self, place: &FilePlace<'_>, path: &str) -> Result<(Vec<u8>, Stat), ToolError> {
        let page = self.page(place, path)?.1;
        let page =
            page.ok_or_else(|| ToolError::new(ErrorKind::NotFound, format!("there is no `{path}`")))?;
        Ok((page.as_bytes().to_vec(), stat_of(page)))
    }

    async fn mkdirp(&self, _: &FilePlace<'_>, path: &str) -> Result<(), ToolError> {
        Err(unchangeable(path))
    }

    async fn write(&self, _: &FilePlace<'_>, path: &str, _: &[u8]) -> Result<Stat, ToolError> {
        Err(unchangeable(path))
    }

    async fn look(&self, place: &FilePlace<'_>, path: &str) -> Result<Sight, ToolError> {
        let (full, page) = self.page(place, path)?;
        Ok(Sight {
            target: Target::File { path: path.to_owned() },
            path: Some(full),
            identity: page.map(|page| stat_of(page).version.0.to_string()),
            credential: None,
            writable: false,
        })
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let pages = [("/handbook/ferns.md", "Water the ferns on Mondays.\n")];
    let handbook = Handbook(pages.map(|(path, page)| (path.to_owned(), page)).into());
    let mut world = World::new(Arc::new(SystemClock));
    world.bridge = Some(Arc::new(handbook));
    let toolbox = Toolbox::builder().world(world).build()?;
    let caller = Caller::new(AgentId::new("gardener")?, SessionKey::new("demo:1")?, "/handbook");
    let offer = toolbox.offer(caller).await;

    let read = Request::new("read_file", json!({ "path": "ferns.md" }));
    let read = toolbox.execute(&offer, read).await.model_text();
    println!("{read}\n");
    assert!(read.contains("on Mondays"));

    let write = Request::new("write_file", json!({ "path": "ferns.md", "content": "Never." }));
    let written = toolbox.execute(&offer, write).await.model_text();
    println!("{written}");
    assert!(!written.contains("wrote"));
    Ok(())
}
