//! The keeper of one command: it stands between the command and the program outside, over two streams of
//! pieces.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, set_child_subreaper};

use super::super::super::helper::wire::{self as inner, Ending, KILL, Spec, TERMINATE};
use super::super::super::helper::{end_descendants, see_through};
use super::super::super::kernel::sys;
use super::super::wire::{self, INPUT, INPUT_END, MORE, Pieces, READING, Running, SIZE, Told};
use super::streams::Streams;
use super::{look, told};
use crate::Grant;

/// The bytes that a writable pipe accepts at once.
const PIPE: usize = 4096;
/// The bytes that may be queued for the reader outside before the command has to wait.
const WAITING: usize = 256 << 10;
/// The bytes of input a command reads before this is reported, unless it read all.
const FED: usize = 16 << 10;
/// The longest a supervisor may take to kill a command. One that the command has stopped never does.
const ENDING: Duration = Duration::from_secs(3);

/// The first version of Landlock that keeps files from being truncated.
const TRUNCATION: u32 = 3;

/// Runs a command to its end. Until then its output is passed on and messages from outside are handled.
pub(super) fn keep(mut running: Running, input: File, mut output: File) -> io::Result<()> {
    if let Some(path) = look::wrong(&running.mounted) {
        let reason = format!("`{}` was replaced after the container was requested", path.display());
        return output.write_all(&told(&Told::Failed { step: "check the mounts".into(), reason }));
    }
    if let Some(at) = running.seen.iter().position(|(target, seen)| look::look(target) != *seen) {
        return output.write_all(&told(&Told::Changed(at)));
    }
    if running.reads_only
        && let Err(reason) = read_only(&mut running.spec)
    {
        return output.write_all(&told(&Told::Failed { step: READING.into(), reason }));
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
    // In any state of the supervisor, nothing stays.
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

/// Lets a command read everything and write only to `/tmp` and `/dev`. The container's mounts are shared with commands
/// that write, so Landlock holds this one.
fn read_only(spec: &mut Spec) -> Result<(), String> {
    let version = sys::landlock_version().map_err(|error| format!("Landlock: {error}"))?;
    if version < TRUNCATION {
        return Err(format!("Landlock has version {version} here, and version {TRUNCATION} is needed"));
    }
    if let Some(confined) = &mut spec.confined {
        let grant = |path: &str, write| Grant { path: path.into(), write };
        confined.reach.write = false;
        confined.reach.grants = vec![grant("/", false), grant("/dev", true)];
        confined.landlock = Some(version);
    }
    Ok(())
}

fn killed() -> Ending {
    Ending { signal: Some(Signal::KILL.as_raw()), ..Ending::default() }
}

/// Returns the number of processes of this container that the kernel killed because memory ran out.
fn memory_kills() -> u64 {
    let files = ["/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events"];
    let text = files.iter().find_map(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    let count = text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok());
    count.unwrap_or(0)
}

/// An event that the keeper waits for.
#[derive(Clone, Copy)]
enum End {
    /// The program outside reads.
    Reader,
    /// It says something.
    Speaker,
    /// The command reads.
    Feed,
    /// It prints.
    Printed(usize),
    /// The command's supervisor sends a message.
    Supervisor,
}

struct Keeper {
    /// The streams from and to the program outside.
    input: Option<File>,
    output: File,
    pieces: Pieces,
    /// The bytes queued for the reader outside.
    waiting: Vec<u8>,
    /// The socket to the supervisor of the command.
    control: Option<UnixStream>,
    ended: Option<Result<Ending, (String, String)>>,
    /// The command's streams.
    streams: Streams,
    /// The input that the command has not read yet.
    fed: Vec<u8>,
    /// True if no more input comes.
    closing: bool,
    /// The bytes of input read by the command and not reported yet.
    taken: usize,
    /// The deadline of the supervisor to end a command that is being killed.
    until: Option<Instant>,
}

impl Keeper {
    fn start(running: &Running, input: File, output: File) -> io::Result<Self> {
        let (streams, stdio) = Streams::open(running)?;
        let (ours, theirs) = inner::pair()?;
        let mut held = Some((theirs, stdio));
        let mut mine = Some((ours, streams, input, output));
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
        let (control, streams, input, output) = mine.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self {
            input: Some(input),
            output,
            pieces: Pieces::default(),
            waiting: Vec::new(),
            control: Some(control),
            ended: None,
            streams,
            fed: Vec::new(),
            closing: false,
            taken: 0,
            until: None,
        })
    }

    /// Until the command has ended.
    fn talk(&mut self) -> io::Result<()> {
        while self.control.is_some() {
            self.turn()?;
            if self.until.is_some_and(|until| until <= Instant::now()) {
                self.end(Ok(killed()));
            }
        }
        Ok(())
    }

    fn turn(&mut self) -> io::Result<()> {
        for (end, flags) in self.wait()? {
            match end {
                End::Reader => self.write(),
                End::Speaker => self.hear(),
                End::Feed if flags.intersects(PollFlags::ERR | PollFlags::HUP) => self.be_deaf(),
                End::Feed => self.feed(),
                End::Printed(at) => self.pass_on(at),
                End::Supervisor => self.listen(),
            }
        }
        Ok(())
    }

    /// Waits for events, and returns them in the order in which they are to be handled.
    fn wait(&self) -> io::Result<Vec<(End, PollFlags)>> {
        let full = self.waiting.len() >= WAITING;
        let (none, read, write) = (PollFlags::empty(), PollFlags::IN, PollFlags::OUT);
        let (mut ends, mut fds) = (Vec::new(), Vec::new());
        let mut add = |end, fd| {
            ends.push(end);
            fds.push(fd);
        };
        // Where nobody is outside, nobody waits for what is printed.
        if let Some(input) = &self.input {
            add(End::Reader, PollFd::new(&self.output, if self.waiting.is_empty() { none } else { write }));
            add(End::Speaker, PollFd::new(input, read));
        }
        if let Some(feed) = &self.streams.feed {
            add(End::Feed, PollFd::new(feed, if self.fed.is_empty() { none } else { write }));
        }
        // From the last on, since one that has ended is taken out.
        let printed = self.streams.printed.iter().enumerate().rev();
        for (at, printed) in printed.filter(|(_, printed)| !full && printed.window != Some(0)) {
            add(End::Printed(at), PollFd::new(&printed.file, read));
        }
        if let Some(control) = &self.control {
            add(End::Supervisor, PollFd::new(control, read));
        }
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        let left = left.map(|left| Timespec {
            tv_sec: left.as_secs().cast_signed(),
            tv_nsec: left.subsec_nanos().into(),
        });
        match poll(&mut fds, left.as_ref()) {
            Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            polled => polled?,
        };
        let ready = ends.into_iter().zip(fds.iter().map(PollFd::revents));
        Ok(ready.filter(|(_, flags)| !flags.is_empty()).collect())
    }

    /// Writes queued bytes to the program outside.
    fn write(&mut self) {
        let piece = &self.waiting[..self.waiting.len().min(PIPE)];
        match self.output.write(piece) {
            Ok(written @ 1..) => drop(self.waiting.drain(..written)),
            // With nothing to write it was looked at because nobody is there to read it.
            _ => self.leave(),
        }
    }

    /// Reads and obeys messages of the program outside.
    fn hear(&mut self) {
        let mut buffer = [0; PIPE];
        let count = self.input.as_mut().map_or(0, |input| input.read(&mut buffer).unwrap_or(0));
        if count == 0 {
            return self.leave();
        }
        self.pieces.add(&buffer[..count]);
        loop {
            let understood = match self.pieces.next() {
                Ok(None) => break,
                Ok(Some((kind, bytes))) => self.obey(kind, &bytes),
                Err(_) => None,
            };
            if understood.is_none() {
                return self.leave();
            }
        }
        self.close_feed();
    }

    fn obey(&mut self, kind: u8, bytes: &[u8]) -> Option<()> {
        match kind {
            INPUT => self.fed.extend(bytes),
            INPUT_END => self.closing = true,
            TERMINATE | KILL => self.say(kind),
            SIZE => {
                let size = serde_json::from_slice(bytes).ok()?;
                // It was refused outside where there is none; one that the kernel refuses stays as it is.
                let _ = self.streams.terminal.as_ref().map(|terminal| terminal.resize(size));
            }
            MORE => {
                let (kind, count) = wire::asked(bytes)?;
                let streams = self.streams.printed.iter_mut().filter(|stream| stream.kind == kind);
                for window in streams.filter_map(|stream| stream.window.as_mut()) {
                    *window = window.saturating_add(count);
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Kills the command, because nobody is outside any more.
    fn leave(&mut self) {
        self.input = None;
        self.waiting.clear();
        self.say(KILL);
    }

    fn say(&mut self, byte: u8) {
        if byte == KILL {
            self.until.get_or_insert_with(|| Instant::now() + ENDING);
        }
        // If nobody hears it, the command has ended.
        let _ = self.control.as_mut().map(|control| control.write_all(&[byte]));
    }

    fn feed(&mut self) {
        let piece = &self.fed[..self.fed.len().min(PIPE)];
        match self.streams.feed.as_mut().map(|feed| feed.write(piece)) {
            Some(Ok(written)) => {
                self.fed.drain(..written);
                self.taken += written;
            }
            Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
            // A command may close its input before it has read everything.
            _ => return self.be_deaf(),
        }
        if self.taken >= FED || self.fed.is_empty() {
            self.waiting.extend(told(&Told::Fed(self.taken)));
            self.taken = 0;
        }
        self.close_feed();
    }

    fn be_deaf(&mut self) {
        self.streams.feed = None;
        self.waiting.extend(told(&Told::Deaf));
        self.close_feed();
    }

    fn close_feed(&mut self) {
        if self.closing && self.fed.is_empty() {
            self.streams.feed = None;
        }
        if self.streams.feed.is_none() {
            self.fed.clear();
        }
    }

    /// Passes on the command's output.
    fn pass_on(&mut self, at: usize) {
        let mut buffer = [0; 4 * PIPE];
        let Some(stream) = self.streams.printed.get_mut(at) else { return };
        match stream.read(&mut buffer) {
            Ok(count @ 1..) if self.input.is_some() => {
                self.waiting.extend(wire::piece(stream.kind, &buffer[..count]));
            }
            Ok(_) => {}
            Err(_) => drop(self.streams.printed.remove(at)),
        }
    }

    /// Reads a message of the command's supervisor.
    fn listen(&mut self) {
        let Some(control) = self.control.as_mut() else { return };
        match inner::receive_frame(control) {
            Ok(inner::Told::Started { pid }) => self.waiting.extend(told(&Told::Started { pid })),
            Ok(inner::Told::Failed { step, reason }) => self.end(Err((step, reason))),
            Ok(inner::Told::Ended(ending)) => self.end(Ok(ending)),
            // It was killed; what it held is ended next.
            Err(_) => self.end(Ok(killed())),
        }
    }

    fn end(&mut self, ended: Result<Ending, (String, String)>) {
        self.ended = Some(ended);
        self.control = None;
        // Nobody is left who prints; what was printed is in the pipes, and told before the end is.
        end_descendants();
        for stream in std::mem::take(&mut self.streams.printed) {
            let kind = stream.kind;
            let rest = stream.drain();
            if self.input.is_some() && !rest.is_empty() {
                self.waiting.extend(wire::piece(kind, &rest));
            }
        }
        self.streams.feed = None;
    }
}
