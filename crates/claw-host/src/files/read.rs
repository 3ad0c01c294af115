//! Reading: only regular files, and never waiting for anybody.

use std::fs::File;
use std::io::Read as _;

use claw_core::port::Stat;
use claw_core::tool::{Sight, Target};
use rustix::fs::Stat as Raw;
use rustix::io::Errno;

use super::Request;
use super::failure::Failure;
use super::handle::{self, Id, check_file_system, check_links, check_regular, is_directory, same_content};
use super::resolve::{Missing, ResolvedPath, again};
use super::roots::Reach;

/// The number of attempts to read a file that changes while it is read.
const TRIES: usize = 3;

/// Returns the metadata of the file at the path; `None` if there is none.
pub(super) fn stat(request: &Request) -> Result<Option<Stat>, Failure> {
    let reach = request.reach(false)?;
    let found = match request.find(&reach, Missing::Leave) {
        Err(Failure::Missing | Failure::Denied | Failure::NotDirectory) => return Ok(None),
        found => found?,
    };
    let Some(raw) = found.raw else { return Ok(None) };
    if !is_directory(&raw) {
        check_regular(&raw)?;
        check_links(&raw)?;
    }
    Ok(Some(handle::stat(&raw)))
}

/// Reads a file, and returns its bytes with the metadata that belongs to them.
pub(super) fn read(request: &Request) -> Result<(Vec<u8>, Stat), Failure> {
    let reach = request.reach(false)?;
    again(|| {
        let found = request.find(&reach, Missing::Leave)?;
        let (mut file, raw) = open(&reach, &found)?;
        let (bytes, raw) = settled(&mut file, raw)?;
        Ok((bytes, handle::stat(&raw)))
    })
}

/// Reads an opened file, and returns its bytes with the metadata that belongs to them.
pub(super) fn settled(file: &mut File, mut before: Raw) -> Result<(Vec<u8>, Raw), Failure> {
    for _ in 1..TRIES {
        let bytes = whole(file, &before)?;
        let after = rustix::fs::fstat(&*file)?;
        if same_content(&before, &after) {
            return Ok((bytes, before));
        }
        std::io::Seek::rewind(file)?;
        before = after;
    }
    // Somebody writes it all the time. The state is the one before, so that it never passes for unchanged.
    Ok((whole(file, &before)?, before))
}

/// Opens the file that was found. The opened file is checked again: it alone counts.
pub(super) fn open(reach: &Reach, found: &ResolvedPath) -> Result<(File, Raw), Failure> {
    let (Some(name), Some(raw)) = (&found.name, &found.raw) else {
        return Err(if found.name.is_none() { Failure::IsDirectory } else { Failure::Missing });
    };
    // So that a device or a pipe is not even opened.
    check_regular(raw)?;
    let (file, raw) = match found.directory.open(name) {
        Err(Errno::LOOP | Errno::NOENT) => return Err(Failure::Moved),
        opened => opened?,
    };
    check_opened(reach, found.directory.id, &file, &raw)?;
    Ok((file, raw))
}

/// Checks that a file opened in a directory may be used.
pub(super) fn check_opened(reach: &Reach, within: Id, file: &File, raw: &Raw) -> Result<(), Failure> {
    check_regular(raw)?;
    check_links(raw)?;
    if reach.denied.is_denied(Id::of(raw)) {
        return Err(Failure::Denied);
    }
    if raw.st_dev != within.device { check_file_system(file) } else { Ok(()) }
}

fn whole(file: &mut File, raw: &Raw) -> Result<Vec<u8>, Failure> {
    let size = handle::size(raw);
    let mut bytes = Vec::new();
    // One more than there should be, so that a single read finds the end as well.
    let room = usize::try_from(size).ok().and_then(|size| size.checked_add(1));
    room.and_then(|room| bytes.try_reserve_exact(room).ok()).ok_or(Failure::TooLarge(size))?;
    loop {
        let had = bytes.len();
        rustix::io::retry_on_intr(|| rustix::io::read(&*file, rustix::buffer::spare_capacity(&mut bytes)))?;
        if bytes.len() == had || (bytes.len() as u64 == size && bytes.capacity() > bytes.len()) {
            return Ok(bytes);
        }
        if bytes.len() == bytes.capacity() {
            // It grows while it is read.
            bytes.try_reserve(64 * 1024).map_err(|_| Failure::TooLarge(size))?;
            file.read_to_end(&mut bytes)?;
            return Ok(bytes);
        }
    }
}

/// Looks at a file that a plan names.
pub(super) fn look(request: &Request) -> Result<Sight, Failure> {
    let reach = request.reach(false)?;
    let sight = |path, identity| Sight {
        target: Target::File { path: request.path.clone() },
        path,
        identity,
        credential: None,
        writable: false,
    };
    // Step by step, since the kernel does not say where it went.
    let found = match request.find_stepwise(&reach) {
        Err(Failure::Missing) => return Ok(sight(None, None)),
        found => found?,
    };
    if let Some(raw) = &found.raw
        && !is_directory(raw)
    {
        check_regular(raw)?;
        check_links(raw)?;
    }
    let identity = found.raw.as_ref().map(|raw| handle::version(raw).0.to_string());
    Ok(sight(found.real(&reach).map(|real| real.display().to_string()), identity))
}
