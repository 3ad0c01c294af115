//! The protocol between the program and its helper: frames of JSON over a socket, with descriptors attached.

use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::super::kernel::cgroup::Places;
use super::super::{Limits, Reach};

/// Asks the helper for a command.
pub(crate) const RUN: u8 = b'R';
/// Asks the helper which features work here.
pub(crate) const PROBE: u8 = b'P';
/// Asks a command's processes to end.
pub(crate) const TERMINATE: u8 = b'T';
/// Ends them.
pub(crate) const KILL: u8 = b'K';

/// The most bytes of a frame: a script is an argument, and the kernel takes no more than this for all of
/// them.
const MOST: usize = 8 << 20;

/// A command and its confinement.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Spec {
    pub(crate) argv: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) directory: PathBuf,
    pub(crate) limits: Limits,
    pub(crate) cgroup: Option<Places>,
    /// `None` runs it on the host.
    pub(crate) confined: Option<Confined>,
    /// True if its streams are the terminal that it runs on.
    pub(crate) terminal: bool,
}

/// The confinement of a command in the sandbox.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Confined {
    pub(crate) reach: Reach,
    /// Namespaces, as flags of `clone`.
    pub(crate) namespaces: i32,
    pub(crate) own_proc: bool,
    pub(crate) landlock: Option<u32>,
    pub(crate) seccomp: bool,
    /// True if it sees the machine's file tree, which holds sockets of other programs.
    pub(crate) shares_files: bool,
    /// True if it sees the processes of the machine.
    pub(crate) shares_processes: bool,
}

/// A message of the helper about a command.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Told {
    /// The command runs. `pid` is its id in the sender's namespace; a process that forwards the message
    /// corrects it.
    Started {
        pid: u32,
    },
    Failed {
        step: String,
        reason: String,
    },
    Ended(Ending),
}

/// The end of a command.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Ending {
    pub(crate) exit: Option<i32>,
    pub(crate) signal: Option<i32>,
    /// Processes still alive when the command itself had ended.
    pub(crate) stragglers: u32,
    pub(crate) disk: bool,
    pub(crate) memory: bool,
    /// File systems in memory that were full, with their sizes in bytes.
    #[serde(default)]
    pub(crate) full: Vec<(PathBuf, u64)>,
}

pub(crate) fn send_frame(mut socket: impl Write, frame: &impl Serialize) -> io::Result<()> {
    socket.write_all(&frame_bytes(frame)?)
}

pub(crate) fn frame_bytes(frame: &impl Serialize) -> io::Result<Vec<u8>> {
    let body = serde_json::to_vec(frame).map_err(io::Error::other)?;
    let length = u32::try_from(body.len()).ok().filter(|length| *length as usize <= MOST);
    let length = length.ok_or_else(|| io::Error::other("the command is longer than the kernel accepts"))?;
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend(body);
    Ok(bytes)
}

pub(crate) fn receive_frame<T: DeserializeOwned>(mut socket: impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    socket.read_exact(&mut length)?;
    let length = frame_length(length)?;
    let mut body = vec![0; length];
    socket.read_exact(&mut body)?;
    serde_json::from_slice(&body).map_err(io::Error::other)
}

pub(crate) fn frame_length(bytes: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_le_bytes(bytes) as usize;
    if length > MOST { Err(io::Error::other("the frame is too long")) } else { Ok(length) }
}

/// Sends one byte and descriptors with it.
pub(crate) fn send_fds(socket: impl AsFd, byte: u8, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut buffer = SendAncillaryBuffer::new(&mut space);
    if !buffer.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::other("too many descriptors"));
    }
    rustix::net::sendmsg(socket, &[io::IoSlice::new(&[byte])], &mut buffer, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives one byte and the descriptors with it; `None` when the other side is gone.
pub(crate) fn receive_fds(socket: impl AsFd) -> io::Result<Option<(u8, Vec<OwnedFd>)>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut buffer = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let got = rustix::io::retry_on_intr(|| {
        let mut into = [IoSliceMut::new(&mut byte)];
        rustix::net::recvmsg(&socket, &mut into, &mut buffer, RecvFlags::CMSG_CLOEXEC)
    })?;
    let fds = buffer.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => fds.collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    let fds = fds.collect();
    Ok((got.bytes > 0).then_some((byte[0], fds)))
}

pub(crate) fn pair() -> io::Result<(UnixStream, UnixStream)> {
    UnixStream::pair()
}
