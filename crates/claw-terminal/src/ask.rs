//! Questions to the person at the terminal: a line that shows, a line that does not, a secret from a pipe or from
//! the terminal; and input that stops being read once nobody wants it.

use std::convert::Infallible;
use std::io::{self, BufRead, IsTerminal as _, Read, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};
use secrecy::SecretString;
use thiserror::Error;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use zeroize::Zeroizing;

use crate::{complain, tell};

/// The longest [`AnswerInput`] takes to notice that no answer is wanted any more.
const POLLED: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The number of times a question is asked.
const ATTEMPTS: usize = 3;
/// The time that piped input is waited for.
const PIPED: Timespec = Timespec { tv_sec: 3, tv_nsec: 0 };

/// Why there is no answer.
#[derive(Debug, Error)]
pub enum AskError {
    /// Standard input failed.
    #[error("standard input could not be read")]
    Unread(#[source] io::Error),
    /// The terminal shows what is typed, and would show a secret.
    #[error("the terminal cannot be kept from showing it")]
    Shown(#[source] io::Error),
    /// Nothing was typed or piped.
    #[error("the value is empty")]
    Empty,
    /// More was piped than a secret may have.
    #[error("the value is too long; a secret has at most {most} bytes")]
    TooLong {
        /// The most bytes of a secret.
        most: usize,
    },
    /// The piped bytes are no text.
    #[error("the value is not UTF-8 from byte {at} on")]
    NotText {
        /// The first byte that is none of a text.
        at: usize,
    },
    /// The person was asked a few times, and no answer was valid.
    #[error("no valid answer was given; stopped asking")]
    Invalid,
}

/// Returns whether a person at a terminal can be asked.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Reads a secret of at most so many bytes; `None` if the person gave up with Ctrl-C.
pub fn ask_secret(runtime: &Runtime, what: &str, most: usize) -> Result<Option<SecretString>, AskError> {
    let mut text = if io::stdin().is_terminal() {
        match ask_hidden(runtime, &format!("{what} (input hidden): "), most)? {
            Some(text) => text,
            None => return Ok(None),
        }
    } else {
        piped(most)?
    };
    // A line break ends the line and is no part of the value; one that is gets another.
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    match text.is_empty() {
        true => Err(AskError::Empty),
        false => Ok(Some(SecretString::from(text.as_str()))),
    }
}

/// Returns whether a pipe or a file brings input. One that stays silent is not waited for, and the person is told.
pub fn is_piped() -> bool {
    let stdin = io::stdin();
    let kind = fstat(&stdin).map(|found| FileType::from_raw_mode(found.st_mode));
    if !matches!(kind, Ok(FileType::Fifo | FileType::RegularFile)) {
        return false;
    }
    let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
    let comes = matches!(poll(&mut waiting, Some(&PIPED)), Ok(1..));
    if !comes {
        tell("nothing came by standard input within 3 s; going on without it");
    }
    comes
}

/// The lines of standard input as they come. They are read on a thread of its own: the runtime would wait for one of
/// its own that reads, and the program would not end.
pub fn typed_lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Reads a line of at most so many bytes, and skips the rest of a longer one; `None` at the end of the input.
pub fn bounded_line(input: &mut impl BufRead, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if input.by_ref().take(most).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    while !line.ends_with(b"\n") && line.len() as u64 >= most {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let (used, is_over) = (end.map_or(buffer.len(), |at| at + 1), end.is_some() || buffer.is_empty());
        input.consume(used);
        if is_over {
            break;
        }
    }
    Ok(Some(line))
}

/// Waits until the program is asked to stop, by SIGTERM or Ctrl-C, and tells the note. A second signal ends the program.
pub async fn stop_requested(note: &str) {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return drop(tokio::signal::ctrl_c().await);
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    tell(note);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        std::process::exit(130);
    });
}

/// Calls `stop` on each Ctrl-C. With a note, the note is told on the first one and the second ends the program.
pub async fn on_interrupt(note: Option<&str>, mut stop: impl AsyncFnMut()) -> Infallible {
    let mut is_first = true;
    loop {
        if tokio::signal::ctrl_c().await.is_err() {
            return std::future::pending().await;
        }
        match note {
            Some(note) if is_first => tell(note),
            Some(_) => std::process::exit(130),
            None => {}
        }
        is_first = false;
        stop().await;
    }
}

