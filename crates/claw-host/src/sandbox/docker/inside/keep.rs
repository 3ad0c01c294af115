//! The keeper of one command: between it and the program outside, whose pieces come and go on two streams.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, getpid, set_child_subreaper};

use super::super::super::helper::wire::{self as inner, Ending, KILL, TERMINATE};
use super::super::super::helper::{end_descendants, see_through};
use super::super::super::kernel::sys;
use super::super::wire::{self, ERRORS, INPUT, INPUT_END, OUTPUT, Pieces, Running, Told};
use super::{look, told};

/// What a pipe takes at once, if it takes anything.
const PIPE: usize = 4096;
/// How much may wait to be read outside before the command has to.
const WAITING: usize = 256 << 10;

/// Runs a command to its end. What it prints is passed on, and what is said outside heard, until then.
pub(super) fn keep(mut running: Running, input: File, mut output: File) -> io::Result<()> {
    if let Some(path) = look::wrong(&running.mounted) {
        let reason = format!("`{}` is not what it was when the container was asked for", path.display());
        return output.write_all(&told(&Told::Failed { step: "check the mounts".into(), reason }));
    }
    if let Some(at) = running.seen.iter().position(|(target, seen)| look::look(target) != *seen) {
        return output.write_all(&told(&Told::Changed(at)));
    }
    if running.script {
        let shell = ["/bin/bash", "/bin/sh"].into_iter().find(|path| Path::new(path).exists());
        let shell = shell.unwrap_or("/bin/sh").to_owned();
        running.spec.argv.splice(0..0, [shell, "-c".to_owned()]);
    }
    let of_image = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut env: std::collections::BTreeMap<_, _> = of_image.collect();
    env.extend(std::mem::take(&mut running.spec.env));
    running.spec.env = env.into_iter().collect();
    set_child_subreaper(Some(getpid()))?;
    let before = memory_kills();
    let mut keeper = Keeper::start(&running, input, output)?;
    let talked = keeper.talk();
    // Whatever became of its supervisor, nothing stays.
    end_descendants();
    talked?;
    let mut ending = keeper.ended.take().unwrap_or(Ok(killed()));
    if let Ok(ending) = &mut ending {
        ending.memory = memory_kills() > before;
    }
    keeper.waiting.extend(told(&match ending {
        Ok(ending) => Told::Ended(ending),
        Err((step, reason)) => Told::Failed { step, reason },
    }));
    while !keeper.waiting.is_empty() && keeper.input.is_some() {
        keeper.turn()?;
    }
    Ok(())
}

fn killed() -> Ending {
    Ending { signal: Some(Signal::KILL.as_raw()), ..Ending::default() }
}

/// How many processes of this container were ended because memory ran out.
fn memory_kills() -> u64 {
    let files = ["/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events"];
    let text = files.iter().find_map(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok());
    count.unwrap_or(0)
}

struct Keeper {
    /// From and to the program outside.
    input: Option<File>,
    output: File,
    pieces: Pieces,
    /// What waits to be read outside.
    waiting: Vec<u8>,
    /// To and from the supervisor of the command.
    control: Option<UnixStream>,
    ended: Option<Result<Ending, (String, String)>>,
    /// The command's streams.
    feed: Option<File>,
    fed: Vec<u8>,
    closing: bool,
    streams: Vec<(u8, File)>,
}

