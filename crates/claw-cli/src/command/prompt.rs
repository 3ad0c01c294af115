//! Reading a secret, from a pipe or from a terminal that does not show it; and a line that a terminal shows.

use std::io::{self, IsTerminal as _, Read as _, Write as _};

use claw_store::vault::MOST_SECRET_BYTES;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use secrecy::SecretString;
use tokio::runtime::Runtime;
use zeroize::Zeroizing;

use crate::failure::Failure;

/// Reads a secret value; `None` if the person gave up with Ctrl-C. An empty value is an error with `hint`.
pub(super) fn value(runtime: &Runtime, what: &str, hint: &str) -> Result<Option<SecretString>, Failure> {
    let mut text = if io::stdin().is_terminal() {
        match asked(runtime, what)? {
            Some(text) => text,
            None => return Ok(None),
        }
    } else {
        piped()?
    };
    // A line break ends the line and is no part of the value; one that is gets another.
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    if text.is_empty() {
        return Err(Failure::usage("the value is empty").hint(hint));
    }
    Ok(Some(SecretString::from(text.as_str())))
}

fn piped() -> Result<Zeroizing<String>, Failure> {
    let most = MOST_SECRET_BYTES + 2;
    // Room for all of it from the start: what never grows leaves no copy behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(most + 1));
    let read = io::stdin().lock().take(most as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| Failure::failed("standard input could not be read").because(error))?;
    if bytes.len() > most {
        let message = format!("the value is too long; a secret has at most {MOST_SECRET_BYTES} bytes");
        return Err(Failure::usage(message));
    }
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        Failure::usage(format!("the value is not UTF-8 from byte {} on", error.valid_up_to()))
            .hint("encode it, for example with base64")
    })?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// Reads a visible line from a person; `None` if they gave up with Ctrl-C or Ctrl-D.
pub(super) fn line(runtime: &Runtime, question: &str) -> Result<Option<String>, Failure> {
    catch_interrupts(runtime);
    let _ = write!(anstream::stderr(), "{question}");
    match typed(runtime)? {
        Some(line) if !line.is_empty() => Ok(Some(line.trim().to_owned())),
        _ => {
            let _ = writeln!(io::stderr());
            Ok(None)
        }
    }
}

fn asked(runtime: &Runtime, what: &str) -> Result<Option<Zeroizing<String>>, Failure> {
    hidden(runtime, &format!("{what} (input hidden): "))
}

/// A line that a person types, which does not show; `None` where they gave up with Ctrl-C.
pub(super) fn hidden(runtime: &Runtime, question: &str) -> Result<Option<Zeroizing<String>>, Failure> {
    catch_interrupts(runtime);
    let hidden = Hidden::new()
        .map_err(|error| Failure::failed("the terminal cannot be kept from showing it").because(error))?;
    let _ = write!(io::stderr(), "{question}");
    let line = typed(runtime);
    drop(hidden);
    let _ = writeln!(io::stderr());
    line
}

/// Takes Ctrl-C from now on, before a question is shown: a terminal that does not show what is typed must be put back.
fn catch_interrupts(runtime: &Runtime) {
    let _inside = runtime.enter();
    // Where it cannot be taken, Ctrl-C ends the program, as it does without this.
    let _ = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt());
}

/// Reads on a thread of its own, since reading a terminal cannot be stopped.
fn typed(runtime: &Runtime) -> Result<Option<Zeroizing<String>>, Failure> {
    let (sender, answer) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut line = Zeroizing::new(String::with_capacity(MOST_SECRET_BYTES));
        let read = io::stdin().read_line(&mut line);
        let _ = sender.send(read.map(|_| line));
    });
    let line = runtime.block_on(async {
        tokio::select! {
            line = answer => Some(line.unwrap_or_else(|_| Err(io::ErrorKind::UnexpectedEof.into()))),
            _ = tokio::signal::ctrl_c() => None,
        }
    });
    line.transpose().map_err(|error| Failure::failed("the terminal could not be read").because(error))
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
