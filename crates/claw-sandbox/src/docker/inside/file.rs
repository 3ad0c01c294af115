//! File operations inside: the same code as on the machine, over the container's own tree.

use std::fs::File;
use std::io::{self, Read as _, Write as _};

use claw_core::port::{EntryKind, Expect, FilePlace, FsBridge as _, Walk};
use claw_core::tool::{Caller, ToolError};
use claw_core::{AgentId, SessionKey};

use super::super::wire::{self, Act, Expected, Filed, Filing, INPUT, INPUT_END, OUTPUT, Pieces, Told};
use super::told;
use claw_host::files::LocalFiles;

/// The bytes of a file passed on at once.
const PIECE: usize = 256 << 10;

/// Performs the operation, and sends its result.
pub(super) fn file(filing: Filing, input: File, mut output: File) -> io::Result<()> {
    let bytes = match filing.act {
        Act::Write { .. } => received(input)?,
        _ => Vec::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let filed = runtime.block_on(done(&filing, &bytes, &mut output))?;
    let filed = filed.unwrap_or_else(|error| Filed::Failed {
        kind: error.kind,
        message: error.message,
        advice: error.advice,
        details: error.details.map(|details| *details),
    });
    output.write_all(&told(&Told::Filed(filed)))
}

/// Receives the content to write. It must be complete: an input that breaks off is an error.
fn received(mut input: File) -> io::Result<Vec<u8>> {
    let (mut pieces, mut bytes, mut buffer) = (Pieces::default(), Vec::new(), vec![0; PIECE]);
    loop {
        while let Some((kind, piece)) = pieces.next().map_err(|_| io::ErrorKind::InvalidData)? {
            match kind {
                INPUT => bytes.extend(piece),
                INPUT_END => return Ok(bytes),
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
        match input.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => pieces.add(&buffer[..count]),
        }
    }
}

/// The first error is that of the stream, the second the file's.
async fn done(filing: &Filing, bytes: &[u8], output: &mut File) -> io::Result<Result<Filed, ToolError>> {
    // Nobody asks who it is; the scope says what may be reached.
    let agent = AgentId::new("inside").map_err(io::Error::other)?;
    let session = SessionKey::new("inside:container").map_err(io::Error::other)?;
    let caller = Caller::new(agent, session, &filing.directory);
    let expect = match &filing.expect {
        Expected::Anything => Expect::Anything,
        Expected::Absent => Expect::Absent,
        Expected::Version(version) => Expect::Version(version),
    };
    let place = FilePlace { caller: &caller, directory: &filing.directory, scope: &filing.scope, expect };
    let (files, path) = (LocalFiles::new(), filing.path.as_str());
    Ok(match &filing.act {
        Act::Stat => files.stat(&place, path).await.map(Filed::Stat),
        Act::Read => match files.read(&place, path).await {
            Ok((bytes, stat)) => {
                pass_on(&bytes, output)?;
                Ok(Filed::Stat(Some(stat)))
            }
            Err(error) => Err(error),
        },
        Act::Mkdirp => files.mkdirp(&place, path).await.map(|()| Filed::Done),
        Act::Write { mode: None } => {
            files.write(&place, path, bytes).await.map(|stat| Filed::Stat(Some(stat)))
        }
        Act::Write { mode } => {
            files.restore(&place, path, bytes, *mode).await.map(|stat| Filed::Stat(Some(stat)))
        }
        Act::Remove => files.remove(&place, path).await.map(|()| Filed::Done),
        Act::Look => {
            let sight = files.look(&place, path).await;
            sight.map(|sight| Filed::Looked { path: sight.path, identity: sight.identity })
        }
        Act::Walk(walk) => files.walk(&place, walk).await.map(Filed::Walked),
        Act::Fetch(walk) => match files.walk(&place, walk).await {
            Ok(walked) => {
                fetch(&files, &place, walk, &walked.entries, output).await?;
                Ok(Filed::Walked(walked))
            }
            Err(error) => Err(error),
        },
    })
}

async fn fetch(
    files: &LocalFiles,
    place: &FilePlace<'_>,
    walk: &Walk,
    entries: &[claw_core::port::Entry],
    output: &mut File,
) -> io::Result<()> {
    for entry in entries.iter().filter(|entry| entry.kind == EntryKind::File) {
        let path = match entry.path.as_str() {
            "" => walk.path.clone(),
            below => format!("{}/{below}", walk.path.trim_end_matches('/')),
        };
        let read = files.read(place, &path).await;
        let fetched = Told::Fetched { path: entry.path.clone(), readable: read.is_ok() };
        output.write_all(&told(&fetched))?;
        if let Ok((bytes, _)) = read {
            pass_on(&bytes, output)?;
        }
    }
    Ok(())
}

fn pass_on(bytes: &[u8], output: &mut File) -> io::Result<()> {
    bytes.chunks(PIECE).try_for_each(|piece| output.write_all(&wire::piece(OUTPUT, piece)))
}