impl Keeper {
    fn start(running: &Running, input: File, output: File) -> io::Result<Self> {
        let null = || File::open("/dev/null").map(OwnedFd::from);
        let (stdin, feed) = match running.input {
            true => pipe_with(PipeFlags::CLOEXEC).map(|(read, write)| (read, Some(File::from(write))))?,
            false => (null()?, None),
        };
        let (out, stdout) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut streams = vec![(OUTPUT, File::from(out))];
        let stderr = match running.apart {
            false => stdout.try_clone()?,
            true => {
                let (err, stderr) = pipe_with(PipeFlags::CLOEXEC)?;
                streams.push((ERRORS, File::from(err)));
                stderr
            }
        };
        let (ours, theirs) = inner::pair()?;
        let mut held = Some((theirs, [stdin, stdout, stderr]));
        let mut mine = Some((ours, feed, streams, input, output));
        sys::fork(0, || {
            // The keeper's own ends must not stay open here, or its death would not be noticed.
            drop(mine.take());
            let null = File::open("/dev/null");
            let closed = null.and_then(|null| {
                rustix::stdio::dup2_stdin(&null)?;
                rustix::stdio::dup2_stdout(&null)?;
                Ok(rustix::stdio::dup2_stderr(&null)?)
            });
            match (closed, held.take()) {
                (Ok(()), Some((control, stdio))) => see_through(&control, &running.spec, stdio),
                _ => 1,
            }
        })?;
        drop(held);
        let (control, feed, streams, input, output) = mine.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self {
            input: Some(input),
            output,
            pieces: Pieces::default(),
            waiting: Vec::new(),
            control: Some(control),
            ended: None,
            feed,
            fed: Vec::new(),
            closing: false,
            streams,
        })
    }

    /// Until the command has ended and all that it printed was passed on.
    fn talk(&mut self) -> io::Result<()> {
        while self.control.is_some() || !self.streams.is_empty() {
            self.turn()?;
        }
        Ok(())
    }

    fn turn(&mut self) -> io::Result<()> {
        let full = self.waiting.len() >= WAITING;
        let (none, read, write) = (PollFlags::empty(), PollFlags::IN, PollFlags::OUT);
        let mut fds = Vec::new();
        // Where nobody is outside, nobody waits for what is printed.
        if let Some(input) = &self.input {
            fds.push(PollFd::new(&self.output, if self.waiting.is_empty() { none } else { write }));
            fds.push(PollFd::new(input, read));
        }
        fds.extend(self.control.iter().map(|socket| PollFd::new(socket, read)));
        let feeds = self.feed.as_ref().filter(|_| !self.fed.is_empty());
        fds.extend(feeds.map(|file| PollFd::new(file, write)));
        fds.extend(self.streams.iter().map(|(_, file)| PollFd::new(file, if full { none } else { read })));
        match poll(&mut fds, None) {
            Err(rustix::io::Errno::INTR) => return Ok(()),
            polled => polled?,
        };
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        let mut ready = ready.into_iter();
        let mut next = || ready.next().unwrap_or(false);
        let (writable, heard) = (self.input.is_some() && next(), self.input.is_some() && next());
        let said = self.control.is_some() && next();
        let hungry = self.feed.is_some() && !self.fed.is_empty() && next();
        let printed: Vec<bool> = self.streams.iter().map(|_| next()).collect();
        if writable {
            self.write();
        }
        if heard {
            self.hear();
        }
        if hungry {
            self.feed();
        }
        for (at, _) in printed.iter().enumerate().rev().filter(|(_, ready)| **ready) {
            self.pass_on(at);
        }
        if said {
            self.listen();
        }
        Ok(())
    }

    /// What the program outside reads.
    fn write(&mut self) {
        let piece = &self.waiting[..self.waiting.len().min(PIPE)];
        match self.output.write(piece) {
            Ok(written @ 1..) => drop(self.waiting.drain(..written)),
            // With nothing to write it was looked at because nobody is there to read it.
            _ => self.leave(),
        }
    }

    /// What the program outside says.
    fn hear(&mut self) {
        let mut buffer = [0; PIPE];
        let count = self.input.as_mut().map_or(0, |input| input.read(&mut buffer).unwrap_or(0));
        if count == 0 {
            return self.leave();
        }
        self.pieces.add(&buffer[..count]);
        loop {
            match self.pieces.next() {
                Ok(Some((INPUT, bytes))) => self.fed.extend(bytes),
                Ok(Some((INPUT_END, _))) => self.closing = true,
                Ok(Some((byte @ (TERMINATE | KILL), _))) => self.say(byte),
                Ok(Some(_)) | Err(_) => return self.leave(),
                Ok(None) => break,
            }
        }
        self.close_feed();
    }

    /// There is nobody outside: the command ends.
    fn leave(&mut self) {
        self.input = None;
        self.waiting.clear();
        self.say(KILL);
    }

    fn say(&mut self, byte: u8) {
        // If nobody hears it, the command has ended.
        let _ = self.control.as_mut().map(|control| control.write_all(&[byte]));
    }

    fn feed(&mut self) {
        let piece = &self.fed[..self.fed.len().min(PIPE)];
        match self.feed.as_mut().map(|feed| feed.write(piece)) {
            Some(Ok(written)) => drop(self.fed.drain(..written)),
            _ => {
                // A command may close its input before it has read everything.
                self.fed.clear();
                self.closing = true;
            }
        }
        self.close_feed();
    }

    fn close_feed(&mut self) {
        if self.closing && self.fed.is_empty() {
            self.feed = None;
        }
        if self.feed.is_none() {
            self.fed.clear();
        }
    }

    /// What the command prints.
    fn pass_on(&mut self, at: usize) {
        let mut buffer = [0; 4 * PIPE];
        let Some((kind, stream)) = self.streams.get_mut(at) else { return };
        match stream.read(&mut buffer) {
            Ok(count @ 1..) if self.input.is_some() => {
                self.waiting.extend(wire::piece(*kind, &buffer[..count]));
            }
            Ok(1..) => {}
            _ => drop(self.streams.remove(at)),
        }
    }

    /// What the command's supervisor says.
    fn listen(&mut self) {
        let Some(control) = self.control.as_mut() else { return };
        match inner::receive_frame(control) {
            Ok(inner::Told::Started { .. }) => self.waiting.extend(told(&Told::Started)),
            Ok(inner::Told::Failed { step, reason }) => self.end(Err((step, reason))),
            Ok(inner::Told::Ended(ending)) => self.end(Ok(ending)),
            // It was killed; what it held is ended next.
            Err(_) => self.end(Ok(killed())),
        }
    }

    fn end(&mut self, ended: Result<Ending, (String, String)>) {
        self.ended = Some(ended);
        self.control = None;
        // The pipes of what was ended are closed; without this they might stay open in what was not.
        end_descendants();
    }
}
