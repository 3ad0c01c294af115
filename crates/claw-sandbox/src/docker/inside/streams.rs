//! The streams of one command: pipes, or one terminal.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};

use super::super::wire::{ERRORS, OUTPUT, Running};
use crate::shell::Terminal;

/// The bytes of a stream read after its command has ended: the most a pipe holds, unless another process
/// fills it.
const LEFT: u64 = 1 << 20;

/// Our ends of a command's streams.
pub(super) struct Streams {
    /// The pipe to its standard input.
    pub(super) feed: Option<File>,
    /// The output streams.
    pub(super) printed: Vec<Printed>,
    pub(super) terminal: Option<Terminal>,
}

impl Streams {
    /// Opens new streams, and returns the command's ends of them.
    pub(super) fn open(running: &Running) -> io::Result<(Self, [OwnedFd; 3])> {
        let printed = |kind, end: OwnedFd| Printed { kind, file: File::from(end), window: running.window };
        if let Some(size) = running.terminal {
            let (terminal, theirs) = Terminal::open(size)?;
            let (feed, output) = (Some(File::from(terminal.end()?)), terminal.end()?);
            let printed = vec![printed(OUTPUT, output)];
            return Ok((Self { feed, printed, terminal: Some(terminal) }, theirs));
        }
        let (stdin, feed) = match running.input {
            true => pipe().map(|(read, write)| (read, Some(File::from(write))))?,
            false => (File::open("/dev/null")?.into(), None),
        };
        let (out, stdout) = pipe()?;
        let mut all = vec![printed(OUTPUT, out)];
        let stderr = match running.apart {
            false => stdout.try_clone()?,
            true => {
                let (err, stderr) = pipe()?;
                all.push(printed(ERRORS, err));
                stderr
            }
        };
        Ok((Self { feed, printed: all, terminal: None }, [stdin, stdout, stderr]))
    }
}

/// An output stream of a command.
pub(super) struct Printed {
    pub(super) kind: u8,
    pub(super) file: File,
    /// The bytes that may still be passed on; `None` means no limit.
    pub(super) window: Option<usize>,
}

impl Printed {
    /// Reads some bytes; an error at the end.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = self.window.unwrap_or(usize::MAX).min(buffer.len());
        match self.file.read(&mut buffer[..most]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.window = self.window.map(|window| window.saturating_sub(count));
                Ok(count)
            }
            // A terminal is not waited for.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Reads everything in it, without waiting for more.
    pub(super) fn drain(self) -> Vec<u8> {
        let mut rest = Vec::new();
        let waits =
            fcntl_getfl(&self.file).and_then(|flags| fcntl_setfl(&self.file, flags | OFlags::NONBLOCK));
        if waits.is_ok() {
            // However it ends: what was read until then counts.
            let _ = self.file.take(LEFT).read_to_end(&mut rest);
        }
        rest
    }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC)?)
}