fn piped(most: usize) -> Result<Zeroizing<String>, AskError> {
    // Room for all of it and a line break from the start: a buffer that never grows leaves no copy behind.
    let room = most + 2;
    let mut bytes = Zeroizing::new(Vec::with_capacity(room + 1));
    io::stdin().lock().take(room as u64 + 1).read_to_end(&mut bytes).map_err(AskError::Unread)?;
    if bytes.len() > room {
        return Err(AskError::TooLong { most });
    }
    let text = std::str::from_utf8(&bytes).map_err(|error| AskError::NotText { at: error.valid_up_to() })?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// Reads a visible line from a person; `None` if they gave up with Ctrl-C or Ctrl-D.
pub fn ask_line(runtime: &Runtime, question: &str) -> Result<Option<String>, AskError> {
    catch_interrupts(runtime);
    let _ = write!(anstream::stderr(), "{question}");
    match typed(runtime, 0)? {
        Some(line) if !line.is_empty() => Ok(Some(line.trim().to_owned())),
        _ => {
            let _ = writeln!(io::stderr());
            Ok(None)
        }
    }
}

/// Asks until an answer passes the check, a few times; `None` if the person gave up with Ctrl-C or Ctrl-D.
pub fn ask_until<T>(
    runtime: &Runtime,
    question: &str,
    check: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, AskError> {
    for _ in 0..ATTEMPTS {
        let Some(text) = ask_line(runtime, question)? else { return Ok(None) };
        match check(&text) {
            Ok(answer) => return Ok(Some(answer)),
            Err(message) => complain("no", message),
        }
    }
    Err(AskError::Invalid)
}

/// Asks for yes or no, an empty answer meaning `usual`; `None` if the person gave up.
pub fn ask_yes(runtime: &Runtime, question: &str, usual: bool) -> Result<Option<bool>, AskError> {
    let choice = if usual { "[Y/n]" } else { "[y/N]" };
    ask_until(runtime, &format!("{question} {choice} "), |text| match text.to_lowercase().as_str() {
        "" => Ok(usual),
        "y" | "yes" => Ok(true),
        "n" | "no" => Ok(false),
        _ => Err("answer `y` or `n`".to_owned()),
    })
}

/// Reads a line of at most so many bytes that does not show; `None` if the person gave up with Ctrl-C.
pub fn ask_hidden(
    runtime: &Runtime,
    question: &str,
    most: usize,
) -> Result<Option<Zeroizing<String>>, AskError> {
    catch_interrupts(runtime);
    let hidden = Hidden::new().map_err(|error| AskError::Shown(error.into()))?;
    let _ = write!(io::stderr(), "{question}");
    let line = typed(runtime, most);
    drop(hidden);
    let _ = writeln!(io::stderr());
    line
}

/// Takes Ctrl-C from now on, before a question is shown: a terminal that does not show what is typed must be put
/// back.
fn catch_interrupts(runtime: &Runtime) {
    let _inside = runtime.enter();
    // Where it cannot be taken, Ctrl-C ends the program, as it does without this.
    let _ = signal(SignalKind::interrupt());
}

/// Reads on a thread of its own, since reading a terminal cannot be stopped.
fn typed(runtime: &Runtime, most: usize) -> Result<Option<Zeroizing<String>>, AskError> {
    let (sender, answer) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut line = Zeroizing::new(String::with_capacity(most));
        let read = io::stdin().read_line(&mut line);
        let _ = sender.send(read.map(|_| line));
    });
    let line = runtime.block_on(async {
        tokio::select! {
            line = answer => Some(line.unwrap_or_else(|_| Err(io::ErrorKind::UnexpectedEof.into()))),
            _ = tokio::signal::ctrl_c() => None,
        }
    });
    line.transpose().map_err(AskError::Unread)
}

/// A terminal that does not echo input, until this is dropped.
struct Hidden(Termios);

impl Hidden {
    fn new() -> rustix::io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &hidden)?;
        Ok(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // Nothing is left to be done about the terminal being gone.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}

/// Standard input while an answer is wanted: a blocking read could not be undone, and would swallow the next input.
#[derive(Debug)]
pub struct AnswerInput(Arc<AtomicBool>);

/// Tells [`AnswerInput`], on drop, that no answer is wanted any more.
#[derive(Debug)]
pub struct AnswerWanted(Arc<AtomicBool>);

impl AnswerInput {
    /// Input for one answer. Reading fails once the second part is dropped.
    pub fn new() -> (Self, AnswerWanted) {
        let over = Arc::new(AtomicBool::new(false));
        (Self(Arc::clone(&over)), AnswerWanted(over))
    }

    /// Drops input typed before the question: it is no answer to it.
    pub fn forget_typed() {
        // A terminal that is gone gives no answer.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    }
}

impl Drop for AnswerWanted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Read for AnswerInput {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let stdin = io::stdin();
        loop {
            let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
            let ready = match poll(&mut waiting, Some(&POLLED)) {
                Ok(ready) => ready > 0,
                Err(Errno::INTR) => false,
                Err(error) => return Err(error.into()),
            };
            if self.0.load(Ordering::Acquire) {
                return Err(io::Error::other("no answer is wanted any more"));
            }
            if ready {
                return Ok(rustix::io::read(&stdin, bytes)?);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::bounded_line;

    #[test]
    fn a_long_line_is_cut_and_the_next_one_is_whole() {
        let mut input: &[u8] = b"one\nmuch too long\n\nlast";
        let mut next = || bounded_line(&mut input, 6).unwrap().map(|line| String::from_utf8(line).unwrap());
        assert_eq!(next().as_deref(), Some("one\n"));
        assert_eq!(next().as_deref(), Some("much t"));
        assert_eq!(next().as_deref(), Some("\n"));
        assert_eq!(next().as_deref(), Some("last"));
        assert_eq!(next(), None);
    }
}
