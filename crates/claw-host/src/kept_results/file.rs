//! Kept results in files.

use std::cmp::Reverse;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use claw_core::port::{Artifact, ArtifactStore, Owner, Part};
use claw_core::tool::{Digest, ErrorKind as Kind, ToolError};
use claw_core::{ArtifactId, CallId};

use super::{ArtifactLimits, check_first, count_lines, not_found};

/// Kept results below a data directory, in `artifacts/`: a directory for each session, a file for each text.
/// The file's name holds all its metadata, `<id>.<call>.<lines>.txt`, so that no index can disagree.
#[derive(Debug, Clone)]
pub struct FileArtifacts {
    directory: PathBuf,
    limits: ArtifactLimits,
}

impl FileArtifacts {
    /// Creates a store below `data`, in a directory of its own that is made with the first text. Tenants name
    /// directories in it, so they cannot collide with other data below `data`.
    pub fn new(data: impl AsRef<Path>, limits: ArtifactLimits) -> Self {
        Self { directory: data.as_ref().join("artifacts"), limits }
    }

    /// Removes a text; a missing one counts as removed.
    pub(super) async fn remove(&self, owner: &Owner, artifact: Artifact) -> Result<(), ToolError> {
        let place = self.place(owner);
        blocking(move || Ok(remove(&place, &artifact)?)).await
    }

    /// Returns the directory of an owner's texts. A session key may hold any character, so the directory is
    /// named by its hash.
    fn place(&self, owner: &Owner) -> PathBuf {
        let hash = Digest::of_bytes(owner.session.as_str().as_bytes()).to_string();
        let hash = hash.strip_prefix("sha256:").unwrap_or(&hash);
        self.directory.join(owner.tenant.as_str()).join(hash)
    }
}

#[async_trait]
impl ArtifactStore for FileArtifacts {
    async fn put(&self, owner: &Owner, call: CallId, text: &str) -> Result<Artifact, ToolError> {
        self.limits.admit(text)?;
        let (place, limits, text) = (self.place(owner), self.limits, text.to_owned());
        blocking(move || {
            let artifact = write(&place, call, &text)?;
            drop_oldest(&place, limits)?;
            Ok(artifact)
        })
        .await
    }

    async fn list(&self, owner: &Owner) -> Result<Vec<Artifact>, ToolError> {
        let place = self.place(owner);
        blocking(move || Ok(list(&place)?)).await
    }

    async fn lines(
        &self,
        owner: &Owner,
        id: ArtifactId,
        first: usize,
        count: usize,
    ) -> Result<Part, ToolError> {
        let place = self.place(owner);
        blocking(move || {
            let artifact = list(&place)?.into_iter().find(|artifact| artifact.id == id);
            let artifact = artifact.ok_or_else(|| not_found(id))?;
            check_first(&artifact, first)?;
            let file = match File::open(place.join(name(&artifact))) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Err(not_found(id).into()),
                file => file?,
            };
            let (text, count) = read(BufReader::new(file), first, count)?;
            Ok(Part { text, first, count, total: artifact.lines })
        })
        .await
    }
}

/// Runs `work` on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(Failure::Told(error))) => Err(error),
        Ok(Err(Failure::Io(error))) => {
            Err(ToolError::new(Kind::Unavailable, "kept results cannot be reached").because(error))
        }
        Err(stopped) => Err(ToolError::internal(stopped)),
    }
}

enum Failure {
    Told(ToolError),
    Io(io::Error),
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Self::Told(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Writes a text under another name first, so that a file with its own name is always whole.
fn write(place: &Path, call: CallId, text: &str) -> io::Result<Artifact> {
    let artifact = Artifact { id: ArtifactId::new(), call, bytes: text.len(), lines: count_lines(text) };
    DirBuilder::new().recursive(true).mode(0o700).create(place).map_err(naming(place))?;
    let unfinished = place.join(format!("{}.part", artifact.id));
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(0o600).open(&unfinished);
    let written = opened
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&unfinished, place.join(name(&artifact))));
    if let Err(error) = written {
        // A partly written file must not take room; a failure to remove it changes nothing.
        let _ = fs::remove_file(&unfinished);
        return Err(naming(&unfinished)(error));
    }
    Ok(artifact)
}

fn drop_oldest(place: &Path, limits: ArtifactLimits) -> io::Result<()> {
    let kept = list(place)?;
    let fitting = limits.fitting(kept.iter().map(|artifact| artifact.bytes));
    kept[fitting..].iter().try_for_each(|artifact| remove(place, artifact))
}

fn remove(place: &Path, artifact: &Artifact) -> io::Result<()> {
    match fs::remove_file(place.join(name(artifact))) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(naming(place)(error)),
        _ => Ok(()),
    }
}

/// Lists the kept results, newest first: ids sort by time.
fn list(place: &Path) -> io::Result<Vec<Artifact>> {
    let files = match fs::read_dir(place) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        files => files.map_err(naming(place))?,
    };
    let mut kept = Vec::new();
    for file in files {
        let file = file.map_err(naming(place))?;
        let Some((id, call, lines)) = file.file_name().to_str().and_then(parse) else { continue };
        match file.metadata() {
            Ok(file) => kept.push(Artifact { id, call, bytes: file.len() as usize, lines }),
            // Another put made room meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(naming(place)(error)),
        }
    }
    kept.sort_unstable_by_key(|artifact| Reverse(artifact.id));
    Ok(kept)
}

fn name(artifact: &Artifact) -> String {
    format!("{}.{}.{}.txt", artifact.id, artifact.call, artifact.lines)
}

fn parse(name: &str) -> Option<(ArtifactId, CallId, usize)> {
    let (id, rest) = name.strip_suffix(".txt")?.split_once('.')?;
    let (call, lines) = rest.split_once('.')?;
    Some((id.parse().ok()?, call.parse().ok()?, lines.parse().ok()?))
}

/// Reads lines `first..first + count`, and returns how many there were. Keeps no others in memory.
fn read(mut file: impl BufRead, first: usize, count: usize) -> io::Result<(String, usize)> {
    for _ in 1..first {
        file.skip_until(b'\n')?;
    }
    let (mut bytes, mut found) = (Vec::new(), 0);
    while found < count && file.read_until(b'\n', &mut bytes)? > 0 {
        found += 1;
    }
    // It was text when it was kept.
    Ok((String::from_utf8_lossy(&bytes).into_owned(), found))
}

/// Adds the path to an error; the log shows it, the model does not see it.
fn naming(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
}
